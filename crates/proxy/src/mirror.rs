//! Arguments that a client repeats in headers (2026-07-28): `x-mcp-header` in a tool's input schema.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use sluice_mcp::{decode_header, member_text, string_value};
use sluice_policy::Decimal;

/// Deeper properties are not looked for.
const MAX_DEPTH: usize = 16;
const MAX_MIRRORS: usize = 256;

/// One argument and the header that repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    path: Vec<String>,
    header: HeaderName,
}

/// The arguments that a schema wants repeated. Only those that `properties` alone lead to count.
pub(crate) fn mirrors(schema: &Value) -> Vec<Mirror> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirror>) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, property) in properties {
        if path.len() >= MAX_DEPTH || found.len() >= MAX_MIRRORS {
            return;
        }
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        let header = header.and_then(|name| format!("mcp-param-{name}").parse().ok());
        if let Some(header) = header {
            found.push(Mirror { path: path.clone(), header });
        }
        collect(property, path, found);
        path.pop();
    }
}

impl Mirror {
    /// Whether the header says something else than the argument does. A header that is not there says
    /// nothing: the server refuses that itself.
    pub(crate) fn differs(&self, headers: &HeaderMap, arguments: &str) -> bool {
        let Some(value) = headers.get(&self.header) else { return false };
        let argument = self.path.iter().try_fold(arguments, |text, name| member_text(text, name));
        !argument.is_some_and(|argument| says(value, argument))
    }
}

/// Whether a header's value stands for an argument's raw text.
fn says(value: &HeaderValue, argument: &str) -> bool {
    let Some(value) = value.to_str().ok().and_then(decode_header) else { return false };
    match argument.as_bytes().first() {
        Some(b'"') => string_value(argument).is_some_and(|text| text == value),
        Some(b't' | b'f') => *argument == *value,
        Some(b'-' | b'0'..=b'9') => {
            is_number(&value) && Decimal::read(argument).compare(&Decimal::read(&value)).is_eq()
        }
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "options":{"type":"object","properties":{"limit":{"type":"integer","x-mcp-header":"Limit"}}},
        "dry":{"type":"boolean","x-mcp-header":"Dry"},
        "list":{"type":"array","items":{"type":"string","x-mcp-header":"Item"}},
        "odd":{"type":"string","x-mcp-header":"not a name"}},
        "allOf":[{"properties":{"x":{"x-mcp-header":"X"}}}]}"#;

    fn differs(headers: &[(&str, &str)], arguments: &str) -> bool {
        let schema = serde_json::from_str(SCHEMA).expect("JSON");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        mirrors(&schema).iter().any(|mirror| mirror.differs(&map, arguments))
    }

    #[test]
    fn only_what_properties_lead_to_counts() {
        let schema = serde_json::from_str(SCHEMA).expect("JSON");
        let mut names: Vec<_> =
            mirrors(&schema).into_iter().map(|m| m.header.to_string()).collect();
        names.sort();
        assert_eq!(names, ["mcp-param-dry", "mcp-param-limit", "mcp-param-region"]);
    }

    #[test]
    fn a_header_must_say_what_the_argument_says() {
        for (headers, arguments) in [
            (&[("mcp-param-region", "eu")][..], r#"{"region":"eu"}"#),
            (&[("mcp-param-region", "=?base64?w6l0w6k=?=")], r#"{"region":"\u00e9té"}"#),
            (&[("mcp-param-limit", "42")], r#"{"options":{"limit":42.0}}"#),
            (
                &[("mcp-param-limit", "9007199254740993")],
                r#"{"options":{"limit":9007199254740993}}"#,
            ),
            (&[("mcp-param-dry", "true")], r#"{"dry":true}"#),
            (&[("mcp-param-other", "x")], "{}"),
            (&[], r#"{"region":"eu"}"#),
        ] {
            assert!(!differs(headers, arguments), "{headers:?} {arguments}");
        }
        for (headers, arguments) in [
            (&[("mcp-param-region", "us")][..], r#"{"region":"eu"}"#),
            (&[("mcp-param-region", "eu")], "{}"),
            (&[("mcp-param-region", "null")], r#"{"region":null}"#),
            (&[("mcp-param-region", "=?base64?!!?=")], r#"{"region":"eu"}"#),
            (
                &[("mcp-param-limit", "9007199254740992")],
                r#"{"options":{"limit":9007199254740993}}"#,
            ),
            (&[("mcp-param-limit", "x42")], r#"{"options":{"limit":42}}"#),
            (&[("mcp-param-limit", "42")], r#"{"limit":42}"#),
            (&[("mcp-param-dry", "false")], r#"{"dry":true}"#),
        ] {
            assert!(differs(headers, arguments), "{headers:?} {arguments}");
        }
    }
}
