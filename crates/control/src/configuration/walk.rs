//! Walks the tree of a file and notes every fault with its place: nothing is skipped in silence.

use super::MAIN;
use super::node::{Node, Spot};
use crate::Fault;
use crate::codes::{self, ProblemCode};
use crate::error::Faults;

/// Where something stands in the main file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pointer: String,
    line: Option<u32>,
    column: Option<u32>,
}

impl Place {
    pub(super) fn at(pointer: String, line: u32, column: u32) -> Self {
        let known = |number: u32| (number > 0).then_some(number);
        Self { pointer, line: known(line), column: known(column) }
    }

    /// The file as a whole.
    pub(super) fn top() -> Self {
        Self { pointer: String::new(), line: None, column: None }
    }

    /// Where it is, for people.
    pub(super) fn words(&self) -> String {
        match self.line {
            Some(line) => format!("in line {line}"),
            None => format!("at `{}`", self.pointer),
        }
    }

    pub(super) fn fault(&self, code: ProblemCode, detail: impl Into<String>) -> Fault {
        self.adopt(Fault::new("", code, detail))
    }

    /// A fault of a value that stands here; the rule that found it knows only the value.
    pub(super) fn adopt(&self, fault: Fault) -> Fault {
        Fault {
            pointer: self.pointer.clone(),
            file: Some(MAIN.to_owned()),
            line: self.line,
            column: self.column,
            ..fault
        }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

impl<T> At<T> {
    /// Reads the value further, or notes at its place why not.
    pub(super) fn read<U>(
        &self,
        faults: &mut Faults,
        read: impl FnOnce(&T) -> Result<U, Fault>,
    ) -> Option<At<U>> {
        let value = read(&self.value).map_err(|fault| self.place.adopt(fault));
        faults.take(value).map(|value| At { value, place: self.place.clone() })
    }
}

/// A node of the tree, and the way to it.
#[derive(Debug, Clone)]
pub(super) struct Here<'a> {
    pub(super) place: Place,
    node: &'a Node,
}

impl<'a> Here<'a> {
    pub(super) fn top(spot: &'a Spot) -> Self {
        Self::of(spot, String::new())
    }

    fn of(spot: &'a Spot, pointer: String) -> Self {
        Self { place: Place::at(pointer, spot.line, spot.column), node: &spot.node }
    }

    /// The fields of a group, each of which must be one of `known`.
    pub(super) fn fields(&self, known: &[&str], faults: &mut Faults) -> Fields<'a> {
        let all = self.entries(faults);
        let mut found = Vec::new();
        for (name, here) in all {
            if known.contains(&name) {
                found.push((name, here));
            } else {
                faults.push(unknown(&here.place, name, known));
            }
        }
        Fields { place: self.place.clone(), found }
    }

    /// The entries of a group whose names are free. Each place is that of the name.
    pub(super) fn entries(&self, faults: &mut Faults) -> Vec<(&'a str, Here<'a>)> {
        match self.node {
            Node::Null => Vec::new(),
            Node::Map(entries) => entries
                .iter()
                .map(|(key, spot)| {
                    let pointer = format!("{}/{}", self.place.pointer, escape(&key.name));
                    let place = Place::at(pointer, key.line, key.column);
                    (key.name.as_str(), Here { place, node: &spot.node })
                })
                .collect(),
            other => {
                faults.push(self.wrong("a group of fields", other));
                Vec::new()
            }
        }
    }

    pub(super) fn list(&self, faults: &mut Faults) -> Vec<Here<'a>> {
        match self.node {
            Node::Null => Vec::new(),
            Node::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, spot)| Here::of(spot, format!("{}/{index}", self.place.pointer)))
                .collect(),
            other => {
                faults.push(self.wrong("a list", other));
                Vec::new()
            }
        }
    }

    pub(super) fn text(&self, faults: &mut Faults) -> Option<At<String>> {
        match self.node {
            Node::Text(text) => Some(At { value: text.clone(), place: self.place.clone() }),
            other => {
                let mut fault = self.wrong("a text", other);
                if matches!(other, Node::Number(_) | Node::Bool(_) | Node::Null) {
                    fault.detail.push_str("; put it in quotes");
                }
                faults.push(fault);
                None
            }
        }
    }

    pub(super) fn flag(&self, faults: &mut Faults) -> bool {
        match self.node {
            Node::Bool(value) => *value,
            other => {
                faults.push(self.wrong("`true` or `false`", other));
                false
            }
        }
    }

    /// The value as JSON, where it is no group and no list.
    pub(super) fn json(&self, faults: &mut Faults) -> Option<serde_json::Value> {
        match self.node {
            Node::Bool(value) => Some((*value).into()),
            Node::Number(value) => Some(serde_json::Value::Number(value.clone())),
            Node::Text(value) => Some(value.clone().into()),
            other => {
                faults.push(self.wrong("a value", other));
                None
            }
        }
    }

    fn wrong(&self, wanted: &str, found: &Node) -> Fault {
        self.place
            .fault(codes::INVALID, format!("this is {}, and should be {wanted}", found.kind()))
    }
}

/// A field, item or word that there is not, with the one that was meant, perhaps.
pub(super) fn unknown(place: &Place, name: &str, known: &[&str]) -> Fault {
    let meant = sluice_policy::nearest(name, known.iter().copied());
    let detail = match meant {
        Some(meant) => format!("there is no field `{name}`; did you mean `{meant}`?"),
        None => format!("there is no field `{name}`; there are {}", known.join(", ")),
    };
    Fault { suggestion: meant.map(str::to_owned), ..place.fault(codes::UNKNOWN_FIELD, detail) }
}

/// The known fields of a group.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) place: Place,
    found: Vec<(&'a str, Here<'a>)>,
}

impl<'a> Fields<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Here<'a>> {
        self.found.iter().find(|(key, _)| *key == name).map(|(_, here)| here)
    }

    pub(super) fn text(&self, name: &str, faults: &mut Faults) -> Option<At<String>> {
        self.get(name)?.text(faults)
    }

    /// A text that must be there.
    pub(super) fn need(&self, name: &str, faults: &mut Faults) -> Option<At<String>> {
        let Some(here) = self.get(name) else {
            faults.push(self.place.fault(codes::MISSING_FIELD, format!("`{name}` is missing")));
            return None;
        };
        here.text(faults)
    }

    pub(super) fn list(&self, name: &str, faults: &mut Faults) -> Vec<Here<'a>> {
        self.get(name).map(|here| here.list(faults)).unwrap_or_default()
    }
}

/// A name as a part of a JSON Pointer (RFC 6901).
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
