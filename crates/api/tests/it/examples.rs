//! The examples of the OpenAPI document: each is as its schema says, each request is really accepted, and each answer
//! has the form of what is really answered. `SLUICE_WRITE_OPENAPI=1` writes the answers anew.

mod scene;

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Map, Value, json};
use sluice_testkit::on_both;

use crate::common::Api;
use scene::Scene;

/// In which order operations are asked: what is made is there before it is read, and what ends things comes last.
const LAST: [&str; 16] = [
    "apply_recommended",
    "undo_recommended",
    "show_delivery",
    "replay_delivery",
    "revoke_exception",
    "roll_back_policy",
    "remove_member",
    "revoke_invite",
    "revoke_api_token",
    "revoke_grant",
    "remove_policy",
    "remove_server",
    "delete_endpoint",
    "forget_log_filter",
    "remove_join_domain",
    "delete_workspace",
];
const FIRST: [&str; 5] =
    ["save_policy", "approve_approval", "deny_approval", "test_endpoint", "add_join_domain"];

struct Operation {
    id: String,
    method: Method,
    path: String,
    body: Value,
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            all.push(Operation {
                id: operation["operationId"].as_str().expect("a name").to_owned(),
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                body: operation.clone(),
            });
        }
    }
    all.sort_by_key(|one| {
        let place = |list: &[&str]| list.iter().position(|id| *id == one.id);
        match (place(&FIRST), place(&LAST)) {
            (Some(at), _) => (0, at),
            (None, None) => (1, 0),
            (None, Some(at)) => (2, at),
        }
    });
    all
}

/// The media of a success, if it has a body.
fn media(operation: &Value) -> Option<(&str, &Value)> {
    let responses = operation["responses"].as_object()?;
    let (_, response) = responses.iter().find(|(status, _)| status.starts_with('2'))?;
    let (kind, media) = response["content"].as_object()?.iter().next()?;
    Some((kind, media))
}

/// Whether an example is as a schema says; with the parts that the schema refers to.
fn fits(document: &Value, schema: &Value, example: &Value) -> Result<(), String> {
    let mut whole = schema.clone();
    let (mut wanted, mut known) = (vec![schema.to_string()], BTreeSet::new());
    while let Some(text) = wanted.pop() {
        for name in text.split("\"#/components/schemas/").skip(1) {
            let name = name.split('"').next().expect("it ends").to_owned();
            if known.insert(name.clone()) {
                let part = &document["components"]["schemas"][&name];
                whole["components"]["schemas"][&name] = part.clone();
                wanted.push(part.to_string());
            }
        }
    }
    let checker = jsonschema::draft202012::new(&whole).expect("a schema");
    checker.validate(example).map_err(|error| format!("{error} at {}", error.instance_path()))
}

#[test]
fn every_example_is_as_its_schema_says() {
    let document = sluice_api::published();
    let mut wrong = Vec::new();
    for operation in operations(&document) {
        let request = &operation.body["requestBody"]["content"]["application/json"];
        let request = request.is_object().then_some(("application/json", request));
        for (kind, media) in [request, media(&operation.body)].into_iter().flatten() {
            let id = &operation.id;
            match media.get("example") {
                None => wrong.push(format!("{id}: no example of {kind}")),
                Some(example) => {
                    wrong.extend(
                        fits(&document, &media["schema"], example)
                            .err()
                            .map(|why| format!("{id}: {why}")),
                    );
                }
            }
        }
    }
    for (name, response) in document["components"]["responses"].as_object().expect("refusals") {
        let media = &response["content"]["application/problem+json"];
        wrong.extend(
            fits(&document, &media["schema"], &media["example"])
                .err()
                .map(|why| format!("{name}: {why}")),
        );
    }
    assert!(
        wrong.is_empty(),
        "examples are written with SLUICE_WRITE_OPENAPI=1, as docs/openapi.json is: {wrong:#?}"
    );
}

/// Where there is what kind of value; lists by what is in them, and maps whose names are data not at all.
fn form(place: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(parts) => {
            for (name, part) in parts {
                form(&format!("{place}/{name}"), part, found);
            }
        }
        Value::Array(parts) => {
            for part in parts {
                form(&format!("{place}/-"), part, found);
            }
        }
        _ => drop(found.insert(place.to_owned())),
    }
}

fn form_of(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    form("", value, &mut found);
    found
}

async fn asked(scene: &mut Scene<'_>, operation: &Operation) -> Result<Value, String> {
    let path = scene.path(&operation.id, &operation.path);
    let body = &operation.body["requestBody"]["content"]["application/json"]["example"];
    let text = if body.is_null() { String::new() } else { scene.real(&body.to_string()) };
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    let headers = if text.is_empty() { &headers[1..] } else { &headers[..] };
    let method = operation.method.clone();
    let answer = scene.admin.call(method, &path, headers, text).await;
    let told = operation.body["responses"].get(answer.status.as_str());
    let id = &operation.id;
    if !answer.status.is_success() || told.is_none() {
        return Err(format!("{id}: {} {}", answer.status, answer.text));
    }
    let told = told.and_then(|told| told["headers"].as_object()).cloned().unwrap_or_default();
    for name in ["ETag", "Location"] {
        if told.contains_key(name) == answer.header(name).is_empty() {
            return Err(format!("{id}: {name} is {:?}", answer.header(name)));
        }
    }
    scene.keep(id, &answer);
    let text = scene.example(&answer.text);
    let Some((kind, _)) = media(&operation.body) else { return Ok(Value::Null) };
    if answer.header("content-type").split(';').next() != Some(kind) {
        return Err(format!("{id}: {kind} is {}", answer.header("content-type")));
    }
    let json =
        |text: &str| serde_json::from_str(text).map_err(|error| format!("{id}: {error}: {text}"));
    Ok(match kind {
        "text/csv" => text.into(),
        "application/x-ndjson" => json(text.lines().next().unwrap_or("null"))?,
        _ => scene::round(json(&text)?),
    })
}

on_both! {
    async fn every_request_of_an_example_is_accepted_and_answered_as_shown(api: Api) {
        let document = sluice_api::published();
        let mut scene = Scene::new(&api).await;
        let mut written = Map::new();
        let mut wrong = Vec::new();
        for operation in operations(&document) {
            let answer = match asked(&mut scene, &operation).await {
                Ok(answer) => answer,
                Err(why) => {
                    wrong.push(why);
                    continue;
                }
            };
            let mut example = Map::new();
            let request = &operation.body["requestBody"]["content"]["application/json"]["example"];
            if !request.is_null() {
                example.insert("request".to_owned(), request.clone());
            }
            if let Some((_, media)) = media(&operation.body) {
                let fit = fits(&document, &media["schema"], &answer);
                wrong.extend(fit.err().map(|why| format!("{}: {why}", operation.id)));
                if form_of(&media["example"]) != form_of(&answer) {
                    wrong.push(format!("{}: the answer is now {answer}", operation.id));
                }
                example.insert("answer".to_owned(), answer);
            }
            written.insert(operation.id, Value::Object(example));
        }
        if std::env::var_os("SLUICE_WRITE_OPENAPI").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi/examples.json");
            let text = serde_json::to_string_pretty(&json!(written)).expect("it serialises");
            std::fs::write(path, text + "\n").expect("it is written");
        }
        assert!(wrong.is_empty(), "write them anew with SLUICE_WRITE_OPENAPI=1: {wrong:#?}");
    }
}
