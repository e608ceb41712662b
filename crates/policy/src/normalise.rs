//! The long form of a document: the same members in the same order, with the
//! short forms written out.

use serde_json::{Map, Value, json};

use crate::document::{Limit, Rule};
use crate::json::{Node, to_value};
use crate::short_forms::expand;

const SHORT: &[&str] = &["rate_limit", "action", "reason"];

/// Writes out the short forms of a well-formed document.
pub(crate) fn normalise(root: &Node<'_>) -> Value {
    let mut hidden = Vec::new();
    let mut out = Map::new();
    for member in root.members() {
        let value = if member.key == "tools" {
            tools(&member.value, &mut hidden)
        } else {
            to_value(&member.value)
        };
        out.insert(member.key.clone().into_owned(), value);
    }
    if !hidden.is_empty() {
        hide(&mut out, hidden);
    }
    Value::Object(out)
}

fn tools(node: &Node<'_>, hidden: &mut Vec<String>) -> Value {
    let entries = node.members().iter().map(|member| {
        let (entry, hide) = entry(&member.key, &member.value);
        if hide {
            hidden.push(member.key.clone().into_owned());
        }
        (member.key.clone().into_owned(), entry)
    });
    Value::Object(entries.collect())
}

/// A tool's entry in its long form, and whether the name is hidden.
pub(crate) fn entry(tool: &str, node: &Node<'_>) -> (Value, bool) {
    let short = expand(tool, node);
    let mut out = Map::new();
    for member in node.members().iter().filter(|member| !SHORT.contains(&&*member.key)) {
        out.insert(member.key.clone().into_owned(), to_value(&member.value));
    }
    append(&mut out, "deny_if", short.entry.deny_if.iter().map(rule));
    append(&mut out, "approve_if", short.entry.approve_if.iter().map(rule));
    append(&mut out, "limits", short.entry.limits.iter().map(limit));
    (Value::Object(out), short.hide)
}

fn append(entry: &mut Map<String, Value>, key: &str, values: impl Iterator<Item = Value>) {
    for value in values {
        let list = entry.entry(key).or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.push(value);
        }
    }
}

/// `hide` gets the names; where it is new it stands before `tools`.
fn hide(out: &mut Map<String, Value>, names: Vec<String>) {
    if let Some(Value::Array(list)) = out.get_mut("hide") {
        for name in names {
            if !list.iter().any(|old| *old == name) {
                list.push(name.into());
            }
        }
        return;
    }
    let old = std::mem::take(out);
    for (key, value) in old {
        if key == "tools" {
            out.insert("hide".to_owned(), json!(names));
        }
        out.insert(key, value);
    }
}

/// Only what short forms make: no conditions.
fn rule(rule: &Rule) -> Value {
    let mut out = json!({"conditions": []});
    if let Some(on_deny) = &rule.on_deny {
        out["on_deny"] = json!(on_deny);
    }
    out
}

fn limit(limit: &Limit) -> Value {
    json!({
        "counter": limit.counter, "window": limit.window, "max": limit.max, "scope": limit.scope
    })
}
