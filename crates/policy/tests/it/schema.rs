//! The JSON Schema and the checker accept and refuse the same documents.

use jsonschema::Validator;
use serde_json::Value;
use sluice_policy::{check, json_schema};

use crate::corpus::accepts;
use crate::generate::{document, spoil};
use crate::random::Random;

fn validator() -> Validator {
    jsonschema::draft202012::new(&json_schema()).expect("a valid schema")
}

/// Parts of tools' entries, with whether they are accepted.
const ENTRIES: &[(&str, bool)] = &[
    ("{}", true),
    ("[]", false),
    (r#"{"require":[],"deny_if":[],"approve_if":[],"limits":[]}"#, true),
    (r#"{"require":{}}"#, false),
    (r#"{"require":[{"conditions":[]}]}"#, true),
    (r#"{"require":[{"conditions":[],"name":"a-b_1","on_deny":""}]}"#, true),
    (r#"{"require":[{"conditions":[],"name":"-a"}]}"#, false),
    (r#"{"require":[{"conditions":[],"nme":"a"}]}"#, false),
    (r#"{"require":[{}]}"#, false),
    (r#"{"action":"deny","reason":"r"}"#, true),
    (r#"{"action":"deny"}"#, true),
    (r#"{"action":"deny","limits":[]}"#, false),
    (r#"{"action":"hide"}"#, true),
    (r#"{"action":"hide","reason":"r"}"#, false),
    (r#"{"action":"hide","rate_limit":"1/day"}"#, false),
    (r#"{"action":"allow","rate_limit":"1/day"}"#, true),
    (r#"{"action":"require_approval","approval":{}}"#, true),
    (r#"{"action":"require_approval","reason":"r"}"#, false),
    (r#"{"reason":"r"}"#, false),
    (r#"{"action":"drop"}"#, false),
    (r#"{"rate_limit":"10/minute"}"#, true),
    (r#"{"rate_limit":"10/90s"}"#, true),
    (r#"{"rate_limit":"10/32d"}"#, false),
    (r#"{"rate_limit":"ten/day"}"#, false),
    (r#"{"rate_limit":{"max":0,"window":1}}"#, true),
    (r#"{"rate_limit":{"max":10,"window":2678400}}"#, true),
    (r#"{"rate_limit":{"max":10,"window":2678401}}"#, false),
    (r#"{"rate_limit":{"max":10,"window":"60"}}"#, false),
    (r#"{"rate_limit":{"max":10,"window":60,"scope":"grant"}}"#, false),
    (r#"{"rate_limit":7}"#, false),
    (r#"{"limits":[{"counter":"c","window":"day","max":1}]}"#, true),
    (r#"{"limits":[{"counter":"c","window":"day","max":999999999999999}]}"#, true),
    (r#"{"limits":[{"counter":"c","window":"day","max":1000000000000000}]}"#, false),
    (r#"{"limits":[{"counter":"c","window":"day","max":1.5}]}"#, false),
    (r#"{"limits":[{"counter":"c","window":"day","max":1.5,"increment_from":"args.a[0]"}]}"#, true),
    (r#"{"limits":[{"counter":"c","window":"day","max":-1,"increment_from":"args.a"}]}"#, false),
    (r#"{"limits":[{"counter":"c","window":"day","max":"1","increment_from":"args.a"}]}"#, false),
    (r#"{"limits":[{"counter":"c","window":"day","max":1,"increment_from":"args.a[*]"}]}"#, false),
    (r#"{"limits":[{"counter":"C","window":"day","max":1}]}"#, false),
    (r#"{"limits":[{"counter":"c","window":"fortnight","max":1}]}"#, false),
    (
        r#"{"limits":[{"counter":"c","window":"15m","max":1,"scope":"session","reset":"calendar","on_unavailable":"allow"}]}"#,
        true,
    ),
    (r#"{"limits":[{"counter":"c","window":"day","max":1,"scope":"team"}]}"#, false),
    (r#"{"limits":[{"counter":"c","window":"day"}]}"#, false),
    (
        r#"{"approval":{"hold":"0s","expires":"7d","approvers":["role:admin","member:a@b.c"],"quorum":5,"self":false}}"#,
        true,
    ),
    (r#"{"approval":{"hold":"601s"}}"#, false),
    (r#"{"approval":{"expires":"30s"}}"#, false),
    (r#"{"approval":{"approvers":[]}}"#, false),
    (r#"{"approval":{"approvers":["ann"]}}"#, false),
    (r#"{"approval":{"quorum":1.5}}"#, false),
    (r#"{"approval":{"self":1}}"#, false),
];

/// Conditions, with whether they are accepted.
const CONDITIONS: &[(&str, bool)] = &[
    (r#"{"path":"args.a","op":"eq","value":null}"#, true),
    (r#"{"path":"args.a","op":"neq","value":{"a":[1]}}"#, true),
    (r#"{"path":"args.a","op":"eq"}"#, false),
    (r#"{"path":"args.a","op":"lt","value":1e400}"#, true),
    (r#"{"path":"args.a","op":"lt","value":"1"}"#, false),
    (r#"{"path":"args.a","op":"in","value":[]}"#, true),
    (r#"{"path":"args.a","op":"not_in","value":"a"}"#, false),
    (r#"{"path":"args.a","op":"exists"}"#, true),
    (r#"{"path":"args.a","op":"exists","value":false}"#, true),
    (r#"{"path":"args.a","op":"exists","value":null}"#, false),
    (r#"{"path":"args.a","op":"regex","value":"^a"}"#, true),
    (r#"{"path":"args.a","op":"regex","value":1}"#, false),
    (r#"{"path":"args.a","op":"contains","value":1}"#, true),
    (r#"{"path":"args.a","op":"starts_with","value":[]}"#, false),
    (r#"{"path":"args.a","op":"length_lte","value":3}"#, true),
    (r#"{"path":"args.a","op":"length_lte","value":3.5}"#, false),
    (r#"{"path":"args.a","op":"length_lte","value":-3}"#, false),
    (r#"{"path":"args.a","op":"like","value":1}"#, false),
    (r#"{"path":"args[\"a.b\"][*][0].c","op":"exists"}"#, true),
    (r#"{"path":"call.hour_utc","op":"exists"}"#, true),
    (r#"{"path":"call.minute_utc","op":"exists"}"#, false),
    (r#"{"path":"args","op":"exists"}"#, false),
    (r#"{"path":7,"op":"exists"}"#, false),
    (r#"{"op":"exists"}"#, false),
    (r#"{"path":"args.a"}"#, false),
    (r#"{"path":"args.a","op":"exists","values":1}"#, false),
    (r#"{"any":[{"path":"args.a","op":"exists"}]}"#, true),
    (r#"{"any":[]}"#, false),
    (r#"{"any":{"path":"args.a","op":"exists"}}"#, false),
    (r#"{"not":{"path":"args.a","op":"exists"}}"#, true),
    (r#"{"not":[{"path":"args.a","op":"exists"}]}"#, false),
    (r#"{"not":{"path":"args.a","op":"exists"},"any":[]}"#, false),
    (r#"{"not":{"not":{"any":[{"not":{"path":"args.a","op":"exists"}}]}}}"#, true),
    (r#"{"not":{"not":{"any":[{"not":{"not":{"path":"args.a","op":"exists"}}}]}}}"#, false),
    ("{}", false),
    ("true", false),
];

const DOCUMENTS: &[(&str, bool)] = &[
    (r#"{"version":"1","default":"allow"}"#, true),
    (
        r#"{"version":"1","default":"deny","mode":"observe","description":"d","hide":["a","b*"],"all_tools":{},"tools":{}}"#,
        true,
    ),
    (r#"{"version":"1"}"#, false),
    (r#"{"default":"deny"}"#, false),
    (r#"{"version":"2","default":"deny"}"#, false),
    (r#"{"version":1,"default":"deny"}"#, false),
    (r#"{"version":"1","default":"Deny"}"#, false),
    (r#"{"version":"1","default":"deny","hide":"a"}"#, false),
    (r#"{"version":"1","default":"deny","hide":[""]}"#, false),
    (r#"{"version":"1","default":"deny","hide":[1]}"#, false),
    (r#"{"version":"1","default":"deny","tools":{"":{}}}"#, false),
    (r#"{"version":"1","default":"deny","tools":[]}"#, false),
    (r#"{"version":"1","default":"deny","all_tools":{"action":"deny"}}"#, false),
    (r#"{"version":"1","default":"deny","description":1}"#, false),
    (r#"{"version":"1","default":"deny","x":1}"#, false),
    ("[]", false),
    ("null", false),
    (r#""text""#, false),
];

#[test]
fn both_accept_and_refuse_the_same_corpus() {
    let validator = validator();
    let entries = ENTRIES.iter().map(|(entry, ok)| {
        (format!(r#"{{"version":"1","default":"deny","tools":{{"t":{entry}}}}}"#), *ok)
    });
    let conditions = CONDITIONS.iter().flat_map(|(condition, ok)| {
        ["require", "deny_if", "approve_if"].map(|list| {
            let tools = format!(r#""all_tools":{{"{list}":[{{"conditions":[{condition}]}}]}}"#);
            (format!(r#"{{"version":"1","default":"deny",{tools}}}"#), *ok)
        })
    });
    let documents = DOCUMENTS.iter().map(|(text, ok)| ((*text).to_owned(), *ok));
    let mut count = 0;
    for (text, ok) in entries.chain(conditions).chain(documents) {
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(check(&text, None).ok, ok, "checker: {text} {:?}", check(&text, None).problems);
        assert_eq!(validator.is_valid(&value), ok, "schema: {text}");
        count += 1;
    }
    assert!(count > 170, "{count}");
}

#[test]
fn the_schema_is_itself_valid_and_describes_every_key() {
    let schema = json_schema();
    assert!(jsonschema::meta::is_valid(&schema));
    let text = schema.to_string();
    for key in [
        "version",
        "hide",
        "all_tools",
        "increment_from",
        "on_unavailable",
        "approvers",
        "rate_limit",
    ] {
        assert!(text.contains(&format!("\"{key}\":{{")), "{key}");
    }
}

#[test]
fn both_agree_on_generated_and_on_spoilt_documents() {
    let validator = validator();
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut value = document(&mut random);
        for round in 0..4 {
            let text = value.to_string();
            let valid = validator.is_valid(&value);
            let problems = check(&text, None).problems;
            assert_eq!(valid, accepts(&text), "{seed}, {round}: {text} {problems:?}");
            spoil(&mut random, &mut value);
        }
    }
}
