//! Conditions that nothing can meet, or everything.

use std::cmp::Ordering;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;
use sluice_domain::{Category, Severity};

use crate::document::{Comparison, Condition, Rule};
use crate::item::canonical;
use crate::json::{Node, Place};
use crate::number::Decimal;
use crate::op::Op;
use crate::path::{Context, Path};
use crate::pattern::is_pattern;
use crate::problem::Problems;
use crate::suggest::nearest;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Texts that only a regular expression without demands matches all of.
const PROBES: [&str; 7] = ["", "\u{0}", "\n", "a", "-", "Z9 é\r\n\t~", "\u{1f600}"];

pub(super) fn warn(
    kind: &str,
    tool: Option<&str>,
    node: &Node<'_>,
    rule: &Rule,
    place: &Place<'_>,
    problems: &mut Problems<'_>,
) {
    let list = place.key("conditions");
    let nodes = node.get("conditions").map(Node::items).unwrap_or_default();
    let never = match kind {
        "require" => "this `require` can never hold, so every call is denied",
        _ => "this rule can never fire",
    };
    for (index, (node, condition)) in nodes.iter().zip(&rule.conditions).enumerate() {
        let place = list.index(index);
        leaves(node, condition, &place, &mut |node, comparison, place| {
            everything(node, comparison, place, problems);
        });
        let Condition::Compare(comparison) = condition else { continue };
        if let Some((why, suggestion)) = impossible(comparison, tool) {
            let at = node.get("value").map_or(node.start, |value| value.start);
            problems.warn("never_fires", at, &place, format!("{never}: {why}"));
            problems.suggest(suggestion);
        }
    }
    let plain = |condition: &Condition| match condition {
        Condition::Compare(comparison) if !comparison.path.has_each() => Some(comparison.clone()),
        _ => None,
    };
    let comparisons: Vec<Arc<Comparison>> = rule.conditions.iter().filter_map(plain).collect();
    for (index, a) in comparisons.iter().enumerate() {
        let clash = comparisons[index + 1..].iter().find(|b| a.path == b.path && contradict(a, b));
        if clash.is_some() {
            let words = format!("{never}: no value of `{}` meets two of its conditions", a.path);
            problems.warn("never_fires", node.start, place, words);
            return;
        }
    }
}

/// Every comparison within a condition.
pub(super) fn leaves(
    node: &Node<'_>,
    condition: &Condition,
    place: &Place<'_>,
    visit: &mut dyn FnMut(&Node<'_>, &Comparison, &Place<'_>),
) {
    match condition {
        Condition::Compare(comparison) => visit(node, comparison, place),
        Condition::Not(inner) => {
            if let Some(node) = node.get("not") {
                leaves(node, inner, &place.key("not"), visit);
            }
        }
        Condition::Any(inner) => {
            let place = place.key("any");
            let nodes = node.get("any").map(Node::items).unwrap_or_default();
            if nodes.len() == inner.len() {
                for (index, (node, condition)) in nodes.iter().zip(inner).enumerate() {
                    leaves(node, condition, &place.index(index), visit);
                }
            }
        }
    }
}

fn everything(
    node: &Node<'_>,
    comparison: &Comparison,
    place: &Place<'_>,
    problems: &mut Problems<'_>,
) {
    let all = match comparison.op {
        Op::Regex => comparison
            .regex
            .as_ref()
            .is_some_and(|regex| PROBES.iter().all(|probe| regex.is_match(probe))),
        Op::StartsWith | Op::EndsWith | Op::Contains => comparison.value == "",
        _ => false,
    };
    if all {
        let at = node.get("value").map_or(node.start, |value| value.start);
        let words = format!("`{}` here matches every string", comparison.op);
        problems.warn("matches_everything", at, place, words);
    }
}

type Why = Option<(String, Option<String>)>;

/// Why no call can make a comparison true.
fn impossible(comparison: &Comparison, tool: Option<&str>) -> Why {
    let null = |value: &Value| value.is_null();
    match comparison.op {
        Op::Eq | Op::Neq if comparison.value.is_null() => {
            let words = "null counts as missing; ask with `exists`".to_owned();
            return Some((words, Some("exists".to_owned())));
        }
        Op::In if comparison.value.as_array().is_some_and(|list| list.iter().all(null)) => {
            return Some(("the list has nothing that a value could equal".to_owned(), None));
        }
        _ => {}
    }
    let Path::Context(context) = &comparison.path else { return None };
    let text_op = matches!(comparison.op, Op::Regex | Op::StartsWith | Op::EndsWith | Op::Contains);
    let number_op = matches!(comparison.op, Op::Lt | Op::Lte | Op::Gt | Op::Gte);
    let wrong = (context.is_number() && (text_op || comparison.op == Op::LengthLte))
        || (!context.is_number() && number_op);
    if wrong {
        let kind = if context.is_number() { "a number" } else { "a string" };
        return Some((
            format!("`{}` is {kind}, which `{}` cannot compare", context.as_str(), comparison.op),
            None,
        ));
    }
    if comparison.op == Op::Exists {
        let always =
            !matches!(context, Context::ClientName | Context::ToolCategory | Context::ToolSeverity);
        let absent = comparison.value == Value::Bool(false);
        return (always && absent)
            .then(|| (format!("`{}` is always present", context.as_str()), None));
    }
    words(*context, comparison, tool)
}

/// Values that a fact never has.
fn words(context: Context, comparison: &Comparison, tool: Option<&str>) -> Why {
    if context == Context::HourUtc {
        return hours(comparison);
    }
    let single = [comparison.value.clone()];
    let values: &[Value] = match comparison.op {
        Op::Eq => &single,
        Op::In => comparison.value.as_array()?,
        _ => return None,
    };
    let possible = |value: &Value| {
        let Some(text) = value.as_str() else { return false };
        match context {
            Context::WeekdayUtc => WEEKDAYS.contains(&text),
            Context::ToolCategory => Category::from_str(text).is_ok(),
            Context::ToolSeverity => Severity::from_str(text).is_ok(),
            Context::ToolName => tool.is_none_or(|tool| is_pattern(tool) || tool == text),
            _ => true,
        }
    };
    if values.iter().any(possible) {
        return None;
    }
    let typed = values.first().and_then(Value::as_str).unwrap_or_default();
    let list: Vec<&str> = match context {
        Context::WeekdayUtc => WEEKDAYS.to_vec(),
        Context::ToolCategory => Category::ALL.iter().map(|word| word.as_str()).collect(),
        Context::ToolSeverity => Severity::ALL.iter().map(|word| word.as_str()).collect(),
        _ => Vec::new(),
    };
    let short = typed.to_lowercase().chars().take(3).collect::<String>();
    let suggestion = nearest(typed, list.iter().copied())
        .or_else(|| list.iter().copied().find(|word| *word == short));
    let words = format!("`{}` is never that", context.as_str());
    Some((words, suggestion.map(str::to_owned)))
}

fn hours(comparison: &Comparison) -> Why {
    let text = comparison.value.as_number().map(ToString::to_string);
    let holds = |hour: u32| -> bool {
        let hour = hour.to_string();
        let order = |text: &str| Decimal::read(&hour).compare(&Decimal::read(text));
        match (comparison.op, &text) {
            (Op::Eq, Some(text)) => order(text).is_eq(),
            (Op::Eq, None) => false,
            (Op::Lt, Some(text)) => order(text).is_lt(),
            (Op::Lte, Some(text)) => order(text).is_le(),
            (Op::Gt, Some(text)) => order(text).is_gt(),
            (Op::Gte, Some(text)) => order(text).is_ge(),
            (Op::In, _) => comparison.value.as_array().into_iter().flatten().any(|value| {
                value.as_number().is_some_and(|number| order(&number.to_string()).is_eq())
            }),
            _ => true,
        }
    };
    let words = "`call.hour_utc` is a number from 0 to 23".to_owned();
    (!(0..24).any(holds)).then_some((words, None))
}

/// Whether no value makes both true.
fn contradict(a: &Comparison, b: &Comparison) -> bool {
    let absent = |c: &Comparison| c.op == Op::Exists && c.value == Value::Bool(false);
    if absent(a) || absent(b) {
        return absent(a) != absent(b);
    }
    if let (Some(x), Some(y)) = (accepted(a), accepted(b)) {
        return !x.iter().any(|value| y.contains(value));
    }
    let kinds = (kind(a.op), kind(b.op));
    if matches!(kinds, (Some(x), Some(y)) if x != y) {
        return true;
    }
    bounds(a, b) || bounds(b, a)
}

/// The values that `eq` and `in` accept, in one way of writing.
fn accepted(comparison: &Comparison) -> Option<Vec<String>> {
    match comparison.op {
        Op::Eq => Some(vec![canonical(&comparison.value.to_string())]),
        Op::In => {
            let list = comparison.value.as_array()?;
            Some(list.iter().map(|value| canonical(&value.to_string())).collect())
        }
        _ => None,
    }
}

/// What a value must be for an operator to hold at all.
const fn kind(op: Op) -> Option<&'static str> {
    match op {
        Op::Lt | Op::Lte | Op::Gt | Op::Gte => Some("number"),
        Op::Regex | Op::StartsWith | Op::EndsWith => Some("string"),
        _ => None,
    }
}

/// `low` is above `high`.
fn bounds(low: &Comparison, high: &Comparison) -> bool {
    let number = |c: &Comparison| c.value.as_number().map(ToString::to_string);
    let (Some(bottom), Some(top)) = (number(low), number(high)) else { return false };
    let order = Decimal::read(&bottom).compare(&Decimal::read(&top));
    match (low.op, high.op) {
        (Op::Gte | Op::Eq, Op::Lte) | (Op::Gte, Op::Eq) => order == Ordering::Greater,
        (Op::Gt, Op::Lt | Op::Lte | Op::Eq) | (Op::Gte | Op::Eq, Op::Lt) => order.is_ge(),
        _ => false,
    }
}
