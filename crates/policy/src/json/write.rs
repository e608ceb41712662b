//! Out of the tree again.

use std::str::FromStr;

use serde_json::{Map, Number, Value};

use super::tree::{Kind, Node};

/// The same value with its digits, for normalised documents and literals.
pub(crate) fn to_value(node: &Node<'_>) -> Value {
    match &node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        // Cannot fail: the lexer accepted exactly the numbers of RFC 8259.
        Kind::Number(text) => Number::from_str(text).map_or(Value::Null, Value::Number),
        Kind::Text(text) => Value::String(text.clone().into_owned()),
        Kind::List(items) => Value::Array(items.iter().map(to_value).collect()),
        Kind::Object(members) => {
            let pairs = members.iter().map(|m| (m.key.clone().into_owned(), to_value(&m.value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

/// Appends a string as JSON text.
pub(crate) fn push_quoted(out: &mut String, text: &str) {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&quote(text));
    }
}

/// A string as JSON text.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}
