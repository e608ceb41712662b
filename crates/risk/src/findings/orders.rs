//! Orders in a text that should only describe its own tool.
//!
//! Patterns speak of kinds of order, not of phrases of known attacks: keeping something from the user,
//! reading secrets, handing over the conversation, speaking for other tools, cancelling instructions.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::FindingKind::{self, SubstitutedArgument};
use super::demands::{HELD, SINK, holdings, notes, recipients};
use super::patterns::{
    IN, SECRET_FILE, USER, addresses, concealment, consent, files, instructions, markup, tools,
};
use super::pretexts::{
    CLAUSE, FIELD, GIVE, OWN, TALK, cancelling, consent_given, handing_over, overruling, rivals,
};
use crate::text::{cut, fold_words, is_invisible};

/// Longest text that is read as prose.
const MOST: usize = 64 * 1024;

static RULES: LazyLock<Vec<(FindingKind, String)>> = LazyLock::new(rules);

/// Bytes, not characters: the patterns are ASCII, and byte classes keep them small and fast.
fn options(pattern: &str) -> RegexBuilder {
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).case_insensitive(true).size_limit(64 << 20).dfa_size_limit(8 << 20);
    builder
}

static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    let mut builder = RegexSetBuilder::new(RULES.iter().map(|(_, pattern)| pattern));
    builder.unicode(false).case_insensitive(true).size_limit(256 << 20).dfa_size_limit(16 << 20);
    builder.build().ok()
});

static EACH: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| RULES.iter().map(|(_, pattern)| options(pattern).build().ok()).collect());

fn rules() -> Vec<(FindingKind, String)> {
    let templates = [
        concealment(),
        consent(),
        instructions(),
        files(),
        addresses(),
        tools(),
        markup(),
        handing_over(),
        overruling(),
        consent_given(),
        cancelling(),
        rivals(),
        recipients(),
        holdings(),
        notes(),
    ];
    let pieces = [
        ("{HELD}", HELD),
        ("{SINK}", SINK),
        ("{CLAUSE}", CLAUSE),
        ("{GIVE}", GIVE),
        ("{FIELD}", FIELD),
        ("{TALK}", TALK),
        ("{OWN}", OWN),
        ("{IN}", IN),
        ("{FILE}", SECRET_FILE),
        ("{USER}", USER),
    ];
    let fill = |pattern: &str| {
        pieces.iter().fold(pattern.to_owned(), |text, (name, piece)| text.replace(name, piece))
    };
    templates.into_iter().flatten().map(|(kind, pattern)| (kind, fill(pattern))).collect()
}

/// The orders in running text, one a rule.
pub(super) fn in_text(text: &str) -> Vec<(FindingKind, String)> {
    if text.len() < 12 {
        return Vec::new();
    }
    let flat = flatten(cut(text, MOST));
    let Some(set) = SET.as_ref() else { return Vec::new() };
    set.matches(flat.as_bytes())
        .into_iter()
        .filter_map(|index| {
            let pattern = EACH.get(index)?.as_ref()?;
            let hit = pattern
                .find_iter(flat.as_bytes())
                .find(|hit| !is_denied(&flat, hit.start()) && !is_example(hit.as_bytes()))?;
            Some((RULES.get(index)?.0, String::from_utf8_lossy(hit.as_bytes()).into_owned()))
        })
        .collect()
}

/// A parameter whose name says what to put into it: `content_from_reading_ssh_key`.
pub(super) fn in_name(name: &str) -> Vec<(FindingKind, String)> {
    static READS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i-u)(?:from|after|by|of)[_-]?read(?:ing)?[_-]|(?:content|value|text|data)s?[_-](?:of|from)[_-](?:file|dot|ssh|env|etc|home|aws)").ok()
    });
    let hit = READS.as_ref().is_some_and(|pattern| pattern.is_match(name.as_bytes()));
    hit.then(|| (SubstitutedArgument, name.to_owned())).into_iter().collect()
}

/// `instead of silently applying` says that it does not.
fn is_denied(text: &str, at: usize) -> bool {
    if is_public_key(text, at) {
        return true;
    }
    let before = text.get(..at).unwrap_or_default().trim_end().to_lowercase();
    [
        "instead of",
        "rather than",
        "not",
        "never",
        "without",
        "won't",
        "doesn't",
        "don't",
        "prevents",
        "avoid",
        "avoids",
        "detect",
        "attackers can",
    ]
    .iter()
    .any(|word| before.ends_with(word))
}

/// `in E.164 form, for example +15550100100` shows how something is written.
fn is_example(hit: &[u8]) -> bool {
    static SHOWS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i-u)\b(?:e\.g\.|i\.e\.|for (?:example|instance)|example:|such as|looks? like|in the form|formatted)").ok()
    });
    SHOWS.as_ref().is_some_and(|pattern| pattern.is_match(hit))
}

/// A public key may be read: `~/.ssh/id_rsa.pub`.
fn is_public_key(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    cut(rest, 200).contains(".pub")
}

/// One line: wrapped lines joined, paragraphs and list items ended by a full stop, nothing invisible.
fn flatten(text: &str) -> String {
    let mut flat = String::with_capacity(text.len() + 16);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        for word in line.split_whitespace() {
            if !flat.is_empty() && !flat.ends_with(' ') {
                flat.push(' ');
            }
            flat.extend(word.chars().filter(|c| !is_invisible(*c)).map(|c| match c {
                '\u{2018}' | '\u{2019}' => '\'',
                '\u{201c}' | '\u{201d}' => '"',
                c => c,
            }));
        }
        let next = lines.peek().map(|next| next.trim_start());
        let ends = next.is_some_and(|next| {
            next.is_empty()
                || next.starts_with(['-', '*', '#', '•', '<', '|'])
                || next.starts_with(|c: char| c.is_ascii_digit())
        });
        if next.is_some() {
            flat.push_str(if ends && !flat.ends_with(['.', '!', '?', ':']) { ". " } else { " " });
        }
    }
    fold_words(&flat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_read() {
        for (kind, pattern) in RULES.iter() {
            assert!(
                options(pattern).build().is_ok(),
                "{kind}: {:?}",
                options(pattern).build().err()
            );
        }
        assert_eq!(SET.as_ref().map(RegexSet::len), Some(RULES.len()));
    }
}
