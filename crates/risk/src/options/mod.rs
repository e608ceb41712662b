//! Argument rules that a tool's schema makes plain, with values for a person to fill in: addresses,
//! path prefixes, amounts, recipients, lengths, choices, `SELECT` only.

mod build;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_domain::ToolDefinition;

use crate::classify::facts::{Role, role};
use crate::classify::schema::{Kind, Parameter, parameters};
use crate::classify::speaks_sql;
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
        Commands = "commands",
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
    /// What the rule does, said with the argument's name.
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
    /// The fragment of this option with the values that its empty fields show.
    pub fn example(&self) -> Option<Value> {
        let values: Vec<(String, Vec<String>)> = self
            .fields
            .iter()
            .map(|it| (it.name.clone(), it.example.lines().map(str::to_owned).collect()))
            .collect();
        self.fragment(&values).ok()
    }

    /// The policy fragment of this option with the given values, as lists of texts by field name.
    pub fn fragment(&self, values: &[(String, Vec<String>)]) -> Result<Value, OptionError> {
        build::fragment(self, values)
    }
}

/// The argument rules that the tool's input schema makes plain, at most one a parameter and kind.
pub fn options(tool: &ToolDefinition) -> Vec<RuleOption> {
    let sql = speaks_sql(tool);
    let found = parameters(tool.input_schema.as_ref());
    found.iter().flat_map(|parameter| offers(&tool.name, parameter, sql)).take(40).collect()
}

fn offers(tool: &str, parameter: &Parameter<'_>, speaks_sql: bool) -> Vec<RuleOption> {
    let list = parameter.kind == Kind::List;
    let each = if list { format!("{}[*]", parameter.path) } else { parameter.path.clone() };
    let text = matches!(parameter.kind, Kind::Text | Kind::Open | Kind::List);
    let picks = parameter.kind == Kind::Text && !parameter.choices.is_empty();
    let mut kinds = Vec::new();
    match role(parameter, speaks_sql) {
        _ if picks => kinds.push(OptionKind::Choices),
        Role::Url if text => kinds.push(OptionKind::UrlAllowList),
        Role::Path if text => kinds.push(OptionKind::PathPrefix),
        Role::Recipient if text => kinds.push(OptionKind::Recipients),
        Role::Sql if parameter.kind == Kind::Text => kinds.push(OptionKind::SelectOnly),
        Role::Command if parameter.kind == Kind::Text => kinds.push(OptionKind::Commands),
        Role::Currency if parameter.kind == Kind::Text => kinds.push(OptionKind::Choices),
        Role::Amount if parameter.kind == Kind::Number => {
            kinds.push(OptionKind::AmountCap);
            // A counter takes its amount from one place.
            if !each.contains("[*]") {
                kinds.push(OptionKind::AmountBudget);
            }
        }
        _ => {}
    }
    let example = parameter.choices.iter().take(2).copied().collect::<Vec<_>>().join("\n");
    let mut out: Vec<RuleOption> =
        kinds.into_iter().map(|kind| offer(kind, tool, &each, parameter.name, &example)).collect();
    if list && parameter.depth == 0 {
        out.push(offer(OptionKind::ListLength, tool, &parameter.path, parameter.name, ""));
    }
    out
}

/// Title, what the rule does, and the field's label and example; `{}` stands for the argument's name.
type Wording = (&'static str, &'static str, &'static str, &'static str);

const fn wording(kind: OptionKind) -> Wording {
    use OptionKind as Kind;
    match kind {
        Kind::UrlAllowList => URLS,
        Kind::PathPrefix => PATHS,
        Kind::AmountCap => (
            "At most this much a call",
            "{} must be a number from 0 to the amount you set.",
            "Largest amount",
            "100",
        ),
        Kind::AmountBudget => BUDGET,
        Kind::SelectOnly => SELECT,
        Kind::Recipients => RECIPIENTS,
        Kind::Commands => (
            "Only these commands",
            "{} must be exactly one of the commands you list.",
            "Commands, one a line",
            "git status",
        ),
        Kind::ListLength => (
            "At most this many at once",
            "{} may hold at most the number of elements you set.",
            "Elements",
            "10",
        ),
        Kind::Choices => (
            "Only these choices",
            "{} must be one of the values you list.",
            "Values, one a line",
            "EUR",
        ),
    }
}

const URLS: Wording = (
    "Only these addresses",
    "{} must begin with one of the addresses you list.",
    "Addresses, one a line",
    "https://api.example.com/",
);
const PATHS: Wording = (
    "Only below these folders",
    "{} must begin with one of the folders you list and must not climb out with `..`.",
    "Folders, one a line",
    "/srv/work/",
);
const BUDGET: Wording = (
    "At most this much a day",
    "The sum of {} over a day may not pass the amount you set, per grant.",
    "Amount a day",
    "500",
);
const SELECT: Wording = (
    "Only a SELECT",
    "{} must be one statement that begins with SELECT and holds no word that changes data. A pattern is \
     not a parser: give the server a read-only database user as well.",
    "",
    "",
);
const RECIPIENTS: Wording = (
    "Only these recipients",
    "{} must be one of the recipients you list, or of a domain you list as `@example.com`.",
    "Recipients, one a line",
    "@example.com",
);

fn offer(kind: OptionKind, tool: &str, path: &str, name: &str, example: &str) -> RuleOption {
    let (title, sentence, label, usual) = wording(kind);
    let field = OptionField {
        name: "values".to_owned(),
        label: label.to_owned(),
        example: if example.is_empty() { usual } else { example }.to_owned(),
        many: !matches!(
            kind,
            OptionKind::AmountCap | OptionKind::AmountBudget | OptionKind::ListLength
        ),
    };
    RuleOption {
        kind,
        tool: tool.to_owned(),
        path: path.to_owned(),
        title: title.to_owned(),
        sentence: sentence.replace("{}", &format!("`{name}`")),
        fields: if kind == OptionKind::SelectOnly { Vec::new() } else { vec![field] },
    }
}

#[cfg(test)]
mod tests;
