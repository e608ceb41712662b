//! What the call log keeps of a call's arguments: names and types, or values
//! with secrets taken out, where the server's setting asks for them.

use serde_json::Value;
use sluice_domain::{REDACTED, looks_secret, names_secret};
use sluice_policy::recorded;

/// Of larger arguments only names and types are kept.
const MAX_VALUES: usize = 256 * 1024;

/// The log's JSON of `arguments`, an object's text.
pub(crate) fn for_log(arguments: &str, with_values: bool) -> String {
    if !with_values || arguments.len() > MAX_VALUES {
        return recorded::types_only(arguments);
    }
    let Ok(mut value) = serde_json::from_str(arguments) else {
        return recorded::types_only(arguments);
    };
    mask(&mut value);
    recorded::redacted(&value.to_string(), &|name| !names_secret(name))
}

/// Takes out what looks like a secret wherever it stands.
fn mask(value: &mut Value) {
    match value {
        Value::String(text) if looks_secret(text) => REDACTED.clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(mask),
        Value::Object(map) => map.values_mut().for_each(mask),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_values_only_names_and_types_stay() {
        let kept = for_log(r#"{"api_key":"sk-test-AAAA","n":1.50,"o":{"q":null}}"#, false);
        assert!(kept.contains("api_key") && kept.contains("number"), "{kept}");
        assert!(!kept.contains("AAAA") && !kept.contains("1.5"), "{kept}");
    }

    #[test]
    fn secrets_are_taken_out_of_values() {
        let arguments = r#"{"api_key":"AAAA","nested":{"Password":"p-BBBB","ok":"hello"},
            "list":["ghp_CCCCabcdefghijklmnopqrstuvwxyz0123","x"],"text":"use Bearer DDDDabc","n":9007199254740993}"#;
        let kept = for_log(arguments, true);
        for secret in ["AAAA", "BBBB", "CCCC", "DDDD"] {
            assert!(!kept.contains(secret), "{secret}: {kept}");
        }
        for plain in ["hello", "\"x\"", "9007199254740993", "nested"] {
            assert!(kept.contains(plain), "{plain}: {kept}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let many: Vec<String> = (0..50_000).map(|i| format!("\"k{i}\":\"words\"")).collect();
        let arguments = format!("{{{}}}", many.join(","));
        for with_values in [false, true] {
            assert!(for_log(&arguments, with_values).len() <= 64 * 1024);
        }
    }
}
