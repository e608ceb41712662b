//! Every call that takes a body, against bodies that are wrong: told where and why, and nothing is saved.
//! The calls and their fields are read from the OpenAPI document, so that a new one is covered too.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Map, Value, json};
use sluice_testkit::on_both;

use crate::common::{Answer, Api, Client};

/// One call with a body.
struct Call {
    method: Method,
    path: String,
    schema: Value,
    /// It does something without a body as well.
    optional: bool,
}

struct Ids {
    server: String,
    policy: String,
    grant: String,
}

/// Something of each kind, for the paths.
async fn ids(admin: &Client<'_>) -> Ids {
    let server = admin.connect("sandbox").await;
    let text = |made: &Value| made["id"].as_str().expect("an id").to_owned();
    let document = json!({"name": "p", "document": {"version": "1", "default": "deny"}});
    let policy = admin.post(&format!("/servers/{server}/policies"), &document).await.must(201);
    let grant = json!({"label": "bot"});
    let grant = admin.post(&format!("/servers/{server}/grants"), &grant).await.must(201);
    Ids { server, policy: text(&policy.json()), grant: text(&grant.json()) }
}

fn filled(path: &str, ids: &Ids) -> String {
    let id = if path.contains("/servers/{id}") {
        &ids.server
    } else if path.contains("/policies/{id}") {
        &ids.policy
    } else if path.contains("/grants/{id}") {
        &ids.grant
    } else {
        "019a0000-0000-7000-8000-000000000000"
    };
    let path = path.replace("{ws}", "acme").replace("{tool}", "executePython").replace("{id}", id);
    assert!(!path.contains('{'), "{path}: the test does not know what to put there");
    format!("/api/v1{path}")
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).expect("it leads"),
        None => schema,
    }
}

fn calls(document: &Value, ids: &Ids) -> Vec<Call> {
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, call) in item.as_object().expect("an item") {
            let schema = &call["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_object() {
                calls.push(Call {
                    method: method.to_uppercase().parse().expect("a method"),
                    path: filled(path, ids),
                    schema: resolved(document, schema).clone(),
                    optional: call["requestBody"]["required"] != true,
                });
            }
        }
    }
    calls
}

/// The JSON kinds that a schema takes; empty for any.
fn kinds(document: &Value, schema: &Value) -> BTreeSet<String> {
    let schema = resolved(document, schema);
    let mut found = BTreeSet::new();
    match &schema["type"] {
        Value::String(one) => drop(found.insert(one.clone())),
        Value::Array(several) => {
            found.extend(several.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        _ => {}
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for part in schema[key].as_array().into_iter().flatten() {
            found.extend(kinds(document, part));
        }
    }
    found
}

fn samples() -> [(&'static str, Value); 5] {
    [
        ("string", json!("x")),
        ("integer", json!(7)),
        ("boolean", json!(true)),
        ("array", json!([["x"]])),
        ("object", json!({"x": {"y": 1}})),
    ]
}

async fn send(admin: &Client<'_>, call: &Call, body: String) -> Answer {
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    admin.call(call.method.clone(), &call.path, &headers, body).await
}

async fn changes(admin: &Client<'_>) -> usize {
    let events = admin.get("/admin-events?limit=1000").await.must(200).json();
    events["items"].as_array().expect("items").len()
}

/// A refusal is a problem document with a code; whoever asks is told before what.
fn refused(answer: &Answer, case: &str) -> (String, String) {
    assert!(
        (400..500).contains(&answer.status.as_u16()),
        "{case}: {} {}",
        answer.status,
        answer.text
    );
    let (code, pointer) = answer.problem();
    assert!(!code.is_empty(), "{case}: {}", answer.text);
    (code, pointer)
}

async fn wrong_kinds(admin: &Client<'_>, document: &Value, call: &Call) {
    for (name, schema) in call.schema["properties"].as_object().into_iter().flatten() {
        let good = kinds(document, schema);
        if good.is_empty() {
            continue;
        }
        for (kind, value) in samples() {
            if good.contains(kind) || (kind == "integer" && good.contains("number")) {
                continue;
            }
            let body = Value::Object(Map::from_iter([(name.clone(), value)]));
            let case = format!("{} {} {body}", call.method, call.path);
            let answer = send(admin, call, body.to_string()).await;
            if call.path.ends_with("/check") && answer.status.as_u16() == 200 {
                // Saying what is wrong with a document is what this call is for.
                assert_eq!(answer.json()["ok"], false, "{case}: {}", answer.text);
                continue;
            }
            let (code, pointer) = refused(&answer, &case);
            // A document is read after its body, which may lack something first.
            let earlier = answer.status.as_u16() == 404 || code == "missing_field";
            let here = pointer.starts_with(&format!("/{name}"));
            assert!(earlier || here, "{case}: {}", answer.text);
        }
    }
}

async fn hostile_texts(admin: &Client<'_>, document: &Value, call: &Call) {
    let texts =
        ["", "\u{0}", "a\u{202e}b", "<img src=x onerror=alert(1)>", "\u{d7ff}\u{10ffff}", "'; --"];
    let long = "x".repeat(100_000);
    for (name, schema) in call.schema["properties"].as_object().into_iter().flatten() {
        if !kinds(document, schema).contains("string") {
            continue;
        }
        for text in texts.iter().copied().chain([long.as_str()]) {
            let body = Value::Object(Map::from_iter([(name.clone(), json!(text))]));
            let answer = send(admin, call, body.to_string()).await;
            let shown: String = text.chars().take(20).collect();
            assert!(
                answer.status.as_u16() < 500,
                "{} {} {name}={shown:?}: {}",
                call.method,
                call.path,
                answer.text
            );
        }
    }
}

on_both! {
    async fn every_body_of_a_wrong_shape_is_told_where_and_saves_nothing(api: Api) {
        let admin = api.admin().await;
        let ids = ids(&admin).await;
        let document = sluice_api::published();
        let calls = calls(&document, &ids);
        assert!(calls.len() > 12, "only {} calls take a body", calls.len());
        let before = changes(&admin).await;
        for call in &calls {
            let case = format!("{} {}", call.method, call.path);
            for body in [if call.optional { "{" } else { "" }, "{", "null", "[]", "\"x\"", "7", r#"{"a":1,"a":2}"#, "\u{feff}{}"] {
                refused(&send(&admin, call, body.to_owned()).await, &format!("{case} {body}"));
            }
            let unknown = send(&admin, call, json!({"no_such_field": 1}).to_string()).await;
            let told = refused(&unknown, &case);
            if unknown.status.as_u16() != 404 {
                assert_eq!(told, ("unknown_field".to_owned(), "/no_such_field".to_owned()), "{case}");
            }
            wrong_kinds(&admin, &document, call).await;
        }
        assert_eq!(changes(&admin).await, before, "something was saved");
    }

    async fn hostile_texts_break_no_call(api: Api) {
        let admin = api.admin().await;
        let ids = ids(&admin).await;
        let document = sluice_api::published();
        for call in &calls(&document, &ids) {
            hostile_texts(&admin, &document, call).await;
        }
    }
}
