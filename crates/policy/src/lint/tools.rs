//! Names: tools that the server lacks, entries that are never reached, nothing restricted.

use crate::check::KnownTool;
use crate::document::{DefaultAction, Document};
use crate::json::{Node, Place};
use crate::pattern::{Pattern, is_pattern};
use crate::problem::Problems;
use crate::suggest::nearest;

/// `default: allow` and not one rule.
pub(crate) fn nothing_restricted(
    document: &Document,
    root: &Node<'_>,
    problems: &mut Problems<'_>,
) {
    let open = document.default == DefaultAction::Allow
        && document.hide.is_empty()
        && document.all_tools.is_empty()
        && document.tools.iter().all(|(_, entry)| entry.is_empty());
    if let Some(node) = root.get("default").filter(|_| open) {
        let words = "every tool may be called without any rule: nothing is restricted".to_owned();
        problems.warn("nothing_restricted", node.start, &Place::ROOT.key("default"), words);
    }
}

fn covers(name: &str, tool: &str) -> bool {
    if is_pattern(name) { Pattern::new(name).matches(tool) } else { name == tool }
}

/// Rules of a tool that is hidden.
pub(crate) fn hidden_entries(document: &Document, root: &Node<'_>, problems: &mut Problems<'_>) {
    let place = Place::ROOT.key("tools");
    let hidden: Vec<(&str, Pattern)> =
        document.hide.iter().map(|name| (name.as_str(), Pattern::new(name))).collect();
    for (member, (name, entry)) in super::members(root).zip(&document.tools) {
        if entry.is_empty() {
            continue;
        }
        // A pattern is surely hidden by the same pattern, a name by all that match it.
        let by = hidden
            .iter()
            .find(|(hide, pattern)| hide == name || (!is_pattern(name) && pattern.matches(name)));
        if let Some((hide, _)) = by {
            let words = format!("the rules of `{name}` can never fire: `hide` has `{hide}`");
            problems.warn("never_fires", member.key_at, &place.key(name), words);
        }
    }
}

/// Names that no tool of the server has.
pub(crate) fn unknown(root: &Node<'_>, known: &[KnownTool], problems: &mut Problems<'_>) {
    let hide_place = Place::ROOT.key("hide");
    let hidden = root.get("hide").map(Node::items).unwrap_or_default();
    for (index, node) in hidden.iter().enumerate() {
        if let Some(name) = node.text() {
            one_unknown(name, node.start, &hide_place.index(index), known, problems);
        }
    }
    let tools_place = Place::ROOT.key("tools");
    for member in super::members(root) {
        let place = tools_place.key(&member.key);
        one_unknown(&member.key, member.key_at, &place, known, problems);
    }
}

fn one_unknown(
    name: &str,
    at: usize,
    place: &Place<'_>,
    known: &[KnownTool],
    problems: &mut Problems<'_>,
) {
    if name.is_empty() || known.iter().any(|tool| covers(name, &tool.name)) {
        return;
    }
    let words = if is_pattern(name) {
        format!("no tool of the server matches `{name}`")
    } else {
        format!("the server has no tool `{name}`")
    };
    problems.warn("unknown_tool", at, place, words);
    let suggestion = nearest(name, known.iter().map(|tool| tool.name.as_str()));
    problems.suggest(suggestion.map(str::to_owned));
}

/// Patterns whose every tool has a more specific entry.
pub(crate) fn shadowed(
    document: &Document,
    root: &Node<'_>,
    known: &[KnownTool],
    problems: &mut Problems<'_>,
) {
    let place = Place::ROOT.key("tools");
    for (member, (name, entry)) in super::members(root).zip(&document.tools) {
        if !is_pattern(name) || entry.is_empty() {
            continue;
        }
        let pattern = Pattern::new(name);
        let mut matched = known.iter().filter(|tool| pattern.matches(&tool.name)).peekable();
        if matched.peek().is_some()
            && matched.all(|tool| effective(document, &tool.name) != Some(name))
        {
            let words = format!(
                "the rules of `{name}` can never fire: every tool that it matches has a more specific entry"
            );
            problems.warn("never_fires", member.key_at, &place.key(name), words);
        }
    }
}

/// The name or pattern whose entry holds for a tool.
pub(crate) fn effective<'d>(document: &'d Document, tool: &str) -> Option<&'d str> {
    let names = || document.tools.iter().map(|(name, _)| name.as_str());
    names().find(|name| *name == tool).or_else(|| {
        names()
            .filter(|name| is_pattern(name))
            .map(|name| (Pattern::new(name), name))
            .filter(|(pattern, _)| pattern.matches(tool))
            .max_by_key(|(pattern, _)| pattern.literals())
            .map(|(_, name)| name)
    })
}
