//! A decision's trace in words: from the engine's steps, or from the JSON that the log keeps.

use serde_json::Value;

use crate::ui::text::ticks;
use crate::ui::{Trace, TraceRow, TraceState};

/// The steps of a decision made just now.
pub(crate) fn of_steps(trace: &sluice_policy::Trace) -> Trace {
    of_log(&trace.to_json(), None)
}

/// The steps that the log kept; odd ones are shown as they are. The engine only asks for a charge:
/// that the limit `used_up` refused it came to light afterwards.
pub(crate) fn of_log(text: &str, used_up: Option<&str>) -> Trace {
    let mut steps = serde_json::from_str::<Value>(text).unwrap_or_default();
    for step in steps.as_array_mut().into_iter().flatten() {
        let asked = self::text(step, "result") == "charges";
        if asked && used_up == Some(self::text(step, "rule")) {
            step["result"] = Value::from("used_up");
        }
    }
    Trace { rows: steps.as_array().into_iter().flatten().map(row).collect() }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn row(step: &Value) -> TraceRow {
    let state = match text(step, "result") {
        "passed" | "charges" => TraceState::Passed,
        "refused" | "parks" | "used_up" => TraceState::Stopped,
        _ => TraceState::Skipped,
    };
    let mut said = format!("{}: {}", what(text(step, "step")), result(text(step, "result")));
    let conditions = step.get("conditions").and_then(Value::as_array).into_iter().flatten();
    for condition in conditions {
        said.push_str(". ");
        said.push_str(&compared(condition));
    }
    TraceRow { state, html: ticks(&said), pointer: text(step, "rule").to_owned() }
}

fn what(step: &str) -> &str {
    match step {
        "hide" => "Hidden names",
        "unknown_tool" => "The server's list of tools",
        "drift" => "The tool's definition",
        "held" => "Signs of a poisoned definition",
        "default" => "The policy's default",
        "require" => "A requirement",
        "deny_if" => "A denial",
        "schema" => "The input schema",
        "amount" => "The amount to charge",
        "limit" => "A limit",
        "approve_if" => "An approval",
        other => other,
    }
}

fn result(word: &str) -> &str {
    match word {
        "passed" => "passed",
        "refused" => "refuses the call",
        "parks" => "parks the call for a person",
        "charges" => "is charged",
        "used_up" => "is used up, which refuses the call",
        "noted" => "noted only",
        "cannot_tell" => "cannot be told from what the log keeps",
        other => other,
    }
}

/// `args.amount` at most 100: false (found a string)
fn compared(condition: &Value) -> String {
    let mut said = format!(
        "`{}` {}: {}",
        text(condition, "path"),
        text(condition, "wanted"),
        text(condition, "result")
    );
    if let Some(value) = condition.get("value").and_then(Value::as_str) {
        said.push_str(", found `");
        said.push_str(&value.replace('`', "'"));
        said.push('`');
    } else if let Some(kind) = condition.get("found").map(|found| text(found, "type")) {
        said.push_str(", found a value of type ");
        said.push_str(kind);
    } else {
        said.push_str(", nothing was there");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_reads_as_sentences_and_odd_ones_do_no_harm() {
        let trace = of_log(
            r#"[{"step":"require","rule":"/tools/pay/require/0","result":"refused",
            "conditions":[{"path":"args.amount","op":"lte","wanted":"at most 100","result":"false","value":"<250>"}]}, 7, "x"]"#,
            None,
        );
        assert_eq!(trace.rows.len(), 3);
        let first = &trace.rows[0];
        assert_eq!(first.pointer, "/tools/pay/require/0");
        assert_eq!(
            first.html.0,
            "A requirement: refuses the call. <code>args.amount</code> at most 100: false, found <code>&lt;250&gt;</code>"
        );
        let limit = r#"[{"step":"limit","rule":"/tools/t/limits/0","result":"charges"}]"#;
        assert_eq!(of_log(limit, None).rows[0].state, TraceState::Passed);
        assert_eq!(of_log(limit, Some("/tools/t/limits/0")).rows[0].state, TraceState::Stopped);
        assert!(of_log("not json", None).rows.is_empty());
    }
}
