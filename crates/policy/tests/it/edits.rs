//! Merging a piece into a document's text loses nothing and is done once.

use serde_json::{Value, json};
use sluice_policy::edit::{EditError, apply_rule, get, put, remove, set_default, shift, write_out};
use sluice_policy::{DefaultAction, check};

use crate::generate::document;
use crate::random::Random;

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

/// A pointer to every part below the root.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(pairs) => pairs
            .iter()
            .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        let pointer = format!("{at}/{key}");
        out.push(pointer.clone());
        pointers(value, &pointer, out);
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The same done to the values instead of to the text.
fn without(mut value: Value, pointer: &str) -> Value {
    let (around, last) = pointer.rsplit_once('/').expect("a part");
    let last = last.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(around).expect("it is there") {
        Value::Object(pairs) => drop(pairs.shift_remove(&last)),
        Value::Array(items) => drop(items.remove(last.parse::<usize>().expect("a position"))),
        other => panic!("{other}"),
    }
    value
}

#[test]
fn parts_are_read_put_removed_and_moved_and_all_else_stays() {
    let mut seen = 0;
    for seed in 0..40 {
        let value = document(&mut Random::new(seed));
        let laid_out = [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")];
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        for (text, pointer) in laid_out.iter().flat_map(|text| all.iter().map(move |p| (text, p))) {
            let part = value.pointer(pointer).expect("it is there");
            assert_eq!(get(text, pointer).as_ref(), Some(part), "{text} {pointer}");
            let same = put(text, pointer, part).expect("it is there");
            assert_eq!(read(&same), value, "{text} {pointer}");
            let mut other = value.clone();
            *other.pointer_mut(pointer).expect("it is there") = json!({"new": [1.50]});
            let text_of = put(text, pointer, &json!({"new": [1.50]})).expect("it is there");
            assert_eq!(read(&text_of), other, "{text} {pointer}");
            let fewer = remove(text, pointer).expect("it is there");
            assert_eq!(read(&fewer), without(value.clone(), pointer), "{text} {pointer}");
            if let Some(moved) = shift(text, pointer, true) {
                assert_ne!(moved.len(), 0);
                let up = pointer.rsplit_once('/').expect("a part");
                let before: usize = up.1.parse::<usize>().expect("a position") - 1;
                let back = shift(&moved, &format!("{}/{before}", up.0), false);
                assert_eq!(back.as_ref(), Some(text), "up and down is where it was");
            }
            seen += 1;
        }
    }
    assert!(seen > 2_000, "{seen}");
}

#[test]
fn what_is_not_there_is_made() {
    let text = "{\n  \"version\": \"1\",\n  \"default\": \"deny\"\n}";
    let rule = json!({"conditions": []});
    let made = put(text, "/tools/a~1b/require/0", &rule).expect("it is made");
    assert_eq!(read(&made)["tools"]["a/b"], json!({"require": [rule]}), "{made}");
    let more = put(&made, "/tools/a~1b/require/7", &json!({"conditions": [], "name": "n"}));
    let more = more.expect("at the end");
    assert_eq!(read(&more)["tools"]["a/b"]["require"][1]["name"], "n", "{more}");
    assert!(more.starts_with("{\n  \"version\": \"1\",\n  \"default\": \"deny\",\n"), "{more}");
    assert_eq!(get(text, "/tools"), None);
    assert_eq!(remove(text, "/tools"), None);
    assert_eq!(shift(&more, "/tools/a~1b/require/0", true), None);
    assert_eq!(put("{", "/a", &rule), None);
}

#[test]
fn short_forms_are_written_out_where_a_part_of_them_is_to_be_changed() {
    let text = r#"{"version":"1","default":"deny","tools":{"a":{"rate_limit":"5/minute","require":[]},"b":{"action":"hide"},"c":{"limits":[ ]}}}"#;
    let a = write_out(text, "a").expect("it is there");
    let limit = json!({"counter": "a_rate", "window": "minute", "max": 5, "scope": "session"});
    assert_eq!(read(&a)["tools"]["a"], json!({"require": [], "limits": [limit]}));
    let b = write_out(text, "b").expect("it is there");
    assert_eq!((&read(&b)["tools"]["b"], &read(&b)["hide"]), (&json!({}), &json!(["b"])));
    assert_eq!(write_out(text, "c").as_deref(), Some(text), "nothing to write out");
    assert_eq!(write_out(text, "d"), None);
    for changed in [a, b] {
        assert_eq!(check(&changed, None).normalised, check(text, None).normalised);
    }
}
