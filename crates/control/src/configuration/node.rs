//! YAML (and JSON, which is YAML) as a tree whose parts know where they stand. Aliases, nesting and
//! size are bounded, and nothing is guessed: what is not quoted and looks like a number is one.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::walk::Place;
use crate::Fault;
use crate::codes;

/// The largest main file.
pub(super) const MAX_TEXT: usize = 1024 * 1024;
const MAX_DEPTH: usize = 16;
const MAX_NODES: usize = 100_000;
const MAX_ALIASES: usize = 1_000;

/// A part of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Spot>),
    Map(Vec<(Key, Spot)>),
}

impl Node {
    /// What it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "empty",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a group of fields",
        }
    }
}

/// A node with its line and column, both from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spot {
    pub(super) node: Node,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// The name of a field, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Reads the text, or says why it is no YAML.
pub(super) fn parse(text: &str) -> Result<Spot, Fault> {
    if text.len() > MAX_TEXT {
        let detail = format!("the file has {} bytes; at most {MAX_TEXT} are read", text.len());
        return Err(Place::top().fault(codes::TOO_LARGE, detail));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 1,
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_merge_keys: MAX_ALIASES,
            max_total_scalar_bytes: MAX_TEXT,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: MAX_DEPTH,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = match error.location() {
            Some(at) => Place::at(String::new(), number(at.line()), number(at.column())),
            None => Place::top(),
        };
        // The place is told apart from the words.
        let words = error.without_snippet().to_string();
        let words = words.split(" at line ").next().unwrap_or(&words).to_owned();
        place.fault(codes::SYNTAX, format!("this is no YAML that can be read: {words}"))
    })
}

fn number(place: u64) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl<'de> Deserialize<'de> for Spot {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Node>::deserialize(from)?;
        let (line, column) =
            (number(spanned.referenced.line()), number(spanned.referenced.column()));
        Ok(Self { node: spanned.value, line, column })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(from)?;
        let (line, column) =
            (number(spanned.referenced.line()), number(spanned.referenced.column()));
        Ok(Self { name: spanned.value, line, column })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(serde_json::Number::from_i128(value).map_or(Node::Null, Node::Number))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(serde_json::Number::from_u128(value).map_or(Node::Null, Node::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = from.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = from.next_entry()? {
            map.push(entry);
        }
        Ok(Node::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_know_their_place() {
        let spot = parse("a: 1\nb:\n  - x\n  - \"2\"\n").expect("reads");
        let Node::Map(fields) = &spot.node else { panic!("{spot:?}") };
        assert_eq!((fields[0].0.line, fields[0].0.column), (1, 1));
        assert_eq!(fields[0].1.node, Node::Number(1.into()));
        let Node::List(items) = &fields[1].1.node else { panic!("{spot:?}") };
        assert_eq!(items[0].node, Node::Text("x".to_owned()));
        assert_eq!((items[1].line, items[1].column), (4, 5));
        assert_eq!(items[1].node, Node::Text("2".to_owned()));
    }

    #[test]
    fn json_is_read_and_the_words_of_old_yaml_stay_words() {
        let spot = parse(r#"{"a": [true, null, "no"], "b": no, "c": 2027-01-01}"#).expect("reads");
        let Node::Map(fields) = &spot.node else { panic!("{spot:?}") };
        let Node::List(items) = &fields[0].1.node else { panic!("{spot:?}") };
        assert_eq!(items[0].node, Node::Bool(true));
        assert_eq!(items[1].node, Node::Null);
        assert_eq!(fields[1].1.node, Node::Text("no".to_owned()));
        assert_eq!(fields[2].1.node, Node::Text("2027-01-01".to_owned()));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
        let mut bomb = "a0: &a0 [x]\n".to_owned();
        for n in 1..12 {
            let last = format!("*a{}", n - 1);
            bomb = format!("{bomb}a{n}: &a{n} [{}]\n", [last.as_str(); 9].join(", "));
        }
        let long = "x".repeat(MAX_TEXT + 1);
        for text in ["a: [1", "a: 1\na: 2\n", "a: 1\n---\nb: 2\n", &deep, &bomb, &long, "\u{0}"] {
            let fault = parse(text).expect_err("refused");
            assert!(["syntax", "too_large"].contains(&fault.code.as_str()), "{fault:?}");
            assert_eq!(fault.file.as_deref(), Some("workspace.yaml"));
            assert!(fault.detail.len() < 500, "{}", fault.detail);
        }
        assert_eq!(parse("a: 1\na: 2\n").expect_err("twice").line, Some(2));
    }
}
