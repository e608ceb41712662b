//! The short forms: `rate_limit`, `action`, `reason`.

use std::str::FromStr;

use sluice_domain::{Amount, OnUnavailable, Reset, Scope, Window};

use crate::document::{Limit, Rule, ToolEntry};
use crate::json::Node;
use crate::number::Decimal;

const SUFFIX: &str = "_rate";
const LONGEST: usize = 64;

/// Lower case, with `_` for every character that a counter's name cannot have.
pub(crate) fn counter_characters(text: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    text.to_lowercase().chars().map(|c| if plain(c) { c } else { '_' }).collect()
}

/// The counter of a tool's short form and of its recommended rule: the name in lower case and
/// `_rate`. A name too long for a counter is cut.
pub fn rate_counter(tool: &str) -> String {
    let mut name: String = counter_characters(tool);
    name.truncate(LONGEST - SUFFIX.len());
    name + SUFFIX
}

/// What the short forms of one entry stand for.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    /// The name goes into `hide`.
    pub(crate) hide: bool,
    pub(crate) entry: ToolEntry,
}

/// Expands the short forms of a tool's entry; what is malformed is left out, as the checker told it.
pub(crate) fn expand(tool: &str, node: &Node<'_>) -> Expanded {
    let mut out = Expanded::default();
    if let Some(limit) = node.get("rate_limit").and_then(|rate| rate_limit(tool, rate)) {
        out.entry.limits.push(limit);
    }
    match node.get("action").and_then(Node::text) {
        Some("deny") => {
            let on_deny = node.get("reason").and_then(Node::text).map(str::to_owned);
            out.entry.deny_if.push(Rule { on_deny, ..Rule::default() });
        }
        Some("require_approval") => out.entry.approve_if.push(Rule::default()),
        Some("hide") => out.hide = true,
        _ => {}
    }
    out
}

fn rate_limit(tool: &str, node: &Node<'_>) -> Option<Limit> {
    let (max, window) = if let Some(text) = node.text() {
        let (max, window) = text.split_once('/')?;
        (Amount::from_str(max).ok()?, Window::from_str(window).ok()?)
    } else {
        let seconds = Decimal::read(node.get("window")?.number()?).as_u64()?;
        let window = Window::from_seconds(u32::try_from(seconds).ok()?).ok()?;
        (Amount::from_str(node.get("max")?.number()?).ok()?, window)
    };
    Some(Limit {
        counter: rate_counter(tool),
        window,
        max,
        scope: Scope::Session,
        increment_from: None,
        reset: Reset::Sliding,
        on_unavailable: OnUnavailable::Deny,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_tools() {
        for (tool, counter) in [
            ("executePython", "executepython_rate"),
            ("execute_code", "execute_code_rate"),
            ("admin_*", "admin___rate"),
            ("a b?é", "a_b___rate"),
        ] {
            assert_eq!(rate_counter(tool), counter);
        }
        assert_eq!(rate_counter(&"x".repeat(200)).len(), 64);
    }
}
