//! A typo-tolerant, ranked index of short texts, in memory, built once.
//!
//! Words lead to documents. A query word finds words that are equal, begin with it, or are one or two
//! slips away; slips are looked for only among words that share letter triples with it.

use std::collections::HashMap;

use crate::text::{cut, name_words, sentence_words};

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

const MOST_QUERY_WORDS: usize = 8;
const MOST_QUERY_BYTES: usize = 200;
const MOST_WORDS_LIKE_IT: usize = 200;
/// Words of a description that are looked up by.
const MOST_DESCRIPTION_WORDS: usize = 24;
/// Postings that one word of a query looks at: a letter that half a million documents share must not
/// take longer than a word.
const MOST_POSTINGS: usize = 1_500_000;
/// One more word that matches outweighs any single match.
const MATCHED: u32 = 1 << 22;

/// One result: the document's number in build order, and its score.
pub type Scored = (u32, u32);

#[derive(Debug, Default)]
struct Term {
    word: Box<str>,
    /// Document and weight, in rising order of documents.
    postings: Box<[u32]>,
}

/// The index.
#[derive(Debug, Default)]
pub struct WordIndex {
    /// In alphabetical order.
    terms: Vec<Term>,
    triples: HashMap<[char; 3], Vec<u32>>,
    /// Length of each document's name: of two equal hits the shorter name is nearer.
    lengths: Vec<u16>,
}

/// Takes documents one by one, so that not all their texts need be in memory.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    words: HashMap<String, Vec<u32>>,
    lengths: Vec<u16>,
}

impl IndexBuilder {
    /// Adds a document; gives its number.
    pub fn add(&mut self, texts: &Texts<'_>) -> u32 {
        let number = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX >> WEIGHT_BITS);
        self.lengths.push(u16::try_from(texts.name.len()).unwrap_or(u16::MAX));
        for (word, weight) in weighted(texts) {
            let found = self.words.entry(word).or_default();
            match found.last_mut().filter(|last| **last >> WEIGHT_BITS == number) {
                Some(last) => *last = (*last).max(number << WEIGHT_BITS | weight),
                None => found.push(number << WEIGHT_BITS | weight),
            }
        }
        number
    }

    /// The index of all that was added.
    pub fn finish(self) -> WordIndex {
        let term = |(word, postings): (String, Vec<u32>)| Term {
            word: word.into_boxed_str(),
            postings: postings.into_boxed_slice(),
        };
        let mut terms: Vec<Term> = self.words.into_iter().map(term).collect();
        terms.sort_unstable_by(|a, b| a.word.cmp(&b.word));
        let mut triples: HashMap<[char; 3], Vec<u32>> = HashMap::new();
        for (number, term) in (0_u32..).zip(&terms) {
            for triple in triples_of(&term.word) {
                triples.entry(triple).or_default().push(number);
            }
        }
        WordIndex { terms, triples, lengths: self.lengths }
    }
}

/// What a search adds up, one place a document: faster than any map once words are common.
struct Tally {
    scores: Vec<u32>,
    /// Of the query's word that is being looked at.
    best: Vec<u32>,
    touched: Vec<u32>,
    /// Documents with a score.
    hits: Vec<u32>,
}

impl Tally {
    fn new(documents: usize) -> Self {
        Self {
            scores: vec![0; documents],
            best: vec![0; documents],
            touched: Vec::new(),
            hits: Vec::new(),
        }
    }

    fn note(&mut self, document: u32, score: u32) {
        let Some(best) = self.best.get_mut(document as usize) else { return };
        if *best == 0 {
            self.touched.push(document);
        }
        *best = (*best).max(score);
    }

    /// Each document once, with the best of the word's likenesses.
    fn close_word(&mut self) {
        for document in self.touched.drain(..) {
            let at = document as usize;
            if self.scores[at] == 0 {
                self.hits.push(document);
            }
            let score = std::mem::take(&mut self.best[at]);
            self.scores[at] = self.scores[at].saturating_add(MATCHED + score.min(MATCHED / 16));
        }
    }
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

    /// The best `limit` documents, best first; an empty query finds nothing.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Scored> {
        let query = cut(query, MOST_QUERY_BYTES);
        let mut words: Vec<String> = name_words(query).into_iter().map(|word| word.text).collect();
        words.truncate(MOST_QUERY_WORDS);
        let mut groups: Vec<Vec<(usize, u32)>> = words.iter().map(|word| self.like(word)).collect();
        if words.len() > 1 {
            // `execute python` also means `executepython`; slips are looked for in the words themselves.
            groups.push(self.beginning_with(&words.concat()));
        }
        let mut tally = Tally::new(self.lengths.len());
        for group in groups {
            self.count(&group, &mut tally);
        }
        let Tally { scores, hits, .. } = tally;
        let mut found: Vec<Scored> =
            hits.into_iter().map(|document| (document, scores[document as usize])).collect();
        let order = |(document, score): &Scored| {
            let length = self.lengths.get(*document as usize).copied().unwrap_or(u16::MAX);
            (std::cmp::Reverse(*score), length, *document)
        };
        if found.len() > limit {
            found.select_nth_unstable_by_key(limit, order);
            found.truncate(limit);
        }
        found.sort_unstable_by_key(order);
        found
    }

    fn count(&self, group: &[(usize, u32)], tally: &mut Tally) {
        let mut left = MOST_POSTINGS;
        for (term, quality) in group {
            let postings = &self.terms[*term].postings;
            let rarity = rarity(postings.len(), self.lengths.len());
            let points = WEIGHTS.map(|weight| weight * quality * rarity);
            for posting in postings.iter().take(left) {
                let weight = posting & ((1 << WEIGHT_BITS) - 1);
                tally.note(posting >> WEIGHT_BITS, points[weight as usize]);
            }
            left = left.saturating_sub(postings.len());
        }
        tally.close_word();
    }

    /// Words like this one, with the quality of the likeness.
    fn like(&self, word: &str) -> Vec<(usize, u32)> {
        let found = self.beginning_with(word);
        if found.is_empty() { self.slips(word) } else { found }
    }

    fn beginning_with(&self, word: &str) -> Vec<(usize, u32)> {
        let from = self.terms.partition_point(|term| &*term.word < word);
        self.terms[from..]
            .iter()
            .enumerate()
            .take_while(|(_, term)| term.word.starts_with(word))
            .map(|(index, term)| {
                (from + index, if term.word.len() == word.len() { 100 } else { 60 })
            })
            .take(MOST_WORDS_LIKE_IT)
            .collect()
    }

    /// Words one slip away, two for long ones.
    fn slips(&self, word: &str) -> Vec<(usize, u32)> {
        let letters: Vec<char> = word.chars().collect();
        let most = match letters.len() {
            0..=3 => return Vec::new(),
            4..=7 => 1,
            _ => 2,
        };
        let triples: Vec<[char; 3]> = triples_of(word).collect();
        let mut shared: Vec<u8> = vec![0; self.terms.len()];
        let mut near: Vec<u32> = Vec::new();
        for term in triples.iter().filter_map(|triple| self.triples.get(triple)).flatten() {
            let count = &mut shared[*term as usize];
            if *count == 0 {
                near.push(*term);
            }
            *count = count.saturating_add(1);
        }
        // A slip breaks four triples at most; the end of a word that is still being typed is one more.
        let least = triples.len().saturating_sub(4 * most + 1).max(1);
        near.retain(|term| usize::from(shared[*term as usize]) >= least);
        let order = |term: &u32| (std::cmp::Reverse(shared[*term as usize]), *term);
        if near.len() > MOST_WORDS_LIKE_IT * 5 {
            near.select_nth_unstable_by_key(MOST_WORDS_LIKE_IT * 5, order);
            near.truncate(MOST_WORDS_LIKE_IT * 5);
        }
        near.sort_unstable_by_key(order);
        near.into_iter()
            .filter_map(|term| {
                let term = term as usize;
                let slips = distance(&letters, &self.terms[term].word, most)?;
                Some((term, if slips == 1 { 40 } else { 25 }))
            })
            .collect()
    }
}

/// Rare words say more: 8 for one document in a hundred thousand, 1 for a word that all have.
fn rarity(documents: usize, all: usize) -> u32 {
    let ratio = all.max(1) / documents.max(1);
    1 + ratio.max(1).ilog2() / 2
}

fn weighted(texts: &Texts<'_>) -> Vec<(String, u32)> {
    let parts: Vec<String> = name_words(texts.name).into_iter().map(|word| word.text).collect();
    let mut words = Vec::with_capacity(parts.len() + 24);
    if parts.len() > 1 {
        words.push((parts.concat(), WHOLE_NAME));
        words.extend(parts.into_iter().map(|word| (word, NAME)));
    } else {
        words.extend(parts.into_iter().map(|word| (word, WHOLE_NAME)));
    }
    words.extend(name_words(texts.also).into_iter().map(|word| (word.text, ALSO)));
    let described = sentence_words(cut(texts.description, 400), MOST_DESCRIPTION_WORDS);
    words.extend(described.into_iter().map(|word| (word.text, DESCRIPTION)));
    words
}

/// Letter triples, with the beginning and the end marked.
fn triples_of(word: &str) -> impl Iterator<Item = [char; 3]> {
    let padded: Vec<char> =
        std::iter::once('^').chain(word.chars()).chain(std::iter::once('$')).collect();
    let mut triples: Vec<[char; 3]> = padded.windows(3).map(|it| [it[0], it[1], it[2]]).collect();
    triples.sort_unstable();
    triples.dedup();
    triples.into_iter()
}

/// Slips between two words (a letter more, fewer, other, or two swapped), if at most `most`.
/// `other` may be longer: what is still being typed is not a slip.
fn distance(word: &[char], other: &str, most: usize) -> Option<usize> {
    let other: Vec<char> = other.chars().collect();
    if word.len() > other.len() + most {
        return None;
    }
    let other = &other[..other.len().min(word.len() + most)];
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, letter) in word.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, theirs) in other.iter().enumerate() {
            let above = &rows[i];
            let mut cost =
                (above[j + 1] + 1).min(row[j] + 1).min(above[j] + usize::from(letter != theirs));
            if i > 0 && j > 0 && *letter == other[j - 1] && word[i - 1] == *theirs {
                cost = cost.min(rows[i - 1][j - 1] + 1);
            }
            row.push(cost);
        }
        rows.push(row);
    }
    let last = rows.last()?;
    // The end of the other word may be missing.
    let best = last.iter().skip(word.len().saturating_sub(most)).min().copied()?;
    (best <= most).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(names: &[&str]) -> WordIndex {
        WordIndex::build(names.iter().map(|name| Texts { name, ..Texts::default() }))
    }

    fn first<'a>(names: &[&'a str], query: &str) -> Option<&'a str> {
        index(names).search(query, 5).first().map(|(document, _)| names[*document as usize])
    }

    const NAMES: &[&str] = &[
        "executePython",
        "execute_code",
        "read_file",
        "delete_file",
        "create_payment_link",
        "list_files",
        "файл_удалить",
    ];

    #[test]
    fn queries_find_what_was_meant() {
        for (query, name) in [
            ("executePython", "executePython"),
            ("execute python", "executePython"),
            ("excutePython", "executePython"),
            ("exceutepython", "executePython"),
            ("exec", "execute_code"),
            ("EXECUTE_CODE", "execute_code"),
            ("delte file", "delete_file"),
            ("paymnt", "create_payment_link"),
            ("lst files", "list_files"),
            ("удалить", "файл_удалить"),
        ] {
            assert_eq!(first(NAMES, query), Some(name), "{query}");
        }
    }

    #[test]
    fn nonsense_and_nothing_find_nothing() {
        for query in ["", "   ", "___", "zzzzqqqq", "\u{200b}", "xq"] {
            assert_eq!(first(NAMES, query), None, "{query:?}");
        }
        assert!(index(NAMES).search(&"file ".repeat(10_000), 3).len() <= 3);
    }

    #[test]
    fn common_words_and_single_letters_are_bounded_and_ranked() {
        let names: Vec<String> = (0..5_000).map(|n| format!("get_thing_{n}")).collect();
        let documents = names.iter().map(|name| Texts {
            name,
            description: "Gets a thing of all.",
            ..Texts::default()
        });
        let index = WordIndex::build(documents);
        assert_eq!(index.search("thing", 10).len(), 10);
        assert_eq!(index.search("g", 10).len(), 10);
        let found = index.search("get thing 4321", 3);
        assert_eq!(found.first().map(|(document, _)| *document), Some(4_321));
        let typo = index.search("thnig 17", 3);
        assert_eq!(typo.first().map(|(document, _)| *document), Some(17));
    }

    #[test]
    fn names_outweigh_descriptions() {
        let documents = [
            Texts { name: "notes", description: "Has to do with payment.", ..Texts::default() },
            Texts { name: "payment", ..Texts::default() },
        ];
        assert_eq!(
            WordIndex::build(documents).search("payment", 2).first().map(|it| it.0),
            Some(1)
        );
    }
}
