//! Sentences, differences, calls and tests in files.

use sluice_domain::Code;
use sluice_policy::{CallFile, CasesFile, ChangeKind, diff, run_tests, sentences};

use crate::support::{now, policy};

#[test]
fn a_document_is_said_in_sentences() {
    let policy = policy(
        r#"{"version":"1","default":"deny","hide":["purge","admin_*"],
        "all_tools":{"deny_if":[{"conditions":[{"path":"call.weekday_utc","op":"in","value":["sat","sun"]}]}]},
        "tools":{"execute_code":{"limits":[{"counter":"execute_code_rate","window":"minute","max":10}]},
                 "read":{},
                 "pay":{"require":[{"conditions":[{"path":"args.ids[*]","op":"starts_with","value":"a"}]}],
                        "approve_if":[{"conditions":[]}],
                        "approval":{"hold":"1m","quorum":2,"approvers":["role:policy_manager","member:ann@x.io"],"self":false},
                        "limits":[{"counter":"d","window":"day","max":1,"scope":"session"},
                                  {"counter":"m","window":"month","max":99.5,"increment_from":"args.n","scope":"workspace","reset":"calendar"},
                                  {"counter":"z","window":"90s","max":0}]},
                 "list_*":{"deny_if":[{"conditions":[{"not":{"path":"args.q","op":"exists"}}]}]}}}"#,
    );
    let said: Vec<String> = sentences(policy.document())
        .into_iter()
        .map(|s| format!("{} {}", s.pointer, s.text))
        .collect();
    let expected = [
        "/default Tools that are not named here are refused.",
        "/hide/0 `purge` is hidden, and refused when called.",
        "/hide/1 Tools named like `admin_*` are hidden, and refused when called.",
        r#"/all_tools/deny_if/0 Every tool is refused when `call.weekday_utc` is one of "sat", "sun"."#,
        "/tools/execute_code/limits/0 `execute_code` may run 10 times a minute per grant.",
        "/tools/read `read` may be called.",
        r#"/tools/pay/require/0 `pay` is refused unless every `args.ids[*]` starts with "a"."#,
        "/tools/pay/approve_if/0 `pay` waits for a person's approval.",
        "/tools/pay/limits/0 `pay` may run once a day per session.",
        "/tools/pay/limits/1 `pay` may use 99.5 of `args.n` a month (UTC calendar) for the whole workspace together.",
        "/tools/pay/limits/2 `pay` may not run at all: the limit is 0.",
        "/tools/pay/approval Approvals: a call is held open for 1 minute; any policy manager or ann@x.io may decide; 2 people must approve; the member who made the grant may not decide.",
        "/tools/list_*/deny_if/0 Tools named like `list_*` are refused when `args.q` is absent.",
    ];
    assert_eq!(said, expected);
}

#[test]
fn differences_are_told_part_by_part() {
    let before = r#"{"version":"1","default":"deny","hide":["a","b"],"tools":{
        "x":{"rate_limit":"10/minute"},"y":{},
        "z":{"deny_if":[{"conditions":[{"path":"args.a","op":"gt","value":1}]},{"conditions":[{"path":"args.b","op":"exists"}]}]}}}"#;
    let after = r#"{"default":"allow","version":"1","hide":["a","c","b"],"tools":{
        "x":{"limits":[{"counter":"x_rate","window":"minute","max":5,"scope":"session"}]},"w":{},
        "z":{"deny_if":[{"conditions":[{"path":"args.b","op":"exists"}]},{"conditions":[{"path":"args.a","op":"gt","value":1.0}]}]}}}"#;
    let changes = diff(before, after).expect("two documents");
    let told: Vec<String> = changes
        .iter()
        .map(|change| {
            let kind = match change.kind {
                ChangeKind::Added => "+",
                ChangeKind::Removed => "-",
                ChangeKind::Changed => "~",
            };
            format!("{kind}{}", change.pointer)
        })
        .collect();
    assert_eq!(
        told,
        [
            "~/default",
            "+/hide/1",
            "~/tools/x/limits/0/max",
            "-/tools/y",
            "-/tools/z/deny_if/0",
            "+/tools/z/deny_if/1",
            "+/tools/w"
        ]
    );
    assert_eq!(diff(before, before), Ok(Vec::new()));
    let reordered =
        before.replace(r#""version":"1","default":"deny""#, r#""default":"deny","version":"1""#);
    assert_eq!(diff(before, &reordered), Ok(Vec::new()));
    assert!(diff(before, "{").is_err());
}

#[test]
fn calls_in_files_are_strict() {
    let policy = policy(
        r#"{"version":"1","default":"deny","tools":{"t":{"deny_if":[{"conditions":[{"path":"call.hour_utc","op":"lt","value":6}]}],
        "require":[{"conditions":[{"path":"tool.category","op":"eq","value":"Read"},{"path":"grant.label","op":"eq","value":"ci"},{"path":"session.client_name","op":"exists"}]}]}}}"#,
    );
    let text = r#"{"tool":"t","arguments":{"n":1},"context":{"grant":{"label":"ci"},"session":{"client_name":"c"},"tool":{"category":"Read","severity":"Low"},"now":"2026-11-30T07:30:00+02:00"}}"#;
    let decide = |text: &str| CallFile::parse(text).and_then(|call| call.decide(&policy, now()));
    assert_eq!(decide(text).expect("a decision").code, Code::DenyIfMatched);
    let noon = text.replace(r#","now":"2026-11-30T07:30:00+02:00""#, "");
    assert_eq!(decide(&noon).expect("a decision").code, Code::Allowed);
    for bad in [
        text.replace("Read", "Reed"),
        text.replace("2026-11-30T07", "yesterday"),
        text.replace(r#""label""#, r#""name""#),
        text.replace(r#"{"n":1}"#, "[]"),
        text.replace(r#"{"n":1}"#, r#"{"n":1,"n":2}"#),
        text.replace(r#""tool":"t","#, ""),
        "x".to_owned(),
    ] {
        assert!(decide(&bad).is_err(), "{bad}");
    }
}

#[test]
fn tests_of_a_policy_tell_what_differs() {
    let policy = policy(
        r#"{"version":"1","default":"deny","tools":{"pay":{"require":[{"conditions":[{"path":"args.n","op":"lte","value":5}],"on_deny":"Too much."}]}}}"#,
    );
    let file = CasesFile::parse(
        r#"{"now":"2026-11-30T12:00:00Z","cases":[
        {"name":"small","tool":"pay","arguments":{"n":5.0},"expect":"allow"},
        {"tool":"pay","arguments":{"n":6},"expect":{"outcome":"deny","code":"require_failed","rule":"/tools/pay/require/0","message":"Too much."}},
        {"name":"wrong","tool":"pay","arguments":{"n":6},"expect":{"outcome":"allow","code":"allowed"}},
        {"name":"broken","tool":"pay","arguments":[],"expect":"deny"}]}"#,
    )
    .expect("tests");
    let report = run_tests(&policy, &file, now());
    assert_eq!((report.passed, report.failed), (2, 2));
    assert_eq!(report.results[1].name, "case 2 (pay)");
    assert_eq!(
        report.results[2].differences,
        [
            "outcome: expected `allow`, found `deny`",
            "code: expected `allowed`, found `require_failed`",
            "decided by /tools/pay/require/0 (require_failed)"
        ]
    );
    assert_eq!(report.results[3].differences, ["arguments: arguments must be an object"]);
    for bad in [
        "{}",
        r#"{"cases":[{"tool":"x"}]}"#,
        r#"{"cases":[],"x":1}"#,
        r#"{"cases":[{"tool":"x","expect":"maybe"}]}"#,
    ] {
        assert!(CasesFile::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_hidden_tool_is_not_said_to_be_callable() {
    let policy = policy(
        r#"{"version":"1","default":"deny","hide":["x_*"],"tools":{"gone":{"action":"hide"},"x_1":{"rate_limit":"1/day"},"kept":{}}}"#,
    );
    let said: Vec<String> = sentences(policy.document()).into_iter().map(|s| s.text).collect();
    assert_eq!(
        said,
        [
            "Tools that are not named here are refused.",
            "Tools named like `x_*` are hidden, and refused when called.",
            "`gone` is hidden, and refused when called.",
            "`kept` may be called."
        ]
    );
}
