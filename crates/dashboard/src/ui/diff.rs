//! The change between two texts, line by line, with a little around it.

use askama::Template;

use super::Html;
use super::code::json_lines;

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Same,
    Added,
    Removed,
    /// Lines left out because nothing changed there.
    Gap,
}

/// One line of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffLine {
    pub(crate) kind: LineKind,
    pub(crate) html: Html,
}

impl DiffLine {
    fn class(&self) -> &'static str {
        match self.kind {
            LineKind::Same => "",
            LineKind::Added => " add",
            LineKind::Removed => " del",
            LineKind::Gap => " gap",
        }
    }

    /// Said to those who cannot see colour or the sign in the margin.
    fn spoken(&self) -> &'static str {
        match self.kind {
            LineKind::Added => "added: ",
            LineKind::Removed => "removed: ",
            LineKind::Same | LineKind::Gap => "",
        }
    }
}

/// A change of a JSON text, shown inline.
#[derive(Debug, Template)]
#[template(path = "parts/diff.html")]
pub(crate) struct Diff {
    pub(crate) label: String,
    pub(crate) lines: Vec<DiffLine>,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

impl askama::filters::HtmlSafe for Diff {}

/// Lines of context kept around a change.
const CONTEXT: usize = 3;
/// Beyond this many pairs of lines the middle is shown as replaced whole, so that the work stays small.
const MAX_PAIRS: usize = 4_000_000;

impl Diff {
    /// The change from `old` to `new`.
    pub(crate) fn new(label: &str, old: &str, new: &str) -> Self {
        let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
            (old.lines().collect(), new.lines().collect());
        let steps = steps(&old_lines, &new_lines);
        let count = |kind| steps.iter().filter(|(k, _)| *k == kind).count();
        let (added, removed) = (count(LineKind::Added), count(LineKind::Removed));
        Self { label: label.to_owned(), lines: fold(&steps), added, removed }
    }

    /// Nothing differs.
    pub(crate) fn is_empty(&self) -> bool {
        self.added + self.removed == 0
    }
}

/// Every line of both texts, in the order they are shown.
fn steps<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(LineKind, &'a str)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_mid, new_mid) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut out: Vec<_> = old[..head].iter().map(|line| (LineKind::Same, *line)).collect();
    if old_mid.len().saturating_mul(new_mid.len()) > MAX_PAIRS {
        out.extend(old_mid.iter().map(|line| (LineKind::Removed, *line)));
        out.extend(new_mid.iter().map(|line| (LineKind::Added, *line)));
    } else {
        middle(old_mid, new_mid, &mut out);
    }
    out.extend(old[old.len() - tail..].iter().map(|line| (LineKind::Same, *line)));
    out
}

/// The longest common subsequence, from a table of lengths.
fn middle<'a>(old: &[&'a str], new: &[&'a str], out: &mut Vec<(LineKind, &'a str)>) {
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i * width + j] = if old[i] == new[j] {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push((LineKind::Same, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])
        {
            out.push((LineKind::Removed, old[i]));
            i += 1;
        } else {
            out.push((LineKind::Added, new[j]));
            j += 1;
        }
    }
}

/// Leaves out what is far from any change.
fn fold(steps: &[(LineKind, &str)]) -> Vec<DiffLine> {
    let mut near = vec![false; steps.len()];
    for (at, (kind, _)) in steps.iter().enumerate() {
        if *kind != LineKind::Same {
            let end = (at + CONTEXT + 1).min(steps.len());
            near[at.saturating_sub(CONTEXT)..end].fill(true);
        }
    }
    let mut out = Vec::new();
    let mut skipped = 0;
    for (at, (kind, text)) in steps.iter().enumerate() {
        if near[at] {
            gap(&mut out, &mut skipped);
            let html = json_lines(text).into_iter().next().unwrap_or_default();
            out.push(DiffLine { kind: *kind, html });
        } else {
            skipped += 1;
        }
    }
    gap(&mut out, &mut skipped);
    out
}

fn gap(out: &mut Vec<DiffLine>, skipped: &mut usize) {
    if *skipped > 0 {
        let words = super::text::count(*skipped, "unchanged line", None);
        out.push(DiffLine { kind: LineKind::Gap, html: Html(words) });
        *skipped = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(old: &str, new: &str) -> String {
        let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
        steps(&old, &new)
            .iter()
            .map(|(kind, text)| {
                let sign = match kind {
                    LineKind::Same => ' ',
                    LineKind::Added => '+',
                    LineKind::Removed => '-',
                    LineKind::Gap => '?',
                };
                format!("{sign}{text}")
            })
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn a_change_is_the_least_that_explains_it() {
        assert_eq!(signs("a\nb\nc", "a\nx\nc"), " a -b +x  c");
        assert_eq!(signs("", "a\nb"), "+a +b");
        assert_eq!(signs("a\nb", ""), "-a -b");
        assert_eq!(signs("a\nb\nc\nd", "b\nc\ne\nd"), "-a  b  c +e  d");
        assert!(Diff::new("x", "a\nb", "a\nb").is_empty());
    }

    #[test]
    fn far_lines_are_folded_and_counted() {
        let old: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new[20] = "changed".to_owned();
        let diff = Diff::new("x", &old.join("\n"), &new.join("\n"));
        assert_eq!((diff.added, diff.removed, diff.lines.len()), (1, 1, 10));
        assert_eq!(diff.lines[0].html.0, "17 unchanged lines");
    }

    #[test]
    fn huge_texts_are_replaced_whole() {
        let old = "a\n".repeat(3_000);
        let new = "b\n".repeat(3_000);
        let diff = Diff::new("x", &old, &new);
        assert_eq!((diff.added, diff.removed), (3_000, 3_000));
    }
}
