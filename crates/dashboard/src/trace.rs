//! A decision's trace in words: from the engine's steps, or from the JSON that the log keeps.

use serde_json::Value;
use sluice_policy::TraceStep;

use crate::ui::text::ticks;
use crate::ui::{Trace, TraceRow, TraceState};

/// The steps of a decision made just now.
pub(crate) fn of_steps(steps: &[TraceStep]) -> Trace {
    let rows =
        steps.iter().filter_map(|step| serde_json::to_value(step).ok()).map(|step| row(&step));
    Trace { rows: rows.collect() }
}

/// The steps that the log kept; odd ones are shown as they are.
pub(crate) fn of_log(text: &str) -> Trace {
    let steps = serde_json::from_str::<Value>(text).ok();
    let rows = steps.as_ref().and_then(Value::as_array).into_iter().flatten().map(row);
    Trace { rows: rows.collect() }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn row(step: &Value) -> TraceRow {
    let state = match text(step, "result") {
        "passed" | "charges" => TraceState::Passed,
        "refused" | "parks" => TraceState::Stopped,
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
        said.push_str(&format!(", found `{}`", value.replace('`', "'")));
    } else if let Some(kind) = condition.get("found").map(|found| text(found, "type")) {
        said.push_str(&format!(", found a value of type {kind}"));
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
        );
        assert_eq!(trace.rows.len(), 3);
        let first = &trace.rows[0];
        assert_eq!(first.pointer, "/tools/pay/require/0");
        assert_eq!(
            first.html.0,
            "A requirement: refuses the call. <code>args.amount</code> at most 100: false, found <code>&lt;250&gt;</code>"
        );
        assert!(of_log("not json").rows.is_empty());
    }
}
