//! Merges a piece of a policy into a document's text and leaves everything
//! else as it stands: order, digits, spacing, descriptions.

mod parts;
mod text;

use serde_json::Value;

use self::text::Edited;
use crate::check::check;
use crate::document::DefaultAction;
use crate::json::parse;
use crate::problem::Problem;

pub use parts::{get, put, remove, shift, write_out};

/// Why a piece cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The document has errors of its own.
    #[error("the document has errors")]
    Document(Vec<Problem>),
    /// The piece is not made of `hide`, `all_tools` and `tools`.
    #[error("the piece to apply is not of `hide`, `all_tools` and `tools`: {0}")]
    Fragment(String),
    /// Together they would not be a valid document.
    #[error("the rule does not fit the document")]
    Conflict(Vec<Problem>),
}

/// Adds what `fragment` has and the document lacks. Doing it twice changes nothing more. A limit
/// whose counter, window and scope the tool already has is left as the document has it.
pub fn apply_rule(document_text: &str, fragment: &Value) -> Result<String, EditError> {
    let before = check(document_text, None);
    if !before.ok {
        return Err(EditError::Document(before.problems));
    }
    let mut text = Edited { text: document_text.to_owned() };
    let parts = fragment.as_object().ok_or_else(|| EditError::Fragment("an object".to_owned()))?;
    for (key, value) in parts {
        match (key.as_str(), value) {
            ("hide", Value::Array(names)) => {
                for name in names {
                    text.add_item(&[], "hide", name);
                }
            }
            ("all_tools", Value::Object(entry)) => text.add_entry(&[], "all_tools", entry),
            ("tools", Value::Object(tools)) => {
                for (tool, entry) in tools {
                    let entry =
                        entry.as_object().ok_or_else(|| EditError::Fragment(tool.clone()))?;
                    text.add_entry(&["tools"], tool, entry);
                }
            }
            _ => return Err(EditError::Fragment(key.clone())),
        }
    }
    let after = check(&text.text, None);
    if !after.ok {
        return Err(EditError::Conflict(after.problems));
    }
    Ok(text.text)
}

/// Sets `default` and leaves everything else as it stands.
pub fn set_default(document_text: &str, action: DefaultAction) -> Result<String, EditError> {
    let before = check(document_text, None);
    let place = parse(document_text)
        .ok()
        .and_then(|tree| tree.root.get("default").map(|node| node.start..node.end));
    let (true, Some(place)) = (before.ok, place) else {
        return Err(EditError::Document(before.problems));
    };
    let word = match action {
        DefaultAction::Allow => "\"allow\"",
        DefaultAction::Deny => "\"deny\"",
    };
    let mut text = document_text.to_owned();
    text.replace_range(place, word);
    Ok(text)
}
