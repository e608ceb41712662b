//! A schema as it is checked: nodes that refer to each other by number.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

/// A node's place among all.
pub(super) type NodeId = usize;

/// One schema: all of its keywords must hold.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) keywords: Vec<Keyword>,
}

/// A JSON number's text.
#[derive(Debug)]
pub(super) struct Number(pub(super) String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    Integer,
    String,
}

/// Members that are checked together, since `additionalProperties` is about the others' rest.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) named: HashMap<String, NodeId>,
    /// None: a pattern that cannot be used.
    pub(super) patterns: Vec<(Option<Regex>, NodeId)>,
    pub(super) additional: Option<NodeId>,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) node: NodeId,
    pub(super) least: u64,
    pub(super) most: Option<u64>,
    /// Whether what it found counts as looked at (2020-12).
    pub(super) marks: bool,
}

#[derive(Debug)]
pub(super) enum Keyword {
    /// The schema `false`.
    Never,
    /// Something that cannot be used; why.
    Unusable(&'static str),
    Type(Vec<Kind>),
    Const(Value),
    Enum(Vec<Value>),
    MultipleOf(Number),
    Maximum(Number),
    ExclusiveMaximum(Number),
    Minimum(Number),
    ExclusiveMinimum(Number),
    MaxLength(u64),
    MinLength(u64),
    Pattern(Option<Regex>),
    MaxItems(u64),
    MinItems(u64),
    UniqueItems,
    MaxProperties(u64),
    MinProperties(u64),
    Required(Vec<String>),
    DependentRequired(Vec<(String, Vec<String>)>),
    Ref(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        test: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    DependentSchemas(Vec<(String, NodeId)>),
    Members(Members),
    PropertyNames(NodeId),
    Items {
        prefix: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains(Contains),
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}
