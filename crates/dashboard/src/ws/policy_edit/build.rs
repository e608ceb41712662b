//! Rules by form: what was chosen goes into the document that is being written, and everything else
//! in it stays as it was typed. Pure.

use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};
use sluice_domain::{Scope, Window};
use sluice_policy::edit::{EditError, apply_rule};
use sluice_policy::{Problem, ProblemSeverity, check, compile, rate_counter};

use crate::ws::policy::places::{Places, segment};

/// What a person chose for a tool or a pattern.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Rule {
    #[serde(default, rename = "rule_tool")]
    pub(super) tool: String,
    #[serde(default, rename = "rule_kind")]
    pub(super) kind: String,
    #[serde(default, rename = "rule_max")]
    pub(super) max: String,
    #[serde(default, rename = "rule_window")]
    pub(super) window: String,
    #[serde(default, rename = "rule_scope")]
    pub(super) scope: String,
    /// Sent where the tool's other rules go.
    #[serde(default, rename = "rule_replace")]
    pub(super) replace: String,
}

/// Kinds of rule: value and words.
pub(super) const KINDS: [(&str, &str); 5] = [
    ("limit", "Rate-limit"),
    ("allow", "Allow"),
    ("approve", "Require approval"),
    ("deny", "Deny"),
    ("hide", "Hide"),
];

/// Why a rule was not added.
#[derive(Debug, PartialEq)]
pub(super) enum Trouble {
    /// A field of the form.
    Field(&'static str, &'static str),
    /// The document has errors of its own.
    Document,
    /// The rule and the document together are no valid document.
    Conflict(Vec<Problem>),
}

impl From<EditError> for Trouble {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Document(_) => Self::Document,
            EditError::Conflict(problems) => Self::Conflict(problems),
            EditError::Fragment(_) => Self::Conflict(Vec::new()),
        }
    }
}

/// The limit of a form, read.
struct Limit {
    max: u64,
    window: Window,
    scope: Scope,
}

impl Rule {
    fn limit(&self) -> Result<Limit, Trouble> {
        let max = self.max.trim().parse().ok().filter(|max| *max <= 1_000_000_000);
        Ok(Limit {
            max: max.ok_or(Trouble::Field("/rule_max", "Give a whole number of calls from 0."))?,
            window: self
                .window
                .parse()
                .map_err(|_| Trouble::Field("/rule_window", "Choose a window."))?,
            scope: self
                .scope
                .parse()
                .map_err(|_| Trouble::Field("/rule_scope", "Choose a scope."))?,
        })
    }
}

/// The document with the rule in it.
pub(super) fn add(document: &str, rule: &Rule) -> Result<String, Trouble> {
    let tool = rule.tool.trim();
    if tool.is_empty() {
        return Err(Trouble::Field("/rule_tool", "Name a tool, or a pattern such as `delete_*`."));
    }
    if !check(document, None).ok {
        return Err(Trouble::Document);
    }
    let pointer = format!("/tools/{}", segment(tool));
    let mut text = document.to_owned();
    if rule.kind != "hide" {
        text = unhide(text, tool);
    }
    if !rule.replace.is_empty() {
        text = clear(text, &pointer, rule.kind == "hide");
    }
    let entry = |entry: Value| json!({"tools": {tool: entry}});
    let always = json!([{"conditions": []}]);
    match rule.kind.as_str() {
        "allow" => Ok(apply_rule(&text, &entry(json!({})))?),
        "deny" => Ok(apply_rule(&text, &entry(json!({"deny_if": always})))?),
        "approve" => Ok(apply_rule(&text, &entry(json!({"approve_if": always})))?),
        "hide" => Ok(apply_rule(&text, &json!({"hide": [tool]}))?),
        "limit" => limit(text, tool, &pointer, &rule.limit()?),
        _ => Err(Trouble::Field("/rule_kind", "Choose what becomes of its calls.")),
    }
}

/// Takes the name out of `hide`.
fn unhide(mut text: String, tool: &str) -> String {
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let hidden = value.get("hide").and_then(Value::as_array).map_or(0, Vec::len);
    for index in (0..hidden).rev() {
        let place = Places::of(&text).get(&format!("/hide/{index}"));
        if let (true, Some(place)) = (value["hide"][index] == tool, place) {
            remove(&mut text, place.whole());
        }
    }
    text
}

/// Takes the tool's rules away; the entry too where it has nothing more to say.
fn clear(mut text: String, pointer: &str, whole: bool) -> String {
    if let Some(place) = Places::of(&text).get(pointer) {
        if whole {
            remove(&mut text, place.whole());
        } else {
            text.replace_range(place.value(), "{}");
        }
    }
    text
}

/// Removes a member or an element with the comma and the blanks that go with it.
fn remove(text: &mut String, part: Range<usize>) {
    let after = &text[part.end..];
    let blank = after.len() - after.trim_start().len();
    if let Some(rest) = after.trim_start().strip_prefix(',') {
        // The next one moves to this one's place.
        let next = rest.len() - rest.trim_start().len();
        text.replace_range(part.start..part.end + blank + 1 + next, "");
        return;
    }
    let before = text[..part.start].trim_end();
    let start = before.strip_suffix(',').map_or(part.start, str::len);
    text.replace_range(start..part.end, "");
}

/// Changes the limit of the same window and scope, or adds one.
fn limit(mut text: String, tool: &str, pointer: &str, wanted: &Limit) -> Result<String, Trouble> {
    if let Some(index) = same_limit(&text, pointer, wanted)
        && let Some(place) = Places::of(&text).get(&format!("{pointer}/limits/{index}/max"))
    {
        text.replace_range(place.value(), &wanted.max.to_string());
        let checked = check(&text, None);
        return if checked.ok { Ok(text) } else { Err(Trouble::Conflict(checked.problems)) };
    }
    let limit = json!({
        "counter": counter(&text, tool, wanted.window),
        "window": wanted.window.to_string(),
        "max": wanted.max,
        "scope": wanted.scope.as_str(),
    });
    Ok(apply_rule(&text, &json!({"tools": {tool: {"limits": [limit]}}}))?)
}

/// The position of a limit on calls with this window and scope, as the text has it.
fn same_limit(text: &str, pointer: &str, wanted: &Limit) -> Option<usize> {
    let value: Value = serde_json::from_str(text).ok()?;
    let limits = value.pointer(&format!("{pointer}/limits"))?.as_array()?;
    limits.iter().position(|limit| {
        let text = |key: &str| limit.get(key).and_then(Value::as_str);
        text("window") == Some(&wanted.window.to_string())
            && text("scope").unwrap_or(Scope::Grant.as_str()) == wanted.scope.as_str()
            && limit.get("increment_from").is_none()
    })
}

/// The tool's counter, or the first of its kind that no limit of the document uses: a counter has
/// one window, and tools that share one are counted together.
fn counter(text: &str, tool: &str, window: Window) -> String {
    let base = rate_counter(tool);
    let cut: String = base.chars().take(50).collect();
    let used = used(text);
    let mut names = [base, format!("{cut}_{window}")]
        .into_iter()
        .chain((2..).map(|number: u32| format!("{cut}_{window}{number}")));
    // There are more names than limits.
    names.find(|name| !used.contains(name)).unwrap_or(cut)
}

/// A counter's name that no limit of the document uses yet.
pub(super) fn free_counter(text: &str, base: &str) -> String {
    let cut: String = base.chars().take(58).collect();
    let used = used(text);
    let mut names =
        std::iter::once(base.to_owned()).chain((2..).map(|number: u32| format!("{cut}_{number}")));
    names.find(|name| !used.contains(name)).unwrap_or(cut)
}

/// The counters of a document.
fn used(text: &str) -> Vec<String> {
    compile(text).map_or_else(
        |_| Vec::new(),
        |policy| {
            let document = policy.document();
            let entries =
                document.tools.iter().map(|(_, entry)| entry).chain([&document.all_tools]);
            entries.flat_map(|entry| &entry.limits).map(|limit| limit.counter.clone()).collect()
        },
    )
}

/// A conflict in a sentence.
pub(super) fn conflict(problems: &[Problem]) -> String {
    let error = problems.iter().find(|problem| problem.severity == ProblemSeverity::Error);
    error.map_or_else(
        || "the rule does not fit the document".to_owned(),
        |problem| format!("the rule does not fit the document: {}", problem.message),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{
  "version": "1",
  "default": "deny",
  "hide": ["wipe", "drop"],
  "tools": {
    "run": {
      "limits": [{"counter": "run_rate", "window": "minute", "max": 10}],
      "deny_if": [{"conditions": [{"path": "args.n", "op": "gt", "value": 1.50}]}]
    },
    "read": {}
  }
}"#;

    fn rule(tool: &str, kind: &str) -> Rule {
        let [max, window, scope] = ["20", "minute", "grant"].map(str::to_owned);
        Rule {
            tool: tool.to_owned(),
            kind: kind.to_owned(),
            max,
            window,
            scope,
            replace: String::new(),
        }
    }

    fn added(rule: &Rule) -> String {
        let text = add(DOCUMENT, rule).expect("it fits");
        assert!(check(&text, None).ok, "{text}");
        assert_eq!(add(&text, rule).as_ref(), Ok(&text), "twice is once");
        text
    }

    #[test]
    fn a_limit_of_the_same_window_is_changed_in_its_place() {
        assert_eq!(added(&rule("run", "limit")), DOCUMENT.replace("\"max\": 10", "\"max\": 20"));
    }

    #[test]
    fn a_limit_of_another_window_gets_a_counter_of_its_own() {
        let text = added(&Rule { window: "hour".to_owned(), ..rule("run", "limit") });
        assert!(
            text.contains(r#""counter": "run_rate_hour", "window": "hour", "max": 20"#),
            "{text}"
        );
        assert!(text.contains("\"max\": 10"), "the first one stays: {text}");
        let text = added(&rule("send", "limit"));
        assert!(text.contains("\"send_rate\""), "{text}");
    }

    #[test]
    fn a_hidden_tool_that_gets_a_rule_is_hidden_no_more() {
        let text = added(&rule("wipe", "approve"));
        assert!(text.contains("\"hide\": [\"drop\"]"), "{text}");
        assert!(text.contains("approve_if"), "{text}");
        let text = add(&text, &rule("drop", "deny")).expect("it fits");
        assert!(text.contains("\"hide\": []"), "{text}");
    }

    #[test]
    fn the_other_rules_stay_unless_they_are_replaced() {
        let kept = added(&rule("run", "approve"));
        assert!(kept.contains("1.50") && kept.contains("run_rate"), "{kept}");
        let fresh = added(&Rule { replace: "1".to_owned(), ..rule("run", "approve") });
        assert!(!fresh.contains("1.50") && !fresh.contains("run_rate"), "{fresh}");
        assert!(fresh.contains("\"read\": {}"), "{fresh}");
        let hidden = added(&Rule { replace: "1".to_owned(), ..rule("read", "hide") });
        assert!(
            !hidden.contains("\"read\": {}") && hidden.contains("\"drop\", \"read\"]"),
            "{hidden}"
        );
        let hidden = added(&Rule { replace: "1".to_owned(), ..rule("run", "hide") });
        assert!(hidden.contains("\"tools\": {\n    \"read\": {}\n  }"), "{hidden}");
    }

    #[test]
    fn what_cannot_be_added_is_told() {
        let max = Rule { max: "ten".to_owned(), ..rule("run", "limit") };
        assert!(matches!(add(DOCUMENT, &max), Err(Trouble::Field("/rule_max", _))));
        assert!(matches!(add(DOCUMENT, &rule(" ", "allow")), Err(Trouble::Field("/rule_tool", _))));
        assert!(matches!(add(DOCUMENT, &rule("run", "")), Err(Trouble::Field("/rule_kind", _))));
        assert_eq!(add("{", &rule("run", "allow")), Err(Trouble::Document));
        let short = DOCUMENT.replace("\"read\": {}", "\"read\": {\"action\": \"deny\"}");
        let Err(Trouble::Conflict(problems)) = add(&short, &rule("read", "limit")) else {
            panic!("a limit beside `action: deny` is no document");
        };
        assert!(conflict(&problems).contains("does not fit"), "{problems:?}");
    }

    #[test]
    fn odd_names_are_names() {
        for tool in ["a/b~c", "\"quoted\"", "ünï", "delete_*"] {
            for (kind, _) in KINDS {
                let text = added(&rule(tool, kind));
                let back = add(&text, &Rule { replace: "1".to_owned(), ..rule(tool, "allow") })
                    .expect("it fits");
                assert!(check(&back, None).ok, "{back}");
            }
        }
    }
}
