//! Checks a value against a schema, within a number of steps and a depth.

mod parts;

use std::collections::HashSet;

use crate::number::Decimal;
use serde_json::{Map, Value};

use super::equal::{canonical, decimal, equal};
use super::node::{Keyword, Kind, NodeId, Number};
use super::words::{self, Step};
use super::{Schema, Verdict};

/// Steps that any check may take, and more for each byte of the arguments.
pub(super) const STEPS: usize = 100_000;
const STEPS_A_BYTE: usize = 4;
/// References within references.
const MAX_DEPTH: usize = 200;

const TOO_MUCH: &str = "checking against it takes too long";
const TOO_DEEP: &str = "it refers to itself without end";
const PATTERN: &str = "it has a pattern that cannot be matched exactly";
const NUMBER: &str = "it has a number that cannot be compared exactly";

/// Whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Yes,
    No,
    Unknown(&'static str),
}

use Truth::{No, Unknown, Yes};

impl Truth {
    fn of(holds: bool) -> Self {
        if holds { Yes } else { No }
    }

    /// Both hold. What is certainly false stays so.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (No, _) | (_, No) => No,
            (Unknown(why), _) | (_, Unknown(why)) => Unknown(why),
            (Yes, Yes) => Yes,
        }
    }

    fn negated(self) -> Self {
        match self {
            Yes => No,
            No => Yes,
            Unknown(why) => Unknown(why),
        }
    }
}

/// Which members and items of a value keywords have looked at, certainly or perhaps.
#[derive(Debug, Clone, Default)]
struct Seen {
    members: HashSet<String>,
    all_members: bool,
    items: HashSet<usize>,
    all_items: bool,
    /// There may be more: whether a part holds could not be told.
    unsure: bool,
}

impl Seen {
    fn join(&mut self, other: Self) {
        self.members.extend(other.members);
        self.items.extend(other.items);
        self.all_members |= other.all_members;
        self.all_items |= other.all_items;
        self.unsure |= other.unsure;
    }
}

struct Run<'s> {
    schema: &'s Schema,
    left: usize,
    depth: usize,
    path: Vec<Step>,
    /// Within alternatives, where a violation is not yet one of the whole.
    quiet: usize,
    problem: Option<String>,
}

pub(super) fn check(schema: &Schema, instance: &Value, length: usize) -> Verdict {
    let left = STEPS.saturating_add(length.saturating_mul(STEPS_A_BYTE));
    let mut run = Run { schema, left, depth: 0, path: Vec::new(), quiet: 0, problem: None };
    match run.node(0, instance, &mut Seen::default()) {
        Yes => Verdict::Fits,
        No => Verdict::Violation(
            run.problem.unwrap_or_else(|| words::sentence(&[], "are not as the schema wants them")),
        ),
        Unknown(why) => Verdict::Unknown(why),
    }
}

fn is_kind(value: &Value, kind: Kind) -> bool {
    match kind {
        Kind::Null => value.is_null(),
        Kind::Boolean => value.is_boolean(),
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        Kind::Number => value.is_number(),
        Kind::Integer => value.as_number().is_some_and(|number| decimal(number).is_whole()),
        Kind::String => value.is_string(),
    }
}

fn compared(value: &Value, bound: &Number, holds: impl Fn(std::cmp::Ordering) -> bool) -> Truth {
    value
        .as_number()
        .map_or(Yes, |number| Truth::of(holds(decimal(number).compare(&Decimal::read(&bound.0)))))
}

fn multiple(value: &Value, divisor: &Number) -> Truth {
    let Some(number) = value.as_number() else { return Yes };
    let told = decimal(number).is_multiple_of(&Decimal::read(&divisor.0));
    told.map_or(Unknown(NUMBER), Truth::of)
}

fn bounded(count: Option<usize>, holds: impl Fn(u64) -> bool) -> Truth {
    count.map_or(Yes, |count| Truth::of(holds(u64::try_from(count).unwrap_or(u64::MAX))))
}

fn members(value: &Value) -> Option<usize> {
    value.as_object().map(Map::len)
}

fn items(value: &Value) -> Option<usize> {
    value.as_array().map(Vec::len)
}

impl Run<'_> {
    /// Takes steps; false if none are left.
    fn step(&mut self, count: usize) -> bool {
        let enough = self.left > count;
        self.left = self.left.saturating_sub(count);
        enough
    }

    fn node(&mut self, id: NodeId, value: &Value, seen: &mut Seen) -> Truth {
        if self.depth >= MAX_DEPTH {
            return Unknown(TOO_DEEP);
        }
        let schema = self.schema;
        let Some(node) = schema.nodes.get(id) else { return Unknown(TOO_DEEP) };
        self.depth += 1;
        let mut all = Yes;
        for keyword in &node.keywords {
            if !self.step(1) {
                all = Unknown(TOO_MUCH);
                break;
            }
            let found = self.keyword(keyword, value, seen);
            if found == No {
                self.note(keyword);
                all = No;
                break;
            }
            all = all.and(found);
        }
        self.depth -= 1;
        all
    }

    /// Remembers the first violation of the whole.
    fn note(&mut self, keyword: &Keyword) {
        if self.quiet == 0 && self.problem.is_none() {
            self.problem = Some(words::sentence(&self.path, &words::asked(keyword)));
        }
    }

    fn keyword(&mut self, keyword: &Keyword, value: &Value, seen: &mut Seen) -> Truth {
        match keyword {
            Keyword::Never => No,
            Keyword::Unusable(why) => Unknown(why),
            Keyword::Type(kinds) => Truth::of(kinds.iter().any(|kind| is_kind(value, *kind))),
            Keyword::Const(one) => self.one_of(std::slice::from_ref(one), value),
            Keyword::Enum(values) => self.one_of(values, value),
            Keyword::MultipleOf(n) => multiple(value, n),
            Keyword::Maximum(n) => compared(value, n, std::cmp::Ordering::is_le),
            Keyword::ExclusiveMaximum(n) => compared(value, n, std::cmp::Ordering::is_lt),
            Keyword::Minimum(n) => compared(value, n, std::cmp::Ordering::is_ge),
            Keyword::ExclusiveMinimum(n) => compared(value, n, std::cmp::Ordering::is_gt),
            Keyword::MaxLength(n) => self.length(value, |count| count <= *n),
            Keyword::MinLength(n) => self.length(value, |count| count >= *n),
            Keyword::Pattern(pattern) => self.pattern(pattern.as_ref(), value),
            Keyword::MaxItems(n) => bounded(items(value), |count| count <= *n),
            Keyword::MinItems(n) => bounded(items(value), |count| count >= *n),
            Keyword::UniqueItems => self.unique(value),
            Keyword::MaxProperties(n) => bounded(members(value), |count| count <= *n),
            Keyword::MinProperties(n) => bounded(members(value), |count| count >= *n),
            Keyword::Required(names) => self.required(names, value),
            Keyword::DependentRequired(all) => all.iter().fold(Yes, |truth, (name, names)| {
                let asked = value.get(name).is_some() && value.is_object();
                truth.and(if asked { self.required(names, value) } else { Yes })
            }),
            other => self.applied(other, value, seen),
        }
    }

    /// Keywords that apply other schemas.
    fn applied(&mut self, keyword: &Keyword, value: &Value, seen: &mut Seen) -> Truth {
        match keyword {
            Keyword::Ref(node) => self.part(*node, value, seen),
            Keyword::AllOf(nodes) => nodes.iter().fold(Yes, |truth, node| match truth {
                No => No,
                truth => truth.and(self.part(*node, value, seen)),
            }),
            Keyword::AnyOf(nodes) => self.any_of(nodes, value, seen),
            Keyword::OneOf(nodes) => self.one_form(nodes, value, seen),
            Keyword::Not(node) => self.quietly(*node, value, &mut Seen::default()).negated(),
            Keyword::If { test, then, otherwise } => {
                self.conditional((*test, *then, *otherwise), value, seen)
            }
            Keyword::DependentSchemas(all) => all.iter().fold(Yes, |truth, (name, node)| {
                let asked = truth != No && value.is_object() && value.get(name).is_some();
                truth.and(if asked { self.part(*node, value, seen) } else { Yes })
            }),
            Keyword::Members(all) => self.members(all, value, seen),
            Keyword::PropertyNames(node) => self.names(*node, value),
            Keyword::Items { prefix, rest } => self.items(prefix, *rest, value, seen),
            Keyword::Contains(contains) => self.contains(contains, value, seen),
            Keyword::UnevaluatedProperties(node) => self.unseen_members(*node, value, seen),
            Keyword::UnevaluatedItems(node) => self.unseen_items(*node, value, seen),
            _ => Yes,
        }
    }

    /// Another schema on the same value; what it has looked at counts if it holds.
    fn part(&mut self, node: NodeId, value: &Value, seen: &mut Seen) -> Truth {
        let mut own = Seen::default();
        let truth = self.node(node, value, &mut own);
        if self.schema.tracks {
            match truth {
                Yes => seen.join(own),
                Unknown(_) => seen.unsure = true,
                No => {}
            }
        }
        truth
    }

    fn quietly(&mut self, node: NodeId, value: &Value, seen: &mut Seen) -> Truth {
        self.quiet += 1;
        let truth = self.part(node, value, seen);
        self.quiet -= 1;
        truth
    }

    fn any_of(&mut self, nodes: &[NodeId], value: &Value, seen: &mut Seen) -> Truth {
        let mut any = No;
        for node in nodes {
            match (any, self.quietly(*node, value, seen)) {
                (_, Yes) if !self.schema.tracks => return Yes,
                (_, Yes) => any = Yes,
                (No, Unknown(why)) => any = Unknown(why),
                _ => {}
            }
        }
        any
    }

    fn one_form(&mut self, nodes: &[NodeId], value: &Value, seen: &mut Seen) -> Truth {
        let (mut fits, mut unknown) = (0, None);
        for node in nodes {
            match self.quietly(*node, value, seen) {
                Yes => fits += 1,
                Unknown(why) => unknown = Some(why),
                No => {}
            }
            if fits > 1 {
                return No;
            }
        }
        match (fits, unknown) {
            (_, Some(why)) => Unknown(why),
            (fits, None) => Truth::of(fits == 1),
        }
    }

    fn conditional(
        &mut self,
        (test, then, otherwise): (NodeId, Option<NodeId>, Option<NodeId>),
        value: &Value,
        seen: &mut Seen,
    ) -> Truth {
        let mut branch = |run: &mut Self, node: Option<NodeId>| {
            node.map_or(Yes, |node| run.part(node, value, seen))
        };
        let mut tested = Seen::default();
        match self.quietly(test, value, &mut tested) {
            Yes => {
                let truth = branch(self, then);
                seen.join(tested);
                truth
            }
            No => branch(self, otherwise),
            Unknown(why) => {
                self.quiet += 1;
                let both = (branch(self, then), branch(self, otherwise));
                self.quiet -= 1;
                seen.unsure = true;
                match both {
                    (Yes, Yes) => Yes,
                    (No, No) => No,
                    _ => Unknown(why),
                }
            }
        }
    }

    /// A schema on a part of the value.
    fn below(&mut self, node: NodeId, value: &Value, step: impl FnOnce() -> Step) -> Truth {
        if !self.step(1) {
            return Unknown(TOO_MUCH);
        }
        if self.quiet == 0 {
            self.path.push(step());
        }
        let truth = self.node(node, value, &mut Seen::default());
        if self.quiet == 0 {
            self.path.pop();
        }
        truth
    }

    fn one_of(&mut self, values: &[Value], value: &Value) -> Truth {
        if !self.step(values.len()) {
            return Unknown(TOO_MUCH);
        }
        Truth::of(values.iter().any(|one| equal(one, value)))
    }

    fn length(&mut self, value: &Value, holds: impl Fn(u64) -> bool) -> Truth {
        let Value::String(text) = value else { return Yes };
        if !self.step(text.len() / 64) {
            return Unknown(TOO_MUCH);
        }
        bounded(Some(text.chars().count()), holds)
    }

    fn pattern(&mut self, pattern: Option<&regex::Regex>, value: &Value) -> Truth {
        let Value::String(text) = value else { return Yes };
        self.matches(pattern, text)
    }

    fn matches(&mut self, pattern: Option<&regex::Regex>, text: &str) -> Truth {
        let Some(pattern) = pattern else { return Unknown(PATTERN) };
        if !self.step(1 + text.len() / 16) {
            return Unknown(TOO_MUCH);
        }
        Truth::of(pattern.is_match(text))
    }

    fn unique(&mut self, value: &Value) -> Truth {
        let Value::Array(items) = value else { return Yes };
        let mut known = HashSet::new();
        for item in items {
            let mut text = String::new();
            canonical(item, &mut text);
            if !self.step(1 + text.len() / 16) {
                return Unknown(TOO_MUCH);
            }
            if !known.insert(text) {
                return No;
            }
        }
        Yes
    }
}
