//! What paths lead to, the slow way.

use serde_json::Value;

use crate::generate::Call;

#[derive(Debug, Clone)]
pub(crate) enum Found {
    Value(Value),
    Missing,
    /// The way leads through a value of another type.
    Blocked,
    EmptyList,
}

/// 12:00 on a Monday, as the tests' clock has it.
const HOUR: u32 = 12;

/// Everything that a path leads to.
pub(crate) fn resolve(path: &str, call: &Call) -> Vec<Found> {
    let text = |text: Option<&str>| vec![text.map_or(Found::Missing, |t| Found::Value(t.into()))];
    match path {
        "tool.name" => text(Some(&call.tool)),
        "tool.category" => text(call.rated.then_some("Execute")),
        "grant.label" => text(Some(call.label)),
        "session.client_name" => text(call.client),
        "call.hour_utc" => vec![Found::Value(HOUR.into())],
        "call.weekday_utc" => text(Some("mon")),
        _ => follow(&call.arguments, path.strip_prefix("args").expect("a path")),
    }
}

fn follow(value: &Value, path: &str) -> Vec<Found> {
    if path.is_empty() {
        return vec![Found::Value(value.clone())];
    }
    if value.is_null() {
        return vec![Found::Missing];
    }
    let end = path[1..].find(['.', '[']).map_or(path.len(), |at| at + 1);
    let (step, rest) = match path.strip_prefix("[\"") {
        Some(quoted) => {
            let close = quoted.find("\"]").expect("a closing quote");
            (format!(".{}", &quoted[..close]), &quoted[close + 2..])
        }
        None => (path[..end].to_owned(), &path[end..]),
    };
    if let Some(key) = step.strip_prefix('.') {
        let Value::Object(pairs) = value else { return vec![Found::Blocked] };
        return pairs.get(key).map_or_else(|| vec![Found::Missing], |value| follow(value, rest));
    }
    let Value::Array(items) = value else { return vec![Found::Blocked] };
    if step == "[*]" {
        if items.is_empty() {
            return vec![Found::EmptyList];
        }
        return items.iter().flat_map(|item| follow(item, rest)).collect();
    }
    let index: usize = step.trim_matches(['[', ']']).parse().expect("an index");
    items.get(index).map_or_else(|| vec![Found::Missing], |item| follow(item, rest))
}
