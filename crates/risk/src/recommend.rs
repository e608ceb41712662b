//! The recommended rule of each category, alone or for a whole server. One source for the button,
//! the pages, the API and the command line: what the sentence says, the document does.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sluice_domain::Category;
use sluice_policy::rate_counter;

use crate::entry::EntryKey;

/// The recommended rule of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recommended {
    /// A piece of a policy document: `{"tools": {…}}` or `{"hide": […]}`.
    pub fragment: Value,
    /// What the fragment does, for people.
    pub sentence: String,
    /// The counter of its limit, if it has one.
    pub counter: Option<String>,
}

/// A tool and its category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatedTool<'a> {
    pub name: &'a str,
    pub category: Category,
}

/// What becomes of the server's other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest<'a> {
    /// Everything but this tool is denied.
    Deny { only: &'a str },
    /// Every tool gets its recommended rule.
    Recommended,
}

/// A whole document and what is true of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecommendedPolicy {
    pub document: Value,
    /// One a tool, then what becomes of all others.
    pub sentences: Vec<String>,
}

/// Calls a minute of one grant.
const fn calls_a_minute(category: Category) -> Option<u32> {
    match category {
        Category::Write => Some(30),
        Category::Execute => Some(10),
        Category::Read | Category::Destructive | Category::Financial => None,
    }
}

/// The name of a tool's rate counter: lower case, `_rate` at its end.
pub fn counter_name(tool: &str) -> String {
    rate_counter(tool)
}

/// The recommended rule of a tool in `category`.
pub fn recommended(name: &str, category: Category) -> Recommended {
    let key = EntryKey::of(name);
    let counter = calls_a_minute(category).map(|_| rate_counter(name));
    let (fragment, sentence) = match category {
        Category::Destructive => hidden(&key),
        Category::Read => (key.fragment(Map::new()), format!("{} is allowed.", key.shown)),
        Category::Financial => {
            let rules = Map::from_iter([("approve_if".to_owned(), json!([{"conditions": []}]))]);
            let sentence = format!("Every call of {} waits until a person approves it.", key.shown);
            (key.fragment(rules), sentence)
        }
        Category::Write | Category::Execute => {
            let max = calls_a_minute(category).unwrap_or_default();
            let limit =
                json!({"counter": counter, "window": "minute", "max": max, "scope": "grant"});
            let rules = Map::from_iter([("limits".to_owned(), json!([limit]))]);
            let sentence = format!("{} may run {max} times a minute per grant.", key.shown);
            (key.fragment(rules), sentence)
        }
    };
    Recommended { fragment, sentence, counter }
}

fn hidden(key: &EntryKey<'_>) -> (Value, String) {
    let sentence = if key.is_exact() {
        format!("{} is hidden: it is not listed, and every call of it is refused.", key.shown)
    } else {
        format!(
            "{} and every other tool whose name fits `{}` are hidden: not listed, and every call refused.",
            key.shown, key.key
        )
    };
    (json!({"hide": [key.key]}), sentence)
}

/// A document for the whole server, and sentences that are true of it.
pub fn recommended_policy(tools: &[RatedTool<'_>], rest: Rest<'_>) -> RecommendedPolicy {
    let mut hide: Vec<Value> = Vec::new();
    let mut entries = Map::new();
    let mut sentences = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    for tool in tools.iter().filter(|tool| !tool.name.is_empty()) {
        let meant = match rest {
            Rest::Deny { only } => only == tool.name,
            Rest::Recommended => true,
        };
        if !meant || named.contains(&tool.name) {
            continue;
        }
        named.push(tool.name);
        let rule = recommended(tool.name, tool.category);
        if entries.contains_key(&EntryKey::of(tool.name).key) {
            sentences.push(format!(
                "`{}` is denied: a policy cannot tell its name from another's.",
                tool.name
            ));
            continue;
        }
        if let Some(Value::Object(map)) = rule.fragment.get("tools") {
            entries.extend(map.clone());
        }
        if let Some(Value::Array(names)) = rule.fragment.get("hide") {
            hide.extend(
                names.iter().filter(|name| !hide.contains(name)).cloned().collect::<Vec<_>>(),
            );
        }
        sentences.push(rule.sentence);
    }
    sentences.extend(shared_counts(tools, &named));
    sentences.push(closing(rest, named.len()));
    let mut document = json!({"version": "1", "default": "deny"});
    if !hide.is_empty() {
        document["hide"] = Value::Array(hide);
    }
    document["tools"] = Value::Object(entries);
    RecommendedPolicy { document, sentences }
}

fn closing(rest: Rest<'_>, named: usize) -> String {
    match (rest, named) {
        (_, 0) => "Every tool is denied.".to_owned(),
        (Rest::Deny { .. }, _) => "Every other tool is denied.".to_owned(),
        (Rest::Recommended, _) => {
            "Every other tool is denied, also one that the server adds later, until a rule names it."
                .to_owned()
        }
    }
}

/// Tools whose names make the same counter are counted together.
fn shared_counts(tools: &[RatedTool<'_>], named: &[&str]) -> Vec<String> {
    let mut sentences = Vec::new();
    let limited: Vec<(&str, String)> = tools
        .iter()
        .filter(|tool| named.contains(&tool.name) && calls_a_minute(tool.category).is_some())
        .map(|tool| (tool.name, rate_counter(tool.name)))
        .collect();
    let mut told: Vec<&str> = Vec::new();
    for (name, counter) in &limited {
        let same: Vec<&str> =
            limited.iter().filter(|(_, other)| other == counter).map(|(name, _)| *name).collect();
        if same.iter().all(|it| it == name) || told.contains(&counter.as_str()) {
            continue;
        }
        told.push(counter);
        let mut shown: Vec<String> = same.iter().map(|name| format!("`{name}`")).collect();
        shown.dedup();
        sentences.push(format!("{} are counted together.", shown.join(" and ")));
    }
    sentences
}

#[cfg(test)]
mod tests;
