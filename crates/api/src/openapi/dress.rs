//! What the handlers' attributes leave out is the same for every operation, and is put in here once:
//! refusals and what stands twice become references, and every parameter, field and word is described.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{allowed, examples, fields};

/// The document as it is served.
pub(crate) fn dressed(mut document: Value) -> Value {
    let mut shared = Map::new();
    for (path, method, operation) in operations(&mut document) {
        let operation = operation.as_object_mut().expect("an operation is an object");
        take_null_from_body(operation);
        add_parameters(&path, &method, operation);
        add_refusals(operation);
        share_refusals(operation, &mut shared);
    }
    document["components"]["responses"] = Value::Object(shared);
    document["components"]["headers"] = super::headers::components();
    refer(&mut document);
    fields::describe(&mut document);
    allowed::list(&mut document);
    for (_, _, operation) in operations(&mut document) {
        super::headers::tell(operation);
        examples::put(operation);
    }
    document
}

/// Every operation with its path and method.
fn operations(document: &mut Value) -> impl Iterator<Item = (String, String, &mut Value)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object_mut().into_iter().flatten();
        methods.map(move |(method, operation)| (path.clone(), method.clone(), operation))
    })
}

/// A body that may be left out is not one that may be `null`.
fn take_null_from_body(operation: &mut Map<String, Value>) {
    let Some(body) = operation.get_mut("requestBody") else { return };
    for media in body["content"].as_object_mut().into_iter().flatten().map(|(_, media)| media) {
        let schema = &mut media["schema"];
        let others: Vec<Value> =
            schema["oneOf"].as_array().into_iter().flatten().cloned().collect();
        let mut others = others.into_iter().filter(|one| one["type"] != "null");
        if let Some(only) = others.next() {
            *schema = only;
        }
    }
}

fn add_parameters(path: &str, method: &str, operation: &mut Map<String, Value>) {
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    let parameters = parameters.as_array_mut().expect("parameters are a list");
    if path.contains("/calls.") {
        // An export has no pages.
        parameters.retain(|one| one["name"] != "limit" && one["name"] != "cursor");
    }
    if method == "post" {
        parameters.push(json!({"name": "Idempotency-Key", "in": "header", "required": false,
            "schema": {"type": "string", "minLength": 1, "maxLength": 255}}));
    }
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        let kind = parameter["in"].as_str().unwrap_or_default().to_owned();
        if let Some(words) = fields::parameter(path, &kind, &name) {
            parameter["description"] = words.into();
        }
        match name.as_str() {
            "limit" => {
                parameter["schema"]["minimum"] = 1.into();
                parameter["schema"]["maximum"] = 1_000.into();
            }
            "ws" => parameter["example"] = "acme".into(),
            "tool" if kind == "path" => parameter["example"] = "read_file".into(),
            "id" => parameter["example"] = examples::ID.into(),
            "If-Match" => parameter["example"] = "\"3\"".into(),
            _ => {}
        }
    }
}

fn problem(description: &str) -> Value {
    json!({"description": description, "content": {"application/problem+json":
        {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}})
}

/// The refusals that follow from what an operation takes.
fn add_refusals(operation: &mut Map<String, Value>) {
    let parameters = operation["parameters"].clone();
    let takes =
        |place: &str| parameters.as_array().into_iter().flatten().any(|one| one["in"] == place);
    let header = |name: &str| {
        parameters.as_array().into_iter().flatten().find(|one| one["name"] == name).cloned()
    };
    let (query, body) = (takes("query"), operation.contains_key("requestBody"));
    let (key, tag) = (header("Idempotency-Key").is_some(), header("If-Match"));
    let changes = key || body || operation["responses"].get("204").is_some();
    let responses = operation["responses"].as_object_mut().expect("responses are an object");
    let mut add =
        |status: &str, words: &str| drop(responses.insert(status.to_owned(), problem(words)));
    if body {
        add("400", "The body is not valid JSON, or broke off.");
        add("413", "The body is larger than its bound.");
        add("415", "The body is not sent as `application/json`.");
    }
    if body || query || key {
        add("422", "A field or a query parameter cannot be accepted; `errors` names each.");
    }
    if changes {
        add("409", "It collides with what is there.");
    }
    if let Some(tag) = tag {
        add("412", "Somebody else changed it meanwhile; `current` is what stands now.");
        if tag["required"] == true {
            add("428", "`If-Match` is missing.");
        }
    }
}

const SHARED: [(&str, &str); 12] = [
    ("400", "Malformed"),
    ("401", "Unauthenticated"),
    ("403", "Forbidden"),
    ("404", "NotFound"),
    ("409", "Conflict"),
    ("412", "Stale"),
    ("413", "TooLarge"),
    ("415", "UnsupportedMediaType"),
    ("422", "Invalid"),
    ("428", "IfMatchRequired"),
    ("429", "TooMany"),
    ("default", "Problem"),
];

/// The same refusal stands in the document once.
fn share_refusals(operation: &mut Map<String, Value>, shared: &mut Map<String, Value>) {
    for (status, name) in SHARED {
        let Some(response) = operation["responses"].get_mut(status) else { continue };
        let mut whole = response.take();
        for (_, media) in whole["content"].as_object_mut().into_iter().flatten() {
            media["schema"] = json!({"$ref": "#/components/schemas/ProblemBody"});
            media["example"] = examples::problem(status);
        }
        shared.entry(name).or_insert(whole);
        *response = json!({"$ref": format!("#/components/responses/{name}")});
    }
}

/// A schema that has a name is referred to wherever it stands.
fn refer(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let names: BTreeMap<String, String> = schemas
        .iter()
        .filter(|(_, schema)| schema.get("properties").is_some() || schema.get("allOf").is_some())
        .map(|(name, schema)| (schema.to_string(), name.clone()))
        .collect();
    let components = document["components"]["schemas"].as_object_mut();
    for (name, schema) in components.into_iter().flatten() {
        for (_, part) in schema.as_object_mut().into_iter().flatten() {
            refer_in(part, &names, Some(name));
        }
    }
    refer_in(&mut document["paths"], &names, None);
}

fn refer_in(part: &mut Value, names: &BTreeMap<String, String>, own: Option<&str>) {
    if part.is_object()
        && let Some(name) = names.get(&part.to_string())
        && own != Some(name)
    {
        *part = json!({"$ref": format!("#/components/schemas/{name}")});
        return;
    }
    match part {
        Value::Object(parts) => parts.iter_mut().for_each(|(_, part)| refer_in(part, names, own)),
        Value::Array(parts) => parts.iter_mut().for_each(|part| refer_in(part, names, own)),
        _ => {}
    }
}
