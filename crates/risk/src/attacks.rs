//! The kinds of attack on agents and their tools, and the policy that stops or limits each.

use serde::{Deserialize, Serialize};
use sluice_domain::Category;

/// Something that happened, with a public source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Incident {
    /// In our words.
    pub what: String,
    /// `2025-05` or `2025-05-26`.
    pub date: String,
    pub source: String,
}

/// The call that plays the attack.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Scenario {
    pub tool: String,
    pub arguments: serde_json::Value,
    /// `deny`, `approve` or `limit`: what the policy does to it.
    pub outcome: String,
}

/// One kind of attack.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Attack {
    pub slug: String,
    pub title: String,
    /// One sentence for lists.
    pub summary: String,
    /// How it works, in our words; paragraphs are parted by an empty line.
    pub how: String,
    pub incident: Option<Incident>,
    /// What kinds of tool it uses.
    pub categories: Vec<Category>,
    /// A whole policy document that stops or limits it.
    pub policy: serde_json::Value,
    /// What the policy does, in one sentence.
    pub effect: String,
    pub scenario: Scenario,
}

/// Every kind of attack we know, in a fixed order.
pub fn attacks() -> &'static [Attack] {
    &[]
}
