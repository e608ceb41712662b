//! Where the classifier and a label disagree, each read by a person and written down in `disagreements.txt`.
//! The list speaks of one labelled set; of another it says nothing.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

const WRITTEN: &str = include_str!("../disagreements.txt");

/// What was written of the disagreements, and which of them were met.
pub(crate) struct Disagreements {
    rows: BTreeMap<String, usize>,
    written: BTreeMap<(String, u64), Written>,
    unwritten: Vec<(String, u64)>,
}

struct Written {
    verdict: String,
    why: String,
    met: bool,
}

impl Disagreements {
    /// What is checked in.
    pub(crate) fn read() -> anyhow::Result<Self> {
        Self::parse(WRITTEN)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut all =
            Self { rows: BTreeMap::new(), written: BTreeMap::new(), unwritten: Vec::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let odd = || format!("disagreements.txt: {line}");
            if let Some(rows) = line.strip_prefix("rows ") {
                let (file, count) = rows.split_once(' ').with_context(odd)?;
                all.rows.insert(file.to_owned(), count.parse().with_context(odd)?);
                continue;
            }
            let (place, why) = line.split_once(": ").with_context(odd)?;
            let [file, number, verdict] = place.split(' ').collect::<Vec<_>>()[..] else {
                bail!("{}: `file line verdict: why`", odd());
            };
            if !matches!(verdict, "label" | "vendors" | "careful" | "missed") {
                bail!("{}: `{verdict}` is no verdict", odd());
            }
            let key = (file.to_owned(), number.parse().with_context(odd)?);
            let written = Written { verdict: verdict.to_owned(), why: why.to_owned(), met: false };
            if all.written.insert(key, written).is_some() {
                bail!("{}: written twice", odd());
            }
        }
        Ok(all)
    }

    /// Notes one, and says what was written of it.
    pub(crate) fn meet(&mut self, file: &str, line: u64) -> Option<(&str, &str)> {
        let key = (file.to_owned(), line);
        if !self.written.contains_key(&key) {
            self.unwritten.push(key.clone());
        }
        let written = self.written.get_mut(&key)?;
        written.met = true;
        Some((&written.verdict, &written.why))
    }

    /// The label itself is wrong, or contradicted by another vendor's.
    pub(crate) fn is_noise(&self, file: &str, line: u64) -> bool {
        let written = self.written.get(&(file.to_owned(), line));
        written.is_some_and(|it| matches!(it.verdict.as_str(), "label" | "vendors"))
    }

    /// The list was made for files of so many rows.
    pub(crate) fn is_of(&self, file: &str, rows: usize) -> bool {
        self.rows.get(file) == Some(&rows)
    }

    /// How many of each verdict were met.
    pub(crate) fn told(&self) -> String {
        let count = |verdict: &str| {
            self.written.values().filter(|it| it.met && it.verdict == verdict).count()
        };
        format!(
            "{} of wrong labels, {} where vendors differ, {} where ours is the safer word, {} missed; {} not written down",
            count("label"),
            count("vendors"),
            count("careful"),
            count("missed"),
            self.unwritten.len()
        )
    }

    /// What is not as written: disagreements nobody wrote of, and ones that are gone.
    pub(crate) fn faults(&self) -> Vec<String> {
        let new = self
            .unwritten
            .iter()
            .map(|(file, line)| format!("the disagreement of {file} {line} is not written down"));
        let gone = self
            .written
            .iter()
            .filter(|(_, it)| !it.met)
            .map(|((file, line), _)| format!("{file} {line} no longer disagrees"));
        new.chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_met_or_said_to_be_gone() {
        let text = "rows a 3\n# a remark\na 1 label: wrong\na 2 careful: safer\n";
        let mut all = Disagreements::parse(text).expect("it is read");
        assert!(all.is_of("a", 3) && !all.is_of("a", 4) && !all.is_of("b", 3));
        assert_eq!(all.meet("a", 1), Some(("label", "wrong")));
        assert_eq!(all.meet("a", 9), None);
        assert!(all.is_noise("a", 1) && !all.is_noise("a", 2) && !all.is_noise("a", 9));
        assert_eq!(
            all.faults(),
            ["the disagreement of a 9 is not written down", "a 2 no longer disagrees"]
        );
        for odd in ["a 1 perhaps: x", "a 1: x", "a x label: y", "a 1 label: y\na 1 label: y"] {
            assert!(Disagreements::parse(odd).is_err(), "{odd}");
        }
        assert!(Disagreements::read().is_ok_and(|it| it.written.len() > 40));
    }
}
