//! Checks arguments against a tool's input schema (JSON Schema 2020-12, 2019-09 and draft 7), exactly: on
//! the digits that were sent, never on floats. Bounded: a server's schema cannot make a check run long or
//! deep, and no reference leads out of it. What cannot be told is said to be that, and is neither a
//! violation nor a fit.

mod build;
mod check;
mod equal;
mod index;
mod mirror;
mod node;
mod pattern;
mod words;

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;

use serde_json::Value;

#[cfg(test)]
pub(crate) use self::check::STEPS;
pub(crate) use self::mirror::{Mirror, mirrors};
use self::node::Node;

/// Larger schemas are not read.
pub(crate) const MAX_TEXT: usize = 256 * 1024;

/// How arguments stand against a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fits,
    /// What does not fit, in words that repeat no value.
    Violation(String),
    /// Why it cannot be told.
    Unknown(&'static str),
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
            return Err("it is too large");
        }
        let document: Value = serde_json::from_str(text).map_err(|_| "it is not JSON")?;
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
