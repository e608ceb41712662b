//! Kinds of fault that other gateways had, and ours must not.

use std::time::{Duration, Instant};

use sluice_domain::{Code, UnknownTools};
use sluice_policy::{Arguments, ArgumentsError, CallInput, Settings, ToolFacts, Verdict, check};

use crate::support::{call, decide, policy, tools};

#[test]
fn a_variant_of_a_name_does_not_escape_its_rule() {
    let policy =
        policy(r#"{"version":"1","default":"allow","tools":{"delete_note":{"action":"deny"}}}"#);
    for variant in ["Delete_Note", "delete_note ", "delete_note\u{0}", "ｄelete_note"] {
        let input = CallInput { facts: ToolFacts::UNKNOWN, ..call(variant, "{}") };
        assert_eq!(policy.decide(&input).verdict, Verdict::Hide, "{variant:?}");
    }
    assert_eq!(decide(&policy, "delete_note", "{}").code, Code::DenyIfMatched);
}

#[test]
fn the_default_is_what_it_says_and_the_list_agrees() {
    let open = policy(r#"{"version":"1","default":"allow","tools":{"bad":{"action":"deny"}}}"#);
    let closed = policy(r#"{"version":"1","default":"deny","tools":{"good":{"action":"allow"}}}"#);
    for (policy, tool, verdict, listed) in [
        (&open, "other", Verdict::Forward, true),
        (&open, "bad", Verdict::Deny, true),
        (&closed, "good", Verdict::Forward, true),
        (&closed, "other", Verdict::Deny, false),
    ] {
        assert_eq!(decide(policy, tool, "{}").verdict, verdict, "{tool}");
        assert_eq!(
            policy.lists(tool, ToolFacts::KNOWN, Settings::default(), false),
            listed,
            "{tool}"
        );
    }
}

#[test]
fn absent_and_null_fail_a_require_and_pass_a_deny() {
    let require =
        tools(r#"{"t":{"require":[{"conditions":[{"path":"args.repo","op":"eq","value":"a"}]}]}}"#);
    for (arguments, verdict) in [
        ("{}", Verdict::Deny),
        (r#"{"repo":null}"#, Verdict::Deny),
        (r#"{"repo":"a"}"#, Verdict::Forward),
    ] {
        assert_eq!(decide(&require, "t", arguments).verdict, verdict, "{arguments}");
    }
    let deny = tools(
        r#"{"t":{"deny_if":[{"conditions":[{"path":"args.force","op":"eq","value":true}]}]}}"#,
    );
    assert_eq!(decide(&deny, "t", "{}").verdict, Verdict::Forward);
}

#[test]
fn types_are_never_bent() {
    let require = tools(
        r#"{"t":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":100}]}]}}"#,
    );
    let deny = tools(
        r#"{"t":{"deny_if":[{"conditions":[{"path":"args.amount","op":"gt","value":100}]}]}}"#,
    );
    for (amount, verdict) in [
        (r#""50""#, Verdict::Deny),
        (r#""100000""#, Verdict::Deny),
        ("true", Verdict::Deny),
        ("[1]", Verdict::Deny),
        (r#"{"a":1}"#, Verdict::Deny),
        ("1e2", Verdict::Forward),
        ("100.0", Verdict::Forward),
        ("100.00000000000000000001", Verdict::Deny),
    ] {
        let arguments = format!(r#"{{"amount":{amount}}}"#);
        assert_eq!(decide(&require, "t", &arguments).verdict, verdict, "require {amount}");
        assert_eq!(decide(&deny, "t", &arguments).verdict, verdict, "deny_if {amount}");
    }
}

#[test]
fn a_list_is_no_member() {
    let require = tools(
        r#"{"t":{"require":[{"conditions":[{"path":"args.path","op":"in","value":["/a"]}]}]}}"#,
    );
    for arguments in [r#"{"path":["/a","/etc/x"]}"#, r#"{"path":["/a"]}"#, r#"{"path":{"0":"/a"}}"#]
    {
        assert_eq!(decide(&require, "t", arguments).verdict, Verdict::Deny, "{arguments}");
    }
    let every = tools(
        r#"{"t":{"require":[{"conditions":[{"path":"args.path[*]","op":"in","value":["/a"]}]}]}}"#,
    );
    assert_eq!(decide(&every, "t", r#"{"path":["/a","/etc/x"]}"#).verdict, Verdict::Deny);
    assert_eq!(decide(&every, "t", r#"{"path":["/a","/a"]}"#).verdict, Verdict::Forward);
}

#[test]
fn costly_expressions_cost_little() {
    let policy = tools(
        r#"{"t":{"deny_if":[{"conditions":[{"path":"args.text","op":"regex","value":"^(a+)+$"}]}]}}"#,
    );
    let arguments = format!(r#"{{"text":"{}!"}}"#, "a".repeat(50_000));
    let start = Instant::now();
    assert_eq!(decide(&policy, "t", &arguments).verdict, Verdict::Forward);
    // A backtracking engine would need longer than the universe has; this is no timing of ours.
    assert!(start.elapsed() < Duration::from_secs(20));
    let large = format!(
        r#"{{"version":"1","default":"deny","tools":{{"t":{{"deny_if":[{{"conditions":[{{"path":"args.text","op":"regex","value":"{}"}}]}}]}}}}}}"#,
        "a".repeat(100_000)
    );
    assert_eq!(check(&large, None).problems[0].code, "regex_too_large");
}

#[test]
fn large_numbers_keep_their_digits() {
    let policy = tools(
        r#"{"t":{"deny_if":[{"conditions":[{"path":"args.id","op":"eq","value":9007199254740992}]}]}}"#,
    );
    let arguments = r#"{"id":9007199254740993,"price":1.10,"big":123456789012345678901234567890}"#;
    assert_eq!(decide(&policy, "t", arguments).verdict, Verdict::Forward);
    assert_eq!(decide(&policy, "t", r#"{"id":9007199254740992.0}"#).verdict, Verdict::Deny);
    assert_eq!(decide(&policy, "t", r#"{"id":90071992547409920e-1}"#).verdict, Verdict::Deny);
}

#[test]
fn arguments_that_two_readers_could_read_in_two_ways_never_reach_a_rule() {
    let many: Vec<String> = (0..40).map(|i| format!(r#""k{i}":{i}"#)).collect();
    let table = [
        r#"{"a":1,"a":2}"#.to_owned(),
        r#"{"a":1,"\u0061":2}"#.to_owned(),
        r#"{"o":{"l":[{"x":1,"x":1}]}}"#.to_owned(),
        format!(r#"{{{},"k\u00317":0}}"#, many.join(",")),
        r#"{"a":"\ud800"}"#.to_owned(),
        r#"{"a":"\udc00\ud800"}"#.to_owned(),
        r#"{"\ud83d":1}"#.to_owned(),
        "\u{feff}{}".to_owned(),
        "{} {}".to_owned(),
        "{}x".to_owned(),
        r#"{"a":01}"#.to_owned(),
        r#"{"a":1.}"#.to_owned(),
        r#"{"a":+1}"#.to_owned(),
        r#"{"a":NaN}"#.to_owned(),
        r#"{"a":1,}"#.to_owned(),
        r#"{"a":[1,]}"#.to_owned(),
        "{'a':1}".to_owned(),
        "{\"a\":\"\u{0}\"}".to_owned(),
        "{\"a\":\"\n\"}".to_owned(),
        "{/**/}".to_owned(),
        format!(r#"{{"a":{}{}}}"#, "[".repeat(128), "]".repeat(128)),
        String::new(),
    ];
    for text in table {
        let found = Arguments::parse(&text);
        assert!(matches!(found, Err(ArgumentsError::Malformed { .. })), "{text:?} {found:?}");
    }
    for text in ["[]", "null", "1", r#""x""#] {
        assert!(matches!(Arguments::parse(text), Err(ArgumentsError::NotAnObject)), "{text}");
    }
    let deepest = format!(r#"{{"a":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    assert!(Arguments::parse(&deepest).is_ok());
    assert!(Arguments::parse("{\"a\":\"\\ud83d\\ude00\"} \n").is_ok());
}

#[test]
fn keys_are_compared_after_their_escapes() {
    let policy = tools(
        r#"{"t":{"require":[{"conditions":[{"path":"args.amount","op":"lte","value":1},{"path":"args.items[*].id","op":"eq","value":"é"}]}]}}"#,
    );
    let arguments = r#"{"\u0061mount":1,"items":[{"\u0069d":"\u00e9"}]}"#;
    assert_eq!(decide(&policy, "t", arguments).verdict, Verdict::Forward);
}

#[test]
fn a_call_of_an_unheard_of_tool_is_never_let_through_by_the_default() {
    let open = policy(r#"{"version":"1","default":"allow"}"#);
    let input = CallInput { facts: ToolFacts::UNKNOWN, ..call("new", "{}") };
    assert_eq!(open.decide(&input).code, Code::UnknownTool);
    let settings = Settings { unknown_tools: UnknownTools::ByPolicy, ..Settings::default() };
    assert_eq!(open.decide(&CallInput { settings, ..input }).code, Code::Allowed);
}

#[test]
fn members_of_arguments_are_found_however_many_there_are_and_however_their_names_are_written() {
    let wanted = ["a\":", "a", "x\"y", "b\\", "", "é", "k11"];
    let conditions = wanted.iter().enumerate().map(|(index, key)| {
        let path = serde_json::json!(format!("args[{}]", serde_json::json!(key)));
        format!(r#"{{"path":{path},"op":"eq","value":{index}}}"#)
    });
    let policy = tools(&format!(
        r#"{{"t":{{"require":[{{"conditions":[{}]}}]}}}}"#,
        conditions.collect::<Vec<_>>().join(",")
    ));
    let own = r#""a\":":0, "\u0061" : 1,"x\"y":2,"b\\":3,"":4,"\u00e9":5,"k11":6"#;
    for more in 0..12 {
        // Before and behind the wanted ones, as only the first few are remembered.
        let others: Vec<String> = (20..20 + more).map(|i| format!(r#""k{i}":{i},"#)).collect();
        let first = format!(" {{{}{own}}}", others.concat());
        let last = format!("{{{own},{}\"z\":[1,{{\"a\":7}}]}}", others.concat());
        for arguments in [first, last] {
            assert_eq!(decide(&policy, "t", &arguments).verdict, Verdict::Forward, "{arguments}");
            let odd = arguments.replace(" : 1,", ":9,");
            assert_eq!(decide(&policy, "t", &odd).verdict, Verdict::Deny, "{odd}");
        }
    }
}
