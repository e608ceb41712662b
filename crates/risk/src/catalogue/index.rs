//! A typo-tolerant, ranked index of short texts, in memory, built once.
//!
//! Words lead to documents. A query word finds words that are equal, begin with it, or are one or two
//! slips away. Whatever is asked, a search looks at a bounded number of entries: see [`Work`].

mod build;
mod slips;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

pub use build::IndexBuilder;

use crate::text::{cut, name_words};
use tally::Tally;

/// Texts of one document, the weightiest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What else it is known by: title, owner.
    pub also: &'a str,
    pub description: &'a str,
}

/// What a word weighs by the text it stands in; a posting holds the place in this list.
const WEIGHTS: [u32; 4] = [1, 6, 12, 20];
const DESCRIPTION: u32 = 0;
const ALSO: u32 = 1;
const NAME: u32 = 2;
const WHOLE_NAME: u32 = 3;
/// Bits of a posting that hold the weight.
const WEIGHT_BITS: u32 = 2;

/// No search gives more results.
pub const MOST_RESULTS: usize = 512;
const MOST_QUERY_WORDS: usize = 8;
const MOST_QUERY_BYTES: usize = 200;
/// Bytes of a word that count.
const MOST_WORD_BYTES: usize = 64;
/// Words that one word of a query may stand for.
const MOST_WORDS_LIKE_IT: usize = 200;
/// Postings that a query of several words counts in full, the rarest words first.
const MOST_POSTINGS: usize = 800_000;
/// Postings of a word that is too common for that: its best ones.
const MOST_OF_COMMON: usize = 128;
/// Letters of a prefix whose commonest words are known without looking.
const MOST_PREFIX_LETTERS: usize = 8;
/// One more word that matches outweighs any single match.
const MATCHED: u32 = 1 << 22;

/// One result: the document's number in build order, and its score.
pub type Scored = (u32, u32);

/// What a search looked at. Each is bounded, whatever the query and whatever the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Entries of documents by word.
    pub postings: usize,
    /// Entries of words by letter triple.
    pub triples: usize,
    /// Words compared letter by letter.
    pub compared: usize,
}

impl Work {
    /// What no search exceeds.
    pub const MOST: Self = Self {
        postings: MOST_POSTINGS + (MOST_QUERY_WORDS + 1) * MOST_WORDS_LIKE_IT * MOST_OF_COMMON,
        triples: MOST_QUERY_WORDS * slips::MOST_TRIPLES,
        compared: MOST_QUERY_WORDS * slips::MOST_COMPARED,
    };
}

/// Words that a query's word stands for, with the quality of the likeness.
type Group = Vec<(u32, u32)>;

/// The index: few large lists, so that half a million documents take little room.
#[derive(Debug, Default)]
pub struct WordIndex {
    /// All words in alphabetical order, one behind the other, and where each ends.
    letters: Box<str>,
    word_ends: Box<[usize]>,
    /// Document and weight by word, in rising order of documents, and where each word's end.
    postings: Box<[u32]>,
    posting_ends: Box<[usize]>,
    /// The best postings of words that more than `MOST_RESULTS` documents have, best first.
    best: HashMap<u32, Box<[u32]>>,
    /// The commonest words behind a short beginning that many have.
    prefixes: HashMap<Box<str>, Box<[u32]>>,
    /// Words by letter triple.
    triples: HashMap<[char; 3], Range<usize>>,
    triple_words: Box<[u32]>,
    /// Length of each document's name: of two equal hits the shorter name is nearer.
    lengths: Box<[u16]>,
}

impl WordIndex {
    /// Indexes the documents in their order.
    pub fn build<'a>(documents: impl IntoIterator<Item = Texts<'a>>) -> Self {
        let mut builder = IndexBuilder::default();
        for texts in documents {
            builder.add(&texts);
        }
        builder.finish()
    }

    /// The best `limit` documents, at most [`MOST_RESULTS`], best first; an empty query finds nothing.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Scored> {
        self.measured(query, limit).0
    }

    /// The same, and what was looked at for it.
    pub fn measured(&self, query: &str, limit: usize) -> (Vec<Scored>, Work) {
        let mut work = Work::default();
        let words = query_words(query);
        let last = words.len().saturating_sub(1);
        let like = |(at, word): (usize, &String)| self.like(word, at == last, &mut work);
        let mut groups: Vec<Group> = words.iter().enumerate().map(like).collect();
        if words.len() > 1 {
            // `execute python` also means `executepython`; slips are looked for in the words themselves.
            groups.push(self.beginning_with(cut(&words.concat(), MOST_WORD_BYTES)));
        }
        groups.retain(|group| !group.is_empty());
        let mut tally = Tally::new(if groups.is_empty() { 0 } else { self.lengths.len() });
        if let [group] = groups.as_slice() {
            // No document that is not among a word's best can be among the best of all.
            self.count(group, MOST_RESULTS, &mut tally, &mut work);
        } else {
            self.count_all(groups, &mut tally, &mut work);
        }
        (tally.best(&self.lengths, limit.min(MOST_RESULTS)), work)
    }

    /// Bytes that the index takes, without what the allocator adds.
    pub fn bytes(&self) -> usize {
        let of_best: usize = self.best.values().map(|best| 32 + 4 * best.len()).sum();
        let of_prefixes: usize =
            self.prefixes.iter().map(|(prefix, words)| 40 + prefix.len() + 4 * words.len()).sum();
        self.letters.len()
            + 8 * (self.word_ends.len() + self.posting_ends.len())
            + 4 * (self.postings.len() + self.triple_words.len())
            + 2 * self.lengths.len()
            + 40 * self.triples.len()
            + of_best
            + of_prefixes
    }

    /// Several words: the rarest in full, and of those beyond the bound their best.
    fn count_all(&self, mut groups: Vec<Group>, tally: &mut Tally, seen: &mut Work) {
        let size = |group: &Group| -> usize {
            group.iter().map(|(word, _)| self.postings_of(*word).len()).sum()
        };
        groups.sort_by_cached_key(size);
        let mut left = MOST_POSTINGS;
        for group in &groups {
            let size = size(group);
            let most = if size <= left { usize::MAX } else { MOST_OF_COMMON };
            left = left.saturating_sub(size);
            self.count(group, most, tally, seen);
        }
    }

    /// Counts at most so many documents of each word.
    fn count(&self, group: &Group, most: usize, tally: &mut Tally, seen: &mut Work) {
        for (word, quality) in group {
            let all = self.postings_of(*word);
            let points = WEIGHTS.map(|it| it * quality * rarity(all.len(), self.lengths.len()));
            let best = self.best.get(word).filter(|_| all.len() > most);
            let postings = best.map_or(all, |best| best);
            let postings = postings.get(..most).unwrap_or(postings);
            seen.postings += postings.len();
            for posting in postings {
                let weight = posting & ((1 << WEIGHT_BITS) - 1);
                tally.note(posting >> WEIGHT_BITS, points[weight as usize]);
            }
        }
        tally.close_word();
    }

    fn word(&self, number: u32) -> &str {
        self.letters.get(part(&self.word_ends, number)).unwrap_or_default()
    }

    fn postings_of(&self, number: u32) -> &[u32] {
        self.postings.get(part(&self.posting_ends, number)).unwrap_or_default()
    }

    /// Words like this one. A short word is spelt out unless it is still being typed.
    fn like(&self, word: &str, being_typed: bool, seen: &mut Work) -> Group {
        if !being_typed && word.chars().nth(2).is_none() {
            let at = self.first_where(|other| other >= word);
            if self.word(at) == word {
                return vec![(at, 100)];
            }
        }
        let found = self.beginning_with(word);
        if found.is_empty() { self.slips(word, seen) } else { found }
    }

    /// The number of the first word for which this holds; it holds for all behind it too.
    fn first_where(&self, holds: impl Fn(&str) -> bool) -> u32 {
        let (mut from, mut to) = (0, u32::try_from(self.word_ends.len()).unwrap_or(u32::MAX));
        while from < to {
            let middle = from + (to - from) / 2;
            if holds(self.word(middle)) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        from
    }

    /// The word itself, and words that begin with it: all, or the commonest.
    fn beginning_with(&self, word: &str) -> Group {
        let from = self.first_where(|other| other >= word);
        let to = self.first_where(|other| other > word && !other.starts_with(word));
        let quality = |number: u32| (number, if self.word(number) == word { 100 } else { 60 });
        if (from..to).len() <= MOST_WORDS_LIKE_IT {
            return (from..to).map(quality).collect();
        }
        match self.prefixes.get(word) {
            Some(commonest) => commonest.iter().copied().map(quality).collect(),
            None => (from..to).take(MOST_WORDS_LIKE_IT).map(quality).collect(),
        }
    }
}

/// The part of a list that belongs to this number, by where the parts end.
fn part(ends: &[usize], number: u32) -> Range<usize> {
    let number = number as usize;
    let from = number.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    from..ends.get(number).copied().unwrap_or(from)
}

/// The words of a query, each once.
fn query_words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in name_words(cut(query, MOST_QUERY_BYTES)) {
        let word = cut(&word.text, MOST_WORD_BYTES);
        if words.len() < MOST_QUERY_WORDS && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// Rare words say more: 8 for one document in a hundred thousand, 1 for a word that all have.
fn rarity(documents: usize, all: usize) -> u32 {
    let ratio = all.max(1) / documents.max(1);
    1 + ratio.max(1).ilog2() / 2
}

/// Letter triples, with the beginning and the end marked.
fn triples_of(word: &str) -> Vec<[char; 3]> {
    let padded: Vec<char> =
        std::iter::once('^').chain(word.chars()).chain(std::iter::once('$')).collect();
    let mut triples: Vec<[char; 3]> = padded.windows(3).map(|it| [it[0], it[1], it[2]]).collect();
    triples.sort_unstable();
    triples.dedup();
    triples
}
