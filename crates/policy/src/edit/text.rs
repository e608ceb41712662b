//! A text that is changed in its places, in the style of what stands around them.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::item::canonical;
use crate::json::{Kind, Node, parse, quote};
use crate::short_forms::expand;

/// Lists of an entry that a piece may add to.
const LISTS: [&str; 4] = ["require", "deny_if", "approve_if", "limits"];

/// A document's text while it is changed.
pub(super) struct Edited {
    pub(super) text: String,
}

impl Edited {
    /// Adds `key` with the entry's rules to the object at `path`, or the rules to the entry there.
    pub(super) fn add_entry(&mut self, path: &[&str], key: &str, entry: &Map<String, Value>) {
        let mut place = path.to_vec();
        place.push(key);
        if !self.has(&place) {
            return self.add_member(path, key, &Value::Object(entry.clone()));
        }
        for (name, value) in entry {
            if let (true, Value::Array(items)) = (LISTS.contains(&name.as_str()), value) {
                for item in items {
                    self.add_rule(&place, key, name, item);
                }
            } else {
                let mut inner = place.clone();
                inner.push(name);
                if !self.has(&inner) {
                    self.add_member(&place, name, value);
                }
            }
        }
    }

    /// A rule or a limit, unless the entry has it in its long or short form.
    fn add_rule(&mut self, place: &[&str], tool: &str, list: &str, item: &Value) {
        if self.short_form_has(place, tool, list, item) {
            return;
        }
        self.add_item(place, list, item);
    }

    fn short_form_has(&self, place: &[&str], tool: &str, list: &str, item: &Value) -> bool {
        let Ok(tree) = parse(&self.text) else { return false };
        let Some(entry) = find(&tree.root, place) else { return false };
        let short = expand(tool, entry).entry;
        let same_limit = short.limits.iter().any(|limit| {
            let text = |key: &str| item.get(key).and_then(Value::as_str);
            text("counter") == Some(&limit.counter)
                && text("window") == Some(&limit.window.to_string())
                && text("scope").unwrap_or("grant") == limit.scope.as_str()
        });
        let bare = |value: &Value| {
            value.get("conditions").and_then(Value::as_array).is_some_and(Vec::is_empty)
        };
        match list {
            "limits" => same_limit,
            "approve_if" => !short.approve_if.is_empty() && bare(item),
            "deny_if" => !short.deny_if.is_empty() && bare(item),
            _ => false,
        }
    }

    pub(super) fn has(&self, path: &[&str]) -> bool {
        parse(&self.text).is_ok_and(|tree| find(&tree.root, path).is_some())
    }

    /// Appends to the list `key` of the object at `path`, unless it is there; makes the list if that is not.
    pub(super) fn add_item(&mut self, path: &[&str], key: &str, item: &Value) {
        let mut place = path.to_vec();
        place.push(key);
        if !self.has(&place) {
            return self.add_member(path, key, &Value::Array(vec![item.clone()]));
        }
        let wanted = identity(key, &item.to_string());
        let there = parse(&self.text).is_ok_and(|tree| {
            let items = find(&tree.root, &place).map(Node::items).unwrap_or_default();
            items.iter().any(|old| identity(key, &self.text[old.start..old.end]) == wanted)
        });
        if !there {
            self.push(path, key, item);
        }
    }

    /// Appends to the list `key` of what is at `path`, whatever it holds.
    pub(super) fn push(&mut self, path: &[&str], key: &str, item: &Value) {
        let mut place = path.to_vec();
        place.push(key);
        let edit = {
            let Ok(tree) = parse(&self.text) else { return };
            let Some(node) = find(&tree.root, &place) else { return };
            let last = node.items().last().map(|old| old.end);
            let first = node.items().first().map(|old| old.start);
            self.insertion(node, first, last, |indent| self.layout(item, indent))
        };
        self.text.replace_range(edit.0, &edit.1);
    }

    pub(super) fn add_member(&mut self, path: &[&str], key: &str, value: &Value) {
        if !path.is_empty() && !self.has(path) {
            let (name, parent) = (path[path.len() - 1], &path[..path.len() - 1]);
            self.add_member(parent, name, &Value::Object(Map::new()));
        }
        let edit = {
            let Ok(tree) = parse(&self.text) else { return };
            let Some(object) = find(&tree.root, path) else { return };
            let first = object.members().first().map(|member| member.key_at);
            let last = object.members().last().map(|member| member.value.end);
            self.insertion(object, first, last, |indent| {
                format!("{}: {}", quote(key), self.layout(value, indent))
            })
        };
        self.text.replace_range(edit.0, &edit.1);
    }

    /// Where and what to insert at the end of a list or object, in the style of its other parts.
    fn insertion(
        &self,
        parent: &Node<'_>,
        first: Option<usize>,
        last: Option<usize>,
        write: impl Fn(&str) -> String,
    ) -> (Range<usize>, String) {
        let outer = self.indent_of(parent.start);
        match (first, last) {
            (Some(first), Some(last)) if self.text[parent.start..first].contains('\n') => {
                let indent = self.indent_of(first);
                (last..last, format!(",\n{indent}{}", write(&indent)))
            }
            (Some(_), Some(last)) => (last..last, format!(", {}", write(&outer))),
            _ if self.text.contains('\n') => {
                let indent = format!("{outer}{}", self.unit());
                let inside = format!("\n{indent}{}\n{outer}", write(&indent));
                (parent.start + 1..parent.end - 1, inside)
            }
            _ => (parent.start + 1..parent.end - 1, write(&outer)),
        }
    }

    /// The blanks at the start of the line of a byte.
    pub(super) fn indent_of(&self, at: usize) -> String {
        let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        self.text[start..].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    /// One step of indentation, as the document has it.
    fn unit(&self) -> String {
        let lines = self.text.lines().skip(1);
        let mut blanks = lines
            .map(|line| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect::<String>());
        blanks.find(|blank| !blank.is_empty()).unwrap_or_else(|| "  ".to_owned())
    }

    /// JSON on one line where it is short, else indented.
    pub(super) fn layout(&self, value: &Value, indent: &str) -> String {
        let flat = flat(value);
        if flat.len() + indent.len() <= LINE || !self.text.contains('\n') {
            return flat;
        }
        let inner = format!("{indent}{}", self.unit());
        let parts: Vec<String> = match value {
            Value::Array(items) => items.iter().map(|item| self.layout(item, &inner)).collect(),
            Value::Object(pairs) => pairs
                .iter()
                .map(|(key, item)| format!("{}: {}", quote(key), self.layout(item, &inner)))
                .collect(),
            _ => return flat,
        };
        let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
        let body = parts.join(&format!(",\n{inner}"));
        format!("{open}\n{inner}{body}\n{indent}{close}")
    }
}

/// Characters of a line before it is broken.
const LINE: usize = 96;

fn flat(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", "))
        }
        Value::Object(pairs) => {
            let pairs = pairs.iter().map(|(key, item)| format!("{}: {}", quote(key), flat(item)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// The value at a path of keys and positions.
pub(super) fn find<'n, 'a>(root: &'n Node<'a>, path: &[&str]) -> Option<&'n Node<'a>> {
    path.iter().try_fold(root, |node, key| match &node.kind {
        Kind::List(items) => items.get(key.parse::<usize>().ok()?),
        _ => node.get(key),
    })
}

/// What makes two elements of a list the same: for limits counter, window and scope.
fn identity(list: &str, raw: &str) -> String {
    let limit = if list == "limits" { parse(raw).ok() } else { None };
    let Some(tree) = limit else { return canonical(raw) };
    let text = |key: &str, default: &str| {
        tree.root.get(key).and_then(Node::text).unwrap_or(default).to_owned()
    };
    format!("{}\n{}\n{}", text("counter", ""), text("window", ""), text("scope", "grant"))
}
