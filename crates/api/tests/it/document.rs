//! The OpenAPI document.

use serde_json::Value;

fn document() -> Value {
    sluice_api::published()
}

/// Every operation, by its method and path.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let each = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("an item");
        methods.iter().map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    each.collect()
}

fn described(part: &Value) -> bool {
    let words = part["description"].as_str().or(part["summary"].as_str());
    part.get("$ref").is_some() || words.is_some_and(|words| words.trim().len() > 2)
}

/// Where a schema has fields that say nothing of themselves.
fn silent(place: &str, schema: &Value, found: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        if !described(field) {
            found.push(place.clone());
        }
        silent(&place, field, found);
    }
    for parts in ["allOf", "oneOf"] {
        for part in schema[parts].as_array().into_iter().flatten() {
            silent(place, part, found);
        }
    }
}

#[test]
fn every_operation_parameter_field_and_answer_is_described() {
    let document = document();
    let mut found = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for (operation, what) in operations(&document) {
        if !described(what) {
            found.push(operation.clone());
        }
        let name = what["operationId"].as_str().expect("it has a name");
        assert!(names.insert(name), "two operations are called `{name}`");
        for parameter in what["parameters"].as_array().into_iter().flatten() {
            if !described(parameter) {
                found.push(format!("{operation} {}", parameter["name"]));
            }
        }
        for (status, answer) in what["responses"].as_object().expect("answers") {
            if !described(answer) {
                found.push(format!("{operation} {status}"));
            }
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        if !described(schema) {
            found.push(name.clone());
        }
        silent(name, schema, &mut found);
    }
    for part in ["responses", "headers"] {
        for (name, one) in document["components"][part].as_object().expect("there are some") {
            if !described(one) {
                found.push(name.clone());
            }
        }
    }
    assert!(
        found.is_empty(),
        "say what these are, in the code or in openapi/fields.txt: {found:#?}"
    );
}

/// What stands twice would be read twice, and the file would be too long to review.
#[test]
fn what_stands_often_stands_once() {
    let text = document().to_string();
    assert_eq!(text.matches("An RFC 9457 problem.").count(), 1);
    assert!(text.len() < 260_000, "the document has {} bytes", text.len());
}

#[test]
fn it_is_openapi_3_1_and_names_every_call_of_the_contract() {
    let document = document();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let ws = "/workspaces/{ws}";
    for (method, path) in [
        ("get", "/me".to_owned()),
        ("get", ws.to_owned()),
        ("patch", ws.to_owned()),
        ("delete", ws.to_owned()),
        ("get", format!("{ws}/servers")),
        ("post", format!("{ws}/servers")),
        ("patch", format!("{ws}/servers/{{id}}")),
        ("delete", format!("{ws}/servers/{{id}}")),
        ("post", format!("{ws}/servers/{{id}}/refresh")),
        ("get", format!("{ws}/servers/{{id}}/tools")),
        ("post", format!("{ws}/servers/{{id}}/tools/{{tool}}/apply-recommended")),
        ("post", format!("{ws}/servers/{{id}}/policies")),
        ("put", format!("{ws}/policies/{{id}}")),
        ("get", format!("{ws}/policies/{{id}}/versions")),
        ("post", format!("{ws}/policies/{{id}}/rollback")),
        ("post", format!("{ws}/policies/{{id}}/check")),
        ("post", format!("{ws}/policies/{{id}}/simulate")),
        ("post", format!("{ws}/servers/{{id}}/grants")),
        ("patch", format!("{ws}/grants/{{id}}")),
        ("post", format!("{ws}/grants/{{id}}/rotate")),
        ("get", format!("{ws}/limits")),
        ("post", format!("{ws}/limits/reset")),
        ("get", format!("{ws}/calls")),
        ("get", format!("{ws}/calls.csv")),
        ("get", format!("{ws}/calls.ndjson")),
        ("get", format!("{ws}/approvals")),
        ("post", format!("{ws}/approvals/{{id}}/approve")),
        ("post", format!("{ws}/approvals/{{id}}/deny")),
        ("post", format!("{ws}/approvals/{{id}}/reveal")),
        ("get", format!("{ws}/approvals/{{id}}/events")),
        ("get", format!("{ws}/approval-exceptions")),
        ("delete", format!("{ws}/approval-exceptions/{{id}}")),
        ("get", format!("{ws}/notification-settings")),
        ("patch", format!("{ws}/notification-settings")),
        ("patch", format!("{ws}/notification-preferences")),
        ("post", format!("{ws}/notification-endpoints")),
        ("patch", format!("{ws}/notification-endpoints/{{id}}")),
        ("delete", format!("{ws}/notification-endpoints/{{id}}")),
        ("post", format!("{ws}/notification-endpoints/{{id}}/test")),
        ("post", format!("{ws}/notification-endpoints/{{id}}/rotate-secret")),
        ("get", format!("{ws}/notification-deliveries")),
        ("post", format!("{ws}/notification-deliveries/{{id}}/replay")),
        ("get", format!("{ws}/members")),
        ("post", format!("{ws}/members")),
        ("post", format!("{ws}/invites")),
        ("post", format!("{ws}/api-tokens")),
        ("get", format!("{ws}/admin-events")),
        ("get", format!("{ws}/usage")),
        ("get", format!("{ws}/configuration")),
        ("post", format!("{ws}/configuration/plan")),
        ("post", format!("{ws}/configuration/apply")),
    ] {
        assert!(document["paths"][&path][method].is_object(), "{method} {path}");
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_call_is_described() {
    let document = document();
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().expect("it ends");
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, call) in item.as_object().expect("an item") {
            let words = call["summary"].as_str().or(call["description"].as_str());
            assert!(words.is_some_and(|words| !words.is_empty()), "{method} {path} is described");
            assert!(call["responses"]["default"].is_object(), "{method} {path} tells of problems");
        }
    }
}

/// Two bodies of one name would be described by whichever comes last.
#[test]
fn bodies_of_like_names_are_told_apart() {
    let document = document();
    let of = |path: &str| {
        let call = &document["paths"][format!("/workspaces/{{ws}}{path}")]["post"];
        let schema = &call["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
        let pointer = schema.as_str().expect("a reference").trim_start_matches('#').to_owned();
        let properties = document.pointer(&pointer).expect("it is there")["properties"].clone();
        properties.as_object().expect("properties").keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(of("/configuration/apply"), ["plan", "tokens", "warnings"]);
    assert_eq!(of("/configuration/plan"), ["changes", "summary", "unmanaged", "refusal"]);
    assert_eq!(of("/servers/{id}/tools/{tool}/apply-recommended"), ["policy", "change"]);
}

/// `docs/openapi.json` is what programs are generated from, so that its changes show in reviews.
#[test]
fn the_document_that_is_checked_in_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let now = serde_json::to_string_pretty(&document()).expect("it serialises") + "\n";
    if std::env::var_os("SLUICE_WRITE_OPENAPI").is_some() {
        std::fs::write(path, &now).expect("it is written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let differs = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == now,
        "docs/openapi.json is not up to date ({differs:?}); write it anew with\n  \
         SLUICE_WRITE_OPENAPI=1 cargo test -p sluice-api --test it checked_in"
    );
}
