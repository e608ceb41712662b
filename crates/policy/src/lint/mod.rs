//! What a document says that was probably not meant: warnings, and the two
//! mistakes that only the whole document shows.

mod conditions;
mod counters;
mod input_schema;
mod rules;
mod tools;

use crate::check::KnownTool;
use crate::document::{Document, Rule, ToolEntry};
use crate::json::{Node, Place};
use crate::problem::Problems;

pub(crate) use counters::windows;

/// Adds the warnings.
pub(crate) fn warn(
    document: &Document,
    root: &Node<'_>,
    known: Option<&[KnownTool]>,
    problems: &mut Problems<'_>,
) {
    if !root.is_object() {
        return;
    }
    tools::nothing_restricted(document, root, problems);
    tools::hidden_entries(document, root, problems);
    counters::shared(root, problems);
    if let Some(known) = known {
        tools::unknown(root, known, problems);
        tools::shadowed(document, root, known, problems);
    }
    let tools_place = Place::ROOT.key("tools");
    let all_place = Place::ROOT.key("all_tools");
    if let Some(node) = root.get("all_tools") {
        let entry = Entry { name: None, node, rules: &document.all_tools };
        entry.warn(document, &all_place, known, problems);
    }
    for (member, (name, rules)) in members(root).zip(&document.tools) {
        let place = tools_place.key(name);
        let entry = Entry { name: Some(name), node: &member.value, rules };
        entry.warn(document, &place, known, problems);
    }
}

fn members<'n, 'a>(
    root: &'n Node<'a>,
) -> impl Iterator<Item = &'n crate::json::Member<'a>> + use<'n, 'a> {
    root.get("tools").map(Node::members).unwrap_or_default().iter()
}

/// An entry as written and as read.
pub(crate) struct Entry<'e, 'a> {
    /// `None`: `all_tools`.
    pub(crate) name: Option<&'e str>,
    pub(crate) node: &'e Node<'a>,
    pub(crate) rules: &'e ToolEntry,
}

impl Entry<'_, '_> {
    fn warn(
        &self,
        document: &Document,
        place: &Place<'_>,
        known: Option<&[KnownTool]>,
        problems: &mut Problems<'_>,
    ) {
        rules::warn(self, document, place, problems);
        if let (Some(known), Some(name)) = (known, self.name) {
            input_schema::warn(self, document, name, known, place, problems);
        }
    }

    /// Every rule of a kind that was read whole, with its node and index.
    fn rules_of(&self, kind: &str) -> impl Iterator<Item = (usize, &Node<'_>, &Rule)> {
        let rules = match kind {
            "require" => &self.rules.require,
            "deny_if" => &self.rules.deny_if,
            _ => &self.rules.approve_if,
        };
        let nodes = self.node.get(kind).map(Node::items).unwrap_or_default();
        let pairs = nodes.iter().zip(rules).enumerate();
        pairs
            .filter(|(_, (node, rule))| {
                let written = node.get("conditions").map(Node::items).unwrap_or_default();
                written.len() == rule.conditions.len()
            })
            .map(|(index, (node, rule))| (index, node, rule))
    }
}
