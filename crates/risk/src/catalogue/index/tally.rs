//! Adds up what documents score, and picks the best.

use std::cmp::Reverse;

use super::{MATCHED, Scored};

/// Better is smaller: the score, then the length of the name, then the order of the documents.
type Place = (Reverse<u32>, u16, u32);

/// What a search adds up, one place a document: faster than any map once words are common.
pub(super) struct Tally {
    scores: Vec<u32>,
    /// Of the query's word that is being looked at.
    best: Vec<u32>,
    touched: Vec<u32>,
    /// Documents with a score.
    hits: Vec<u32>,
}

impl Tally {
    pub(super) fn new(documents: usize) -> Self {
        Self {
            scores: vec![0; documents],
            best: vec![0; documents],
            touched: Vec::new(),
            hits: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, document: u32, score: u32) {
        let Some(best) = self.best.get_mut(document as usize) else { return };
        if *best == 0 {
            self.touched.push(document);
        }
        *best = (*best).max(score);
    }

    /// Each document once, with the best of the word's likenesses.
    pub(super) fn close_word(&mut self) {
        for document in self.touched.drain(..) {
            let at = document as usize;
            if self.scores[at] == 0 {
                self.hits.push(document);
            }
            let score = std::mem::take(&mut self.best[at]);
            self.scores[at] = self.scores[at].saturating_add(MATCHED + score.min(MATCHED / 16));
        }
    }

    /// The best `limit` of all hits, best first. Hits that cannot be among them cost one comparison each.
    pub(super) fn best(self, lengths: &[u16], limit: usize) -> Vec<Scored> {
        if limit == 0 {
            return Vec::new();
        }
        let mut kept: Vec<Place> = Vec::with_capacity(self.hits.len().min(2 * limit));
        let mut worst: Option<Place> = None;
        for document in self.hits {
            let at = document as usize;
            let length = lengths.get(at).copied().unwrap_or(u16::MAX);
            let place = (Reverse(self.scores[at]), length, document);
            if worst.is_some_and(|worst| place > worst) {
                continue;
            }
            kept.push(place);
            if kept.len() >= 2 * limit {
                kept.select_nth_unstable(limit - 1);
                kept.truncate(limit);
                worst = kept.last().copied();
            }
        }
        kept.sort_unstable();
        kept.truncate(limit);
        kept.into_iter().map(|(Reverse(score), _, document)| (document, score)).collect()
    }
}
