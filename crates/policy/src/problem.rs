//! What is wrong, or odd, about a document: all of it at once, each with its place.

use serde::Serialize;

use crate::json::{Lines, Place};

/// Whether a problem keeps the document from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemSeverity {
    /// The document cannot be used.
    Error,
    /// It can, but probably says something else than was meant.
    Warning,
}

/// One finding of [`check`](crate::check).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub severity: ProblemSeverity,
    /// Stable, for programs.
    pub code: &'static str,
    /// JSON Pointer into the text as written.
    pub pointer: String,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// A sentence for a person.
    pub message: String,
    /// What was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// Gathers problems.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    lines: Lines<'a>,
    list: Vec<Problem>,
    /// How many of `list` are errors.
    errors: usize,
    /// Whether the newest problem is in `list`.
    told: bool,
}

/// The most errors, and the most warnings, that are told of one document; a person fixes some and
/// checks again. Each has its own bound: warnings must never crowd an error out.
const MOST: usize = 1_000;

impl<'a> Problems<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { lines: Lines::new(text), list: Vec::new(), errors: 0, told: false }
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: usize,
        place: &Place<'_>,
        words: String,
    ) {
        self.add(ProblemSeverity::Error, code, at, place.pointer(), words, None);
    }

    pub(crate) fn warn(&mut self, code: &'static str, at: usize, place: &Place<'_>, words: String) {
        self.add(ProblemSeverity::Warning, code, at, place.pointer(), words, None);
    }

    /// Adds a suggestion to the problem told last.
    pub(crate) fn suggest(&mut self, suggestion: Option<String>) {
        if let Some(last) = self.list.last_mut().filter(|_| self.told) {
            last.suggestion = suggestion;
        }
    }

    pub(crate) fn add(
        &mut self,
        severity: ProblemSeverity,
        code: &'static str,
        at: usize,
        pointer: String,
        message: String,
        suggestion: Option<String>,
    ) {
        let error = severity == ProblemSeverity::Error;
        let told = if error { self.errors } else { self.list.len() - self.errors };
        self.told = told < MOST;
        if self.told {
            self.errors += usize::from(error);
            let (line, column) = self.lines.locate(at);
            let problem = Problem { severity, code, pointer, line, column, message, suggestion };
            self.list.push(problem);
        }
    }

    /// The line of a byte, for messages.
    pub(crate) fn line_of(&self, at: usize) -> u32 {
        self.lines.locate(at).0
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The errors alone, in the order of the text.
    pub(crate) fn into_errors(self) -> Vec<Problem> {
        let mut list = self.finish();
        list.retain(|problem| problem.severity == ProblemSeverity::Error);
        list
    }

    /// In the order of the text.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.list.sort_by_key(|problem| (problem.line, problem.column, problem.severity));
        self.list
    }
}
