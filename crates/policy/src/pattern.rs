//! Name patterns: `*` any run of characters, `?` one.

/// A tool name, or a pattern of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    literals: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Literal(char),
    One,
    Run,
}

/// Whether a name in a document is a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let mut parts = Vec::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '*' if parts.last() == Some(&Part::Run) => {}
                '*' => parts.push(Part::Run),
                '?' => parts.push(Part::One),
                other => parts.push(Part::Literal(other)),
            }
        }
        let literals = parts.iter().filter(|part| matches!(part, Part::Literal(_))).count();
        Self { parts, literals }
    }

    /// How many characters it fixes; more is more specific.
    pub(crate) const fn literals(&self) -> usize {
        self.literals
    }

    /// Whether it matches the whole name. Time is bounded by the product of the lengths.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut at = 0;
        let mut rest = name.chars();
        // Where to go on if the last `*` has to take one character more.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            match (self.parts.get(at), rest.next()) {
                (Some(Part::Run), _) => {
                    rest = before.clone();
                    retry = Some((at + 1, before));
                    at += 1;
                }
                (Some(Part::One), Some(_)) => at += 1,
                (Some(Part::Literal(wanted)), Some(found)) if *wanted == found => at += 1,
                (None, None) => return true,
                _ => {
                    let Some((after, mut from)) = retry.take() else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    at = after;
                    rest = from.clone();
                    retry = Some((after, from));
                }
            }
        }
    }

    /// Whether some name matches both. `work` is charged with the steps taken;
    /// `None` when it is used up.
    pub(crate) fn overlaps(&self, other: &Self, work: &mut usize) -> Option<bool> {
        let (mine, others) = (self.parts.iter(), other.parts.iter());
        if differ(mine.clone(), others.clone()) || differ(mine.rev(), others.rev()) {
            return Some(false);
        }
        let (a, b) = (&self.parts, &other.parts);
        if a.contains(&Part::Run) && b.contains(&Part::Run) {
            // One start, everything between them one after the other, one end.
            return Some(true);
        }
        let steps = (a.len() + 1) * (b.len() + 1);
        let Some(left) = work.checked_sub(steps) else {
            *work = 0;
            return None;
        };
        *work = left;
        // reach[j]: the first i parts of `a` and the first j of `b` can match one text.
        let mut reach = vec![false; b.len() + 1];
        reach[0] = true;
        for j in 0..b.len() {
            reach[j + 1] = reach[j] && b[j] == Part::Run;
        }
        for part in a {
            let mut next = vec![false; b.len() + 1];
            next[0] = reach[0] && *part == Part::Run;
            for j in 0..b.len() {
                let either_run = *part == Part::Run || b[j] == Part::Run;
                next[j + 1] = if either_run {
                    // The run stands for nothing, or takes what the other part takes.
                    reach[j + 1] || next[j]
                } else {
                    reach[j] && fits(*part, b[j])
                };
            }
            reach = next;
        }
        reach.last().copied()
    }
}

/// Whether the parts up to the first `*` of either keep them apart.
fn differ<'p>(a: impl Iterator<Item = &'p Part>, b: impl Iterator<Item = &'p Part>) -> bool {
    a.zip(b).take_while(|(a, b)| **a != Part::Run && **b != Part::Run).any(|(a, b)| !fits(*a, *b))
}

fn fits(a: Part, b: Part) -> bool {
    match (a, b) {
        (Part::Literal(x), Part::Literal(y)) => x == y,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*", "x", true),
            ("admin_*", "admin_", true),
            ("admin_*", "admin", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xaxbxb", true),
            ("*a*b", "xaxbx", false),
            ("?", "é", true),
            ("A*", "abc", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_stays_cheap() {
        let pattern = Pattern::new(&format!("{}b", "a*".repeat(500)));
        assert!(!pattern.matches(&"a".repeat(20_000)));
    }

    /// The obvious definition.
    fn slow(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=name.len()).any(|cut| slow(rest, &name[cut..])),
            (Some(('?', rest)), Some((_, tail))) => slow(rest, tail),
            (Some((wanted, rest)), Some((found, tail))) => wanted == found && slow(rest, tail),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_is_as_defined(pattern in "[ab*?]{0,6}", name in "[ab]{0,7}") {
            let (p, n): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
            prop_assert_eq!(Pattern::new(&pattern).matches(&name), slow(&p, &n));
        }

        #[test]
        fn overlap_means_some_name_matches_both(a in "[ab*?]{0,4}", b in "[ab*?]{0,4}") {
            let (a, b) = (Pattern::new(&a), Pattern::new(&b));
            let mut names = vec![String::new()];
            let mut all = names.clone();
            for _ in 0..8 {
                names = names.iter().flat_map(|n| [format!("{n}a"), format!("{n}b")]).collect();
                all.extend(names.iter().cloned());
            }
            let both = all.iter().any(|name| a.matches(name) && b.matches(name));
            prop_assert_eq!(a.overlaps(&b, &mut 1_000_000), Some(both));
        }
    }
}
