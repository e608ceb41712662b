//! Words that are a slip or two away, looked for only among words that share letter triples.

use std::cmp::Reverse;

use super::{Group, MOST_WORDS_LIKE_IT, WordIndex, Work, triples_of};

/// Entries of words by triple that one word of a query looks at.
pub(super) const MOST_TRIPLES: usize = 100_000;
/// Words that one word of a query is compared with.
pub(super) const MOST_COMPARED: usize = 500;
/// Longer words are pasted, not typed.
const MOST_LETTERS: usize = 32;
const MOST_SLIPS: usize = 2;
/// Columns of a comparison: the other word may be longer by the slips.
const COLUMNS: usize = MOST_LETTERS + MOST_SLIPS + 1;

impl WordIndex {
    /// Words one slip away, two for long ones.
    pub(super) fn slips(&self, word: &str, seen: &mut Work) -> Group {
        let letters: Vec<char> = word.chars().take(MOST_LETTERS + 1).collect();
        let most = match letters.len() {
            4..=7 => 1,
            8..=MOST_LETTERS => MOST_SLIPS,
            _ => return Vec::new(),
        };
        let mut near = self.sharing_triples(word, letters.len() - most, most, seen);
        let order = |(number, shared): &(u32, u8)| (Reverse(*shared), *number);
        if near.len() > MOST_COMPARED {
            near.select_nth_unstable_by_key(MOST_COMPARED, order);
            near.truncate(MOST_COMPARED);
        }
        near.sort_unstable_by_key(order);
        seen.compared += near.len();
        let mut found: Group = near
            .into_iter()
            .filter_map(|(number, _)| {
                let slips = distance(&letters, self.word(number), most)?;
                Some((number, if slips == 1 { 40 } else { 25 }))
            })
            .collect();
        found.sort_by_key(|(_, quality)| Reverse(*quality));
        found.truncate(MOST_WORDS_LIKE_IT);
        found
    }

    /// Words of so many bytes that share triples with this one, with how many were seen.
    fn sharing_triples(
        &self,
        word: &str,
        bytes: usize,
        slips: usize,
        seen: &mut Work,
    ) -> Vec<(u32, u8)> {
        let triples = triples_of(word);
        // A slip breaks four triples at most; the end of a word that is still being typed is one more.
        // Who shares all others shares one of any `decisive` triples: the rarest are looked at.
        let decisive = (4 * slips + 2).min(triples.len());
        let mut lists: Vec<&[u32]> = triples
            .iter()
            .map(|triple| {
                let range = self.triples.get(triple).cloned().unwrap_or_default();
                self.triple_words.get(range).unwrap_or_default()
            })
            .collect();
        lists.sort_by_key(|list| list.len());
        let mut shared: Vec<u8> = vec![0; self.word_ends.len()];
        let mut near: Vec<u32> = Vec::new();
        let mut left = MOST_TRIPLES;
        for (at, list) in lists.into_iter().enumerate() {
            for number in list.iter().take(left) {
                let count = &mut shared[*number as usize];
                if *count == 0 {
                    if at >= decisive || self.word(*number).len() < bytes {
                        continue;
                    }
                    near.push(*number);
                }
                *count = count.saturating_add(1);
            }
            seen.triples += list.len().min(left);
            left = left.saturating_sub(list.len());
        }
        near.into_iter().map(|number| (number, shared[number as usize])).collect()
    }
}

/// Slips between two words (a letter more, fewer, other, or two swapped), if at most `most`.
/// `other` may be longer: what is still being typed is not a slip.
fn distance(word: &[char], other: &str, most: usize) -> Option<usize> {
    const FAR: usize = usize::MAX / 2;
    let mut theirs = ['\0'; COLUMNS];
    let mut length = 0;
    for letter in other.chars().take((word.len() + most).min(COLUMNS - 1)) {
        theirs[length] = letter;
        length += 1;
    }
    if word.len() > length + most || word.len() > MOST_LETTERS {
        return None;
    }
    let mut before = [FAR; COLUMNS];
    let mut above: [usize; COLUMNS] = std::array::from_fn(|column| column);
    for (i, letter) in word.iter().enumerate() {
        let mut row = [FAR; COLUMNS];
        row[0] = i + 1;
        // Further from the diagonal there are more slips than allowed.
        for j in i.saturating_sub(most)..(i + most + 1).min(length) {
            let mut cost = (above[j + 1] + 1)
                .min(row[j] + 1)
                .min(above[j] + usize::from(*letter != theirs[j]));
            if i > 0 && j > 0 && *letter == theirs[j - 1] && word[i - 1] == theirs[j] {
                cost = cost.min(before[j - 1] + 1);
            }
            row[j + 1] = cost;
        }
        (before, above) = (above, row);
    }
    // The end of the other word may be missing.
    let ends = above.get(word.len().saturating_sub(most)..=length)?;
    ends.iter().min().copied().filter(|slips| *slips <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (word, other, slips) in [
            ("delte", "delete", Some(1)),
            ("deleet", "delete", Some(1)),
            ("dilete", "delete", Some(1)),
            ("deelete", "delete", Some(1)),
            ("dlt", "delete", None),
            ("executepyhton", "executepython", Some(1)),
            ("exceutepyhton", "executepython", Some(2)),
            ("exceutepyhtno", "executepython", None),
            ("paymnt", "payments", Some(1)),
            ("удалтиь", "удалить", Some(1)),
            ("xelete", "delete", Some(1)),
        ] {
            let letters: Vec<char> = word.chars().collect();
            let most = if letters.len() < 8 { 1 } else { 2 };
            assert_eq!(distance(&letters, other, most), slips, "{word} {other}");
        }
    }
}
