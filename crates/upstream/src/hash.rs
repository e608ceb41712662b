//! The fingerprint of a tool's definition, by which a change is noticed.

use serde_json::Value;
use sha2::{Digest, Sha256};
use sluice_domain::ToolDefinition;

/// SHA-256, in hex, of the canonical JSON of what an agent is told of a tool: name, title,
/// description, schemas and annotations. Order of members and white space do not matter; every
/// digit and every character does.
pub fn definition_hash(tool: &ToolDefinition) -> String {
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
    let json = |value: &Option<Value>| value.clone().unwrap_or(Value::Null);
    let members = [
        ("annotations", json(&tool.annotations)),
        ("description", text(&tool.description)),
        ("inputSchema", json(&tool.input_schema)),
        ("name", Value::String(tool.name.clone())),
        ("outputSchema", json(&tool.output_schema)),
        ("title", text(&tool.title)),
    ];
    let object: serde_json::Map<String, Value> =
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut canonical = String::new();
    write(&Value::Object(object), &mut canonical);
    let digest = Sha256::digest(canonical.as_bytes());
    let halves = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(u32::from(half), 16)).collect()
}

/// JSON with sorted members and no white space. Numbers keep their digits.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (i, (name, value)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> String {
        definition_hash(&serde_json::from_str(text).expect(text))
    }

    #[test]
    fn order_and_space_do_not_matter_and_everything_else_does() {
        let base =
            r#"{"name":"t","description":"d","inputSchema":{"type":"object","maximum":1.10}}"#;
        let same = r#"{ "inputSchema": {"maximum": 1.10, "type": "object"}, "description":"d", "name":"t", "x-vendor": 1 }"#;
        assert_eq!(hash(base), hash(same));
        assert_eq!(hash(base).len(), 64);
        for other in [
            r#"{"name":"T","description":"d","inputSchema":{"type":"object","maximum":1.10}}"#,
            r#"{"name":"t","description":"d ","inputSchema":{"type":"object","maximum":1.10}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"type":"object","maximum":1.1}}"#,
            r#"{"name":"t","title":"d","inputSchema":{"type":"object","maximum":1.10}}"#,
            r#"{"name":"t","description":"d","annotations":{"type":"object","maximum":1.10}}"#,
            r#"{"name":"t","description":"d","outputSchema":{"type":"object","maximum":1.10}}"#,
        ] {
            assert_ne!(hash(base), hash(other), "{other}");
        }
    }

    #[test]
    fn the_hash_never_changes() {
        // Pinned definitions in databases are compared with it.
        assert_eq!(
            hash(r#"{"name":"t","description":"ä\n","inputSchema":{"b":[1,2.50,"x"],"a":{}}}"#),
            "8433e05e96e2a325050b4b62b64ebca605f6f59e44cf49ff0d23d14690f799aa"
        );
    }
}
