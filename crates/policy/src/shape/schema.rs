//! The JSON Schema (2020-12) of a document, written from the tables.

use serde_json::{Map, Value, json};

use super::tables::{COMPARISON, DOCUMENT, MAX_CONDITIONS, MAX_NESTING};
use super::{DEFAULTED, Extra, Format, LONE_ACTIONS, MAX_WHOLE, ObjectShape, Shape};
use crate::op::{Op, ValueShape};

/// The JSON Schema of a policy document. What it cannot say (duplicate keys, overlapping patterns,
/// totals of a tool, the size of a compiled regular expression) only [`check`](crate::check) says.
pub fn json_schema() -> Value {
    let mut writer = Writer { definitions: Map::new() };
    let root = writer.object(&DOCUMENT);
    let mut out = Map::new();
    out.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    out.insert("title".to_owned(), json!("Sluice policy document, version 1"));
    if let Value::Object(root) = root {
        out.extend(root);
    }
    out.insert("$defs".to_owned(), Value::Object(writer.definitions));
    Value::Object(out)
}

struct Writer {
    definitions: Map<String, Value>,
}

impl Writer {
    fn shape(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::Text => json!({"type": "string"}),
            Shape::Name => json!({"type": "string", "minLength": 1}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::Whole { min, max } => whole(*min, *max),
            Shape::Amount => json!({"type": "number"}),
            Shape::Value => json!(true),
            Shape::Words { words, .. } => json!({"enum": words}),
            Shape::Format(format) => pattern(format),
            Shape::List { item, min, max } => {
                let items = self.shape(item);
                json!({"type": "array", "items": items, "minItems": min, "maxItems": max})
            }
            Shape::Tools { entry, max } => {
                let entry = self.shape(entry);
                json!({
                    "type": "object", "propertyNames": {"minLength": 1},
                    "additionalProperties": entry, "maxProperties": max
                })
            }
            Shape::Object(object) => self.reference(object),
            Shape::Either(format, object) => {
                json!({"anyOf": [pattern(format), self.reference(object)]})
            }
            Shape::Condition => self.condition(0),
        }
    }

    fn reference(&mut self, object: &ObjectShape) -> Value {
        if !self.definitions.contains_key(object.name) {
            self.definitions.insert(object.name.to_owned(), Value::Null);
            let definition = self.object(object);
            self.definitions.insert(object.name.to_owned(), definition);
        }
        json!({"$ref": format!("#/$defs/{}", object.name)})
    }

    fn object(&mut self, object: &ObjectShape) -> Value {
        let mut properties = Map::new();
        for field in object.fields {
            let mut schema = self.shape(&field.shape);
            if let Value::Object(keys) = &mut schema {
                keys.insert("description".to_owned(), json!(field.help));
            } else {
                schema = json!({"description": field.help});
            }
            properties.insert(field.key.to_owned(), schema);
        }
        let required: Vec<&str> =
            object.fields.iter().filter(|field| field.required).map(|field| field.key).collect();
        let mut out = json!({
            "type": "object", "properties": properties, "additionalProperties": false
        });
        if !required.is_empty() {
            out["required"] = json!(required);
        }
        let extra = match object.extra {
            Extra::None => Vec::new(),
            Extra::Limit => limit(),
            Extra::Entry => entry(object),
            Extra::Comparison => comparison(),
        };
        if !extra.is_empty() {
            out["allOf"] = Value::Array(extra);
        }
        out
    }

    /// A condition with `level` levels of `any` and `not` around it.
    fn condition(&mut self, level: usize) -> Value {
        if level >= MAX_NESTING {
            return self.reference(&COMPARISON);
        }
        let name = format!("condition_{level}");
        if !self.definitions.contains_key(&name) {
            let (comparison, inner) = (self.reference(&COMPARISON), self.condition(level + 1));
            let group = |key: &str, value: Value| {
                json!({
                    "type": "object", "properties": {key: value}, "required": [key],
                    "additionalProperties": false
                })
            };
            let list = json!({
                "type": "array", "items": inner, "minItems": 1, "maxItems": MAX_CONDITIONS
            });
            let choice = json!({"anyOf": [comparison, group("any", list), group("not", inner)]});
            self.definitions.insert(name.clone(), choice);
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }
}

fn whole(min: u64, max: u64) -> Value {
    json!({"type": "integer", "minimum": min, "maximum": max})
}

fn pattern(format: &Format) -> Value {
    json!({"type": "string", "pattern": (format.pattern)()})
}

fn limit() -> Vec<Value> {
    vec![json!({
        "if": {"required": ["increment_from"]},
        // More than 9 digits after the point is for the checker: `multipleOf` is not exact everywhere.
        "then": {"properties": {"max": {"type": "number", "minimum": 0, "exclusiveMaximum": MAX_WHOLE + 1}}},
        "else": {"properties": {"max": whole(0, MAX_WHOLE)}}
    })]
}

fn entry(object: &ObjectShape) -> Vec<Value> {
    let mut out = Vec::new();
    for action in LONE_ACTIONS {
        let others = object.fields.iter().map(|field| field.key);
        let others =
            others.filter(|key| *key != "action" && !(*key == "reason" && *action == "deny"));
        let closed: Map<String, Value> =
            others.map(|key| (key.to_owned(), Value::Bool(false))).collect();
        out.push(json!({
            "if": {"properties": {"action": {"const": action}}, "required": ["action"]},
            "then": {"properties": closed}
        }));
    }
    out.push(json!({
        "dependentSchemas": {
            "reason": {"properties": {"action": {"const": "deny"}}, "required": ["action"]}
        }
    }));
    out
}

fn comparison() -> Vec<Value> {
    let by_shape = |shape: ValueShape, schema: Value| {
        let ops: Vec<&str> =
            Op::ALL.iter().filter(|op| op.shape() == shape).map(|op| op.as_str()).collect();
        json!({
            "if": {"properties": {"op": {"enum": ops}}, "required": ["op"]},
            "then": {"properties": {"value": schema}}
        })
    };
    vec![
        json!({
            "if": {"properties": {"op": {"const": DEFAULTED.as_str()}}, "required": ["op"]},
            "else": {"required": ["value"]}
        }),
        by_shape(ValueShape::Number, json!({"type": "number"})),
        by_shape(ValueShape::Text, json!({"type": "string"})),
        by_shape(
            ValueShape::Regex,
            json!({"type": "string", "format": "regex", "maxLength": crate::read::MAX_REGEX}),
        ),
        by_shape(ValueShape::Boolean, json!({"type": "boolean"})),
        by_shape(ValueShape::List, json!({"type": "array"})),
        by_shape(ValueShape::Length, whole(0, MAX_WHOLE)),
    ]
}
