//! What verbs and nouns mean for risk, and how to find them in names and sentences.
//! Broad on purpose: words that any vendor may use, never a server's or a tool's name.

mod english;
mod nouns;
mod world;

use std::collections::HashMap;
use std::sync::LazyLock;

use sluice_domain::Category;

pub(crate) use nouns::{
    is_interpreter, is_money_noun, is_person_noun, is_read_noun, is_relation_noun, is_secret_noun,
};

/// What an act does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Read,
    /// Works something out from what it is given.
    Compute,
    Write,
    /// Reaches people or systems outside.
    Send,
    Execute,
    Delete,
    Pay,
}

impl Act {
    pub(crate) const fn category(self) -> Category {
        match self {
            Self::Read | Self::Compute => Category::Read,
            Self::Write | Self::Send => Category::Write,
            Self::Execute => Category::Execute,
            Self::Delete => Category::Destructive,
            Self::Pay => Category::Financial,
        }
    }

    /// It changes something.
    pub(crate) const fn mutates(self) -> bool {
        !matches!(self, Self::Read | Self::Compute)
    }
}

/// How a verb is spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Base,
    /// `creates`
    Third,
    /// `creating`
    Ing,
    /// `created`: rarely an act in a name or at the head of a sentence.
    Past,
    /// `creation`, `deletion`
    Noun,
}

/// A verb as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verb {
    pub(crate) act: Act,
    pub(crate) form: Form,
    /// The word is as often a noun: `order`, `log`, `report`.
    pub(crate) noun: bool,
    /// What it does depends on its object: `open`, `resolve`, `generate`.
    pub(crate) weak: bool,
    /// Says nothing by itself: `manage`, `handle`, `confirm`.
    pub(crate) vague: bool,
}

impl Verb {
    const fn new(act: Act) -> Self {
        Self { act, form: Form::Base, noun: false, weak: false, vague: false }
    }

    /// A plain verb with one meaning.
    pub(crate) const fn is_strong(self) -> bool {
        !self.noun && !self.weak && !self.vague && !matches!(self.form, Form::Past)
    }
}

/// A set of words that is looked in for every parameter.
pub(crate) type Words = std::collections::HashSet<&'static str>;

/// A [`Words`] made once of a list that blanks part.
macro_rules! list {
    ($words:expr) => {{
        static LIST: std::sync::LazyLock<$crate::lexicon::Words> =
            std::sync::LazyLock::new(|| $words.split_whitespace().collect());
        &*LIST
    }};
}
pub(crate) use list;

static VERBS: LazyLock<HashMap<String, Verb>> = LazyLock::new(build);

/// Whether `word` is one of the words of `list`, which blanks part.
pub(crate) fn is_one_of(list: &str, word: &str) -> bool {
    // A search for the bytes, then for the borders: many times faster than parting the list.
    let (list, word) = (list.as_bytes(), word.as_bytes());
    let border = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    !word.is_empty()
        && memchr::memmem::find_iter(list, word).any(|at| {
            let before = at.checked_sub(1).and_then(|before| list.get(before));
            border(before) && border(list.get(at + word.len()))
        })
}

/// The verb that this folded word is, if any.
pub(crate) fn verb(word: &str) -> Option<Verb> {
    VERBS.get(word).copied().or_else(|| prefixed(word))
}

/// `unapprove` undoes, `resend` does again.
fn prefixed(word: &str) -> Option<Verb> {
    if nouns::is_known(word) {
        return None;
    }
    let known = |rest: &str| {
        VERBS
            .get(rest)
            .copied()
            .filter(|it| rest.len() >= 3 && !it.vague && it.act.mutates() && it.form != Form::Noun)
    };
    if let Some(verb) = word
        .strip_prefix("un")
        .and_then(known)
        .filter(|it| matches!(it.act, Act::Write | Act::Send))
    {
        return Some(Verb { act: Act::Write, noun: false, ..verb });
    }
    word.strip_prefix("re").and_then(known).map(|verb| Verb { noun: false, ..verb })
}

/// The first verb inside text that is written without blanks, with its byte range.
pub(crate) fn unspaced_verb(text: &str) -> Option<(Verb, std::ops::Range<usize>)> {
    world::UNSPACED
        .iter()
        .filter_map(|(word, act)| text.find(word).map(|at| (Verb::new(*act), at..at + word.len())))
        // The longer word of two at one place says more.
        .min_by_key(|(_, range)| (range.start, usize::MAX - range.len()))
}

/// Splits `createorupdate` or `deletefile` into a verb and what follows it.
pub(crate) fn split_run(word: &str) -> Option<(Verb, usize)> {
    if word.len() < 6 || !word.is_ascii() || verb(word).is_some() || nouns::is_known(word) {
        return None;
    }
    let found = joined_verbs(word).or_else(|| leading_verb(word)).or_else(|| trailing_verb(word));
    found.map(|(verb, end)| (Verb { noun: false, ..verb }, end))
}

/// Two verbs around `or` or `and`: the graver of the two.
fn joined_verbs(word: &str) -> Option<(Verb, usize)> {
    (3..word.len() - 4).rev().find_map(|end| {
        let (head, rest) = word.split_at(end);
        let first = verb(head).filter(|verb| verb.form == Form::Base)?;
        let rest = rest.strip_prefix("or").or_else(|| rest.strip_prefix("and"))?;
        let second = (3..=rest.len())
            .rev()
            .filter_map(|end| verb(rest.get(..end)?))
            .find(|verb| verb.form == Form::Base && !verb.vague)?;
        Some((if second.act > first.act { second } else { first }, word.len()))
    })
}

fn leading_verb(word: &str) -> Option<(Verb, usize)> {
    english::RUN_TOGETHER
        .split_whitespace()
        .filter(|head| word.starts_with(head))
        .max_by_key(|head| head.len())
        .filter(|head| {
            let rest = word.get(head.len()..).unwrap_or_default();
            let inflected = ["s", "ed", "d", "er", "or", "ing", "ion", "able", "ive"]
                .iter()
                .any(|ending| rest == *ending || rest.strip_suffix('s') == Some(ending));
            !inflected && (nouns::is_made_of_known(rest) || (rest.len() >= 4 && head.len() >= 5))
        })
        .and_then(|head| Some((verb(head)?, head.len())))
}

fn trailing_verb(word: &str) -> Option<(Verb, usize)> {
    english::RUN_TOGETHER
        .split_whitespace()
        .filter(|tail| tail.len() >= 5)
        .find(|tail| {
            word.strip_suffix(*tail).is_some_and(|rest| nouns::is_known(rest) || rest.len() >= 4)
        })
        .and_then(|tail| Some((verb(tail)?, word.len())))
}

fn build() -> HashMap<String, Verb> {
    let mut verbs = HashMap::new();
    for (act, words) in world::LISTS {
        for word in words.split_whitespace() {
            verbs.insert(crate::text::fold(word), Verb::new(*act));
        }
    }
    for (act, words) in english::LISTS {
        for word in words.split_whitespace() {
            let plain = word.trim_end_matches(['*', '~', '?']);
            let verb = Verb {
                noun: word.contains('*'),
                weak: word.contains('~'),
                vague: word.contains('?'),
                ..Verb::new(*act)
            };
            inflect(&mut verbs, plain, verb);
        }
    }
    for (act, words) in english::NOUNS_OF_ACTS {
        for word in words.split_whitespace() {
            verbs.insert(word.to_owned(), Verb { form: Form::Noun, noun: true, ..Verb::new(*act) });
        }
    }
    verbs
}

fn inflect(verbs: &mut HashMap<String, Verb>, base: &str, verb: Verb) {
    let stem = base.strip_suffix('e').unwrap_or(base);
    let hissing = ["s", "x", "z", "ch", "sh", "o"].iter().any(|end| base.ends_with(end));
    let consonant_y =
        base.strip_suffix('y').filter(|rest| !rest.ends_with(['a', 'e', 'i', 'o', 'u']));
    let (third, past) = match consonant_y {
        Some(rest) => (format!("{rest}ies"), format!("{rest}ied")),
        None if hissing => (format!("{base}es"), format!("{stem}ed")),
        None => (format!("{base}s"), format!("{stem}ed")),
    };
    let last = base.chars().last().unwrap_or('e');
    for (word, form) in [
        (base.to_owned(), Form::Base),
        (third, Form::Third),
        (format!("{stem}ing"), Form::Ing),
        (format!("{base}{last}ing"), Form::Ing),
        (past, Form::Past),
        (format!("{base}{last}ed"), Form::Past),
    ] {
        let fresh = Verb { form, ..verb };
        if form == Form::Base {
            verbs.insert(word, fresh);
        } else {
            verbs.entry(word).or_insert(fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_english_verb_is_listed_twice() {
        let mut seen = HashMap::new();
        let mut twice = Vec::new();
        for (act, words) in english::LISTS {
            for word in words.split_whitespace() {
                if let Some(other) = seen.insert(word.trim_end_matches(['*', '~', '?']), *act) {
                    twice.push(format!("{word}: {other:?} and {act:?}"));
                }
            }
        }
        assert_eq!(twice, Vec::<String>::new());
    }
}
