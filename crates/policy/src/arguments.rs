//! A call's arguments as raw JSON text, checked once and read lazily.

use crate::json::{TopLevel, check_strict};

/// The arguments of one call: JSON text of an object that every reader reads alike.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    raw: &'a str,
    top: TopLevel,
    /// From the log, with marks where values were not kept.
    recorded: bool,
}

/// Why a text cannot be a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// Not strict JSON: malformed, duplicate keys, half surrogates, too deep.
    #[error("{reason} (byte {at})")]
    Malformed {
        /// In words.
        reason: String,
        /// The byte where it was found.
        at: usize,
    },
    /// JSON, but not an object.
    #[error("arguments must be an object")]
    NotAnObject,
}

impl<'a> Arguments<'a> {
    /// No arguments: an empty object.
    pub const EMPTY: Self = Self { raw: "{}", top: TopLevel::NONE, recorded: false };

    /// Checks a text and takes it as arguments.
    pub fn parse(text: &'a str) -> Result<Self, ArgumentsError> {
        let top = check_strict(text).map_err(|error| ArgumentsError::Malformed {
            reason: error.to_string(),
            at: error.at,
        })?;
        if !text.trim_start().starts_with('{') {
            return Err(ArgumentsError::NotAnObject);
        }
        Ok(Self { raw: text, top, recorded: false })
    }

    /// Arguments as the log keeps them: see [`recorded`](crate::recorded).
    pub fn recorded(text: &'a str) -> Result<Self, ArgumentsError> {
        Self::parse(text).map(|arguments| Self { recorded: true, ..arguments })
    }

    pub(crate) const fn is_recorded(self) -> bool {
        self.recorded
    }

    /// A record that lacks values of the call.
    pub(crate) fn keeps_less(self) -> bool {
        self.recorded && self.raw.contains(crate::recorded::MARK)
    }

    pub(crate) const fn top(&self) -> &TopLevel {
        &self.top
    }

    /// The text as it came.
    pub const fn raw(self) -> &'a str {
        self.raw
    }
}

impl std::fmt::Debug for Arguments<'_> {
    /// Values may be secrets; only the size is told.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arguments({} bytes)", self.raw.len())
    }
}
