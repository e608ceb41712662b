use chrono::DateTime;
use serde_json::json;
use sluice_policy::{Arguments, CallInput, Verdict, check, compile};

use super::*;

fn tool(properties: &Value) -> ToolDefinition {
    serde_json::from_value(
        json!({"name": "act", "inputSchema": {"type": "object", "properties": properties}}),
    )
    .expect("a tool")
}

fn passes(option: &RuleOption, values: &[&str], arguments: &Value) -> bool {
    let given = vec![("values".to_owned(), values.iter().map(|it| (*it).to_owned()).collect())];
    let fragment = option.fragment(&given).expect("a fragment");
    let text = json!({"version": "1", "default": "deny", "tools": fragment["tools"]}).to_string();
    let checked = check(&text, None);
    assert!(checked.ok, "{:?}", checked.problems);
    let policy = compile(&text).expect("a policy");
    let arguments = arguments.to_string();
    let arguments = Arguments::parse(&arguments).expect("arguments");
    let now = DateTime::from_timestamp(1_796_000_000, 0).expect("a time");
    policy.decide(&CallInput::new("act", arguments, now)).verdict == Verdict::Forward
}

fn only(options: &[RuleOption], kind: OptionKind) -> &RuleOption {
    options.iter().find(|it| it.kind == kind).unwrap_or_else(|| panic!("{kind} among {options:?}"))
}

#[test]
fn addresses_must_begin_as_listed() {
    let found = options(&tool(&json!({"url": {"type": "string", "format": "uri"}})));
    let option = only(&found, OptionKind::UrlAllowList);
    for (url, expected) in [
        ("https://api.example.com/v1", true),
        ("https://api.example.com.evil.net/", false),
        ("https://api.example.com@evil.net/", false),
        ("http://169.254.169.254/", false),
    ] {
        assert_eq!(passes(option, &["api.example.com"], &json!({"url": url})), expected, "{url}");
    }
    assert!(!passes(option, &["api.example.com"], &json!({})));
    assert!(option.fragment(&[("values".to_owned(), vec!["https://a@b/".to_owned()])]).is_err());
    assert!(option.fragment(&[]).is_err());
}

#[test]
fn every_address_of_a_list_counts() {
    let found = options(&tool(&json!({"urls": {"type": "array", "items": {"type": "string"}}})));
    let option = only(&found, OptionKind::UrlAllowList);
    let listed = ["https://a.example/", "https://b.example/"];
    assert!(passes(
        option,
        &listed,
        &json!({"urls": ["https://a.example/x", "https://b.example/y"]})
    ));
    assert!(!passes(
        option,
        &listed,
        &json!({"urls": ["https://a.example/x", "https://c.example/"]})
    ));
}

#[test]
fn paths_stay_below_their_folders() {
    let found = options(&tool(&json!({"path": {"type": "string"}})));
    let option = only(&found, OptionKind::PathPrefix);
    for (path, expected) in [
        ("/srv/work/a.txt", true),
        ("/srv/work/../../etc/passwd", false),
        ("/srv/workshop/a.txt", false),
        ("/etc/passwd", false),
        ("/srv/work/..", false),
        ("/srv/work/%2e%2e/etc", false),
    ] {
        assert_eq!(passes(option, &["/srv/work"], &json!({"path": path})), expected, "{path}");
    }
}

#[test]
fn amounts_are_capped_exactly_and_from_below() {
    let found = options(&tool(&json!({"amount": {"type": "number"}, "to": {"type": "string"}})));
    let option = only(&found, OptionKind::AmountCap);
    for (amount, expected) in
        [(json!(100), true), (json!(100.01), false), (json!(-5), false), (json!("5"), false)]
    {
        assert_eq!(passes(option, &["100"], &json!({"amount": amount})), expected, "{amount}");
    }
    assert!(option.fragment(&[("values".to_owned(), vec!["ten".to_owned()])]).is_err());
    let budget = only(&found, OptionKind::AmountBudget);
    assert!(passes(budget, &["500"], &json!({"amount": 3})));
    assert!(!passes(budget, &["500"], &json!({"amount": "3"})));
}

#[test]
fn only_a_select_passes() {
    let found = options(&tool(&json!({"sql": {"type": "string"}})));
    let option = only(&found, OptionKind::SelectOnly);
    for (sql, expected) in [
        ("SELECT id FROM orders", true),
        ("  select 1;", true),
        ("SELECT 1; DROP TABLE orders", false),
        ("DELETE FROM orders", false),
        ("WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone", false),
        ("SELECT * INTO copy FROM orders", false),
        ("SELECT 1 /* */ ; TRUNCATE orders", false),
    ] {
        assert_eq!(passes(option, &[], &json!({"sql": sql})), expected, "{sql}");
    }
}

#[test]
fn recipients_are_addresses_or_domains() {
    let found = options(&tool(&json!({"to": {"type": "string"}})));
    let option = only(&found, OptionKind::Recipients);
    for (to, expected) in [
        ("ann@example.com", true),
        ("Ann@Example.com", true),
        ("ann@example.com.evil.net", false),
        ("eve@evil.net, ann@example.com", false),
        ("boss@other.org", true),
        ("bossy@other.org", false),
    ] {
        assert_eq!(
            passes(option, &["@example.com", "boss@other.org"], &json!({"to": to})),
            expected,
            "{to}"
        );
    }
}

#[test]
fn lists_choices_and_commands_are_bounded() {
    let found = options(&tool(&json!({
        "ids": {"type": "array", "items": {"type": "string"}},
        "mode": {"type": "string", "enum": ["fast", "full"]},
        "command": {"type": "string"},
        "odd key": {"type": "string", "format": "uri"},
    })));
    let ids = only(&found, OptionKind::ListLength);
    assert!(passes(ids, &["2"], &json!({"ids": ["a", "b"]})));
    assert!(!passes(ids, &["2"], &json!({"ids": ["a", "b", "c"]})));
    let mode = only(&found, OptionKind::Choices);
    assert!(!passes(mode, &["fast"], &json!({"mode": "full"})));
    let command = only(&found, OptionKind::Commands);
    assert!(passes(command, &["git status"], &json!({"command": "git status"})));
    assert!(!passes(command, &["git status"], &json!({"command": "git status; rm -rf /"})));
    let odd = only(&found, OptionKind::UrlAllowList);
    assert!(passes(odd, &["https://a.example/"], &json!({"odd key": "https://a.example/x"})));
}

#[test]
fn every_kind_is_offered_and_its_example_makes_a_rule_that_is_sound() {
    let text = json!({"type": "string"});
    let properties = json!({"url": {"type": "string", "format": "uri"}, "file_path": text, "sql": text, "bcc": text,
        "command": text, "amount": {"type": "number"}, "currency": text, "ids": {"type": "array", "items": text}});
    let mut kinds: Vec<OptionKind> = Vec::new();
    for option in options(&tool(&properties)) {
        let fragment = option.example().unwrap_or_else(|| panic!("{option:?}"));
        let mut document = json!({"version": "1", "default": "deny"});
        for (key, value) in fragment.as_object().expect("an object") {
            document[key] = value.clone();
        }
        let checked = check(&document.to_string(), None);
        assert!(checked.ok, "{}: {:?}", option.kind, checked.problems);
        kinds.push(option.kind);
    }
    assert!(OptionKind::ALL.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}
