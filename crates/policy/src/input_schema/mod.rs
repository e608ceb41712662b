//! Checks arguments against a tool's input schema (JSON Schema 2020-12, 2019-09 and draft 7), exactly: on
//! the digits that were sent, never on floats. Bounded: a server's schema cannot make a check run long or
//! deep, and no reference leads out of it. What cannot be told is said to be that, and is neither a
//! violation nor a fit.

mod build;
mod check;
mod equal;
mod index;
mod node;
mod pattern;
mod words;

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::node::Node;
use crate::arguments::Arguments;

/// Larger schemas are not read.
const MAX_TEXT: usize = 256 * 1024;

/// How arguments stand against a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fits,
    /// What does not fit, in words that repeat no value.
    Violation(String),
    /// Why it cannot be told.
    Unknown(&'static str),
}

/// A tool's pinned input schema. One that cannot be used says so for every call.
#[derive(Debug)]
pub struct InputSchema(Result<Schema, &'static str>);

impl InputSchema {
    /// Larger texts are not read.
    pub const MOST_BYTES: usize = MAX_TEXT;
    /// Steps that a check may take, besides some for each byte of the arguments.
    pub const MOST_STEPS: usize = check::STEPS;

    /// Reads the schema's JSON text.
    pub fn read(text: &str) -> Self {
        Self(Schema::read(text))
    }

    /// Whether it is JSON of a size that is read.
    pub const fn is_usable(&self) -> bool {
        self.0.is_ok()
    }

    /// The same for arguments that may be a record that lacks values.
    pub fn problem_of(&self, arguments: &Arguments<'_>) -> Option<String> {
        if arguments.keeps_less() {
            return Some("the log does not keep what the schema asks for".to_owned());
        }
        self.problem(arguments.raw())
    }

    /// Why the arguments, JSON text, do not fit, or why that cannot be told, in words that repeat no value.
    pub fn problem(&self, arguments: &str) -> Option<String> {
        let unknown = |why: &str| format!("whether the arguments fit cannot be told: {why}").into();
        match &self.0 {
            Err(why) => unknown(why),
            Ok(schema) => match schema.check(arguments) {
                Verdict::Fits => None,
                Verdict::Violation(what) => Some(what),
                Verdict::Unknown(why) => unknown(why),
            },
        }
    }
}

/// A schema, ready to check with.
#[derive(Debug)]
pub(crate) struct Schema {
    nodes: Vec<Node>,
    /// Some part asks which members others have looked at.
    tracks: bool,
}

impl Schema {
    /// Reads a schema; what of it cannot be used makes verdicts unknown, not the reading fail. An error:
    /// it is too large, or not JSON.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_TEXT {
            return Err("the tool's input schema is too large");
        }
        let document: Value =
            serde_json::from_str(text).map_err(|_| "the tool's input schema is not JSON")?;
        Ok(build::build(&document))
    }

    /// Checks a JSON text.
    pub(crate) fn check(&self, arguments: &str) -> Verdict {
        match serde_json::from_str(arguments) {
            Ok(instance) => check::check(self, &instance, arguments.len()),
            Err(_) => Verdict::Unknown("the arguments cannot be read"),
        }
    }
}
