//! What does not fit, in words for the agent. Repeats no value of the arguments.

use std::fmt::Write as _;

use super::node::{Keyword, Kind, Number};

const MAX_WORDS: usize = 200;

/// Where in the arguments something is.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Member(String),
    Item(usize),
}

/// The place and what must be there.
pub(super) fn sentence(path: &[Step], what: &str) -> String {
    let mut place = String::new();
    for step in path {
        // Writing to a String cannot fail.
        let _ = match step {
            Step::Member(name) => write!(place, "/{}", super::index::escaped(name)),
            Step::Item(at) => write!(place, "/{at}"),
        };
    }
    let place =
        if place.is_empty() { "the arguments".to_owned() } else { format!("`{}`", cut(&place)) };
    format!("{place} {what}")
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_WORDS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Boolean => "a boolean",
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::Number => "a number",
        Kind::Integer => "an integer",
        Kind::String => "a string",
    }
}

/// What a keyword asks for.
pub(super) fn asked(keyword: &Keyword) -> String {
    let number = |what: &str, number: &Number| format!("must be {what} {}", cut(&number.0));
    match keyword {
        Keyword::Type(kinds) => {
            let kinds: Vec<&str> = kinds.iter().map(|one| kind(*one)).collect();
            format!("must be {}", kinds.join(" or "))
        }
        Keyword::Const(_) => "must be the one value that is allowed".to_owned(),
        Keyword::Enum(_) => "must be one of the values that are allowed".to_owned(),
        Keyword::MultipleOf(n) => number("a multiple of", n),
        Keyword::Maximum(n) => number("at most", n),
        Keyword::ExclusiveMaximum(n) => number("less than", n),
        Keyword::Minimum(n) => number("at least", n),
        Keyword::ExclusiveMinimum(n) => number("more than", n),
        Keyword::MaxLength(n) => format!("must have at most {n} characters"),
        Keyword::MinLength(n) => format!("must have at least {n} characters"),
        Keyword::Pattern(_) => "does not match the pattern".to_owned(),
        Keyword::MaxItems(n) => format!("must have at most {n} items"),
        Keyword::MinItems(n) => format!("must have at least {n} items"),
        Keyword::UniqueItems => "must not hold an item twice".to_owned(),
        Keyword::MaxProperties(n) => format!("must have at most {n} members"),
        Keyword::MinProperties(n) => format!("must have at least {n} members"),
        Keyword::AnyOf(_) => "fits none of the forms that are allowed".to_owned(),
        Keyword::OneOf(_) => "must fit exactly one of the forms that are allowed".to_owned(),
        Keyword::Not(_) => "has a form that is not allowed".to_owned(),
        Keyword::Contains(_) => "does not hold as many items of a kind as it must".to_owned(),
        _ => "is not allowed".to_owned(),
    }
}
