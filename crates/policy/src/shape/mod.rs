//! The shape of a document as tables. The checker and the JSON Schema are two
//! readers of these tables, so they cannot disagree.

mod check;
mod formats;
mod ranges;
mod schema;
mod tables;

use crate::op::Op;

pub(crate) use check::check;
pub(crate) use formats::duration_seconds;
pub use schema::json_schema;
pub(crate) use tables::{DOCUMENT, MAX_CONDITIONS, MAX_LIMITS, MAX_RULES, MAX_TEXT, MAX_WHOLE};

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Shape {
    Text,
    Name,
    Boolean,
    Whole {
        min: u64,
        max: u64,
    },
    /// The `max` of a limit: see [`Extra::Limit`].
    Amount,
    /// The `value` of a comparison: see [`Extra::Comparison`].
    Value,
    Words {
        what: &'static str,
        words: &'static [&'static str],
    },
    Format(&'static Format),
    List {
        item: &'static Shape,
        min: usize,
        max: usize,
    },
    /// Names and patterns to entries.
    Tools {
        entry: &'static Shape,
        max: usize,
    },
    Object(&'static ObjectShape),
    /// A string of the one, or an object of the other.
    Either(&'static Format, &'static ObjectShape),
    /// A comparison, `any` or `not`, with so many levels of `any` and `not` left.
    Condition,
}

/// A string with a grammar.
pub(crate) struct Format {
    /// With its article: `a window`.
    pub(crate) what: &'static str,
    /// Problem code.
    pub(crate) code: &'static str,
    /// The grammar as a regular expression that Rust and ECMA 262 read alike.
    pub(crate) pattern: fn() -> String,
    /// The same grammar with words for what is wrong.
    pub(crate) check: fn(&str) -> Result<(), String>,
    /// What was probably meant.
    pub(crate) suggest: fn(&str) -> Option<String>,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)
    }
}

/// An object with known keys.
#[derive(Debug)]
pub(crate) struct ObjectShape {
    /// Its name among the schema's definitions.
    pub(crate) name: &'static str,
    /// With its article: `a limit`.
    pub(crate) what: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) extra: Extra,
}

/// A key of an object.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) help: &'static str,
}

/// What ties the keys of an object together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    None,
    /// `max` is whole unless `increment_from` is there.
    Limit,
    /// `action: deny` and `hide` stand alone; `reason` belongs to `action: deny`.
    Entry,
    /// `value` fits `op`.
    Comparison,
}

/// The `action` values that stand alone.
pub(crate) const LONE_ACTIONS: &[&str] = &["deny", "hide"];
/// The one operator whose `value` may be left out.
pub(crate) const DEFAULTED: Op = Op::Exists;
