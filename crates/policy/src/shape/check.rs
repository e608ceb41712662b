//! Holds a parsed text against the tables and tells everything that does not fit.

use std::str::FromStr;

use sluice_domain::Amount;

use super::tables::{COMPARISON, MAX_CONDITIONS, MAX_NESTING};
use super::{DEFAULTED, Extra, Field, Format, LONE_ACTIONS, MAX_WHOLE, ObjectShape, Shape};
use crate::json::{Kind, Node, Place};
use crate::number::Decimal;
use crate::op::{Op, ValueShape};
use crate::problem::Problems;
use crate::suggest::nearest;

/// Checks `node` against `shape`.
pub(crate) fn check(object: &'static ObjectShape, node: &Node<'_>, problems: &mut Problems<'_>) {
    Checker { problems }.object(object, node, &Place::ROOT, None);
}

struct Checker<'c, 'a> {
    problems: &'c mut Problems<'a>,
}

impl Checker<'_, '_> {
    fn wrong_type(&mut self, wanted: &str, node: &Node<'_>, place: &Place<'_>) {
        let words = format!("this must be {wanted}, and is {}", node.type_words());
        self.problems.error("wrong_type", node.start, place, words);
    }

    fn value(&mut self, shape: &'static Shape, node: &Node<'_>, place: &Place<'_>) {
        match shape {
            Shape::Text if node.text().is_none() => self.wrong_type("a string", node, place),
            Shape::Boolean if node.boolean().is_none() => {
                self.wrong_type("true or false", node, place);
            }
            Shape::Text | Shape::Boolean | Shape::Value | Shape::Amount => {}
            Shape::Name => self.name(node, place),
            Shape::Whole { min, max } => self.whole(*min, *max, node, place),
            Shape::Words { what, words } => self.word(what, words, node, place),
            Shape::Format(format) => self.format(format, node, place),
            Shape::List { item, min, max } => self.list(item, (*min, *max), node, place),
            Shape::Tools { entry, max } => self.tools(entry, *max, node, place),
            Shape::Object(object) => self.object(object, node, place, None),
            Shape::Either(format, object) => {
                if node.is_object() {
                    self.object(object, node, place, None);
                } else if node.text().is_some() {
                    self.format(format, node, place);
                } else {
                    self.wrong_type("an object, or a string such as \"10/minute\"", node, place);
                }
            }
            Shape::Condition => self.condition(node, place, 0),
        }
    }

    fn name(&mut self, node: &Node<'_>, place: &Place<'_>) {
        match node.text() {
            None => self.wrong_type("a tool's name or a pattern", node, place),
            Some("") => self.empty_name(node.start, place),
            Some(_) => {}
        }
    }

    fn empty_name(&mut self, at: usize, place: &Place<'_>) {
        self.problems.error("bad_name", at, place, "a tool's name cannot be empty".to_owned());
    }

    fn whole(&mut self, min: u64, max: u64, node: &Node<'_>, place: &Place<'_>) {
        let Some(text) = node.number() else {
            return self.wrong_type("a whole number", node, place);
        };
        let fits = Decimal::read(text).as_u64().is_some_and(|n| (min..=max).contains(&n));
        if !fits {
            let words = format!("this must be a whole number from {min} to {max}");
            self.problems.error("out_of_range", node.start, place, words);
        }
    }

    fn word(&mut self, what: &str, words: &[&str], node: &Node<'_>, place: &Place<'_>) {
        let list = || words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ");
        let Some(text) = node.text() else {
            return self.wrong_type(&format!("one of {}", list()), node, place);
        };
        if !words.contains(&text) {
            let message = format!("there is no {what} \"{}\"; it is one of {}", cut(text), list());
            self.problems.error("unknown_word", node.start, place, message);
            self.problems.suggest(nearest(text, words.iter().copied()).map(str::to_owned));
        }
    }

    fn format(&mut self, format: &Format, node: &Node<'_>, place: &Place<'_>) {
        let Some(text) = node.text() else {
            return self.wrong_type(&format!("{} in quotes", format.what), node, place);
        };
        if let Err(why) = (format.check)(text) {
            let message = format!("\"{}\" is not {}: {why}", cut(text), format.what);
            self.problems.error(format.code, node.start, place, message);
            self.problems.suggest((format.suggest)(text));
        }
    }

    fn list(
        &mut self,
        item: &'static Shape,
        (min, max): (usize, usize),
        node: &Node<'_>,
        place: &Place<'_>,
    ) {
        let Kind::List(items) = &node.kind else {
            return self.wrong_type("a list", node, place);
        };
        self.count(items.len(), (min, max), node.start, place);
        for (index, node) in items.iter().enumerate() {
            self.value(item, node, &place.index(index));
        }
    }

    fn count(&mut self, count: usize, (min, max): (usize, usize), at: usize, place: &Place<'_>) {
        if count > max {
            let words = format!("{count} elements here; at most {max} are allowed");
            self.problems.error("too_many", at, place, words);
        } else if count < min {
            let words = "at least one element is needed here".to_owned();
            self.problems.error("too_few", at, place, words);
        }
    }

    fn tools(&mut self, entry: &'static Shape, max: usize, node: &Node<'_>, place: &Place<'_>) {
        let Kind::Object(members) = &node.kind else {
            return self.wrong_type("an object of tool names", node, place);
        };
        self.count(members.len(), (0, max), node.start, place);
        for member in members {
            let place = place.key(&member.key);
            if member.key.is_empty() {
                self.empty_name(member.key_at, &place);
            }
            self.value(entry, &member.value, &place);
        }
    }

    /// `keys`: the keys to suggest from, where they are not the object's own.
    fn object(
        &mut self,
        object: &'static ObjectShape,
        node: &Node<'_>,
        place: &Place<'_>,
        keys: Option<&[&str]>,
    ) {
        if !node.is_object() {
            return self.wrong_type(&format!("{}: an object", object.what), node, place);
        }
        for member in node.members() {
            let inner = place.key(&member.key);
            if let Some(field) = find(object.fields, &member.key) {
                self.value(&field.shape, &member.value, &inner);
            } else {
                let own: Vec<&str> = object.fields.iter().map(|field| field.key).collect();
                self.unknown_key(
                    object.what,
                    keys.unwrap_or(&own),
                    member.key_at,
                    &inner,
                    &member.key,
                );
            }
        }
        for field in object.fields.iter().filter(|field| field.required) {
            if node.get(field.key).is_none() {
                self.missing_key(object.what, field.key, node, place);
            }
        }
        match object.extra {
            Extra::None => {}
            Extra::Limit => self.limit(node, place),
            Extra::Entry => self.entry(node, place),
            Extra::Comparison => self.comparison(node, place),
        }
    }

    fn unknown_key(&mut self, what: &str, keys: &[&str], at: usize, place: &Place<'_>, key: &str) {
        let list = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let words = format!("{what} has no key `{}`; its keys are {list}", cut(key));
        self.problems.error("unknown_key", at, place, words);
        self.problems.suggest(nearest(key, keys.iter().copied()).map(str::to_owned));
    }

    fn missing_key(&mut self, what: &str, key: &str, node: &Node<'_>, place: &Place<'_>) {
        let words = format!("{what} needs the key `{key}`");
        self.problems.error("missing_key", node.start, place, words);
    }

    fn limit(&mut self, node: &Node<'_>, place: &Place<'_>) {
        let Some(max) = node.get("max") else { return };
        let place = place.key("max");
        if node.get("increment_from").is_none() {
            return self.whole(0, MAX_WHOLE, max, &place);
        }
        let Some(text) = max.number() else {
            return self.wrong_type("a number", max, &place);
        };
        let fits = Amount::from_str(text).is_ok_and(|amount| !amount.is_negative());
        if !fits {
            let words = "an amount is from 0, with at most 15 digits before and 9 after the point"
                .to_owned();
            self.problems.error("out_of_range", max.start, &place, words);
        }
    }

    fn entry(&mut self, node: &Node<'_>, place: &Place<'_>) {
        let action = node.get("action").and_then(Node::text);
        let alone = |action: &&str| LONE_ACTIONS.contains(action);
        if let Some(action) = action.filter(alone) {
            let others = |key: &str| key != "action" && !(key == "reason" && action == "deny");
            for member in node.members().iter().filter(|member| others(&member.key)) {
                let words = format!(
                    "`action: {action}` stands alone; `{}` beside it could never matter",
                    cut(&member.key)
                );
                self.problems.error(
                    "action_conflict",
                    member.key_at,
                    &place.key(&member.key),
                    words,
                );
            }
        } else if let Some(member) = node.members().iter().find(|member| member.key == "reason") {
            let words = "`reason` belongs to `action: deny`; a rule has `on_deny`".to_owned();
            self.problems.error("misplaced_key", member.key_at, &place.key("reason"), words);
        }
    }

    fn condition(&mut self, node: &Node<'_>, place: &Place<'_>, depth: usize) {
        let group = ["any", "not"].into_iter().find_map(|key| Some((key, node.get(key)?)));
        let Some((key, inner)) = group else {
            let keys = ["path", "op", "value", "any", "not"];
            return self.object(&COMPARISON, node, place, Some(&keys));
        };
        for member in node.members().iter().filter(|member| member.key != key) {
            let words = format!(
                "`{}` cannot stand beside `{key}`; a condition is a comparison, `any` or `not`",
                cut(&member.key)
            );
            self.problems.error(
                "condition_conflict",
                member.key_at,
                &place.key(&member.key),
                words,
            );
        }
        let place = place.key(key);
        if depth >= MAX_NESTING {
            let words = format!("`any` and `not` nest at most {MAX_NESTING} deep");
            return self.problems.error("too_deep", node.start, &place, words);
        }
        if key == "not" {
            return self.condition(inner, &place, depth + 1);
        }
        let Kind::List(items) = &inner.kind else {
            return self.wrong_type("a list of conditions", inner, &place);
        };
        self.count(items.len(), (1, MAX_CONDITIONS), inner.start, &place);
        for (index, item) in items.iter().enumerate() {
            self.condition(item, &place.index(index), depth + 1);
        }
    }

    fn comparison(&mut self, node: &Node<'_>, place: &Place<'_>) {
        let Some(op) = node.get("op").and_then(Node::text).and_then(|word| word.parse::<Op>().ok())
        else {
            return;
        };
        let Some(value) = node.get("value") else {
            if op != DEFAULTED {
                self.missing_key(&format!("the operator `{op}`"), "value", node, place);
            }
            return;
        };
        let place = place.key("value");
        let (fits, wanted) = match op.shape() {
            ValueShape::Any => (true, ""),
            ValueShape::Number => (value.number().is_some(), "a number"),
            ValueShape::Text | ValueShape::Regex => (value.text().is_some(), "a string"),
            ValueShape::Boolean => (value.boolean().is_some(), "true or false"),
            ValueShape::List => (matches!(value.kind, Kind::List(_)), "a list"),
            ValueShape::Length => return self.whole(0, MAX_WHOLE, value, &place),
        };
        if !fits {
            self.wrong_type(&format!("{wanted} for the operator `{op}`"), value, &place);
        }
    }
}

fn find(fields: &'static [Field], key: &str) -> Option<&'static Field> {
    fields.iter().find(|field| field.key == key)
}

/// At most so much of a user's text goes into a message.
fn cut(text: &str) -> String {
    let mut out: String = text.chars().take(60).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}
