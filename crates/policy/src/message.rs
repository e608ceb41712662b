//! Sentences for agents: what was wrong and what would be accepted, without
//! values of the call, other tools' names or other grants' data.

use std::str::FromStr;

use sluice_domain::{Amount, AmountError};

use crate::compile::CompiledRule;
use crate::decision::{ConditionTrace, Truth, ValueKind};
use crate::item::Item;

pub(crate) const NO_POLICY: &str =
    "This grant has no policy, so every call is refused. Attach a policy to the grant.";

/// Byte for byte the same for a hidden tool and for one that does not exist.
pub(crate) fn unknown_tool(tool: &str) -> String {
    let mut name: String = tool.chars().take(128).collect();
    if name.len() < tool.len() {
        name.push('…');
    }
    format!("There is no tool named {}.", crate::json::quote(&name))
}

pub(crate) fn changed(tool: &str) -> String {
    format!(
        "The definition of {tool} changed since it was reviewed. It can be called again once the change is accepted."
    )
}

pub(crate) fn held(tool: &str) -> String {
    format!("{tool} is held for review and cannot be called until it is released.")
}

pub(crate) fn default_deny(tool: &str) -> String {
    format!("The policy does not allow {tool}.")
}

pub(crate) fn schema(tool: &str, problem: &str) -> String {
    format!("The arguments do not fit the input schema of {tool}: {problem}.")
}

/// A `require` that failed: its first condition that is not true, and why.
pub(crate) fn require_failed(tool: &str, rule: &CompiledRule, trace: &[ConditionTrace]) -> String {
    if let Some(message) = &rule.on_deny {
        return message.clone();
    }
    let wrong = trace.iter().find(|condition| condition.result != Truth::True);
    // The trace is in the order of the conditions; nested ones share their condition's words.
    let index = wrong.and_then(|condition| top_index(rule, condition)).unwrap_or(0);
    let words = rule.words.get(index).map_or("", String::as_str);
    format!("{tool} is refused: {words}{}.", wrong.map_or_else(String::new, note))
}

fn top_index(rule: &CompiledRule, condition: &ConditionTrace) -> Option<usize> {
    let inside = condition.condition.pointer.strip_prefix(&*rule.pointer)?;
    inside.strip_prefix("/conditions/")?.split('/').next()?.parse().ok()
}

/// A `deny_if` that holds.
pub(crate) fn deny_if_matched(tool: &str, rule: &CompiledRule, trace: &[ConditionTrace]) -> String {
    if let Some(message) = &rule.on_deny {
        return message.clone();
    }
    let Some(words) = rule.words.first() else {
        return format!("The policy refuses every call of {tool}.");
    };
    let odd = trace.iter().find(|condition| condition.result == Truth::WrongType);
    format!("{tool} is refused when {words}{}.", odd.map_or_else(String::new, note))
}

fn note(condition: &ConditionTrace) -> String {
    let path = &condition.condition.path;
    match (condition.result, condition.found) {
        (Truth::Missing, _) => format!(" (`{path}` is missing)"),
        (Truth::WrongType, Some(found)) => {
            format!(" (`{path}` is {}, which cannot be compared so)", found.kind.words())
        }
        _ => String::new(),
    }
}

pub(crate) fn needs_approval(tool: &str, rule: &CompiledRule) -> String {
    match (&rule.on_deny, rule.words.first()) {
        (Some(message), _) => message.clone(),
        (None, Some(words)) => format!("{tool} waits for a person's decision when {words}."),
        (None, None) => format!("{tool} waits for a person's decision."),
    }
}

/// The amount that a limit counts; `Ok(None)` where the log does not keep it.
pub(crate) fn read_amount(
    tool: &str,
    path: &str,
    item: &Item<'_>,
) -> Result<Option<Amount>, String> {
    let refuse = |why: &str| Err(format!("{tool} is refused: `{path}` {why}."));
    match item {
        Item::Untold(None | Some(ValueKind::Number)) => Ok(None),
        Item::Missing | Item::Empty | Item::Raw(ValueKind::Null, _) => {
            refuse("is needed, as its amount is limited")
        }
        Item::Raw(ValueKind::Number, text) => match Amount::from_str(text) {
            Ok(amount) if amount.is_negative() => refuse("must not be negative"),
            Ok(amount) => Ok(Some(amount)),
            Err(AmountError::TooLong | AmountError::NotANumber) => {
                refuse("must have at most 15 digits before and 9 after the point")
            }
        },
        Item::Raw(kind, _) | Item::Blocked(kind) | Item::Untold(Some(kind)) => {
            refuse(&format!("must be a number, and is {}", kind.words()))
        }
        Item::Plain(_) | Item::Number(_) => refuse("must be an argument"),
    }
}
