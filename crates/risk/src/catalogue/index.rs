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

const NAME: u32 = 12;
const WHOLE_NAME: u32 = 20;
const ALSO: u32 = 6;
const DESCRIPTION: u32 = 1;

const MOST_QUERY_WORDS: usize = 8;
const MOST_QUERY_BYTES: usize = 200;
const MOST_WORDS_LIKE_IT: usize = 200;

/// One result: the document's number in build order, and its score.
pub type Scored = (u32, u32);

#[derive(Debug, Default)]
struct Term {
    word: String,
    /// Documents in rising order, with the weight of the best text it stands in.
    documents: Vec<(u32, u32)>,
}

/// The index.
#[derive(Debug, Default)]
pub struct WordIndex {
    /// In alphabetical order.
    terms: Vec<Term>,
    triples: HashMap<[char; 3], Vec<u32>>,
    /// Length of each document's name: of two equal hits the shorter name is nearer.
    lengths: Vec<u32>,
}

impl WordIndex {
    /// Indexes the documents in their order.
    pub fn build<'a>(documents: impl IntoIterator<Item = Texts<'a>>) -> Self {
        let mut words: HashMap<String, Vec<(u32, u32)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (number, texts) in (0_u32..).zip(documents) {
            lengths.push(u32::try_from(texts.name.len()).unwrap_or(u32::MAX));
            for (word, weight) in weighted(&texts) {
                let found = words.entry(word).or_default();
                match found.last_mut().filter(|(last, _)| *last == number) {
                    Some((_, best)) => *best = (*best).max(weight),
                    None => found.push((number, weight)),
                }
            }
        }
        let mut terms: Vec<Term> =
            words.into_iter().map(|(word, documents)| Term { word, documents }).collect();
        terms.sort_unstable_by(|a, b| a.word.cmp(&b.word));
        let mut triples: HashMap<[char; 3], Vec<u32>> = HashMap::new();
        for (number, term) in (0_u32..).zip(&terms) {
            for triple in triples_of(&term.word) {
                triples.entry(triple).or_default().push(number);
            }
        }
        Self { terms, triples, lengths }
    }

    /// The best `limit` documents, best first; an empty query finds nothing.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Scored> {
        let query = cut(query, MOST_QUERY_BYTES);
        let mut words: Vec<String> = name_words(query).into_iter().map(|word| word.text).collect();
        words.truncate(MOST_QUERY_WORDS);
        let mut scores: HashMap<u32, (u32, u32)> = HashMap::new();
        let mut groups: Vec<Vec<(usize, u32)>> = words.iter().map(|word| self.like(word)).collect();
        if words.len() > 1 {
            // `execute python` also means `executepython`.
            groups.push(self.like(&words.concat()));
        }
        for group in groups {
            for (document, score) in self.of_group(&group) {
                let entry = scores.entry(document).or_default();
                entry.0 += 1;
                entry.1 += score;
            }
        }
        let mut found: Vec<Scored> = scores
            .into_iter()
            // Matching one more word outweighs any single match.
            .map(|(document, (matched, score))| (document, matched * 100_000 + score.min(99_999)))
            .collect();
        found.sort_unstable_by_key(|(document, score)| {
            let length = self.lengths.get(*document as usize).copied().unwrap_or(u32::MAX);
            (std::cmp::Reverse(*score), length, *document)
        });
        found.truncate(limit);
        found
    }

    /// Each document once, with the best of the group's words.
    fn of_group(&self, group: &[(usize, u32)]) -> HashMap<u32, u32> {
        let mut best: HashMap<u32, u32> = HashMap::new();
        for (term, quality) in group {
            let documents = &self.terms[*term].documents;
            let rarity = rarity(documents.len(), self.lengths.len());
            for (document, weight) in documents {
                let score = weight * quality * rarity;
                let entry = best.entry(*document).or_default();
                *entry = (*entry).max(score);
            }
        }
        best
    }

    /// Words like this one, with the quality of the likeness.
    fn like(&self, word: &str) -> Vec<(usize, u32)> {
        let from = self.terms.partition_point(|term| term.word.as_str() < word);
        let mut found: Vec<(usize, u32)> = self.terms[from..]
            .iter()
            .enumerate()
            .take_while(|(_, term)| term.word.starts_with(word))
            .map(|(index, term)| {
                (from + index, if term.word.len() == word.len() { 100 } else { 60 })
            })
            .take(MOST_WORDS_LIKE_IT)
            .collect();
        if found.is_empty() {
            found = self.slips(word);
        }
        found
    }

    /// Words one slip away, two for long ones.
    fn slips(&self, word: &str) -> Vec<(usize, u32)> {
        let letters: Vec<char> = word.chars().collect();
        let most = match letters.len() {
            0..=3 => return Vec::new(),
            4..=7 => 1,
            _ => 2,
        };
        let mut shared: HashMap<u32, usize> = HashMap::new();
        for triple in triples_of(word) {
            for term in self.triples.get(&triple).into_iter().flatten() {
                *shared.entry(*term).or_default() += 1;
            }
        }
        let mut near: Vec<(u32, usize)> = shared.into_iter().collect();
        near.sort_unstable_by_key(|(term, count)| (std::cmp::Reverse(*count), *term));
        near.into_iter()
            .take(MOST_WORDS_LIKE_IT * 5)
            .filter_map(|(term, _)| {
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
    let described = sentence_words(cut(texts.description, 400), 40);
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
