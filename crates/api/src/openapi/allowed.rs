//! The closed sets of words, from the types that read and write them.

use serde_json::Value;
use sluice_domain::{
    Access, ActorKind, ApprovalEventKind, ApprovalStatus, Category, Code, DeliveryStatus,
    EndpointKind, Methods, Notice, OnDrift, OnUnavailable, Outcome, PolicyKind, Reset, Role, Scope,
    SecurityKind, Severity, ToolState, Transport, UnknownTools, ValidateArguments,
};

macro_rules! words {
    ($kind:ty) => {
        <$kind>::ALL.iter().map(|word| word.as_str()).collect()
    };
}

const TRIED: [&str; 4] = ["allow", "deny", "approve", "cannot_tell"];

/// What a field or query parameter takes, by schema (or `?` for parameters) and name.
fn words_of(schema: &str, name: &str) -> Option<Vec<&'static str>> {
    Some(match (schema, name) {
        ("TrialBody" | "SideBody", "outcome") => TRIED.to_vec(),
        ("ApplyBody", "rest") => vec!["deny", "recommended"],
        ("ToolBody", "status") => words!(ToolState),
        ("PolicyBody", "kind") => words!(PolicyKind),
        ("EndpointBody" | "NewEndpoint", "kind") => words!(EndpointKind),
        ("DeliveryBody" | "?notification-deliveries", "status") => words!(DeliveryStatus),
        ("ApprovalBody" | "?approvals", "status") => words!(ApprovalStatus),
        ("ApprovalEventBody", "kind") => words!(ApprovalEventKind),
        ("SecurityBody" | "?security-events", "kind") => words!(SecurityKind),
        ("EventBody", "actor_kind") => words!(ActorKind),
        ("LimitBody" | "ResetCounter", "scope") => words!(Scope),
        ("LimitBody" | "ResetCounter", "reset") => words!(Reset),
        (_, "on_unavailable") => words!(OnUnavailable),
        (_, "role") => words!(Role),
        (_, "category") => words!(Category),
        (_, "severity") => words!(Severity),
        (_, "transport") => words!(Transport),
        (_, "unknown_tools") => words!(UnknownTools),
        (_, "on_drift") => words!(OnDrift),
        (_, "validate_arguments") => words!(ValidateArguments),
        (_, "methods") => words!(Methods),
        (_, "resources" | "prompts") => words!(Access),
        ("EndpointBody" | "NewEndpoint" | "EditEndpoint", "events") => words!(Notice),
        (
            "CallBody" | "UsageBody" | "TrialBody" | "?calls" | "?calls.csv" | "?calls.ndjson",
            "outcome" | "logged_outcome",
        ) => words!(Outcome),
        (
            "CallBody" | "TrialBody" | "SideBody" | "?calls" | "?calls.csv" | "?calls.ndjson",
            "code" | "logged_code",
        ) => words!(Code),
        _ => return None,
    })
}

/// Puts them into the document.
pub(super) fn list(document: &mut Value) {
    for (name, schema) in document["components"]["schemas"].as_object_mut().into_iter().flatten() {
        in_schema(name, schema);
    }
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        let place = format!("?{}", path.rsplit('/').next().unwrap_or_default());
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap_or_default().to_owned();
                if let Some(words) = words_of(&place, &name) {
                    put(&mut parameter["schema"], &words);
                }
            }
        }
    }
}

fn in_schema(name: &str, schema: &mut Value) {
    for (field, part) in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        if let Some(words) = words_of(name, field) {
            put(part, &words);
        }
    }
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        in_schema(name, part);
    }
}

fn put(schema: &mut Value, words: &[&str]) {
    let kinds = schema["type"].to_string();
    if kinds.contains("array") {
        schema["items"]["enum"] = words.into();
        return;
    }
    if kinds.contains("string") {
        let null = kinds.contains("null").then_some(Value::Null);
        schema["enum"] = words.iter().map(|word| Value::from(*word)).chain(null).collect();
    }
}
