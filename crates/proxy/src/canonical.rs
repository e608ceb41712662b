//! The digest by which two calls' arguments are the same: member order and
//! white space do not matter, number literals do.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of the canonical form of a JSON text; of the text itself if it is not JSON.
pub(crate) fn digest(arguments: &str) -> [u8; 32] {
    let canonical = serde_json::from_str::<Value>(arguments).map(|value| {
        let mut out = String::with_capacity(arguments.len());
        write(&value, &mut out);
        out
    });
    Sha256::digest(canonical.as_deref().unwrap_or(arguments).as_bytes()).into()
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (at, value) in list.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(value, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_order_and_space_are_ignored() {
        let same = digest(r#"{"to":"a","n":1,"o":{"x":[1,{"b":2,"a":1}]}}"#);
        assert_eq!(same, digest(r#" { "n":1, "o":{"x":[1,{"a":1,"b":2}]}, "t\u006f":"a" } "#));
        for other in [
            r#"{"to":"a","n":2,"o":{"x":[1,{"b":2,"a":1}]}}"#,
            r#"{"to":"a","n":1.0,"o":{"x":[1,{"b":2,"a":1}]}}"#,
            r#"{"to":"a","n":"1","o":{"x":[1,{"b":2,"a":1}]}}"#,
            r#"{"to":"a","n":1,"o":{"x":[{"b":2,"a":1},1]}}"#,
        ] {
            assert_ne!(same, digest(other), "{other}");
        }
    }
}
