//! A policy document in its long form, as read. Every part has a place in the
//! normalised text; rule ids are JSON Pointers into that.

use std::fmt;
use std::sync::Arc;

use regex::Regex;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use sluice_domain::{Amount, OnUnavailable, Reset, Role, Scope, Window};

use crate::json::escape_pointer;
use crate::op::Op;
use crate::path::Path;

/// Whether the policy decides or only watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// What is refused is refused.
    #[default]
    Enforce,
    /// Decide and log, but let the call through.
    Observe,
}

/// What becomes of a tool that no entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultAction {
    /// It may be called.
    Allow,
    /// It is refused.
    Deny,
}

/// A whole document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub description: Option<String>,
    pub mode: Mode,
    pub default: DefaultAction,
    /// Names and patterns that are gone, in document order.
    pub hide: Vec<String>,
    /// Rules for every call, besides the tool's own.
    pub all_tools: ToolEntry,
    /// Name or pattern and its rules, in document order.
    pub tools: Vec<(String, ToolEntry)>,
}

impl Document {
    /// Every limit with its pointer: those of all tools first, then in document order.
    pub fn limits(&self) -> impl Iterator<Item = (String, &Limit)> {
        let own = self
            .tools
            .iter()
            .map(|(name, entry)| (format!("/tools/{}", escape_pointer(name)), entry));
        let entries = std::iter::once(("/all_tools".to_owned(), &self.all_tools)).chain(own);
        entries.flat_map(|(pointer, entry)| {
            let limits = entry.limits.iter().enumerate();
            limits.map(move |(index, limit)| (format!("{pointer}/limits/{index}"), limit))
        })
    }
}

/// The rules of one name or pattern, or of all tools.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ToolEntry {
    pub require: Vec<Rule>,
    pub deny_if: Vec<Rule>,
    pub approve_if: Vec<Rule>,
    pub limits: Vec<Limit>,
    pub approval: Option<Approval>,
}

/// Conditions that are AND-ed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rule {
    pub name: Option<String>,
    pub conditions: Vec<Condition>,
    /// Replaces the sentence for the agent.
    pub on_deny: Option<String>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    Compare(Arc<Comparison>),
    /// At least one of them.
    Any(Vec<Condition>),
    /// The opposite; unknown stays unknown.
    Not(Box<Condition>),
}

/// `path op value`.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    pub path: Path,
    pub op: Op,
    pub value: Value,
    /// The compiled `value` of `regex`.
    #[serde(skip)]
    pub(crate) regex: Option<Arc<Regex>>,
}

impl PartialEq for Comparison {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.op, &self.value) == (&other.path, other.op, &other.value)
    }
}

/// How much of something may happen in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    pub counter: String,
    pub window: Window,
    pub max: Amount,
    pub scope: Scope,
    /// The argument whose value is charged; otherwise each call counts 1.
    pub increment_from: Option<Path>,
    pub reset: Reset,
    pub on_unavailable: OnUnavailable,
}

/// How approvals go. What is `None` is taken from `all_tools`, then from the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Approval {
    /// Seconds that the call is held open.
    pub hold: Option<u32>,
    /// Seconds until an undecided approval is void.
    pub expires: Option<u32>,
    pub approvers: Option<Vec<Approver>>,
    pub quorum: Option<u8>,
    /// Whether the member who made the grant may decide.
    #[serde(rename = "self")]
    pub self_allowed: Option<bool>,
}

/// Who may decide an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approver {
    Role(Role),
    /// By e-mail address, lower case.
    Member(String),
}

impl ToolEntry {
    /// Nothing but "allowed".
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Rules of all three kinds.
    pub fn rule_count(&self) -> usize {
        self.require.len() + self.deny_if.len() + self.approve_if.len()
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Compare(comparison) => return comparison.serialize(serializer),
            Self::Any(_) | Self::Not(_) => serializer.serialize_map(Some(1))?,
        };
        match self {
            Self::Any(inner) => map.serialize_entry("any", inner)?,
            Self::Not(inner) => map.serialize_entry("not", inner)?,
            Self::Compare(_) => {}
        }
        map.end()
    }
}

impl fmt::Display for Approver {
    /// As in a document.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => write!(f, "role:{role}"),
            Self::Member(address) => write!(f, "member:{address}"),
        }
    }
}

impl Serialize for Approver {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
