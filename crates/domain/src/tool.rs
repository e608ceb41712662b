//! A tool as its server describes it.

use serde::{Deserialize, Serialize};

use crate::words::words;

words!(
    /// How a tool stands against its last reviewed definition.
    ToolState, "tool state" {
        /// As reviewed.
        Current = "current",
        /// The definition changed and nobody accepted the change yet.
        Changed = "changed",
        /// Held for review: signs of a poisoned definition.
        Held = "held",
        /// No longer in the server's list.
        Gone = "gone",
    }
);

/// One entry of `tools/list`, with the JSON members as the server wrote them (digits and key order kept).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "inputSchema", default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<serde_json::Value>,
    #[serde(rename = "outputSchema", default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<serde_json::Value>,
}
