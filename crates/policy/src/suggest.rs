//! "Did you mean": the nearest of some words by edit distance.

/// The word nearest to `typed`, if it is near enough to be a slip.
pub fn nearest<'w>(typed: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if typed.chars().count() > 80 {
        return None;
    }
    let plain = typed.to_lowercase();
    words
        .into_iter()
        .filter(|word| *word != typed)
        .map(|word| (distance(&plain, &word.to_lowercase()), word))
        .filter(|(steps, word)| *steps <= allowed(word))
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, word)| word)
}

fn allowed(word: &str) -> usize {
    match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    }
}

/// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 3 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word_and_other_words_do_not() {
        let words = ["require", "deny_if", "approve_if", "limits", "lt", "lte"];
        for (typed, meant) in [
            ("requre", Some("require")),
            ("reqiure", Some("require")),
            ("denyif", Some("deny_if")),
            ("Limits", Some("limits")),
            ("ltee", Some("lte")),
            ("banana", None),
            ("x", None),
        ] {
            assert_eq!(nearest(typed, words), meant, "{typed}");
        }
    }
}
