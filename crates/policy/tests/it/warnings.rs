//! What is allowed but probably not meant.

use serde_json::json;
use sluice_policy::{KnownTool, ProblemSeverity, check};

fn warnings(text: &str, known: Option<&[KnownTool]>) -> Vec<(String, String, Option<String>)> {
    let checked = check(text, known);
    assert!(checked.ok, "{text}: {:#?}", checked.problems);
    let problems = checked.problems.into_iter();
    problems
        .filter(|p| p.severity == ProblemSeverity::Warning)
        .map(|p| (p.code.to_owned(), p.pointer, p.suggestion))
        .collect()
}

fn entry(entry: &str) -> String {
    format!(r#"{{"version":"1","default":"deny","tools":{{"t":{entry}}}}}"#)
}

fn in_list(list: &str, conditions: &str) -> String {
    entry(&format!(r#"{{"{list}":[{{"conditions":[{conditions}]}}]}}"#))
}

fn pointers(text: &str, code: &str) -> Vec<String> {
    let found = warnings(text, None).into_iter();
    found.filter(|(found, ..)| found == code).map(|(_, pointer, _)| pointer).collect()
}

#[test]
fn a_sound_policy_has_none() {
    let text = r#"{"version":"1","default":"deny","hide":["gone"],
        "tools":{"pay":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":100},{"path":"args.amount","op":"gt","value":0},
                 {"path":"args.to","op":"regex","value":"^acct_"}]}],
                 "approve_if":[{"conditions":[{"path":"args.amount","op":"gt","value":50}]},{"conditions":[{"path":"call.hour_utc","op":"lt","value":6}]}],
                 "approval":{"quorum":2,"approvers":["member:a@x.io","member:b@x.io"]},
                 "limits":[{"counter":"pay_minute","window":"minute","max":3},{"counter":"pay_day","window":"day","max":500,"increment_from":"args.amount"}]},
                 "list_*":{}}}"#;
    assert_eq!(warnings(text, None), []);
}

#[test]
fn rules_that_never_fire() {
    let never = [
        ("require", r#"{"path":"args.a","op":"eq","value":null}"#),
        ("deny_if", r#"{"path":"args.a","op":"in","value":[]}"#),
        ("deny_if", r#"{"path":"args.a","op":"in","value":[null]}"#),
        ("deny_if", r#"{"path":"call.hour_utc","op":"gt","value":23}"#),
        ("deny_if", r#"{"path":"call.hour_utc","op":"eq","value":24}"#),
        ("deny_if", r#"{"path":"call.hour_utc","op":"in","value":["9",-1]}"#),
        ("deny_if", r#"{"path":"call.weekday_utc","op":"eq","value":"Monday"}"#),
        ("deny_if", r#"{"path":"tool.category","op":"eq","value":"read"}"#),
        ("deny_if", r#"{"path":"tool.severity","op":"in","value":["Severe"]}"#),
        ("deny_if", r#"{"path":"tool.name","op":"eq","value":"other"}"#),
        ("deny_if", r#"{"path":"tool.name","op":"exists","value":false}"#),
        ("deny_if", r#"{"path":"grant.label","op":"lt","value":5}"#),
        ("deny_if", r#"{"path":"call.hour_utc","op":"regex","value":"^1"}"#),
    ];
    for (list, condition) in never {
        let found = pointers(&in_list(list, condition), "never_fires");
        assert_eq!(found, [format!("/tools/t/{list}/0/conditions/0")], "{condition}");
    }
    let clashes = [
        r#"{"path":"args.a","op":"gt","value":10},{"path":"args.a","op":"lt","value":5}"#,
        r#"{"path":"args.a","op":"gt","value":10},{"path":"args.a","op":"lte","value":1e1}"#,
        r#"{"path":"args.a","op":"eq","value":"x"},{"path":"args.b","op":"exists"},{"path":"args.a","op":"eq","value":"y"}"#,
        r#"{"path":"args.a","op":"eq","value":3},{"path":"args.a","op":"in","value":[1,2]}"#,
        r#"{"path":"args.a","op":"exists","value":false},{"path":"args.a","op":"eq","value":1}"#,
        r#"{"path":"args.a","op":"lt","value":5},{"path":"args.a","op":"starts_with","value":"x"}"#,
    ];
    for conditions in clashes {
        let found = pointers(&in_list("deny_if", conditions), "never_fires");
        assert_eq!(found, ["/tools/t/deny_if/0"], "{conditions}");
    }
    let fine = [
        r#"{"path":"args.a","op":"gte","value":10},{"path":"args.a","op":"lte","value":10}"#,
        r#"{"path":"args.a[*]","op":"eq","value":1},{"path":"args.a[*]","op":"eq","value":2}"#,
        r#"{"path":"args.a","op":"eq","value":1},{"path":"args.b","op":"eq","value":2}"#,
        r#"{"path":"args.a","op":"eq","value":1.0},{"path":"args.a","op":"in","value":[1,2]}"#,
    ];
    for conditions in fine {
        assert_eq!(warnings(&in_list("deny_if", conditions), None), [], "{conditions}");
    }
}

#[test]
fn rules_behind_others_that_always_decide() {
    let always = r#"{"conditions":[]}"#;
    let some = r#"{"conditions":[{"path":"args.a","op":"exists"}]}"#;
    let text = entry(&format!(
        r#"{{"deny_if":[{some},{always},{some}],"approve_if":[{some}],"limits":[{{"counter":"c","window":"day","max":1}}]}}"#
    ));
    assert_eq!(
        pointers(&text, "never_fires"),
        ["/tools/t/deny_if/2", "/tools/t/deny_if/2", "/tools/t/approve_if", "/tools/t/limits"]
    );
    let text = entry(&format!(r#"{{"approve_if":[{always},{some}]}}"#));
    assert_eq!(pointers(&text, "never_fires"), ["/tools/t/approve_if/1"]);
    let text = entry(r#"{"approval":{"quorum":2}}"#);
    assert_eq!(pointers(&text, "never_fires"), ["/tools/t/approval"]);
    let text = format!(
        r#"{{"version":"1","default":"deny","all_tools":{{"deny_if":[{always}]}},"tools":{{"t":{{"rate_limit":"1/day"}}}}}}"#
    );
    assert_eq!(pointers(&text, "never_fires"), ["/tools/t/rate_limit"]);
    let text = r#"{"version":"1","default":"deny","hide":["t*"],"tools":{"t":{"rate_limit":"1/day"},"tt":{}}}"#;
    assert_eq!(pointers(text, "never_fires"), ["/tools/t"]);
    assert_eq!(
        pointers(&entry(r#"{"require":[{"conditions":[]}]}"#), "always_holds"),
        ["/tools/t/require/0"]
    );
    let text = entry(
        r#"{"approve_if":[{"conditions":[]}],"approval":{"quorum":2,"approvers":["member:a@x.io","member:A@x.io"]}}"#,
    );
    assert_eq!(pointers(&text, "quorum_unreachable"), ["/tools/t/approval/quorum"]);
}

#[test]
fn nothing_restricted_and_everything_matched() {
    let open = r#"{"version":"1","default":"allow","tools":{"a":{}}}"#;
    assert_eq!(pointers(open, "nothing_restricted"), ["/default"]);
    for value in ["", ".*", "^", "a|", "(?s).*", "x*"] {
        let text =
            in_list("deny_if", &format!(r#"{{"path":"args.a","op":"regex","value":"{value}"}}"#));
        assert_eq!(
            pointers(&text, "matches_everything"),
            ["/tools/t/deny_if/0/conditions/0"],
            "{value}"
        );
    }
    for value in ["^$", ".", "^.*$", r"\\w*x", r"\\bx?"] {
        let text =
            in_list("deny_if", &format!(r#"{{"path":"args.a","op":"regex","value":"{value}"}}"#));
        assert_eq!(warnings(&text, None), [], "{value}");
    }
    let inner =
        in_list("require", r#"{"not":{"any":[{"path":"args.a","op":"contains","value":""}]}}"#);
    assert_eq!(
        pointers(&inner, "matches_everything"),
        ["/tools/t/require/0/conditions/0/not/any/0"]
    );
}

#[test]
fn counters_shared_by_accident() {
    let text = r#"{"version":"1","default":"deny","tools":{
        "a":{"limits":[{"counter":"x","window":"day","max":1},{"counter":"y","window":"day","max":1,"scope":"workspace"}]},
        "b":{"limits":[{"counter":"x","window":"day","max":1},{"counter":"y","window":"hour","max":1}]},
        "execute code":{"rate_limit":"1/day"},"execute_code":{"rate_limit":"1/day"}}}"#;
    assert_eq!(
        pointers(text, "shared_counter"),
        ["/tools/b/limits/0/counter", "/tools/execute_code/rate_limit"]
    );
    assert_eq!(pointers(text, "counter_windows"), ["/tools/b/limits/1/window"]);
}

fn known() -> Vec<KnownTool> {
    let pay = json!({"type":"object","properties":{
        "amount":{"type":"number"},"to":{"$ref":"#/$defs/account"},
        "items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}}}},
        "mode":{"enum":["a","b"]},"note":{"anyOf":[{"type":"string"},{"type":"null"}]},
        "free":{"type":"object"}},
        "$defs":{"account":{"type":"string"}}});
    vec![
        KnownTool { name: "create_charge".to_owned(), input_schema: Some(pay) },
        KnownTool { name: "list_charges".to_owned(), input_schema: None },
    ]
}

#[test]
fn tools_that_the_server_lacks() {
    let text = r#"{"version":"1","default":"deny","hide":["create_charg","refund_*","list_*"],
        "tools":{"list_charge":{},"x?y":{"rate_limit":"1/day"},"list_charges":{},"li*":{"rate_limit":"1/day"}}}"#;
    let found = warnings(text, Some(&known()));
    let some = |text: &str| Some(text.to_owned());
    let expected = [
        ("unknown_tool", "/hide/0", some("create_charge")),
        ("unknown_tool", "/hide/1", None),
        ("unknown_tool", "/tools/list_charge", some("list_charges")),
        ("unknown_tool", "/tools/x?y", None),
        ("never_fires", "/tools/li*", None),
    ];
    let expected: Vec<_> =
        expected.into_iter().map(|(c, p, s)| (c.to_owned(), p.to_owned(), s)).collect();
    assert_eq!(found, expected);
}

#[test]
fn require_on_paths_that_the_input_schema_lacks_or_types_otherwise() {
    let table = [
        (r#"{"path":"args.amount","op":"lte","value":1}"#, None),
        (
            r#"{"path":"args.amout","op":"lte","value":1}"#,
            Some(("not_in_schema", Some("args.amount"))),
        ),
        (r#"{"path":"args.amount","op":"regex","value":"^1"}"#, Some(("schema_type", None))),
        (r#"{"path":"args.amount","op":"eq","value":"1"}"#, Some(("schema_type", None))),
        (r#"{"path":"args.to","op":"starts_with","value":"a"}"#, None),
        (r#"{"path":"args.to","op":"lt","value":1}"#, Some(("schema_type", None))),
        (r#"{"path":"args.items[*].id","op":"in","value":[1,2]}"#, None),
        (
            r#"{"path":"args.items[*].ident","op":"in","value":[1,2]}"#,
            Some(("not_in_schema", None)),
        ),
        (r#"{"path":"args.items[0].id","op":"contains","value":"x"}"#, Some(("schema_type", None))),
        (r#"{"path":"args.mode","op":"eq","value":"a"}"#, None),
        (r#"{"path":"args.mode","op":"eq","value":1}"#, Some(("schema_type", None))),
        (r#"{"path":"args.note","op":"regex","value":"x"}"#, None),
        (r#"{"path":"args.free.any","op":"lt","value":1}"#, None),
        (r#"{"path":"args.nothing","op":"exists","value":false}"#, None),
        (r#"{"not":{"path":"args.nothing","op":"eq","value":1}}"#, Some(("not_in_schema", None))),
        (r#"{"path":"grant.label","op":"eq","value":"x"}"#, None),
    ];
    for (condition, expected) in table {
        for name in ["create_charge", "create_*"] {
            let text = format!(
                r#"{{"version":"1","default":"deny","tools":{{"{name}":{{"require":[{{"conditions":[{condition}]}}]}}}}}}"#
            );
            let found: Vec<_> =
                warnings(&text, Some(&known())).into_iter().map(|(code, _, s)| (code, s)).collect();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(code, s)| (code.to_owned(), s.map(str::to_owned)))
                .collect();
            assert_eq!(found, expected, "{name} {condition}");
        }
    }
}

#[test]
fn warnings_are_told_beside_errors() {
    let text = r#"{"version":"1","default":"deny","tools":{"x":{"require":[
        {"conditions":[{"path":"bad","op":"eq","value":1}]},
        {"conditions":[{"path":"args.a","op":"regex","value":".*"}]}]}}}"#;
    let checked = check(text, Some(&known()));
    let codes: Vec<&str> = checked.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["unknown_tool", "bad_path", "matches_everything"]);
}
