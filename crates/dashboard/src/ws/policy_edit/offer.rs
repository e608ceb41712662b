//! What a rule can look at: the arguments of a tool's input schema with their types, the facts of a
//! call, and the operators that fit each. Pure.

use serde_json::Value;
use sluice_policy::{Context, Op, Path, Segment};

/// Arguments that are offered at most; others can be typed.
const MOST: usize = 80;
const LEVELS: usize = 4;

/// What a value may be, as far as a schema says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Boolean,
    List,
    Object,
}

/// Something a condition can look at. No kinds: it may be anything.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    pub(super) path: String,
    pub(super) kinds: Vec<Kind>,
    /// The values that the schema allows, where it lists them.
    pub(super) choices: Vec<String>,
}

/// The arguments that a schema names, then the facts of a call.
pub(super) fn offers(schema: Option<&Value>) -> Vec<Offer> {
    let mut out = Vec::new();
    if let Some(schema) = schema {
        properties(schema, schema, &mut Vec::new(), &mut out);
    }
    out.extend(Context::ALL.iter().map(|context| Offer {
        path: context.as_str().to_owned(),
        kinds: vec![if context.is_number() { Kind::Number } else { Kind::Text }],
        choices: words(*context),
    }));
    out
}

fn words(context: Context) -> Vec<String> {
    let list: &[&str] = match context {
        Context::ToolCategory => &["Read", "Write", "Execute", "Destructive", "Financial"],
        Context::ToolSeverity => &["Low", "Medium", "High", "Critical"],
        Context::WeekdayUtc => &["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
        _ => &[],
    };
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn properties(root: &Value, schema: &Value, way: &mut Vec<Segment>, out: &mut Vec<Offer>) {
    let named = schema.get("properties").and_then(Value::as_object);
    for (name, inner) in named.into_iter().flatten() {
        way.push(Segment::Key(name.clone()));
        one(root, inner, way, out);
        way.pop();
    }
}

fn one(root: &Value, schema: &Value, way: &mut Vec<Segment>, out: &mut Vec<Offer>) {
    if out.len() >= MOST || way.len() > LEVELS {
        return;
    }
    let schema = resolved(root, schema);
    let kinds = kinds(schema);
    out.push(Offer {
        path: Path::Arguments(way.clone()).to_string(),
        choices: choices(schema),
        kinds,
    });
    properties(root, schema, way, out);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        way.push(Segment::Each);
        one(root, items, way, out);
        way.pop();
    }
}

/// What a reference within the schema leads to.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let mut at = schema;
    for _ in 0..8 {
        let pointer = at.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
        match pointer.and_then(|pointer| root.pointer(pointer)) {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

fn choices(schema: &Value) -> Vec<String> {
    let list = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts = list.iter().filter_map(Value::as_str).map(str::to_owned);
    texts.take(50).collect()
}

fn kinds(schema: &Value) -> Vec<Kind> {
    let words: Vec<&str> = match schema.get("type") {
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ if choices(schema).is_empty() => Vec::new(),
        _ => vec!["string"],
    };
    let mut out = Vec::new();
    for word in words {
        let kind = match word {
            "string" => Kind::Text,
            "number" | "integer" => Kind::Number,
            "boolean" => Kind::Boolean,
            "array" => Kind::List,
            "object" => Kind::Object,
            _ => continue,
        };
        if !out.contains(&kind) {
            out.push(kind);
        }
    }
    out
}

/// Whether an operator can ever say yes of a value of these kinds.
pub(super) fn fits(op: Op, kinds: &[Kind]) -> bool {
    use Kind::{List, Number, Text};
    let of: &[Kind] = match op {
        Op::Eq | Op::Neq | Op::Exists => return true,
        Op::Lt | Op::Lte | Op::Gt | Op::Gte => &[Number],
        Op::In | Op::NotIn => &[Text, Number],
        Op::Regex | Op::StartsWith | Op::EndsWith => &[Text],
        Op::Contains | Op::LengthLte => &[Text, List],
    };
    kinds.is_empty() || kinds.iter().any(|kind| of.contains(kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_come_from_the_schema_with_their_types() {
        let schema = json!({"type": "object", "properties": {
            "amount": {"type": ["number", "null"]}, "currency": {"enum": ["eur", "usd"]},
            "odd.key": {"type": "string"}, "to": {"$ref": "#/$defs/who"}, "any": {},
            "items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}},
            "$defs": {"who": {"type": "object", "properties": {"self": {"$ref": "#/$defs/who"}, "ok": {"type": "boolean"}}}}});
        let offers = offers(Some(&schema));
        let of = |path: &str| {
            let found = offers.iter().find(|offer| offer.path == path);
            found.unwrap_or_else(|| panic!("{path} in {offers:?}"))
        };
        assert_eq!(of("args.amount").kinds, [Kind::Number]);
        assert_eq!(of("args.currency").choices, ["eur", "usd"]);
        assert_eq!(of("args[\"odd.key\"]").kinds, [Kind::Text]);
        assert_eq!(of("args.items").kinds, [Kind::List]);
        assert_eq!(of("args.items[*].id").kinds, [Kind::Number]);
        assert_eq!(of("args.to.ok").kinds, [Kind::Boolean]);
        assert_eq!(of("args.any").kinds, []);
        assert_eq!(of("call.hour_utc").kinds, [Kind::Number]);
        assert_eq!(of("tool.severity").choices.len(), 4);
        for offer in &offers {
            assert!(Path::parse(&offer.path).is_ok(), "{offer:?}");
        }
        assert!(offers.len() < 100, "a schema that holds itself ends");
        assert_eq!(super::offers(None).len(), Context::ALL.len());
        assert_eq!(super::offers(Some(&json!("odd"))).len(), Context::ALL.len());
    }

    #[test]
    fn operators_fit_the_type() {
        let of = |kinds: &[Kind]| -> Vec<&str> {
            Op::ALL.iter().filter(|op| fits(**op, kinds)).map(|op| op.as_str()).collect()
        };
        assert_eq!(of(&[]).len(), Op::ALL.len());
        assert_eq!(
            of(&[Kind::Number]),
            ["eq", "neq", "lt", "lte", "gt", "gte", "in", "not_in", "exists"]
        );
        assert_eq!(of(&[Kind::Boolean]), ["eq", "neq", "exists"]);
        assert_eq!(of(&[Kind::List]), ["eq", "neq", "exists", "contains", "length_lte"]);
        assert!(!of(&[Kind::Text]).contains(&"lt") && of(&[Kind::Text]).contains(&"regex"));
    }
}
