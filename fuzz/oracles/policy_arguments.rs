//! The reader of a call's arguments. It accepts what every JSON reader reads alike and nothing else,
//! and a rule sees exactly what such a reader sees at the same place.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use sluice_policy::{
    Arguments, ArgumentsError, CallFile, CallInput, CasesFile, Verdict, compile, recorded,
};

/// Levels within which both readers can be compared: the other one stops there.
const DEEP: usize = 100;
/// Leaves of one text that are asked for.
const LEAVES: usize = 12;

/// Panics where something does not hold.
pub(crate) fn holds(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let theirs: Result<Value, _> = serde_json::from_str(text);
    match (Arguments::parse(text), theirs) {
        (Ok(arguments), Ok(value)) => {
            assert!(value.is_object() && !has_duplicates(text), "accepted: {text}");
            seen_alike(arguments, &value);
            kept(text);
        }
        (Ok(_), Err(error)) => assert!(deep(text), "accepted what is not JSON: {text}: {error}"),
        (Err(ArgumentsError::NotAnObject), Ok(value)) => assert!(!value.is_object(), "{text}"),
        (Err(_), Ok(_)) => assert!(has_duplicates(text), "refused for nothing: {text}"),
        (Err(_), Err(_)) => {}
    }
    let call = format!(r#"{{"tool":"a","arguments":{text}}}"#);
    let policy = compile(r#"{"version":"1","default":"allow"}"#).expect("a policy");
    CallFile::parse(&call).and_then(|call| call.decide(&policy, DateTime::<Utc>::MIN_UTC)).ok();
    CasesFile::parse(text).ok();
}

fn deep(text: &str) -> bool {
    text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count() >= DEEP
}

/// A policy that requires of some leaves what the other reader found there lets the call through.
fn seen_alike(arguments: Arguments<'_>, value: &Value) {
    let mut leaves = Vec::new();
    gather(value, "args", 0, &mut leaves);
    if leaves.is_empty() {
        return;
    }
    let document = json!({
        "version": "1", "default": "deny", "tools": {"t": {"require": [{"conditions": leaves}]}}
    })
    .to_string();
    let Ok(policy) = compile(&document) else {
        // Only its size or a number that is no amount can make such a document unfit.
        assert!(document.len() > 200 * 1024, "{document}");
        return;
    };
    let decision = policy.decide(&CallInput::new("t", arguments, DateTime::<Utc>::MIN_UTC));
    assert_eq!(decision.verdict, Verdict::Forward, "{document} on {}", arguments.raw());
}

fn gather(value: &Value, path: &str, depth: usize, leaves: &mut Vec<Value>) {
    if leaves.len() >= LEAVES || depth > 30 {
        return;
    }
    match value {
        Value::Object(pairs) if !pairs.is_empty() => {
            for (key, inner) in pairs {
                gather(inner, &format!("{path}[{}]", Value::from(key.as_str())), depth + 1, leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, inner) in items.iter().enumerate() {
                gather(inner, &format!("{path}[{index}]"), depth + 1, leaves);
            }
        }
        _ if depth == 0 => {}
        Value::Null => leaves.push(json!({"path": path, "op": "exists", "value": false})),
        other => leaves.push(json!({"path": path, "op": "eq", "value": other})),
    }
}

/// What the log keeps of arguments can be read again.
fn kept(text: &str) {
    let some = recorded::redacted(text, &|key| key.len() % 2 == 0);
    assert!(Arguments::recorded(&some).is_ok(), "{some}");
    let none = recorded::types_only(text);
    assert!(Arguments::recorded(&none).is_ok(), "{none}");
}

/// Whether a key stands twice in an object, which the other reader overlooks.
fn has_duplicates(text: &str) -> bool {
    serde_json::from_str::<Twice>(text).is_ok_and(|found| found.0)
}

struct Twice(bool);

impl<'de> Deserialize<'de> for Twice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Look).map(Twice)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut any = false;
        while let Some(inner) = items.next_element::<Twice>()? {
            any |= inner.0;
        }
        Ok(any)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<bool, A::Error> {
        let (mut keys, mut any) = (std::collections::HashSet::new(), false);
        while let Some(key) = pairs.next_key::<String>()? {
            any |= !keys.insert(key);
            any |= pairs.next_value::<Twice>()?.0;
        }
        Ok(any)
    }
}
