//! Counters that do not go together.

use std::collections::HashMap;

use sluice_domain::Scope;

use crate::document::Limit;
use crate::json::{Node, Place};
use crate::problem::Problems;
use crate::read;
use crate::short_forms::expand;

/// A limit, with where it stands.
struct Placed<'n> {
    limit: Limit,
    /// The entry's name; `None`: `all_tools`.
    entry: Option<&'n str>,
    at: usize,
    /// The place within the entry: an index of `limits`, or the short form.
    index: Option<usize>,
}

impl Placed<'_> {
    /// Calls `tell` with the place of the limit's `key`.
    fn place(&self, key: &str, tell: impl FnOnce(&Place<'_>)) {
        let root = Place::ROOT;
        let tools = root.key("tools");
        let entry = self.entry.map_or_else(|| root.key("all_tools"), |name| tools.key(name));
        match self.index {
            None => tell(&entry.key("rate_limit")),
            Some(index) => tell(&entry.key("limits").index(index).key(key)),
        }
    }
}

fn limits<'n>(root: &'n Node<'_>) -> Vec<Placed<'n>> {
    let mut out = Vec::new();
    if let Some(node) = root.get("all_tools") {
        of_entry(None, node, &mut out);
    }
    for member in super::members(root) {
        of_entry(Some(&member.key), &member.value, &mut out);
    }
    out
}

fn of_entry<'n>(entry: Option<&'n str>, node: &'n Node<'_>, out: &mut Vec<Placed<'n>>) {
    let written = node.get("limits").map(Node::items).unwrap_or_default();
    for (index, node) in written.iter().enumerate() {
        if let Some(limit) = read::limit(node) {
            let at = node.get("window").map_or(node.start, |window| window.start);
            out.push(Placed { limit, entry, at, index: Some(index) });
        }
    }
    let short = entry.and_then(|name| expand(name, node).entry.limits.into_iter().next());
    if let (Some(limit), Some(rate)) = (short, node.get("rate_limit")) {
        out.push(Placed { limit, entry, at: rate.start, index: None });
    }
}

/// One counter cannot have two windows: which one would its count be of? An error within a scope,
/// a warning between scopes, whose counts are apart.
pub(crate) fn windows(root: &Node<'_>, problems: &mut Problems<'_>) {
    let limits = limits(root);
    let mut first: HashMap<(&str, Scope), &Placed<'_>> = HashMap::new();
    let mut by_name: HashMap<&str, &Placed<'_>> = HashMap::new();
    for placed in &limits {
        let limit = &placed.limit;
        let named = by_name.entry(&limit.counter).or_insert(placed);
        let old = first.entry((&limit.counter, limit.scope)).or_insert(placed);
        if old.limit.window != limit.window {
            let words = format!(
                "the counter `{}` has the window {} here and {} elsewhere; give each window a counter of its own",
                limit.counter, limit.window, old.limit.window
            );
            placed.place("window", |place| {
                problems.error("counter_windows", placed.at, place, words);
            });
        } else if named.limit.window != limit.window {
            let words = format!(
                "the counter `{}` has the window {} in one scope and {} in another; they are counted apart",
                limit.counter, named.limit.window, limit.window
            );
            placed.place("window", |place| {
                problems.warn("counter_windows", placed.at, place, words);
            });
        }
    }
}

/// A counter in two entries counts both together.
pub(crate) fn shared(root: &Node<'_>, problems: &mut Problems<'_>) {
    let limits = limits(root);
    let mut first: HashMap<(&str, Scope), &Placed<'_>> = HashMap::new();
    for placed in &limits {
        let limit = &placed.limit;
        let old = *first.entry((&limit.counter, limit.scope)).or_insert(placed);
        if old.entry == placed.entry {
            continue;
        }
        let name = |entry: Option<&str>| {
            entry.map_or_else(|| "`all_tools`".to_owned(), |name| format!("`{name}`"))
        };
        let words = format!(
            "the counter `{}` is shared by {} and {}: their calls count together; if that is not meant, give each its own",
            limit.counter,
            name(old.entry),
            name(placed.entry)
        );
        placed.place("counter", |place| {
            problems.warn("shared_counter", placed.at, place, words);
        });
    }
}
