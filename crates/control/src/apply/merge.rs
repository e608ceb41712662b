//! The text of a document with recommended rules in it. Pure. Nothing that stands there is lost.

use serde_json::{Value, json};
use sluice_domain::Category;
use sluice_policy::edit::{EditError, apply_rule, set_default};
use sluice_policy::{DefaultAction, Problem, compile};
use sluice_risk::{counter_name, recommended};

/// What becomes of the other tools.
pub(super) enum Others<'a> {
    Denied,
    /// Name and category of each.
    Recommended(&'a [(&'a str, Category)]),
}

#[derive(Debug)]
pub(super) enum MergeError {
    /// The rule and the document together are no valid document.
    Conflict(Vec<Problem>),
    Other(String),
}

impl From<EditError> for MergeError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Document(problems) | EditError::Conflict(problems) => {
                Self::Conflict(problems)
            }
            other @ EditError::Fragment(_) => Self::Other(other.to_string()),
        }
    }
}

/// A new document, or `before` with the tool's rule and, if wanted, those of tools it does not name.
pub(super) fn merge(
    before: Option<&str>,
    tool: &str,
    fragment: &Value,
    others: &Others<'_>,
) -> Result<String, MergeError> {
    let mut text = before.map_or_else(empty, str::to_owned);
    text = apply_rule(&text, fragment)?;
    match others {
        Others::Denied => Ok(set_default(&text, DefaultAction::Deny)?),
        Others::Recommended(others) => {
            let named = compile(&text).map_err(MergeError::Conflict)?;
            let mut counters = vec![counter_name(tool)];
            for (name, category) in *others {
                if named.hides(name) || named.entry(name).is_some() {
                    continue;
                }
                let rule = recommended(name, *category);
                // Two names may give one counter name; each tool keeps a count of its own.
                let twin = rule.counter.as_ref().is_some_and(|counter| counters.contains(counter));
                let fragment =
                    if twin { numbered(rule.fragment, &mut counters) } else { rule.fragment };
                counters.extend(rule.counter);
                text = apply_rule(&text, &fragment)?;
            }
            Ok(text)
        }
    }
}

fn empty() -> String {
    let document = json!({"version": "1", "default": "deny", "tools": {}});
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

/// The fragment with the first free numbered counter name.
fn numbered(mut fragment: Value, counters: &mut Vec<String>) -> Value {
    let tools = fragment.get_mut("tools").and_then(Value::as_object_mut);
    for entry in tools.into_iter().flat_map(serde_json::Map::values_mut) {
        let Some(counter) = entry.pointer_mut("/limits/0/counter") else { continue };
        let base: String = counter.as_str().unwrap_or_default().chars().take(60).collect();
        // One of so many more names than there are counters is free.
        let free = (2..counters.len() + 3)
            .map(|number| format!("{base}{number}"))
            .find(|name| !counters.contains(name));
        if let Some(free) = free {
            counters.push(free.clone());
            *counter = free.into();
        }
    }
    fragment
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: &[(&str, Category)] = &[
        ("read_file", Category::Read),
        ("drop_table", Category::Destructive),
        ("run-it", Category::Execute),
    ];

    fn execute(name: &str) -> Value {
        recommended(name, Category::Execute).fragment
    }

    fn merged(before: Option<&str>, others: &Others<'_>) -> String {
        merge(before, "run_it", &execute("run_it"), others).expect("merges")
    }

    #[test]
    fn a_new_document_holds_this_tool_and_denies_the_rest() {
        let text = merged(None, &Others::Denied);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let limits =
            json!([{"counter": "run_it_rate", "window": "minute", "max": 10, "scope": "grant"}]);
        assert_eq!(
            value,
            json!({"version": "1", "default": "deny", "tools": {"run_it": {"limits": limits}}})
        );
        assert_eq!(merged(Some(&text), &Others::Denied), text, "a second press changes nothing");
    }

    #[test]
    fn the_rest_gets_its_rules_and_keeps_what_it_had() {
        let before = r#"{"version": "1", "default": "deny", "tools": {"read_*": {"rate_limit": "1/minute"}}}"#;
        let text = merged(Some(before), &Others::Recommended(OTHERS));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["tools"]["read_*"], json!({"rate_limit": "1/minute"}));
        assert_eq!(value["tools"].get("read_file"), None, "a pattern names it already");
        assert_eq!(value["hide"], json!(["drop_table"]));
        assert_eq!(value["tools"]["run-it"]["limits"][0]["counter"], "run-it_rate");
        assert_eq!(merged(Some(&text), &Others::Recommended(OTHERS)), text);
    }

    #[test]
    fn equal_counter_names_are_kept_apart() {
        let others = [("RUN_IT", Category::Execute), ("Run_It", Category::Write)];
        let text = merged(None, &Others::Recommended(&others));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let counter = |tool: &str| value["tools"][tool]["limits"][0]["counter"].clone();
        let counters = [counter("run_it"), counter("RUN_IT"), counter("Run_It")];
        assert_eq!(counters, ["run_it_rate", "run_it_rate2", "run_it_rate3"]);
    }

    #[test]
    fn alone_means_denied_by_default_without_losing_anything() {
        let before = "{\n  \"version\": \"1\",\n  \"description\": \"d é\", \"default\" :  \"allow\",\n  \"tools\": { \"x\": {\"require\": [{\"conditions\": [{\"path\": \"args.n\", \"op\": \"lte\", \"value\": 1.10}]}]} }\n}";
        let text = merged(Some(before), &Others::Denied);
        assert!(text.contains("\"default\" :  \"deny\""), "{text}");
        assert!(text.contains("1.10") && text.contains("d é"), "{text}");
        let kept = merged(Some(before), &Others::Recommended(&[]));
        assert!(kept.contains("\"default\" :  \"allow\""), "{kept}");
    }
}
