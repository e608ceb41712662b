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

/// The digest of a call: its arguments and every other parameter that the tool is given. `_meta`, which
/// changes with each request, is left out.
pub(crate) fn call_digest(arguments: &str, params: Option<&str>) -> [u8; 32] {
    let others = params.and_then(|params| serde_json::from_str::<Value>(params).ok());
    let Some(Value::Object(mut others)) = others else { return digest(arguments) };
    for own in ["name", "arguments", "_meta"] {
        others.remove(own);
    }
    if others.is_empty() {
        return digest(arguments);
    }
    let mut out = String::new();
    write(&Value::Object(others), &mut out);
    let mut hash = Sha256::new();
    hash.update(digest(arguments));
    hash.update(out.as_bytes());
    hash.finalize().into()
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
    fn what_else_the_tool_is_given_is_part_of_the_call() {
        let of = |params: &str| call_digest("{}", Some(params));
        let plain = of(r#"{"name":"t","arguments":{}}"#);
        assert_eq!(plain, digest("{}"));
        assert_eq!(plain, of(r#"{"arguments":{},"name":"t","_meta":{"progressToken":7}}"#));
        let given = of(r#"{"name":"t","requestState":"z","inputResponses":{"a":1}}"#);
        assert_ne!(plain, given);
        assert_ne!(given, of(r#"{"name":"t","requestState":"z","inputResponses":{"a":2}}"#));
        assert_ne!(plain, of(r#"{"name":"t","task":{}}"#));
    }

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
