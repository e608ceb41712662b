//! The operators: one table that the checker, the JSON Schema, the engine and
//! the documentation read.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// What the `value` of an operator must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueShape {
    Any,
    Number,
    Text,
    Regex,
    Boolean,
    List,
    Length,
}

macro_rules! ops {
    ($($name:ident = $word:literal, $shape:ident, $help:literal;)+) => {
        /// An operator of a condition.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "`help` says it")]
        pub enum Op { $($name),+ }

        impl Op {
            /// Every operator, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word in a document.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// What it asks, for people.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => $help),+ }
            }

            pub(crate) const fn shape(self) -> ValueShape {
                match self { $(Self::$name => ValueShape::$shape),+ }
            }
        }

        impl FromStr for Op {
            type Err = ();
            fn from_str(word: &str) -> Result<Self, ()> {
                match word { $($word => Ok(Self::$name),)+ _ => Err(()) }
            }
        }
    };
}

ops! {
    Eq = "eq", Any, "equals the value";
    Neq = "neq", Any, "differs from the value";
    Lt = "lt", Number, "is less than the number";
    Lte = "lte", Number, "is at most the number";
    Gt = "gt", Number, "is more than the number";
    Gte = "gte", Number, "is at least the number";
    In = "in", List, "is one of the list";
    NotIn = "not_in", List, "is none of the list";
    Exists = "exists", Boolean, "is present and not null (or, with false, is not)";
    Regex = "regex", Regex, "matches the regular expression somewhere";
    Contains = "contains", Any, "contains the text, or has it as an element";
    StartsWith = "starts_with", Text, "starts with the text";
    EndsWith = "ends_with", Text, "ends with the text";
    LengthLte = "length_lte", Length, "has at most so many characters or elements";
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
