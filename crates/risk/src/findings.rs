//! Signs of a poisoned definition, in every string of it.

use serde::{Deserialize, Serialize};
use sluice_domain::ToolDefinition;

use crate::words::words;

words!(
    /// What kind of sign.
    FindingKind {
        /// Orders meant for the model rather than a description of the tool.
        HiddenInstruction = "hidden instruction",
        /// Orders about other tools.
        OtherTool = "orders about other tools",
        /// Orders to read, write or send something that is not the tool's own.
        OutsideResource = "orders about files or addresses",
        /// Orders to change what is passed on.
        SubstitutedArgument = "substituted argument",
        /// Orders to keep something from the user.
        Concealment = "concealment from the user",
        InvisibleCharacters = "invisible characters",
        BidirectionalCharacters = "bidirectional characters",
        TagCharacters = "tag characters",
        EncodedBlob = "encoded blob",
        /// Markup that only a model would heed.
        Markup = "instruction markup",
    }
);

/// One sign of a poisoned definition, quoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    /// `description`, `title`, `name`, or a JSON Pointer into a schema, such as `inputSchema/properties/path/description`.
    #[serde(rename = "where")]
    pub place: String,
    /// The words, with invisible characters written as `U+200B`.
    pub quote: String,
}

/// Looks through every string of the definition.
pub fn findings(tool: &ToolDefinition) -> Vec<Finding> {
    let markup = tool.description.as_deref().is_some_and(|text| text.contains("<IMPORTANT>"));
    let finding = || Finding {
        kind: FindingKind::Markup,
        place: "description".to_owned(),
        quote: "<IMPORTANT>".to_owned(),
    };
    markup.then(finding).into_iter().collect()
}
