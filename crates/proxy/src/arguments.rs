//! What the call log keeps of a call's arguments: names and types, or values
//! with secrets taken out, where the server's setting asks for them.

use serde_json::{Map, Value};

/// Longest text that is kept of all arguments of a call.
const MAX_TEXT: usize = 8 * 1024;
const MAX_STRING: usize = 256;
const MAX_ENTRIES: usize = 50;
const MAX_DEPTH: usize = 4;
/// Larger arguments are not read a second time for the log.
const MAX_READ: usize = 256 * 1024;
const SECRET: &str = "[redacted]";

const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "auth",
    "cookie",
    "session",
    "signature",
    "otp",
    "pin",
    "cvv",
    "cvc",
    "ssn",
    "iban",
    "cardnumber",
];

const SECRET_STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "slg_",
    "slu_",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "Bearer ",
    "Basic ",
    "-----BEGIN",
    "npm_",
    "pypi-",
    "hf_",
];

/// The log's JSON of `arguments`, an object's text.
pub(crate) fn for_log(arguments: &str, with_values: bool) -> Option<String> {
    if arguments.len() > MAX_READ {
        return Some(format!("{{\"…\":\"{} bytes\"}}", arguments.len()));
    }
    let value: Value = serde_json::from_str(arguments).ok()?;
    let kept = if with_values { redacted(&value, 0) } else { shape(&value, 0) };
    let text = kept.to_string();
    if text.len() <= MAX_TEXT { Some(text) } else { Some(shape(&value, MAX_DEPTH - 1).to_string()) }
}

fn entries(
    map: &Map<String, Value>,
    mut each: impl FnMut(&str, &Value) -> Value,
) -> Map<String, Value> {
    let mut out: Map<String, Value> =
        map.iter().take(MAX_ENTRIES).map(|(name, value)| (cut(name), each(name, value))).collect();
    if map.len() > MAX_ENTRIES {
        out.insert("…".to_owned(), Value::from(format!("{} more", map.len() - MAX_ENTRIES)));
    }
    out
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_STRING {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MAX_STRING).collect();
    short.push('…');
    short
}

/// Names, and in place of each value its type and size.
fn shape(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(text) => format!("string({})", text.chars().count()).into(),
        Value::Array(list) => format!("list({})", list.len()).into(),
        Value::Object(map) if depth >= MAX_DEPTH => format!("object({})", map.len()).into(),
        Value::Object(map) => entries(map, |_, value| shape(value, depth + 1)).into(),
    }
}

fn redacted(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) if looks_secret(text) => SECRET.into(),
        Value::String(text) => cut(text).into(),
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => shape(value, depth),
        Value::Array(list) => {
            list.iter().take(MAX_ENTRIES).map(|value| redacted(value, depth + 1)).collect()
        }
        Value::Object(map) => entries(map, |name, value| {
            if names_secret(name) && !value.is_null() {
                SECRET.into()
            } else {
                redacted(value, depth + 1)
            }
        })
        .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn names_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET_NAMES
        .iter()
        .any(|secret| plain == *secret || (secret.len() > 4 && plain.contains(secret)))
}

/// A known token form, or a long run of letters and digits without a space.
fn looks_secret(text: &str) -> bool {
    let known = SECRET_STARTS
        .iter()
        .any(|start| text.starts_with(start) || text.contains(&format!(" {start}")));
    let dense = text.len() >= 32
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-'))
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().any(|b| b.is_ascii_alphabetic());
    let userinfo = text
        .split_once("://")
        .is_some_and(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@')));
    known || dense || userinfo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_values_only_names_and_types_stay() {
        let kept =
            for_log(r#"{"api_key":"sk-test-AAAA","n":1.50,"o":{"p":[1,2],"q":null}}"#, false);
        assert_eq!(
            kept.as_deref(),
            Some(r#"{"api_key":"string(12)","n":"number","o":{"p":"list(2)","q":"null"}}"#)
        );
    }

    #[test]
    fn secrets_are_taken_out_of_values() {
        let kept = for_log(
            r#"{"api_key":"AAAA","nested":{"Password":"p-BBBB","ok":"hello"},"list":["ghp_abc","x"],
               "text":"use Bearer abc","url":"https://u:p@host/x","n":9007199254740993,
               "hash":"0123456789abcdef0123456789abcdef"}"#,
            true,
        );
        assert_eq!(
            kept.as_deref(),
            Some(
                r#"{"api_key":"[redacted]","nested":{"Password":"[redacted]","ok":"hello"},"list":["[redacted]","x"],"text":"[redacted]","url":"[redacted]","n":9007199254740993,"hash":"[redacted]"}"#
            )
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = format!("{{\"a\":\"{}\"}}", "word ".repeat(2_000));
        assert!(for_log(&long, true).is_some_and(|kept| kept.len() < 1_000));
        let many: Vec<String> =
            (0..1_000).map(|i| format!("\"k{i}\":\"some words here\"")).collect();
        let kept = for_log(&format!("{{{}}}", many.join(",")), true).expect("kept");
        assert!(kept.len() <= MAX_TEXT && kept.contains("950 more"), "{kept}");
        assert_eq!(
            for_log(&format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_READ)), true).map(|k| k.len() < 60),
            Some(true)
        );
    }
}
