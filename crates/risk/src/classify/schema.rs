//! What an input schema gives away: names, types, choices and shapes of the parameters.

use serde_json::{Map, Value};

use crate::lexicon::Words;
use crate::text::name_words;

/// How many parameters and levels are looked at.
const MOST_PARAMETERS: usize = 80;
const MOST_LEVELS: usize = 4;

/// One parameter, at any depth.
#[derive(Debug)]
pub(crate) struct Parameter<'a> {
    /// `args.path`, `args.items[*].id`.
    pub(crate) path: String,
    pub(crate) name: &'a str,
    pub(crate) words: Vec<String>,
    /// The words run together: `userid`.
    pub(crate) joined: String,
    pub(crate) kind: Kind,
    pub(crate) choices: Vec<&'a str>,
    pub(crate) description: &'a str,
    pub(crate) format: Option<&'a str>,
    pub(crate) depth: usize,
    pub(crate) schema: &'a Map<String, Value>,
}

/// The JSON type, as far as the schema says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Flag,
    List,
    /// An object whose members are listed.
    Object,
    /// An object that takes anything, or no type at all.
    Open,
}

impl Parameter<'_> {
    /// The name, its words run together, is one of these.
    pub(crate) fn is(&self, names: &Words) -> bool {
        names.contains(self.joined.as_str())
    }

    /// One word of the name is one of these.
    pub(crate) fn has(&self, names: &Words) -> bool {
        self.words.iter().any(|word| names.contains(word.as_str()))
    }

    /// The name's last word is one of these.
    pub(crate) fn ends(&self, names: &Words) -> bool {
        self.words.last().is_some_and(|word| names.contains(word.as_str()))
    }

    /// Text that the caller makes up.
    pub(crate) fn is_free_text(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Open) && self.choices.is_empty()
    }
}

/// The schema says what can be passed, if only that nothing can.
pub(crate) fn is_told(schema: Option<&Value>) -> bool {
    let object = schema.and_then(Value::as_object);
    object.is_some_and(|it| {
        it.contains_key("properties") || it.get("additionalProperties") == Some(&Value::Bool(false))
    })
}

/// Every parameter of the schema, breadth first.
pub(crate) fn parameters(schema: Option<&Value>) -> Vec<Parameter<'_>> {
    properties("args", schema)
}

/// Every member of an answer, breadth first: `output.accessToken`.
pub(crate) fn members(schema: Option<&Value>) -> Vec<Parameter<'_>> {
    properties("output", schema)
}

fn properties<'a>(root: &str, schema: Option<&'a Value>) -> Vec<Parameter<'a>> {
    let mut found = Vec::new();
    let mut queue = vec![(root.to_owned(), 0, schema)];
    let mut next = 0;
    while next < queue.len() && found.len() < MOST_PARAMETERS {
        let (path, depth, schema) = queue[next].clone();
        next += 1;
        let Some(object) = schema.and_then(Value::as_object) else { continue };
        let Some(properties) = object.get("properties").and_then(Value::as_object) else {
            continue;
        };
        for (name, property) in properties.iter().take(MOST_PARAMETERS) {
            let empty = empty_object();
            let property = property.as_object().unwrap_or(empty);
            let parameter = parameter(&path, name, property, depth);
            if depth + 1 < MOST_LEVELS && queue.len() < MOST_PARAMETERS {
                match parameter.kind {
                    Kind::Object => queue.push((
                        parameter.path.clone(),
                        depth + 1,
                        Some(as_value(schema, name)),
                    )),
                    Kind::List => {
                        if let Some(items) = property.get("items") {
                            queue.push((format!("{}[*]", parameter.path), depth + 1, Some(items)));
                        }
                    }
                    _ => {}
                }
            }
            found.push(parameter);
        }
    }
    found
}

fn empty_object() -> &'static Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    &EMPTY
}

fn as_value<'a>(schema: Option<&'a Value>, name: &str) -> &'a Value {
    schema.and_then(|it| it.get("properties")).and_then(|it| it.get(name)).unwrap_or(&Value::Null)
}

fn parameter<'a>(
    path: &str,
    name: &'a str,
    schema: &'a Map<String, Value>,
    depth: usize,
) -> Parameter<'a> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let words: Vec<String> = name_words(name).into_iter().map(|word| word.text).collect();
    Parameter {
        joined: words.concat(),
        path: step(path, name),
        name,
        words,
        kind: kind(schema),
        choices: choices(schema),
        description: text("description").or_else(|| text("title")).unwrap_or_default(),
        format: text("format"),
        depth,
        schema,
    }
}

/// One more step of a policy path; odd names are quoted.
fn step(path: &str, name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if plain { format!("{path}.{name}") } else { format!("{path}[{}]", Value::from(name)) }
}

fn choices(schema: &Map<String, Value>) -> Vec<&str> {
    let list = |it: &'static str| schema.get(it).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        return values.iter().filter_map(Value::as_str).take(60).collect();
    }
    if let Some(value) = schema.get("const").and_then(Value::as_str) {
        return vec![value];
    }
    let variants = list("anyOf").or_else(|| list("oneOf"));
    variants
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(|variant| {
            let one = variant.get("const").and_then(Value::as_str);
            let many = variant.get("enum").and_then(Value::as_array);
            one.into_iter().chain(many.into_iter().flatten().filter_map(Value::as_str))
        })
        .take(60)
        .collect()
}

fn kind(schema: &Map<String, Value>) -> Kind {
    let named = match schema.get("type") {
        Some(Value::String(name)) => Some(name.as_str()),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null")
        }
        _ => None,
    };
    match named {
        Some("string") => Kind::Text,
        Some("number" | "integer") => Kind::Number,
        Some("boolean") => Kind::Flag,
        Some("array") => Kind::List,
        Some("object") => object_kind(schema),
        Some(_) => Kind::Open,
        None => untyped_kind(schema),
    }
}

fn object_kind(schema: &Map<String, Value>) -> Kind {
    let listed =
        schema.get("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
    let variants = ["anyOf", "oneOf", "allOf", "$ref"].iter().any(|key| schema.contains_key(*key));
    if listed || variants { Kind::Object } else { Kind::Open }
}

fn untyped_kind(schema: &Map<String, Value>) -> Kind {
    if schema.contains_key("enum") || schema.contains_key("const") {
        return Kind::Text;
    }
    let variants =
        ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key).and_then(Value::as_array));
    let kinds = variants
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .filter(|it| it.get("type").and_then(Value::as_str) != Some("null"));
    // Of several, the freest.
    let rank = |kind: &Kind| match kind {
        Kind::Flag => 0,
        Kind::Number => 1,
        Kind::List => 2,
        Kind::Object => 3,
        Kind::Text => 4,
        Kind::Open => 5,
    };
    if schema.contains_key("properties") || schema.contains_key("$ref") {
        return object_kind(schema);
    }
    kinds
        .take(10)
        .map(|it| if it.contains_key("type") { kind(it) } else { Kind::Text })
        .max_by_key(rank)
        .unwrap_or(Kind::Open)
}
