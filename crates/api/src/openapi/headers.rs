//! Headers of answers.

use serde_json::{Value, json};

pub(super) fn components() -> Value {
    let text = |words: &str, example: &str| json!({"description": words, "schema": {"type": "string"}, "example": example});
    json!({
        "RateLimit-Policy": text("How many requests the token may send, and in how many seconds.", "\"token\";q=3000;w=60"),
        "RateLimit": text("How many are left, and in how many seconds all of them are there again.", "\"token\";r=2999;t=60"),
        "ETag": text("What an edit sends back as `If-Match`.", "\"3\""),
        "Location": text("Where what was made is.", "/api/v1/workspaces/acme/servers/019a0000-0000-7000-8000-000000000001"),
    })
}

/// Operations whose answer carries an `ETag`.
const TAGGED: [&str; 12] = [
    "create_server",
    "show_server",
    "edit_server",
    "create_policy",
    "show_policy",
    "save_policy",
    "roll_back_policy",
    "create_grant",
    "show_grant",
    "edit_grant",
    "show_endpoint",
    "edit_endpoint",
];
/// Operations whose answer says where what was made is.
const LOCATED: [&str; 3] = ["create_server", "create_policy", "create_grant"];

/// Adds them to the answer of a success.
pub(super) fn tell(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
        if !status.starts_with('2') {
            continue;
        }
        let mut names = vec!["RateLimit-Policy", "RateLimit"];
        names.extend(TAGGED.contains(&id.as_str()).then_some("ETag"));
        names.extend(LOCATED.contains(&id.as_str()).then_some("Location"));
        for name in names {
            response["headers"][name] = json!({"$ref": format!("#/components/headers/{name}")});
        }
    }
}
