//! Makes nodes of a schema document. A part that cannot be used becomes a keyword that says so.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Schema;
use super::index::{Draft, Index, Place, draft};
use super::node::{Contains, Keyword, Kind, Members, Node, NodeId, Number};
use super::pattern;

const MAX_NODES: usize = 20_000;
const MAX_PATTERNS: usize = 500;
const MAX_DEPTH: usize = 128;

const ODD: &str = "a keyword has a value that it cannot have";
const FOREIGN: &str = "it refers to something outside of it";
const LARGE: &str = "it has too many parts";

struct Builder<'a> {
    index: Index<'a>,
    draft: Draft,
    nodes: Vec<Node>,
    made: HashMap<String, NodeId>,
    patterns: usize,
    depth: usize,
    tracks: bool,
}

pub(super) fn build(document: &Value) -> Schema {
    let Some(draft) = draft(document) else {
        let unusable = Keyword::Unusable("it is of a version that is not known here");
        return Schema { nodes: vec![Node { keywords: vec![unusable] }], tracks: false };
    };
    let index = Index::new(document, draft);
    let root = index.root();
    let mut builder = Builder {
        index,
        draft,
        nodes: Vec::new(),
        made: HashMap::new(),
        patterns: 0,
        depth: 0,
        tracks: false,
    };
    builder.node(&root);
    Schema { nodes: builder.nodes, tracks: builder.tracks }
}

fn count(value: &Value) -> Option<u64> {
    value.as_number().and_then(|number| super::equal::decimal(number).as_u64())
}

fn number(value: &Value) -> Option<Number> {
    value.as_number().map(|number| Number(number.as_str().to_owned()))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn kinds(value: &Value) -> Option<Vec<Kind>> {
    let one = |value: &Value| {
        Some(match value.as_str()? {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "object" => Kind::Object,
            "array" => Kind::Array,
            "number" => Kind::Number,
            "integer" => Kind::Integer,
            "string" => Kind::String,
            _ => return None,
        })
    };
    match value {
        Value::Array(many) if !many.is_empty() => many.iter().map(one).collect(),
        value => one(value).map(|kind| vec![kind]),
    }
}

impl<'a> Builder<'a> {
    /// The node of a place, made if there is none yet.
    fn node(&mut self, place: &Place<'a>) -> NodeId {
        if let Some(id) = self.made.get(&place.pointer) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.made.insert(place.pointer.clone(), id);
        self.depth += 1;
        let keywords = if id >= MAX_NODES || self.depth > MAX_DEPTH {
            vec![Keyword::Unusable(LARGE)]
        } else {
            self.keywords(place)
        };
        self.depth -= 1;
        self.nodes[id].keywords = keywords;
        id
    }

    fn keywords(&mut self, place: &Place<'a>) -> Vec<Keyword> {
        let members = match place.value {
            Value::Bool(true) => return Vec::new(),
            Value::Bool(false) => return vec![Keyword::Never],
            Value::Object(members) => members,
            _ => return vec![Keyword::Unusable(ODD)],
        };
        let mut out = Vec::new();
        if let Some(reference) = members.get("$ref") {
            out.push(self.reference(place, reference));
            if self.draft == Draft::Seven {
                return out;
            }
        }
        self.dynamic(place, members, &mut out);
        for (name, value) in members {
            let simple = simple(name, value);
            if let Some(keyword) = simple.or_else(|| self.applied(place, name, value)) {
                out.push(keyword);
            }
        }
        self.together(place, members, &mut out);
        // They are about what the others have looked at.
        for (name, made) in [
            ("unevaluatedProperties", Keyword::UnevaluatedProperties as fn(NodeId) -> Keyword),
            ("unevaluatedItems", Keyword::UnevaluatedItems),
        ] {
            if self.draft > Draft::Seven && members.contains_key(name) {
                self.tracks = true;
                out.push(self.inside(place, &[name]).map_or(Keyword::Unusable(ODD), made));
            }
        }
        out
    }

    fn inside(&mut self, place: &Place<'a>, path: &[&str]) -> Option<NodeId> {
        let inner = self.index.inside(place, path)?;
        Some(self.node(&inner))
    }

    fn reference(&mut self, place: &Place<'a>, reference: &Value) -> Keyword {
        let found = reference.as_str().and_then(|text| self.index.find(&place.base, text));
        found.map_or(Keyword::Unusable(FOREIGN), |target| Keyword::Ref(self.node(&target)))
    }

    fn dynamic(&mut self, place: &Place<'a>, members: &Map<String, Value>, out: &mut Vec<Keyword>) {
        let name = match self.draft {
            Draft::Seven => return,
            Draft::Nineteen => "$recursiveRef",
            Draft::Twenty => "$dynamicRef",
        };
        let Some(reference) = members.get(name) else { return };
        let plain = reference.as_str().is_some_and(|text| self.index.is_plain(text));
        out.push(if plain && self.draft == Draft::Twenty {
            self.reference(place, reference)
        } else {
            Keyword::Unusable("it refers to parts that depend on the way to them")
        });
    }

    /// Nodes of the elements of a list of schemas.
    fn list(&mut self, place: &Place<'a>, name: &str, value: &Value) -> Option<Vec<NodeId>> {
        let length = value.as_array().map(Vec::len).filter(|length| *length > 0)?;
        (0..length).map(|at| self.inside(place, &[name, &at.to_string()])).collect()
    }

    fn named(
        &mut self,
        place: &Place<'a>,
        name: &str,
        value: &Value,
    ) -> Option<Vec<(String, NodeId)>> {
        let members = value.as_object()?;
        members.keys().map(|key| Some((key.clone(), self.inside(place, &[name, key])?))).collect()
    }

    /// Keywords that apply other schemas, each by itself.
    fn applied(&mut self, place: &Place<'a>, name: &str, value: &Value) -> Option<Keyword> {
        let modern = self.draft > Draft::Seven;
        let found = match name {
            "pattern" => {
                let text = value.as_str();
                text.map(|text| Keyword::Pattern(self.pattern(text)))
            }
            "allOf" => self.list(place, name, value).map(Keyword::AllOf),
            "anyOf" => self.list(place, name, value).map(Keyword::AnyOf),
            "oneOf" => self.list(place, name, value).map(Keyword::OneOf),
            "not" => self.inside(place, &[name]).map(Keyword::Not),
            "propertyNames" => self.inside(place, &[name]).map(Keyword::PropertyNames),
            "dependentSchemas" if modern => {
                self.named(place, name, value).map(Keyword::DependentSchemas)
            }
            "dependentRequired" if modern => required_by(value).map(Keyword::DependentRequired),
            "dependencies" if !modern => return self.dependencies(place, value),
            _ => return None,
        };
        Some(found.unwrap_or(Keyword::Unusable(ODD)))
    }

    /// `dependencies` of draft 7: names or a schema for each member.
    fn dependencies(&mut self, place: &Place<'a>, value: &Value) -> Option<Keyword> {
        let Some(members) = value.as_object() else { return Some(Keyword::Unusable(ODD)) };
        let mut all = Vec::new();
        for (key, value) in members {
            // A list of names is the same as a schema that requires them.
            let node = match texts(value) {
                Some(names) => {
                    self.nodes.push(Node { keywords: vec![Keyword::Required(names)] });
                    self.nodes.len() - 1
                }
                None => self.inside(place, &["dependencies", key])?,
            };
            all.push((key.clone(), node));
        }
        Some(Keyword::DependentSchemas(all))
    }

    fn pattern(&mut self, text: &str) -> Option<regex::Regex> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS { None } else { pattern::compile(text) }
    }

    /// Keywords that are about each other.
    fn together(
        &mut self,
        place: &Place<'a>,
        members: &Map<String, Value>,
        out: &mut Vec<Keyword>,
    ) {
        let has = |name: &str| members.contains_key(name);
        if has("properties") || has("patternProperties") || has("additionalProperties") {
            out.push(self.members(place, members).unwrap_or(Keyword::Unusable(ODD)));
        }
        if has("items") || has("prefixItems") || has("additionalItems") {
            out.extend(self.items(place, members));
        }
        if has("contains") {
            let bound = |name: &str| members.get(name).filter(|_| self.draft > Draft::Seven);
            let (least, most) = (bound("minContains").map(count), bound("maxContains").map(count));
            let marks = self.draft == Draft::Twenty;
            let node = self.inside(place, &["contains"]);
            out.push(match (node, least.unwrap_or(Some(1)), most) {
                (_, None, _) | (_, _, Some(None)) | (None, ..) => Keyword::Unusable(ODD),
                (Some(node), Some(least), most) => {
                    Keyword::Contains(Contains { node, least, most: most.flatten(), marks })
                }
            });
        }
        if let Some(test) = has("if").then(|| self.inside(place, &["if"])).flatten() {
            let then = has("then").then(|| self.inside(place, &["then"])).flatten();
            let otherwise = has("else").then(|| self.inside(place, &["else"])).flatten();
            out.push(Keyword::If { test, then, otherwise });
        }
    }

    fn members(&mut self, place: &Place<'a>, members: &Map<String, Value>) -> Option<Keyword> {
        let mut all = Members::default();
        if let Some(value) = members.get("properties") {
            all.named = self.named(place, "properties", value)?.into_iter().collect();
        }
        if let Some(value) = members.get("patternProperties") {
            for (text, node) in self.named(place, "patternProperties", value)? {
                all.patterns.push((self.pattern(&text), node));
            }
        }
        if members.contains_key("additionalProperties") {
            all.additional = Some(self.inside(place, &["additionalProperties"])?);
        }
        Some(Keyword::Members(all))
    }

    fn items(&mut self, place: &Place<'a>, members: &Map<String, Value>) -> Option<Keyword> {
        let (prefix_name, rest_name) = match members.get("items") {
            _ if self.draft == Draft::Twenty => ("prefixItems", "items"),
            Some(Value::Array(_)) => ("items", "additionalItems"),
            // `additionalItems` means nothing without a list before it.
            _ => ("", "items"),
        };
        let prefix = match members.get(prefix_name) {
            Some(Value::Array(empty)) if empty.is_empty() => Some(Vec::new()),
            Some(value) => self.list(place, prefix_name, value),
            None => Some(Vec::new()),
        };
        let rest = match members.get(rest_name) {
            Some(Value::Array(_)) => return Some(Keyword::Unusable(ODD)),
            Some(_) => self.inside(place, &[rest_name]),
            None => None,
        };
        match prefix {
            Some(prefix) if prefix.is_empty() && rest.is_none() => None,
            Some(prefix) => Some(Keyword::Items { prefix, rest }),
            None => Some(Keyword::Unusable(ODD)),
        }
    }
}

fn required_by(value: &Value) -> Option<Vec<(String, Vec<String>)>> {
    let members = value.as_object()?;
    members.iter().map(|(key, names)| Some((key.clone(), texts(names)?))).collect()
}

/// Keywords that are about the instance alone; none for any other.
fn simple(name: &str, value: &Value) -> Option<Keyword> {
    let found = match name {
        "type" => kinds(value).map(Keyword::Type),
        "const" => Some(Keyword::Const(value.clone())),
        "enum" => value.as_array().map(|values| Keyword::Enum(values.clone())),
        "multipleOf" => number(value).map(Keyword::MultipleOf),
        "maximum" => number(value).map(Keyword::Maximum),
        "exclusiveMaximum" => number(value).map(Keyword::ExclusiveMaximum),
        "minimum" => number(value).map(Keyword::Minimum),
        "exclusiveMinimum" => number(value).map(Keyword::ExclusiveMinimum),
        "maxLength" => count(value).map(Keyword::MaxLength),
        "minLength" => count(value).map(Keyword::MinLength),
        "maxItems" => count(value).map(Keyword::MaxItems),
        "minItems" => count(value).map(Keyword::MinItems),
        "uniqueItems" => match value {
            Value::Bool(true) => Some(Keyword::UniqueItems),
            Value::Bool(false) => return None,
            _ => None,
        },
        "maxProperties" => count(value).map(Keyword::MaxProperties),
        "minProperties" => count(value).map(Keyword::MinProperties),
        "required" => texts(value).map(Keyword::Required),
        _ => return None,
    };
    Some(found.unwrap_or(Keyword::Unusable(ODD)))
}
