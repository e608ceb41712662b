//! Policies on calls of the past.

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{Code, ValidateArguments};
use sluice_policy::{
    InputSchema, PastServer, RecordedCall, Settings, SimulatedOutcome, Simulation, Tally,
    ToolFacts, compare, recorded, simulate,
};

use crate::support::{now, policy, tools};

fn at(seconds: i64) -> DateTime<Utc> {
    now() + TimeDelta::seconds(seconds)
}

fn past(tool: &str, grant: &str, seconds: i64, arguments: Option<&str>) -> RecordedCall {
    RecordedCall {
        at: at(seconds),
        tool: tool.to_owned(),
        facts: ToolFacts::KNOWN,
        arguments: arguments.map(str::to_owned),
        grant: grant.to_owned(),
        grant_label: format!("label {grant}"),
        session: None,
        client_name: None,
    }
}

fn outcomes(simulation: &Simulation) -> Vec<SimulatedOutcome> {
    simulation.calls.iter().map(|call| call.outcome).collect()
}

use SimulatedOutcome::{Allow, Approve, CannotTell, Deny};

#[test]
fn refusals_are_counted_by_rule_grant_and_tool() {
    let policy = tools(
        r#"{"pay":{"require":[{"conditions":[{"path":"args.n","op":"lte","value":10}]}],"approve_if":[{"conditions":[{"path":"args.n","op":"gt","value":5}]}]},"read":{}}"#,
    );
    let calls = [
        past("pay", "a", 0, Some(r#"{"n":1}"#)),
        past("pay", "a", 1, Some(r#"{"n":100}"#)),
        past("pay", "b", 2, Some(r#"{"n":11}"#)),
        past("pay", "b", 3, Some(r#"{"n":6}"#)),
        past("other", "b", 4, Some("{}")),
        past("read", "b", 5, None),
    ];
    let found = simulate(&policy, &calls, &PastServer::default());
    assert_eq!(outcomes(&found), [Allow, Deny, Deny, Approve, Deny, Allow]);
    assert_eq!(
        (found.total, found.allowed, found.refused, found.parked, found.cannot_tell),
        (6, 2, 3, 1, 0)
    );
    let tally = |name: &str, calls| Tally { name: name.to_owned(), calls };
    assert_eq!(
        found.rules,
        [
            tally("/tools/pay/require/0", 2),
            tally("(default deny)", 1),
            tally("/tools/pay/approve_if/0", 1)
        ]
    );
    assert_eq!(found.grants, [tally("label b", 3), tally("label a", 1)]);
    assert_eq!(found.tools, [tally("pay", 3), tally("other", 1)]);
}

#[test]
fn limits_are_counted_in_the_order_of_time() {
    let policy = tools(
        r#"{"t":{"limits":[{"counter":"g","window":"minute","max":2},{"counter":"w","window":"hour","max":4,"scope":"workspace"}]}}"#,
    );
    let times = [("a", 0), ("a", 10), ("a", 20), ("a", 60), ("b", 61), ("b", 62)];
    let mut calls: Vec<_> =
        times.iter().map(|(grant, s)| past("t", grant, *s, Some("{}"))).collect();
    let found = simulate(&policy, &calls, &PastServer::default());
    assert_eq!(outcomes(&found), [Allow, Allow, Deny, Allow, Allow, Deny]);
    assert_eq!(found.calls[2].rule, "/tools/t/limits/0");
    assert_eq!(found.calls[5].rule, "/tools/t/limits/1");
    assert_eq!(found.calls[5].code, Some(Code::RateLimited));
    calls.reverse();
    let mut reversed = outcomes(&simulate(&policy, &calls, &PastServer::default()));
    reversed.reverse();
    assert_eq!(reversed, outcomes(&found), "the order of the list does not matter");
}

#[test]
fn calendar_windows_start_anew_at_utc_borders_and_sessions_count_apart() {
    let policy = tools(
        r#"{"d":{"limits":[{"counter":"d","window":"day","max":1,"reset":"calendar"}]},
            "w":{"limits":[{"counter":"w","window":"week","max":1,"reset":"calendar"}]},
            "m":{"limits":[{"counter":"m","window":"month","max":1,"reset":"calendar"}]},
            "s":{"limits":[{"counter":"s","window":"day","max":1,"scope":"session"}]}}"#,
    );
    let day = 86_400;
    // Monday noon: the next day starts in 12 h, the next month too, the week in 7 days less 12 h.
    for (tool, same, next) in [
        ("d", day / 2 - 1, day / 2),
        ("m", day / 2 - 1, day / 2),
        ("w", day * 13 / 2 - 1, day * 13 / 2),
    ] {
        let calls = [0, same, next].map(|seconds| past(tool, "a", seconds, Some("{}")));
        assert_eq!(
            outcomes(&simulate(&policy, &calls, &PastServer::default())),
            [Allow, Deny, Allow],
            "{tool}"
        );
    }
    let session = |name: &str, s| RecordedCall {
        session: Some(name.to_owned()),
        ..past("s", "a", s, Some("{}"))
    };
    let calls = [session("1", 0), session("2", 1), session("1", 2), past("s", "a", 3, Some("{}"))];
    assert_eq!(
        outcomes(&simulate(&policy, &calls, &PastServer::default())),
        [Allow, Allow, Deny, Allow]
    );
}

#[test]
fn what_the_log_does_not_keep_cannot_be_told() {
    let arguments = r#"{"n":7,"to":"ann","list":[1,"x"],"o":{"k":true},"nothing":null}"#;
    let types = recorded::types_only(arguments);
    assert_eq!(
        types,
        r#"{"n":{"$type":"number"},"to":{"$type":"string"},"list":[{"$type":"number"},{"$type":"string"}],"o":{"k":{"$type":"boolean"}},"nothing":{"$type":"null"}}"#
    );
    let kept = recorded::redacted(arguments, &|key| key == "n" || key == "list");
    assert_eq!(
        kept,
        r#"{"n":7,"to":{"$type":"string"},"list":[1,"x"],"o":{"k":{"$type":"boolean"}},"nothing":{"$type":"null"}}"#
    );
    let table = [
        (r#"{"path":"args.n","op":"lte","value":10}"#, CannotTell, Allow, CannotTell),
        (r#"{"path":"args.to","op":"lte","value":10}"#, Deny, Deny, CannotTell),
        (r#"{"path":"args.to","op":"eq","value":"ann"}"#, CannotTell, CannotTell, CannotTell),
        (r#"{"path":"args.to","op":"eq","value":5}"#, Deny, Deny, CannotTell),
        (r#"{"path":"args.to","op":"neq","value":5}"#, Allow, Allow, CannotTell),
        (r#"{"path":"args.to","op":"exists"}"#, Allow, Allow, CannotTell),
        (r#"{"path":"args.nothing","op":"exists"}"#, Deny, Deny, CannotTell),
        (r#"{"path":"args.absent","op":"exists","value":false}"#, Allow, Allow, CannotTell),
        (r#"{"path":"args.list[*]","op":"neq","value":true}"#, Allow, Allow, CannotTell),
        (r#"{"path":"args.list[*]","op":"gte","value":1}"#, CannotTell, Deny, CannotTell),
        (r#"{"path":"args.list[0]","op":"eq","value":1}"#, CannotTell, Allow, CannotTell),
        (r#"{"path":"args.list","op":"length_lte","value":2}"#, Allow, Allow, CannotTell),
        (r#"{"path":"args.list","op":"eq","value":[1,"x"]}"#, CannotTell, Allow, CannotTell),
        (r#"{"path":"args.list","op":"contains","value":"x"}"#, CannotTell, Allow, CannotTell),
        (r#"{"path":"args.o","op":"in","value":[{"k":true}]}"#, CannotTell, CannotTell, CannotTell),
        (r#"{"path":"args.o","op":"eq","value":[1]}"#, Deny, Deny, CannotTell),
        (r#"{"path":"args.o.k.deep","op":"eq","value":1}"#, Deny, Deny, CannotTell),
        (r#"{"path":"args.list[0].x","op":"exists"}"#, Deny, Deny, CannotTell),
        (r#"{"path":"args.list[*].x","op":"exists","value":false}"#, Allow, Allow, CannotTell),
        (r#"{"path":"tool.name","op":"eq","value":"t"}"#, Allow, Allow, Allow),
        (
            r#"{"any":[{"path":"args.to","op":"eq","value":"x"},{"path":"args.n","op":"exists"}]}"#,
            Allow,
            Allow,
            CannotTell,
        ),
    ];
    for (condition, by_types, by_some, by_nothing) in table {
        let policy = tools(&format!(r#"{{"t":{{"require":[{{"conditions":[{condition}]}}]}}}}"#));
        let calls = [
            past("t", "a", 0, Some(&types)),
            past("t", "a", 1, Some(&kept)),
            past("t", "a", 2, None),
        ];
        let found = outcomes(&simulate(&policy, &calls, &PastServer::default()));
        assert_eq!(found, [by_types, by_some, by_nothing], "{condition}");
    }
}

#[test]
fn a_refusal_that_is_sure_is_told_even_beside_what_cannot_be() {
    let policy = tools(
        r#"{"t":{"require":[{"conditions":[{"path":"args.n","op":"lte","value":10}]}],"deny_if":[{"conditions":[]}]}}"#,
    );
    let calls = [past("t", "a", 0, None)];
    assert_eq!(outcomes(&simulate(&policy, &calls, &PastServer::default())), [Deny]);
    // Whether the first call was charged is open, so whether the third fits is too; the fourth can never fit.
    let policy = tools(
        r#"{"t":{"require":[{"conditions":[{"path":"args.n","op":"lte","value":10}]}],"limits":[{"counter":"c","window":"day","max":2}]}}"#,
    );
    let known = Some(r#"{"n":1}"#);
    let calls = [
        past("t", "a", 0, known),
        past("t", "a", 1, known),
        past("t", "a", 2, known),
        past("t", "b", 3, None),
        past("t", "b", 4, known),
    ];
    assert_eq!(
        outcomes(&simulate(&policy, &calls, &PastServer::default())),
        [Allow, Allow, Deny, CannotTell, CannotTell]
    );
    let amounts = tools(
        r#"{"t":{"limits":[{"counter":"c","window":"day","max":5,"increment_from":"args.n"}]}}"#,
    );
    let calls = [
        past("t", "a", 0, Some(r#"{"n":{"$type":"number"}}"#)),
        past("t", "a", 1, Some(r#"{"n":{"$type":"string"}}"#)),
    ];
    assert_eq!(outcomes(&simulate(&amounts, &calls, &PastServer::default())), [CannotTell, Deny]);
}

#[test]
fn two_versions_are_compared_call_by_call() {
    let old =
        tools(r#"{"t":{"require":[{"conditions":[{"path":"args.n","op":"lte","value":10}]}]}}"#);
    let new = tools(
        r#"{"t":{"require":[{"conditions":[{"path":"args.n","op":"gte","value":5}]}]},"u":{}}"#,
    );
    let call = |tool: &str, n: &str| past(tool, "a", 0, Some(&format!(r#"{{"n":{n}}}"#)));
    let calls = [
        call("t", "1"),
        call("t", "7"),
        call("t", "70"),
        call("u", "1"),
        call("t", r#"{"$type":"number"}"#),
    ];
    let found = compare(&old, &new, &calls, &PastServer::default());
    assert_eq!((found.stricter, found.looser, found.cannot_tell), (1, 2, 1));
    let changed: Vec<usize> = found.changed.iter().map(|change| change.index).collect();
    assert_eq!(changed, [0, 2, 3]);
}

#[test]
fn an_observing_policy_is_tried_as_if_it_decided() {
    let policy = policy(
        r#"{"version":"1","mode":"observe","default":"deny","tools":{"t":{"rate_limit":"1/day"}}}"#,
    );
    let calls = [
        past("t", "a", 0, Some("{}")),
        past("t", "a", 1, Some("{}")),
        past("x", "a", 2, Some("{}")),
    ];
    assert_eq!(outcomes(&simulate(&policy, &calls, &PastServer::default())), [Allow, Deny, Deny]);
}

#[test]
fn records_are_bounded() {
    let long = format!(
        r#"{{"a":"{}","b":[{}],"c":{}1{}}}"#,
        "x".repeat(50_000),
        vec!["1"; 9_000].join(","),
        "[".repeat(60),
        "]".repeat(60)
    );
    for text in [recorded::types_only(&long), recorded::redacted(&long, &|_| true)] {
        assert!(text.len() < 40_000, "{}", text.len());
        assert!(sluice_policy::Arguments::recorded(&text).is_ok(), "{text}");
    }
    assert_eq!(recorded::types_only(r#"{"a":{"$type":"number"}}"#), r#"{"a":{"$type":"object"}}"#);
}

#[test]
fn the_server_s_check_of_arguments_is_tried_too_and_not_guessed() {
    let policy = tools(r#"{"read":{},"free":{}}"#);
    let schema =
        r#"{"required":["path"],"properties":{"path":{"type":"string"},"n":{"maximum":5}}}"#;
    let server = |validate_arguments| PastServer {
        settings: Settings { validate_arguments, ..Settings::default() },
        schemas: [("read".to_owned(), InputSchema::read(schema))].into(),
    };
    let calls = [
        past("read", "a", 0, Some(r#"{"path":"x"}"#)),
        past("read", "a", 1, Some(r#"{"path":7}"#)),
        past("read", "a", 2, Some("{}")),
        // Values that the log did not keep.
        past("read", "a", 3, Some(r#"{"path":{"$type":"string"},"n":{"$type":"number"}}"#)),
        past("read", "a", 4, None),
        // A tool without a schema takes anything.
        past("free", "a", 5, None),
    ];
    let found = simulate(&policy, &calls, &server(ValidateArguments::Deny));
    assert_eq!(outcomes(&found), [Allow, Deny, Deny, CannotTell, CannotTell, Allow]);
    assert_eq!(found.calls[1].code, Some(Code::ArgumentsInvalid));
    assert_eq!(found.calls[1].rule, "(schema)");
    for noted in [ValidateArguments::Log, ValidateArguments::Off] {
        assert_eq!(outcomes(&simulate(&policy, &calls, &server(noted))), [Allow; 6], "{noted}");
    }
    // What the policy refuses is refused, whatever the schema would have said.
    let refused = tools(r#"{"read":{"action":"deny"},"free":{}}"#);
    let found = simulate(&refused, &calls, &server(ValidateArguments::Deny));
    assert_eq!(outcomes(&found), [Deny, Deny, Deny, Deny, Deny, Allow]);
}
