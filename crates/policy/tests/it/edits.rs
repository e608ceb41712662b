//! Merging a piece into a document's text loses nothing and is done once.

use serde_json::{Value, json};
use sluice_policy::edit::{EditError, apply_rule, set_default};
use sluice_policy::{DefaultAction, check};

fn merged(text: &str, piece: &Value) -> String {
    let once = apply_rule(text, piece).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert!(check(&once, None).ok, "{once}");
    let twice = apply_rule(&once, piece).expect("a second time");
    assert_eq!(once, twice, "doing it twice changes nothing");
    once
}

fn limit(tool: &str) -> Value {
    json!({"tools": {tool: {"limits": [{"counter": format!("{tool}_rate"), "window": "minute", "max": 10, "scope": "grant"}]}}})
}

#[test]
fn a_rule_is_added_where_it_belongs_in_the_document_s_own_style() {
    let text = "{\n    \"version\": \"1\",\n    \"description\": \"mine  —  1.50\",\n    \"default\": \"deny\",\n    \"tools\": {\n        \"a\": { \"limits\": [ {\"counter\":\"x\",\"window\":\"day\",\"max\":1.50,\"increment_from\":\"args.n\"} ] }\n    }\n}\n";
    let expected = text.replacen(
        "} ] }\n    }",
        "} ] },\n        \"run\": {\"limits\": [{\"counter\": \"run_rate\", \"window\": \"minute\", \"max\": 10, \"scope\": \"grant\"}]}\n    }",
        1,
    );
    assert_eq!(merged(text, &limit("run")), expected);
    let expected = text.replacen(
        "} ] }\n    }",
        "} ] },\n        \"run_a_longer_name\": {\n            \"limits\": [\n                {\n                    \"counter\": \"run_a_longer_name_rate\",\n                    \"window\": \"minute\",\n                    \"max\": 10,\n                    \"scope\": \"grant\"\n                }\n            ]\n        }\n    }",
        1,
    );
    assert_eq!(merged(text, &limit("run_a_longer_name")), expected);
    let expected = text.replacen("} ] }\n", "}, {\"counter\": \"a_rate\", \"window\": \"minute\", \"max\": 10, \"scope\": \"grant\"} ] }\n", 1);
    assert_eq!(merged(text, &limit("a")), expected);
}

#[test]
fn small_documents_stay_on_one_line() {
    let text = r#"{"version":"1","default":"deny"}"#;
    assert_eq!(
        merged(text, &json!({"hide": ["t"]})),
        r#"{"version":"1","default":"deny", "hide": ["t"]}"#
    );
    assert_eq!(
        merged(text, &json!({"tools": {"t": {}}})),
        r#"{"version":"1","default":"deny", "tools": {"t": {}}}"#
    );
    let text = r#"{"version":"1","default":"deny","hide":[],"tools":{}}"#;
    assert_eq!(
        merged(text, &json!({"hide": ["t"]})),
        r#"{"version":"1","default":"deny","hide":["t"],"tools":{}}"#
    );
    assert_eq!(
        merged(text, &json!({"tools": {"t": {"approve_if": [{"conditions": []}]}}})),
        r#"{"version":"1","default":"deny","hide":[],"tools":{"t": {"approve_if": [{"conditions": []}]}}}"#
    );
}

#[test]
fn what_is_there_already_is_not_added_again() {
    let same = [
        (r#"{"version":"1","default":"deny","hide":["\u0074"]}"#, json!({"hide": ["t"]})),
        (
            r#"{"version":"1","default":"deny","tools":{"t":{"rate_limit":"1/day"}}}"#,
            json!({"tools": {"t": {}}}),
        ),
        (
            r#"{"version":"1","default":"deny","tools":{"t":{"action":"require_approval"}}}"#,
            json!({"tools": {"t": {"approve_if": [{"conditions": []}]}}}),
        ),
        (
            r#"{"version":"1","default":"deny","tools":{"t":{"approve_if":[{ "conditions" : [] }]}}}"#,
            json!({"tools": {"t": {"approve_if": [{"conditions": []}]}}}),
        ),
        (
            r#"{"version":"1","default":"deny","tools":{"t":{"limits":[{"max":3,"window":"minute","counter":"t_rate"}]}}}"#,
            limit("t"),
        ),
        (
            r#"{"version":"1","default":"deny","tools":{"t":{"rate_limit":"5/minute"}}}"#,
            json!({"tools": {"t": {"limits": [{"counter": "t_rate", "window": "minute", "max": 10, "scope": "session"}]}}}),
        ),
    ];
    for (text, piece) in same {
        assert_eq!(merged(text, &piece), text);
    }
    let text = r#"{"version":"1","default":"deny","tools":{"t":{"deny_if":[{"conditions":[{"path":"args.a","op":"eq","value":1.0}]}]}}}"#;
    let piece = json!({"tools": {"t": {"deny_if": [{"conditions": [{"op": "eq", "path": "args.a", "value": 1}]}]}}});
    assert_eq!(merged(text, &piece), text);
    let other = json!({"all_tools": {"deny_if": [{"conditions": [{"path": "args.a", "op": "exists"}]}]}, "tools": {"t": {"deny_if": [{"conditions": [{"path": "args.a", "op": "eq", "value": 2}]}]}}});
    let changed = merged(text, &other);
    let value = check(&changed, None).normalised.expect("a document");
    assert_eq!(value["tools"]["t"]["deny_if"].as_array().map(Vec::len), Some(2));
    assert_eq!(value["all_tools"]["deny_if"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let denied = r#"{"version":"1","default":"deny","tools":{"t":{"action":"deny"}}}"#;
    let Err(EditError::Conflict(problems)) = apply_rule(denied, &limit("t")) else {
        panic!("fits")
    };
    assert_eq!(problems[0].code, "action_conflict");
    assert!(matches!(apply_rule("{", &limit("t")), Err(EditError::Document(_))));
    let sound = r#"{"version":"1","default":"deny"}"#;
    for piece in
        [json!([]), json!({"default": "allow"}), json!({"tools": {"t": 1}}), json!({"hide": "t"})]
    {
        assert!(matches!(apply_rule(sound, &piece), Err(EditError::Fragment(_))), "{piece}");
    }
    assert!(matches!(
        apply_rule(sound, &json!({"tools": {"t": {"limts": []}}})),
        Err(EditError::Conflict(_))
    ));
}

#[test]
fn the_default_is_set_and_nothing_else() {
    let text = "{ \"version\":\"1\",\n\"default\" :  \"allow\" , \"tools\":{} }";
    assert_eq!(
        set_default(text, DefaultAction::Deny).expect("set"),
        text.replace("\"allow\"", "\"deny\"")
    );
    assert!(matches!(set_default("{}", DefaultAction::Deny), Err(EditError::Document(_))));
}
