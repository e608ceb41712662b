//! Sentences for agents: what was wrong and what would be accepted, without
//! values of the call, other tools' names or other grants' data.

use std::str::FromStr;

use sluice_domain::{Amount, AmountError};

use crate::decision::{Truth, ValueKind};
use crate::document::Rule;
use crate::item::Item;
use crate::phrase::{Form, MayShow, clause, clauses};
use crate::trace::{ConditionTrace, Trace};

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
pub(crate) fn require_failed(
    tool: &str,
    rule: &Rule,
    tested: &Trace,
    may_show: MayShow<'_>,
) -> String {
    if let Some(message) = &rule.on_deny {
        return message.clone();
    }
    let wrong = tested.pending().find(|condition| condition.result() != Truth::True);
    // Nested ones share the words of the condition that they stand in.
    let condition = rule.conditions.get(wrong.and_then(ConditionTrace::top).unwrap_or(0));
    let words = condition.map(|condition| clause(condition, Form::Must, may_show));
    let note = wrong.map_or_else(String::new, note);
    format!("{tool} is refused: {}{note}.", words.unwrap_or_default())
}

/// A `deny_if` that holds.
pub(crate) fn deny_if_matched(
    tool: &str,
    rule: &Rule,
    tested: &Trace,
    may_show: MayShow<'_>,
) -> String {
    if let Some(message) = &rule.on_deny {
        return message.clone();
    }
    let Some(words) = clauses(&rule.conditions, Form::Is, may_show) else {
        return format!("The policy refuses every call of {tool}.");
    };
    let odd = tested.pending().find(|condition| condition.result() == Truth::WrongType);
    format!("{tool} is refused when {words}{}.", odd.map_or_else(String::new, note))
}

fn note(condition: ConditionTrace<'_>) -> String {
    let path = condition.path();
    match (condition.result(), condition.found()) {
        (Truth::Missing, _) => format!(" (`{path}` is missing)"),
        (Truth::WrongType, Some(found)) => {
            format!(" (`{path}` is {}, which cannot be compared so)", found.kind.words())
        }
        _ => String::new(),
    }
}

pub(crate) fn needs_approval(tool: &str, rule: &Rule, may_show: MayShow<'_>) -> String {
    if let Some(message) = &rule.on_deny {
        return message.clone();
    }
    match clauses(&rule.conditions, Form::Is, may_show) {
        Some(words) => format!("{tool} waits for a person's decision when {words}."),
        None => format!("{tool} waits for a person's decision."),
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
