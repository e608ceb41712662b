//! What fields and parameters mean, where the type does not say it: most names mean the same wherever they stand.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

/// `name | words`, or `Schema.name | words` where a name means something of its own there.
static WORDS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("fields.txt").lines();
    lines.filter_map(|line| line.split_once('|')).map(|(a, b)| (a.trim(), b.trim())).collect()
});

fn words(schema: &str, name: &str) -> Option<&'static str> {
    WORDS.get(format!("{schema}.{name}").as_str()).or_else(|| WORDS.get(name)).copied()
}

/// What a parameter is; `None` for a query parameter that says so itself.
pub(super) fn parameter(path: &str, place: &str, name: &str) -> Option<&'static str> {
    let of = path.split('/').collect::<Vec<_>>();
    let kind = of.iter().position(|part| *part == "{id}").and_then(|at| of.get(at.checked_sub(1)?));
    match (place, name) {
        ("path", "id") => WORDS.get(format!("/{}", kind?).as_str()).copied(),
        ("path" | "header", name) => WORDS.get(format!("/{name}").as_str()).copied(),
        _ => None,
    }
}

/// Describes what is not described yet.
pub(super) fn describe(document: &mut Value) {
    for (name, schema) in document["components"]["schemas"].as_object_mut().into_iter().flatten() {
        if schema.get("description").is_none()
            && let Some(words) = WORDS.get(name.as_str())
        {
            schema["description"] = (*words).into();
        }
        in_schema(name, schema);
    }
    for (_, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap_or_default().to_owned();
                if parameter.get("description").is_none()
                    && let Some(words) = words("?", &name)
                {
                    parameter["description"] = words.into();
                }
            }
            for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
                if status.starts_with('2')
                    && response["description"].as_str().unwrap_or_default().is_empty()
                {
                    response["description"] = match status.as_str() {
                        "201" => "It was made.",
                        "204" => "It is done; there is nothing more to say.",
                        _ => "Here it is.",
                    }
                    .into();
                }
            }
        }
    }
}

fn in_schema(name: &str, schema: &mut Value) {
    for list in ["allOf", "oneOf"] {
        for part in schema.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            in_schema(name, part);
        }
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (field, part) in properties.into_iter().flatten() {
        if part.get("description").is_none()
            && let Some(words) = words(name, field)
        {
            part["description"] = words.into();
        }
    }
}
