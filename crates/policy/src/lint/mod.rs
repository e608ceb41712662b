//! What a document says that was probably not meant.

mod counters;

use crate::check::KnownTool;
use crate::document::Document;
use crate::json::Node;
use crate::problem::Problems;

pub(crate) use counters::counters;

/// Adds the warnings.
pub(crate) fn warn(
    document: &Document,
    root: &Node<'_>,
    known: Option<&[KnownTool]>,
    problems: &mut Problems<'_>,
) {
    let _ = (document, root, known, problems);
}
