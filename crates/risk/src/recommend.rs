//! The recommended rule of each category, alone or for a whole server. One source for the button,
//! the pages, the API and the command line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sluice_domain::Category;

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
    pub sentences: Vec<String>,
}

/// The name of a tool's rate counter.
pub fn counter_name(tool: &str) -> String {
    const SUFFIX: &str = "_rate";
    let clean = |c: char| match c {
        'a'..='z' | '0'..='9' | '_' | '.' | '-' => c,
        _ => '_',
    };
    let room = 64 - SUFFIX.len();
    let mut name: String = tool.to_lowercase().chars().map(clean).take(room).collect();
    name.push_str(SUFFIX);
    name
}

/// The recommended rule of a tool in `category`.
pub fn recommended(name: &str, category: Category) -> Recommended {
    let counter = counter_name(name);
    let limit =
        |max: u32| json!([{"counter": counter, "window": "minute", "max": max, "scope": "grant"}]);
    let entry =
        |rules: Value| json!({"tools": Value::Object(Map::from_iter([(name.to_owned(), rules)]))});
    let (fragment, sentence, limited) = match category {
        Category::Read => (entry(json!({})), format!("`{name}` is allowed."), false),
        Category::Write => (
            entry(json!({"limits": limit(30)})),
            format!("`{name}` may run 30 times a minute per grant."),
            true,
        ),
        Category::Execute => (
            entry(json!({"limits": limit(10)})),
            format!("`{name}` may run 10 times a minute per grant."),
            true,
        ),
        Category::Destructive => (
            json!({"hide": [name]}),
            format!("`{name}` is hidden: it is not listed, and calls of it are refused."),
            false,
        ),
        Category::Financial => (
            entry(json!({"approve_if": [{"conditions": []}]})),
            format!("Every call of `{name}` waits until a person approves it."),
            false,
        ),
    };
    Recommended { fragment, sentence, counter: limited.then_some(counter) }
}

/// A document for the whole server, and sentences that are true of it.
pub fn recommended_policy(tools: &[RatedTool<'_>], rest: Rest<'_>) -> RecommendedPolicy {
    let mut hide = Vec::new();
    let mut entries = Map::new();
    let mut sentences = Vec::new();
    for tool in tools {
        if matches!(rest, Rest::Deny { only } if only != tool.name) {
            continue;
        }
        let rule = recommended(tool.name, tool.category);
        if let Some(Value::Object(map)) = rule.fragment.get("tools") {
            entries.extend(map.clone());
        }
        if rule.fragment.get("hide").is_some() {
            hide.push(Value::from(tool.name));
        }
        sentences.push(rule.sentence);
    }
    let mut document = json!({"version": "1", "default": "deny"});
    if !hide.is_empty() {
        document["hide"] = Value::Array(hide);
    }
    document["tools"] = Value::Object(entries);
    sentences.push("Every other tool is denied.".to_owned());
    RecommendedPolicy { document, sentences }
}
