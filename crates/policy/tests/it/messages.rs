//! What agents are told, and the trace behind it.

use sluice_policy::StepKind::{
    Amount, Default, DenyIf, Drift, Held, Hide, Require, Schema, UnknownTool,
};
use sluice_policy::StepResult::{Passed, Refused};
use sluice_policy::{CallInput, ConditionTrace, Decision};

use crate::decisions::ALL_STEPS;
use crate::support::{call, decide, policy, tools};

fn message(tools_text: &str, arguments: &str) -> Decision {
    decide(&tools(tools_text), "t", arguments)
}

#[test]
fn messages_say_what_would_be_accepted_and_never_the_value() {
    let table = [
        (
            r#"{"t":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":100}]}]}}"#,
            r#"{"amount":"s3cret"}"#,
            "t is refused: `args.amount` must be at most 100 (`args.amount` is a string, which cannot be compared so).",
        ),
        (
            r#"{"t":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":100}]}]}}"#,
            "{}",
            "t is refused: `args.amount` must be at most 100 (`args.amount` is missing).",
        ),
        (
            r#"{"t":{"require":[{"conditions":[{"path":"args.to","op":"in","value":["a","b"]}]}]}}"#,
            r#"{"to":"s3cret"}"#,
            r#"t is refused: `args.to` must be one of "a", "b"."#,
        ),
        (
            r#"{"t":{"require":[{"conditions":[{"path":"args.ids[*]","op":"regex","value":"^x"}]}]}}"#,
            r#"{"ids":["s3cret"]}"#,
            "t is refused: every `args.ids[*]` must match `^x`.",
        ),
        (
            r#"{"t":{"deny_if":[{"conditions":[{"path":"args.q","op":"contains","value":"drop"},{"path":"args.f","op":"eq","value":true}]}]}}"#,
            r#"{"q":"s3cret drop","f":true}"#,
            r#"t is refused when `args.q` contains "drop" and `args.f` is true."#,
        ),
        (r#"{"t":{"deny_if":[{"conditions":[]}]}}"#, "{}", "The policy refuses every call of t."),
        (r#"{"t":{"deny_if":[{"conditions":[],"on_deny":"Not today."}]}}"#, "{}", "Not today."),
        (r#"{"t":{"action":"deny","reason":"Not ever."}}"#, "{}", "Not ever."),
        (
            r#"{"t":{"require":[{"conditions":[{"not":{"path":"args.x","op":"exists"}}]}]}}"#,
            r#"{"x":"s3cret"}"#,
            "t is refused: `args.x` must be absent.",
        ),
        (
            r#"{"t":{"require":[{"conditions":[{"any":[{"path":"args.a","op":"eq","value":1},{"path":"args.b","op":"eq","value":2}]}]}]}}"#,
            "{}",
            "t is refused: `args.a` must be 1 or `args.b` must be 2 (`args.a` is missing).",
        ),
        (
            r#"{"t":{"approve_if":[{"conditions":[{"path":"args.n","op":"gt","value":9}]}]}}"#,
            r#"{"n":10}"#,
            "t waits for a person's decision when `args.n` is more than 9.",
        ),
    ];
    for (tools_text, arguments, expected) in table {
        let decision = message(tools_text, arguments);
        assert_eq!(decision.message, expected);
        let trace = serde_json::to_string(&decision.trace).expect("a trace");
        assert!(!trace.contains("s3cret"), "the trace keeps no values: {trace}");
    }
}

#[test]
fn messages_do_not_name_hidden_tools_or_other_grants() {
    let policy = policy(
        r#"{"version":"1","default":"deny","hide":["delete_repo","admin_*"],"tools":{"t":{
        "require":[{"conditions":[{"path":"args.next","op":"in","value":["list","delete_repo"]}]},
                   {"conditions":[{"path":"args.then","op":"not_in","value":["admin_wipe"]}]},
                   {"conditions":[{"path":"grant.label","op":"in","value":["payroll"]}]}]}}}"#,
    );
    let texts = [
        decide(&policy, "t", r#"{"next":"x","then":"y"}"#),
        decide(&policy, "t", r#"{"next":"list","then":"admin_wipe"}"#),
        decide(&policy, "t", r#"{"next":"list","then":"y"}"#),
    ];
    let rules: Vec<&str> = texts.iter().map(|decision| decision.rule.as_str()).collect();
    assert_eq!(rules, ["/tools/t/require/0", "/tools/t/require/1", "/tools/t/require/2"]);
    for decision in &texts {
        for secret in ["delete_repo", "admin_wipe", "payroll"] {
            assert!(!decision.message.contains(secret), "{}", decision.message);
        }
    }
}

#[test]
fn the_trace_tells_every_step_with_types_and_sizes() {
    let decision = decide(&policy(ALL_STEPS), "t", r#"{"r0":1,"r1":"four"}"#);
    let steps: Vec<_> = decision.trace.iter().map(|step| (step.kind(), step.result())).collect();
    let passed = |kind| (kind, Passed);
    assert_eq!(
        steps,
        [
            passed(Hide),
            passed(UnknownTool),
            passed(Drift),
            passed(Held),
            passed(Default),
            passed(Require),
            passed(Require),
            passed(DenyIf),
            passed(DenyIf),
            passed(Schema),
            (Amount, Refused),
        ]
    );
    let step = serde_json::to_value(decision.trace.get(6)).expect("a step");
    assert_eq!(
        step,
        serde_json::json!({"step":"require","rule":"/tools/t/require/0","result":"passed","conditions":[
            {"pointer":"/tools/t/require/0/conditions/0","path":"args.r1","op":"exists","wanted":"is present",
             "result":"true","found":{"type":"string","bytes":6}}]})
    );
    let input = CallInput { show_values: true, ..call("t", r#"{"r0":1,"r1":"four"}"#) };
    let shown = policy(ALL_STEPS).decide(&input);
    let condition = shown.trace.get(6).and_then(|step| step.conditions().next());
    assert_eq!(condition.and_then(ConditionTrace::value), Some(r#""four""#));
}

#[test]
fn a_trace_that_must_be_short_keeps_what_settled_it() {
    let policy = policy(ALL_STEPS);
    let refused = decide(&policy, "t", r#"{"r0":1,"r1":1,"d1":2}"#);
    let whole = refused.trace.to_json();
    assert_eq!(refused.trace.to_json_within(whole.len()).as_ref(), Some(&whole));
    let steps = |most: usize| -> Vec<(String, String, bool)> {
        let text = refused.trace.to_json_within(most).expect("it fits");
        assert!(text.len() <= most);
        let list: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
        let word =
            |step: &serde_json::Value, key: &str| step[key].as_str().unwrap_or("").to_owned();
        let told = list.iter().map(|step| {
            (word(step, "step"), word(step, "result"), step.get("conditions").is_some())
        });
        told.collect()
    };
    let last = |with: bool| ("deny_if".to_owned(), "refused".to_owned(), with);
    // First the conditions of what passed go, then what passed, then all conditions.
    let all = steps(whole.len() - 1);
    assert_eq!(all.len(), refused.trace.len());
    assert_eq!(all.iter().filter(|(.., with)| *with).collect::<Vec<_>>(), [&last(true)]);
    assert_eq!(steps(300), [last(true)]);
    assert_eq!(steps(100), [last(false)]);
    assert_eq!(refused.trace.to_json_within(10), None);
}
