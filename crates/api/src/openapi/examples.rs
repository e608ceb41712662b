//! An example of each request and answer. They are answers that were really given (`tests/it/examples.rs` asks for
//! them again on every run); times and ids are made round.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// An id.
pub(super) const ID: &str = "019a0000-0000-7000-8000-000000000001";

static EXAMPLES: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("examples.json")).expect("a test reads this file")
});

/// Puts an operation's examples into it.
pub(super) fn put(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    let example = &EXAMPLES[&id];
    if let Some(request) = example.get("request")
        && let Some(body) = operation.get_mut("requestBody")
    {
        body["content"]["application/json"]["example"] = request.clone();
    }
    let Some(answer) = example.get("answer") else { return };
    for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
        if status.starts_with('2')
            && let Some(content) = response.get_mut("content").and_then(Value::as_object_mut)
        {
            content.iter_mut().for_each(|(_, media)| media["example"] = answer.clone());
        }
    }
}

/// An example of a refusal.
pub(super) fn problem(status: &str) -> Value {
    let (number, title, code, detail) = match status {
        "400" => (
            400,
            "Bad Request",
            "invalid_json",
            "the body is not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        "401" => (
            401,
            "Unauthorized",
            "unauthenticated",
            "send a valid API token as `Authorization: Bearer slu_…`; an admin makes them under API tokens",
        ),
        "403" => (403, "Forbidden", "role_too_low", "only admins of this workspace may do this"),
        "404" => (404, "Not Found", "not_found", "there is no such server"),
        "409" => (409, "Conflict", "name_taken", "there is a server of this name already"),
        "412" => (
            412,
            "Precondition Failed",
            "stale",
            "somebody else changed it since you read it; it is now at version 4",
        ),
        "413" => (413, "Payload Too Large", "too_large", "the body is larger than 1048576 bytes"),
        "415" => (
            415,
            "Unsupported Media Type",
            "unsupported_media_type",
            "send the body as JSON, with `Content-Type: application/json`",
        ),
        "422" => (422, "Unprocessable Entity", "required", "give it a name"),
        "428" => (
            428,
            "Precondition Required",
            "if_match_required",
            "somebody else may have edited this: send the `ETag` you read as `If-Match`, or `*` to overwrite whatever is there",
        ),
        "429" => {
            (429, "Too Many Requests", "rate_limited", "this token has sent too many requests")
        }
        _ => (
            503,
            "Service Unavailable",
            "unavailable",
            "the database is not available; try again in a moment",
        ),
    };
    let mut problem = json!({"type": format!("/docs/api#{code}"), "title": title, "status": number, "code": code, "detail": detail});
    match number {
        412 => problem["current_version"] = 4.into(),
        422 => {
            problem["pointer"] = "/name".into();
            problem["errors"] = json!([{"pointer": "/name", "code": code, "detail": detail}]);
        }
        429 => problem["retry_after_seconds"] = 12.into(),
        _ => {}
    }
    problem
}
