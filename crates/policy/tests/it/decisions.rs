//! The order of the table, observe mode, lists, charges, approvals and messages.

use std::cell::Cell;

use sluice_domain::{
    Amount, Code, OnDrift, OnUnavailable, Scope, UnknownTools, ValidateArguments, Window,
};
use sluice_policy::{
    Approver, CallInput, Settings, StepResult, ToolFacts, TraceStep, Verdict,
    decide_without_policy, limit_message,
};

use crate::support::{call, decide, policy, tools};

/// Every step has something to say about this tool.
pub(crate) const ALL_STEPS: &str = r#"{"version":"1","default":"deny","hide":["gone"],
    "all_tools":{"require":[{"conditions":[{"path":"args.r0","op":"exists"}]}],
                 "deny_if":[{"conditions":[{"path":"args.d0","op":"exists"}]}]},
    "tools":{"t":{"require":[{"conditions":[{"path":"args.r1","op":"exists"}],"on_deny":"Give r1."}],
                  "deny_if":[{"conditions":[{"path":"args.d1","op":"exists"}]}],
                  "approve_if":[{"conditions":[{"path":"args.p","op":"exists"}]}],
                  "limits":[{"counter":"c","window":"day","max":10,"increment_from":"args.n"}]}}}"#;

fn strict() -> Settings {
    Settings {
        unknown_tools: UnknownTools::Deny,
        on_drift: OnDrift::Deny,
        validate_arguments: ValidateArguments::Deny,
    }
}

const UNKNOWN: ToolFacts = ToolFacts::UNKNOWN;
const KNOWN: ToolFacts = ToolFacts::KNOWN;
const CHANGED: ToolFacts = ToolFacts { changed: true, ..ToolFacts::KNOWN };
const HELD: ToolFacts = ToolFacts { held: true, ..ToolFacts::KNOWN };
const EVERYTHING: &str = r#"{"d0":1,"d1":1,"p":1,"n":-1}"#;

/// Tool, facts, arguments, whether they do not fit the schema, code, rule.
const ORDER: &[(&str, ToolFacts, &str, bool, Code, &str)] = &[
    ("gone", UNKNOWN, EVERYTHING, true, Code::UnknownTool, "(hidden)"),
    ("t", UNKNOWN, EVERYTHING, true, Code::UnknownTool, "(unknown tool)"),
    ("t", CHANGED, EVERYTHING, true, Code::ToolChanged, "(drift)"),
    ("t", HELD, EVERYTHING, true, Code::ToolChanged, "(held)"),
    ("other", KNOWN, EVERYTHING, true, Code::DefaultDeny, "(default deny)"),
    ("t", KNOWN, EVERYTHING, true, Code::RequireFailed, "/all_tools/require/0"),
    ("t", KNOWN, r#"{"r0":1,"d0":1,"n":-1}"#, true, Code::RequireFailed, "/tools/t/require/0"),
    (
        "t",
        KNOWN,
        r#"{"r0":1,"r1":1,"d0":1,"d1":1,"n":-1}"#,
        true,
        Code::DenyIfMatched,
        "/all_tools/deny_if/0",
    ),
    (
        "t",
        KNOWN,
        r#"{"r0":1,"r1":1,"d1":1,"n":-1}"#,
        true,
        Code::DenyIfMatched,
        "/tools/t/deny_if/0",
    ),
    ("t", KNOWN, r#"{"r0":1,"r1":1,"n":-1,"p":1}"#, true, Code::ArgumentsInvalid, "(schema)"),
    (
        "t",
        KNOWN,
        r#"{"r0":1,"r1":1,"n":-1,"p":1}"#,
        false,
        Code::AmountInvalid,
        "/tools/t/limits/0",
    ),
    ("t", KNOWN, r#"{"r0":1,"r1":1,"n":11,"p":1}"#, false, Code::RateLimited, "/tools/t/limits/0"),
    (
        "t",
        KNOWN,
        r#"{"r0":1,"r1":1,"n":10,"p":1}"#,
        false,
        Code::ApprovalPending,
        "/tools/t/approve_if/0",
    ),
    ("t", KNOWN, r#"{"r0":1,"r1":1,"n":10}"#, false, Code::Allowed, ""),
];

#[test]
fn the_first_step_of_the_table_that_stops_a_call_decides() {
    let policy = policy(ALL_STEPS);
    let fits = || None;
    let misfit = || Some("`n` is too odd".to_owned());
    for (tool, facts, arguments, bad_schema, code, rule) in ORDER.iter().copied() {
        let schema_problem: &dyn Fn() -> Option<String> = if bad_schema { &misfit } else { &fits };
        let input =
            CallInput { facts, settings: strict(), schema_problem, ..call(tool, arguments) };
        let decision = policy.decide(&input);
        assert_eq!((decision.code, decision.rule.as_str()), (code, rule), "{tool} {arguments}");
        let charges = matches!(code, Code::Allowed | Code::ApprovalPending);
        assert_eq!(!decision.charges.is_empty(), charges, "{code}: a refused call charges nothing");
        let shown = policy.lists(tool, facts, strict(), false);
        let never = matches!(code, Code::UnknownTool | Code::ToolChanged | Code::DefaultDeny);
        assert_eq!(shown, !never, "{tool}: the list and the call agree");
    }
    assert_eq!(decide_without_policy().code, Code::NoPolicy);
    assert_eq!(decide_without_policy().rule, "(no policy)");
}

#[test]
fn default_settings_let_drift_through_and_only_note_the_schema() {
    let policy = tools(r#"{"t":{}}"#);
    let facts = ToolFacts { changed: true, ..ToolFacts::KNOWN };
    let asked = Cell::new(0);
    let schema_problem = || {
        asked.set(asked.get() + 1);
        Some("x".to_owned())
    };
    let input = CallInput { facts, schema_problem: &schema_problem, ..call("t", "{}") };
    let decision = policy.decide(&input);
    assert_eq!(decision.verdict, Verdict::Forward);
    assert_eq!((decision.schema_note.as_deref(), asked.get()), (Some("x"), 1));
    assert!(policy.lists("t", facts, Settings::default(), false));
    let denied = CallInput { schema_problem: &schema_problem, ..call("other", "{}") };
    assert_eq!(policy.decide(&denied).code, Code::DefaultDeny);
    assert_eq!(asked.get(), 1, "the schema is not asked about calls that are refused before");
    let off = Settings { validate_arguments: ValidateArguments::Off, ..Settings::default() };
    let input = CallInput { settings: off, schema_problem: &schema_problem, ..call("t", "{}") };
    assert_eq!((policy.decide(&input).schema_note, asked.get()), (None, 1));
}

#[test]
fn unknown_tools_by_policy_are_for_the_policy_to_decide() {
    let policy = policy(r#"{"version":"1","default":"allow","hide":["h*"]}"#);
    let by_policy = Settings { unknown_tools: UnknownTools::ByPolicy, ..Settings::default() };
    let outcome = |tool: &str, settings| {
        let input = CallInput { facts: ToolFacts::UNKNOWN, settings, ..call(tool, "{}") };
        (policy.decide(&input).verdict, policy.lists(tool, ToolFacts::UNKNOWN, settings, false))
    };
    assert_eq!(outcome("new", by_policy), (Verdict::Forward, true));
    assert_eq!(outcome("new", Settings::default()), (Verdict::Hide, false));
    assert_eq!(outcome("hidden", by_policy), (Verdict::Hide, false));
    assert_eq!(outcome(&"x".repeat(100_000), by_policy), (Verdict::Hide, false));
}

#[test]
fn hidden_and_unknown_look_the_same_to_an_agent() {
    let policy = policy(r#"{"version":"1","default":"allow","hide":["purge_all"]}"#);
    let hidden = decide(&policy, "purge_all", "{}");
    let input = CallInput { facts: ToolFacts::UNKNOWN, ..call("purge_all", "{}") };
    let unknown = sluice_policy::compile(r#"{"version":"1","default":"allow"}"#)
        .expect("a policy")
        .decide(&input);
    assert_eq!(hidden.message, unknown.message);
    assert_eq!((hidden.verdict, hidden.code), (unknown.verdict, unknown.code));
    assert_eq!((hidden.rule.as_str(), unknown.rule.as_str()), ("(hidden)", "(unknown tool)"));
}

#[test]
fn observing_forwards_what_the_policy_refuses_and_says_what_it_would_have_done() {
    let watching =
        policy(&ALL_STEPS.replacen(r#""version":"1""#, r#""version":"1","mode":"observe""#, 1));
    let enforcing = policy(ALL_STEPS);
    let table = [
        ("gone", "{}", Code::UnknownTool, Verdict::Hide, 0),
        ("other", "{}", Code::DefaultDeny, Verdict::Deny, 0),
        ("t", "{}", Code::RequireFailed, Verdict::Deny, 0),
        ("t", r#"{"r0":1,"r1":1,"d0":1}"#, Code::DenyIfMatched, Verdict::Deny, 0),
        ("t", r#"{"r0":1,"r1":1,"n":"x"}"#, Code::AmountInvalid, Verdict::Deny, 0),
        ("t", r#"{"r0":1,"r1":1,"n":100}"#, Code::RateLimited, Verdict::Deny, 0),
        ("t", r#"{"r0":1,"r1":1,"n":1,"p":1}"#, Code::ApprovalPending, Verdict::Approve, 1),
    ];
    for (tool, arguments, code, would_be, charges) in table {
        let by_mode = decide(&watching, tool, arguments);
        let by_grant = enforcing.decide(&CallInput { observe: true, ..call(tool, arguments) });
        for decision in [by_mode, by_grant] {
            assert_eq!(decision.verdict, Verdict::Forward, "{tool} {arguments}");
            assert_eq!((decision.code, decision.would_be), (code, Some(would_be)));
            assert!(decision.observed && decision.observing);
            assert_eq!(decision.charges.len(), charges, "{tool} {arguments}");
        }
        assert!(watching.lists(tool, ToolFacts::KNOWN, Settings::default(), false));
        assert!(enforcing.lists(tool, ToolFacts::KNOWN, Settings::default(), true));
    }
    let allowed = decide(&watching, "t", r#"{"r0":1,"r1":1,"n":1}"#);
    assert_eq!((allowed.code, allowed.observed, allowed.observing), (Code::Allowed, false, true));
    assert_eq!(allowed.charges.len(), 1);
}

#[test]
fn observing_does_not_set_aside_what_the_server_itself_refuses() {
    let watching = policy(r#"{"version":"1","mode":"observe","default":"deny","hide":["t"]}"#);
    let misfit = || Some("odd".to_owned());
    let refused = |facts| {
        let input =
            CallInput { facts, settings: strict(), schema_problem: &misfit, ..call("t", "{}") };
        let decision = watching.decide(&input);
        assert!(!decision.observed);
        (decision.verdict, decision.rule)
    };
    assert_eq!(refused(ToolFacts::UNKNOWN), (Verdict::Hide, "(unknown tool)".to_owned()));
    let held = ToolFacts { held: true, ..ToolFacts::KNOWN };
    assert_eq!(refused(held), (Verdict::Deny, "(held)".to_owned()));
    assert_eq!(refused(ToolFacts::KNOWN), (Verdict::Deny, "(schema)".to_owned()));
}

#[test]
fn the_more_specific_name_decides() {
    let policy = policy(
        r#"{"version":"1","default":"deny","tools":{
            "*":{"deny_if":[{"conditions":[],"on_deny":"star"}]},
            "get_*":{"deny_if":[{"conditions":[],"on_deny":"get"}]},
            "get_user*":{"deny_if":[{"conditions":[],"on_deny":"user"}]},
            "get_user":{"deny_if":[{"conditions":[],"on_deny":"exact"}]},
            "get_us??":{"deny_if":[{"conditions":[],"on_deny":"marks"}]}}}"#,
    );
    for (tool, who) in [
        ("get_user", "exact"),
        ("get_users", "user"),
        ("get_usxx", "marks"),
        ("get_x", "get"),
        ("Get_user", "star"),
        ("", "star"),
    ] {
        assert_eq!(decide(&policy, tool, "{}").message, who, "{tool}");
    }
}

#[test]
fn limits_on_one_counter_are_one_charge() {
    let policy = policy(
        r#"{"version":"1","default":"deny",
        "all_tools":{"limits":[{"counter":"c","window":"minute","max":5,"on_unavailable":"allow"},
                               {"counter":"all","window":"day","max":100,"scope":"workspace"}]},
        "tools":{"t":{"limits":[
            {"counter":"c","window":"minute","max":3},
            {"counter":"c","window":"minute","max":9,"increment_from":"args.n"},
            {"counter":"c","window":"minute","max":9,"scope":"session"}]}}}"#,
    );
    let decision = decide(&policy, "t", r#"{"n":0.5}"#);
    let shown: Vec<_> = decision
        .charges
        .iter()
        .map(|c| {
            (c.rule.as_str(), c.counter.as_str(), c.scope, c.max.to_string(), c.amount.to_string())
        })
        .collect();
    let expected = [
        ("/tools/t/limits/0", "c", Scope::Grant, "3".to_owned(), "1.5".to_owned()),
        ("/all_tools/limits/1", "all", Scope::Workspace, "100".to_owned(), "1".to_owned()),
        ("/tools/t/limits/2", "c", Scope::Session, "9".to_owned(), "1".to_owned()),
    ];
    assert_eq!(shown, expected);
    assert_eq!(decision.charges[0].on_unavailable, OnUnavailable::Deny);
    assert_eq!(decision.charges[0].window, Window::Minute);
}

#[test]
fn amounts_are_read_exactly_or_refused() {
    let policy = tools(
        r#"{"t":{"limits":[{"counter":"c","window":"day","max":999999999999999.999999999,"increment_from":"args.n"}]}}"#,
    );
    for (n, amount) in [
        ("999999999999999.999999999", "999999999999999.999999999"),
        ("1e2", "100"),
        ("0", "0"),
        ("-0", "0"),
    ] {
        let decision = decide(&policy, "t", &format!(r#"{{"n":{n}}}"#));
        assert_eq!(decision.charges.first().map(|c| c.amount.to_string()).as_deref(), Some(amount));
    }
    for arguments in [
        "{}",
        r#"{"n":null}"#,
        r#"{"n":-1}"#,
        r#"{"n":-0.000000001}"#,
        r#"{"n":"1"}"#,
        r#"{"n":true}"#,
        r#"{"n":[1]}"#,
        r#"{"n":1e15}"#,
        r#"{"n":0.0000000001}"#,
        r#"{"n":1e999999999999}"#,
    ] {
        let decision = decide(&policy, "t", arguments);
        assert_eq!(decision.code, Code::AmountInvalid, "{arguments}");
        assert_eq!(decision.rule, "/tools/t/limits/0");
    }
}

#[test]
fn a_limit_that_can_never_hold_the_call_refuses_at_once() {
    let policy = tools(
        r#"{"none":{"limits":[{"counter":"n","window":"day","max":0}]},
            "pay":{"limits":[{"counter":"p","window":"day","max":500.5,"increment_from":"args.n"}]}}"#,
    );
    let none = decide(&policy, "none", "{}");
    assert_eq!(none.trace.last().map(TraceStep::result), Some(StepResult::Refused));
    assert_eq!((none.code, none.counter.as_deref()), (Code::RateLimited, Some("n")));
    assert_eq!(none.message, "none may not be called: its limit is 0.");
    let pay = decide(&policy, "pay", r#"{"n":500.500000001}"#);
    assert_eq!(pay.code, Code::RateLimited);
    assert_eq!(
        pay.message,
        "pay is limited to 500.5 of `args.n` a day. This call asks for 500.500000001, which can never fit."
    );
    assert_eq!(decide(&policy, "pay", r#"{"n":500.5}"#).code, Code::Allowed);
}

#[test]
fn limits_speak_as_the_contract_says() {
    let policy = tools(r#"{"executePython":{"rate_limit":"10/minute"}}"#);
    let decision = decide(&policy, "executePython", "{}");
    let charge = &decision.charges[0];
    assert_eq!(
        limit_message("executePython", charge, Some(23)),
        "executePython is limited to 10 calls a minute. Retry after 23 s."
    );
    assert_eq!((charge.counter.as_str(), charge.scope), ("executepython_rate", Scope::Session));
    assert_eq!((charge.max, charge.amount), (Amount::whole(10), Amount::ONE));
}

#[test]
fn an_approval_takes_the_tool_s_word_then_everyone_s_then_the_default() {
    let policy = policy(
        r#"{"version":"1","default":"deny",
        "all_tools":{"approval":{"hold":"0s","quorum":2,"self":false}},
        "tools":{"a":{"approve_if":[{"conditions":[]}]},
                 "b":{"approve_if":[{"conditions":[],"on_deny":"Ask Ann."}],
                      "approval":{"expires":"2d","quorum":1,"approvers":["member:Ann@Example.com"]}}}}"#,
    );
    let plan = |tool| decide(&policy, tool, "{}").approval.expect("a plan");
    let a = plan("a");
    assert_eq!((a.hold, a.expires, a.quorum, a.self_allowed), (0, 1_800, 2, false));
    assert_eq!(
        a.approvers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["role:admin", "role:policy_manager"]
    );
    assert_eq!(a.rule, "/tools/a/approve_if/0");
    let b = plan("b");
    assert_eq!((b.hold, b.expires, b.quorum, b.self_allowed), (0, 172_800, 1, false));
    assert_eq!(b.approvers, [Approver::Member("ann@example.com".to_owned())]);
    assert_eq!(b.on_deny.as_deref(), Some("Ask Ann."));
}

#[test]
fn rules_that_bear_on_a_tool_are_one_text() {
    let text = |policy_text: &str, tool: &str| policy(policy_text).rules_text(tool);
    let base = r#"{"version":"1","default":"deny","tools":{"a":{"rate_limit":"1/day"},"b":{}}}"#;
    let other = r#"{"version":"1","description":"x","default":"deny","tools":{"b":{"rate_limit":"5/day"},"a":{"rate_limit":"1/day"}}}"#;
    assert_eq!(text(base, "a"), text(other, "a"));
    assert_ne!(text(base, "b"), text(other, "b"));
    assert_ne!(text(base, "c"), text(&base.replace("deny", "allow"), "c"));
    let names: Vec<String> =
        policy(base).limits_of("a").iter().map(|(p, l)| format!("{p} {}", l.counter)).collect();
    assert_eq!(names, ["/tools/a/limits/0 a_rate"]);
}
