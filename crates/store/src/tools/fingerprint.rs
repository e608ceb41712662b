//! What counts as the same definition: the same JSON whatever the order of members.

use serde_json::Value;
use sha2::{Digest, Sha256};
use sluice_domain::ToolDefinition;

/// SHA-256 in hex over the definition with sorted members; numbers as they were written.
pub fn fingerprint(definition: &ToolDefinition) -> String {
    let mut hash = Sha256::new();
    let texts =
        [Some(&definition.name), definition.title.as_ref(), definition.description.as_ref()];
    for text in texts {
        match text {
            Some(text) => string(&mut hash, text),
            None => hash.update(b"-"),
        }
    }
    for part in [&definition.input_schema, &definition.output_schema, &definition.annotations] {
        match part {
            Some(part) => value(&mut hash, part),
            None => hash.update(b"-"),
        }
    }
    hex(&hash.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Lengths go before contents, so that no two values give the same bytes.
fn string(hash: &mut Sha256, text: &str) {
    hash.update(b"s");
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

/// As deep as the JSON parser lets a value be, which is 128.
fn value(hash: &mut Sha256, json: &Value) {
    match json {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Number(number) => {
            hash.update(b"#");
            string(hash, &number.to_string());
        }
        Value::String(text) => string(hash, text),
        Value::Array(items) => {
            hash.update(b"[");
            hash.update((items.len() as u64).to_be_bytes());
            for item in items {
                value(hash, item);
            }
        }
        Value::Object(members) => {
            hash.update(b"{");
            hash.update((members.len() as u64).to_be_bytes());
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            for (name, member) in sorted {
                string(hash, name);
                value(hash, member);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(text: &str) -> ToolDefinition {
        serde_json::from_str(text).expect("a definition")
    }

    #[test]
    fn order_does_not_matter_and_everything_else_does() {
        let base = tool(r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":[1,2]}}"#);
        let same = tool(r#"{"inputSchema":{"b":[1,2],"a":1},"description":"d","name":"t"}"#);
        assert_eq!(fingerprint(&base), fingerprint(&same));
        assert_eq!(fingerprint(&base).len(), 64);
        for other in [
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":[2,1]}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1.0,"b":[1,2]}}"#,
            r#"{"name":"t","description":"D","inputSchema":{"a":1,"b":[1,2]}}"#,
            r#"{"name":"t","title":"d","inputSchema":{"a":1,"b":[1,2]}}"#,
            r#"{"name":"t","description":"d","outputSchema":{"a":1,"b":[1,2]}}"#,
            r#"{"name":"t","description":"d"}"#,
        ] {
            assert_ne!(fingerprint(&base), fingerprint(&tool(other)), "{other}");
        }
    }
}
