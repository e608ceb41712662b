//! `require` on a path that the tool's input schema lacks or types otherwise:
//! such a rule would refuse every call that fits the schema.

use serde_json::Value;

use crate::check::KnownTool;
use crate::document::{Comparison, Document};
use crate::json::{Node, Place};
use crate::op::Op;
use crate::path::{Path, Segment};
use crate::problem::Problems;
use crate::suggest::nearest;

use super::{Entry, conditions, tools};

/// Schemas inside schemas that are followed.
const MAX_STEPS: usize = 32;

pub(super) fn warn(
    entry: &Entry<'_, '_>,
    document: &Document,
    name: &str,
    known: &[KnownTool],
    place: &Place<'_>,
    problems: &mut Problems<'_>,
) {
    if entry.rules.require.is_empty() {
        return;
    }
    let schemas: Vec<&Value> = known
        .iter()
        .filter(|tool| tools::effective(document, &tool.name) == Some(name))
        .filter_map(|tool| tool.input_schema.as_ref())
        .collect();
    if schemas.is_empty() {
        return;
    }
    let list = place.key("require");
    for (index, node, rule) in entry.rules_of("require") {
        let place = list.index(index);
        let place = place.key("conditions");
        let nodes = node.get("conditions").map(Node::items).unwrap_or_default();
        for (index, (node, condition)) in nodes.iter().zip(&rule.conditions).enumerate() {
            conditions::leaves(
                node,
                condition,
                &place.index(index),
                &mut |node, comparison, place| {
                    leaf(node, comparison, &schemas, place, problems);
                },
            );
        }
    }
}

fn leaf(
    node: &Node<'_>,
    comparison: &Comparison,
    schemas: &[&Value],
    place: &Place<'_>,
    problems: &mut Problems<'_>,
) {
    let Path::Arguments(segments) = &comparison.path else { return };
    if comparison.op == Op::Exists && comparison.value == Value::Bool(false) {
        return;
    }
    let found: Vec<Lookup> =
        schemas.iter().map(|schema| look(schema, schema, segments, 0)).collect();
    let at = node.get("path").map_or(node.start, |path| path.start);
    if found.iter().all(|lookup| *lookup == Lookup::Absent) {
        let words = format!("the tool's input schema has no `{}`", comparison.path);
        problems.warn("not_in_schema", at, &place.key("path"), words);
        problems.suggest(suggest(schemas, segments));
        return;
    }
    let wanted = wanted(comparison);
    let fits = |lookup: &Lookup| match lookup {
        Lookup::Types(types) => types.iter().any(|kind| wanted.contains(&kind.as_str())),
        Lookup::Absent => false,
        Lookup::Unknown => true,
    };
    if !wanted.is_empty() && !found.iter().any(fits) {
        let mut types: Vec<&str> = Vec::new();
        for lookup in &found {
            if let Lookup::Types(list) = lookup {
                types.extend(list.iter().map(String::as_str));
            }
        }
        types.dedup();
        let words = format!(
            "the tool's input schema has `{}` as {}, which `{}` with this value never accepts",
            comparison.path,
            types.join(" or "),
            comparison.op
        );
        problems.warn("schema_type", at, &place.key("path"), words);
    }
}

/// The schema types that a comparison can hold for; empty: any.
fn wanted(comparison: &Comparison) -> Vec<&'static str> {
    match comparison.op {
        Op::Lt | Op::Lte | Op::Gt | Op::Gte => vec!["number", "integer"],
        Op::Regex | Op::StartsWith | Op::EndsWith => vec!["string"],
        Op::Contains | Op::LengthLte => vec!["string", "array"],
        Op::Eq => types_of(&comparison.value).to_vec(),
        Op::In => {
            let list = comparison.value.as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().flat_map(|value| types_of(value).iter().copied()).collect()
        }
        Op::Neq | Op::NotIn | Op::Exists => Vec::new(),
    }
}

const fn types_of(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(_) => &["number", "integer"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    }
}

/// What a schema says of a path.
#[derive(Debug, PartialEq, Eq)]
enum Lookup {
    /// Its properties are listed, and this is not one.
    Absent,
    Unknown,
    Types(Vec<String>),
}

fn look(root: &Value, schema: &Value, segments: &[Segment], steps: usize) -> Lookup {
    if steps > MAX_STEPS {
        return Lookup::Unknown;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or(Lookup::Unknown, |to| look(root, to, segments, steps + 1));
    }
    let groups = ["allOf", "anyOf", "oneOf"];
    let parts = groups.iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let own = own(root, schema, segments, steps);
    parts.fold(own, |found, part| merge(found, look(root, part, segments, steps + 1)))
}

fn merge(a: Lookup, b: Lookup) -> Lookup {
    match (a, b) {
        (Lookup::Types(mut a), Lookup::Types(b)) => {
            a.extend(b);
            Lookup::Types(a)
        }
        (Lookup::Types(types), _) | (_, Lookup::Types(types)) => Lookup::Types(types),
        (Lookup::Absent, other) | (other, Lookup::Absent) => other,
        (Lookup::Unknown, Lookup::Unknown) => Lookup::Unknown,
    }
}

fn own(root: &Value, schema: &Value, segments: &[Segment], steps: usize) -> Lookup {
    let Some((segment, rest)) = segments.split_first() else { return types(schema) };
    match segment {
        Segment::Key(key) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            if let Some(inner) = properties.and_then(|properties| properties.get(key)) {
                return look(root, inner, rest, steps + 1);
            }
            match schema.get("additionalProperties") {
                Some(inner @ Value::Object(_)) => look(root, inner, rest, steps + 1),
                _ if schema.get("patternProperties").is_some() || properties.is_none() => {
                    Lookup::Unknown
                }
                _ => Lookup::Absent,
            }
        }
        Segment::Index(_) | Segment::Each => match schema.get("items") {
            Some(inner @ Value::Object(_)) if schema.get("prefixItems").is_none() => {
                look(root, inner, rest, steps + 1)
            }
            _ => Lookup::Unknown,
        },
    }
}

fn types(schema: &Value) -> Lookup {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match schema.get("type") {
        Some(Value::String(kind)) => Lookup::Types(vec![kind.clone()]),
        Some(Value::Array(kinds)) => Lookup::Types(kinds.iter().filter_map(text).collect()),
        _ => {
            let values: Vec<&Value> = match (schema.get("const"), schema.get("enum")) {
                (Some(value), _) => vec![value],
                (_, Some(Value::Array(values))) => values.iter().collect(),
                _ => return Lookup::Unknown,
            };
            let kinds = values.iter().flat_map(|value| types_of(value).iter());
            Lookup::Types(kinds.map(|kind| (*kind).to_owned()).collect())
        }
    }
}

/// The argument of a near name.
fn suggest(schemas: &[&Value], segments: &[Segment]) -> Option<String> {
    let Some(Segment::Key(typed)) = segments.first() else { return None };
    let names = schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
    let near = nearest(typed, names.flat_map(|properties| properties.keys().map(String::as_str)))?;
    let mut meant = segments.to_vec();
    meant[0] = Segment::Key(near.to_owned());
    Some(Path::Arguments(meant).to_string())
}
