//! Argument rules that a tool's schema makes plain, with values for a person to fill in.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_domain::ToolDefinition;

use crate::words::words;

words!(
    /// What an option restricts.
    OptionKind {
        UrlAllowList = "url_allow_list",
        PathPrefix = "path_prefix",
        AmountCap = "amount_cap",
        AmountBudget = "amount_budget",
        SelectOnly = "select_only",
        Recipients = "recipients",
        ListLength = "list_length",
        Choices = "choices",
    }
);

/// One value to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionField {
    /// The form field's name.
    pub name: String,
    pub label: String,
    /// What to put in the empty field as an example.
    pub example: String,
    /// Several values, one a line.
    pub many: bool,
}

/// An argument rule that a person can add to the recommended one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleOption {
    pub kind: OptionKind,
    pub tool: String,
    /// The argument's path in a condition, `args.url`.
    pub path: String,
    pub title: String,
    /// What the rule will do, said with the argument's name.
    pub sentence: String,
    pub fields: Vec<OptionField>,
}

/// Why an option's values do not make a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct OptionError {
    /// The [`OptionField::name`] at fault.
    pub field: String,
    pub problem: String,
}

impl RuleOption {
    /// The policy fragment of this option with the given values, as lists of texts by field name.
    pub fn fragment(&self, values: &[(String, Vec<String>)]) -> Result<Value, OptionError> {
        let first = self.fields.first().map(|field| field.name.clone()).unwrap_or_default();
        let _ = values;
        Err(OptionError { field: first, problem: "give at least one value".to_owned() })
    }
}

/// The argument rules that the tool's input schema makes plain.
pub fn options(tool: &ToolDefinition) -> Vec<RuleOption> {
    let _ = tool;
    Vec::new()
}
