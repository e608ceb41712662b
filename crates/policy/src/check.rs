//! Text to document, with everything that is wrong with it.

use serde::Serialize;
use serde_json::Value;

use crate::document::Document;
use crate::json::{Place, Tree, parse};
use crate::lint;
use crate::normalise::normalise;
use crate::problem::{Problem, ProblemSeverity, Problems};
use crate::read;
use crate::shape::{self, DOCUMENT, MAX_TEXT};

/// A tool that the server has, for suggestions and warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownTool {
    pub name: String,
    pub input_schema: Option<Value>,
}

/// What [`check`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// No errors; maybe warnings.
    pub ok: bool,
    /// In the order of the text.
    pub problems: Vec<Problem>,
    /// The long form, where there are no errors.
    pub normalised: Option<Value>,
}

/// Finds everything that is wrong or odd about a document. `known`: the server's tools, where they are known.
pub fn check(text: &str, known: Option<&[KnownTool]>) -> Checked {
    let mut problems = Problems::new(text);
    let Some(tree) = tree(text, &mut problems) else {
        return Checked { ok: false, problems: problems.finish(), normalised: None };
    };
    let document = read_tree(&tree, &mut problems);
    let ok = !problems.has_errors();
    lint::warn(&document, &tree.root, known, &mut problems);
    let normalised = ok.then(|| normalise(&tree.root));
    Checked { ok, problems: problems.finish(), normalised }
}

/// The same for bytes that may not be text at all.
pub fn check_bytes(bytes: &[u8], known: Option<&[KnownTool]>) -> Checked {
    match std::str::from_utf8(bytes) {
        Ok(text) => check(text, known),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let before = String::from_utf8_lossy(valid);
            let mut problems = Problems::new(&before);
            let words = "not JSON: the bytes here are not UTF-8".to_owned();
            problems.error("syntax", before.len(), &Place::ROOT, words);
            Checked { ok: false, problems: problems.finish(), normalised: None }
        }
    }
}

/// The document, or every error in it.
pub(crate) fn read(text: &str) -> Result<Document, Vec<Problem>> {
    let mut problems = Problems::new(text);
    let document = tree(text, &mut problems).map(|tree| read_tree(&tree, &mut problems));
    match document {
        Some(document) if !problems.has_errors() => Ok(document),
        _ => Err(problems.into_errors()),
    }
}

fn tree<'t>(text: &'t str, problems: &mut Problems<'_>) -> Option<Tree<'t>> {
    if text.len() > MAX_TEXT {
        let words =
            format!("the document has {} bytes; at most {MAX_TEXT} are allowed", text.len());
        problems.error("too_large", 0, &Place::ROOT, words);
        return None;
    }
    match parse(text) {
        Ok(tree) => Some(tree),
        Err((error, pointer)) => {
            let words = format!("not JSON: {error}");
            problems.add(ProblemSeverity::Error, "syntax", error.at, pointer, words, None);
            None
        }
    }
}

fn read_tree(tree: &Tree<'_>, problems: &mut Problems<'_>) -> Document {
    for twice in &tree.duplicates {
        let line = problems.line_of(twice.first_at);
        let words =
            format!("the key `{}` is here a second time; it is first in line {line}", twice.key);
        let pointer = twice.pointer.clone();
        problems.add(ProblemSeverity::Error, "duplicate_key", twice.at, pointer, words, None);
    }
    shape::check(&DOCUMENT, &tree.root, problems);
    let document = read::document(&tree.root, problems);
    lint::windows(&tree.root, problems);
    document
}
