//! Builds an index from documents one by one, so that not all their texts need be in memory.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use crate::text::{Word, cut, name_words, sentence_words};

use super::{
    ALSO, DESCRIPTION, MOST_PREFIX_LETTERS, MOST_RESULTS, MOST_WORD_BYTES, MOST_WORDS_LIKE_IT,
    NAME, Texts, WEIGHT_BITS, WHOLE_NAME, WordIndex, part, triples_of,
};

/// Words of a name, and of what else a document is known by, that are looked up by.
const MOST_NAME_WORDS: usize = 16;
/// Words of a description that are looked up by.
const MOST_DESCRIPTION_WORDS: usize = 24;
const MOST_DESCRIPTION_BYTES: usize = 400;
const MOST_NAME_BYTES: usize = 300;

/// Takes documents one by one.
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
        let lengths = self.lengths.into_boxed_slice();
        let mut words: Vec<(String, Vec<u32>)> = self.words.into_iter().collect();
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let (mut letters, mut postings) = (String::new(), Vec::new());
        let (mut word_ends, mut posting_ends) = (Vec::new(), Vec::new());
        let mut best = HashMap::new();
        for (number, (word, of_word)) in (0..).zip(words) {
            letters.push_str(&word);
            word_ends.push(letters.len());
            if of_word.len() > MOST_RESULTS {
                best.insert(number, best_of(&of_word, &lengths));
            }
            postings.extend(of_word);
            posting_ends.push(postings.len());
        }
        let mut index = WordIndex {
            letters: letters.into_boxed_str(),
            word_ends: word_ends.into_boxed_slice(),
            postings: postings.into_boxed_slice(),
            posting_ends: posting_ends.into_boxed_slice(),
            best,
            lengths,
            ..WordIndex::default()
        };
        (index.triples, index.triple_words) = by_triple(&index);
        index.prefixes = commonest_by_prefix(&index);
        index
    }
}

/// As a search orders them: the weight, then the length of the name, then the order of documents.
fn best_of(postings: &[u32], lengths: &[u16]) -> Box<[u32]> {
    let order = |posting: &u32| {
        let weight = posting & ((1 << WEIGHT_BITS) - 1);
        let document = posting >> WEIGHT_BITS;
        (Reverse(weight), lengths.get(document as usize).copied(), document)
    };
    let mut best = postings.to_vec();
    best.select_nth_unstable_by_key(MOST_RESULTS, order);
    best.truncate(MOST_RESULTS);
    best.sort_unstable_by_key(order);
    best.into_boxed_slice()
}

fn numbers(index: &WordIndex) -> Range<u32> {
    0..u32::try_from(index.word_ends.len()).unwrap_or(u32::MAX)
}

type ByTriple = (HashMap<[char; 3], Range<usize>>, Box<[u32]>);

fn by_triple(index: &WordIndex) -> ByTriple {
    let mut lists: HashMap<[char; 3], Vec<u32>> = HashMap::new();
    for number in numbers(index) {
        for triple in triples_of(index.word(number)) {
            lists.entry(triple).or_default().push(number);
        }
    }
    let mut all = Vec::with_capacity(lists.values().map(Vec::len).sum());
    let mut ranges = HashMap::with_capacity(lists.len());
    for (triple, list) in lists {
        let from = all.len();
        all.extend(list);
        ranges.insert(triple, from..all.len());
    }
    (ranges, all.into_boxed_slice())
}

/// For each short beginning that too many words share: those that most documents have.
fn commonest_by_prefix(index: &WordIndex) -> HashMap<Box<str>, Box<[u32]>> {
    let mut prefixes = HashMap::new();
    for letters in 1..=MOST_PREFIX_LETTERS {
        let mut group: (&str, Range<u32>) = ("", 0..0);
        for number in numbers(index) {
            let Some(prefix) = beginning(index.word(number), letters) else { continue };
            if prefix == group.0 {
                group.1.end = number + 1;
                continue;
            }
            keep_commonest(index, &group, &mut prefixes);
            group = (prefix, number..number + 1);
        }
        keep_commonest(index, &group, &mut prefixes);
    }
    prefixes
}

fn keep_commonest(
    index: &WordIndex,
    (prefix, group): &(&str, Range<u32>),
    prefixes: &mut HashMap<Box<str>, Box<[u32]>>,
) {
    if group.len() <= MOST_WORDS_LIKE_IT {
        return;
    }
    let order = |number: &u32| {
        let documents = part(&index.posting_ends, *number).len();
        // The word itself is the first.
        (index.word(*number) != *prefix, Reverse(documents), *number)
    };
    let mut words: Vec<u32> = group.clone().collect();
    words.select_nth_unstable_by_key(MOST_WORDS_LIKE_IT, order);
    words.truncate(MOST_WORDS_LIKE_IT);
    words.sort_unstable_by_key(order);
    prefixes.insert((*prefix).into(), words.into_boxed_slice());
}

/// The first letters of a word that has so many.
fn beginning(word: &str, letters: usize) -> Option<&str> {
    let (at, last) = word.char_indices().nth(letters - 1)?;
    word.get(..at + last.len_utf8())
}

fn weighted(texts: &Texts<'_>) -> Vec<(String, u32)> {
    let short = |word: Word| {
        let mut text = word.text;
        text.truncate(cut(&text, MOST_WORD_BYTES).len());
        text
    };
    let names = |text: &str| name_words(cut(text, MOST_NAME_BYTES));
    let parts: Vec<String> =
        names(texts.name).into_iter().take(MOST_NAME_WORDS).map(short).collect();
    let mut words = Vec::with_capacity(parts.len() + 24);
    if parts.len() > 1 {
        words.push((cut(&parts.concat(), MOST_WORD_BYTES).to_owned(), WHOLE_NAME));
        words.extend(parts.into_iter().map(|word| (word, NAME)));
    } else {
        words.extend(parts.into_iter().map(|word| (word, WHOLE_NAME)));
    }
    let also = names(texts.also).into_iter().take(MOST_NAME_WORDS);
    words.extend(also.map(|word| (short(word), ALSO)));
    let described =
        sentence_words(cut(texts.description, MOST_DESCRIPTION_BYTES), MOST_DESCRIPTION_WORDS);
    words.extend(described.into_iter().map(|word| (short(word), DESCRIPTION)));
    words
}
