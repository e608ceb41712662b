//! Counters that do not go together.

use crate::document::Document;
use crate::json::Node;
use crate::problem::Problems;

/// The same counter with different windows.
pub(crate) fn counters(document: &Document, root: &Node<'_>, problems: &mut Problems<'_>) {
    let _ = (document, root, problems);
}
