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

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Everything that a path leads to.
pub(crate) fn resolve(path: &str, call: &Call) -> Vec<Found> {
    let text = |text: Option<&str>| vec![text.map_or(Found::Missing, |t| Found::Value(t.into()))];
    match path {
        "tool.name" => text(Some(&call.tool)),
        "tool.category" => text(call.category),
        "tool.severity" => text(call.severity),
        "grant.label" => text(Some(call.label)),
        "session.client_name" => text(call.client),
        "call.hour_utc" => vec![Found::Value((call.hours % 24).into())],
        "call.weekday_utc" => {
            text(Some(DAYS[usize::try_from(call.hours / 24).expect("a day of the week")]))
        }
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
    let (step, rest) = step(path);
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

/// The steps of a path: the same for `args.x` and `args["x"]`, which are one path.
pub(crate) fn steps(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (first, after) = step(rest);
        steps.push(first);
        rest = after;
    }
    steps
}

/// The first step and what follows it; a key in quotes is a JSON string.
fn step(path: &str) -> (String, &str) {
    let Some(quoted) = path.strip_prefix("[\"") else {
        let end = path[1..].find(['.', '[']).map_or(path.len(), |at| at + 1);
        return (path[..end].to_owned(), &path[end..]);
    };
    let mut escaped = false;
    let close = quoted.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    let close = close.expect("a closing quote");
    let key: String = serde_json::from_str(&path[1..close + 3]).expect("a string");
    (format!(".{key}"), &quoted[close + 2..])
}
