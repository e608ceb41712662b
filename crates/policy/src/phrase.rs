//! Conditions in words, for agents and people.

use serde_json::Value;
use sluice_domain::{Amount, Charge, Reset, Window};

use crate::document::{Comparison, Condition};
use crate::op::Op;
use crate::path::{Context, Path};

/// Which sentence the words go into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// "`args.amount` must be at most 100", over every element.
    Must,
    /// "`args.amount` is more than 100", over any element.
    Is,
    /// "`args.amount` is at most 100", over every element.
    Holds,
}

/// Says which values may be shown to an agent.
pub(crate) type MayShow<'s> = &'s dyn Fn(&Comparison) -> bool;

/// Characters of a value that go into a sentence.
const SHOWN: usize = 120;

/// A condition as a clause.
pub(crate) fn clause(condition: &Condition, form: Form, may_show: MayShow<'_>) -> String {
    match condition {
        Condition::Compare(comparison) => {
            let every = match (comparison.path.has_each(), form) {
                (false, _) => "",
                (true, Form::Must | Form::Holds) => "every ",
                (true, Form::Is) => "any ",
            };
            let what = predicate(comparison, form, true, may_show(comparison));
            format!("{every}`{}` {what}", comparison.path)
        }
        Condition::Any(inner) => inner
            .iter()
            .map(|condition| clause(condition, form, may_show))
            .collect::<Vec<_>>()
            .join(" or "),
        Condition::Not(inner) => match &**inner {
            Condition::Compare(comparison) if comparison.path.has_each() => {
                let none = match form {
                    Form::Must => "it must hold that no",
                    Form::Holds => "no",
                    Form::Is => "not every",
                };
                let what = predicate(comparison, Form::Is, true, may_show(comparison));
                format!("{none} `{}` {what}", comparison.path)
            }
            Condition::Compare(comparison) => {
                let what = predicate(comparison, form, false, may_show(comparison));
                format!("`{}` {what}", comparison.path)
            }
            other => format!("it is not so that {}", clause(other, Form::Is, may_show)),
        },
    }
}

/// All of a rule's conditions in one clause; `None` where there are none.
pub(crate) fn clauses(
    conditions: &[Condition],
    form: Form,
    may_show: MayShow<'_>,
) -> Option<String> {
    let words: Vec<String> = conditions.iter().map(|c| clause(c, form, may_show)).collect();
    (!words.is_empty()).then(|| words.join(" and "))
}

/// `at most 100`: what a comparison asks for.
pub(crate) fn wanted(comparison: &Comparison) -> String {
    predicate(comparison, Form::Is, true, true)
}

fn predicate(comparison: &Comparison, form: Form, positive: bool, show: bool) -> String {
    if !show {
        let verb = if form == Form::Must { "must be" } else { "is" };
        let fits = (comparison.op != Op::Neq && comparison.op != Op::NotIn) == positive;
        let which = if fits { "one of the policy's values" } else { "none of the policy's values" };
        return format!("{verb} {which}");
    }
    let value = shown(&comparison.value);
    let (be, not) = match (form, positive) {
        (Form::Must, true) => ("must be", ""),
        (Form::Must, false) => ("must not be", "must not "),
        (Form::Is | Form::Holds, true) => ("is", ""),
        (Form::Is | Form::Holds, false) => ("is not", "does not "),
    };
    let verb = |must: &str, is: &str| match (form, positive) {
        (Form::Must, true) => format!("must {must}"),
        (Form::Is | Form::Holds, true) => is.to_owned(),
        _ => format!("{not}{must}"),
    };
    let flipped =
        |plain: &str, negated: &str| if positive { plain.to_owned() } else { negated.to_owned() };
    let be_plain = if form == Form::Must { "must be" } else { "is" };
    match comparison.op {
        Op::Eq => format!("{be} {value}"),
        Op::Neq => format!("{be_plain} {}", flipped(&format!("other than {value}"), &value)),
        Op::Lt => format!("{be} less than {value}"),
        Op::Lte => format!("{be} at most {value}"),
        Op::Gt => format!("{be} more than {value}"),
        Op::Gte => format!("{be} at least {value}"),
        Op::In => format!("{be} one of {value}"),
        Op::NotIn => format!("{be_plain} {} {value}", flipped("none of", "one of")),
        Op::Exists => {
            let present = (comparison.value != Value::Bool(false)) == positive;
            format!("{be_plain} {}", if present { "present" } else { "absent" })
        }
        Op::Regex => format!("{} `{}`", verb("match", "matches"), bare(&comparison.value)),
        Op::Contains => format!("{} {value}", verb("contain", "contains")),
        Op::StartsWith => format!("{} with {value}", verb("start", "starts")),
        Op::EndsWith => format!("{} with {value}", verb("end", "ends")),
        Op::LengthLte => {
            format!("{} at most {value} characters or elements", verb("have", "has"))
        }
    }
}

/// A value for a sentence: a list without its brackets, everything cut.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Array(items) => {
            items.iter().take(20).map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    cut(&text)
}

fn bare(value: &Value) -> String {
    cut(value.as_str().unwrap_or_default())
}

fn cut(text: &str) -> String {
    let mut out: String = text.chars().take(SHOWN).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

/// Facts whose values may name other tools, grants or clients are not repeated to an agent.
pub(crate) const fn is_private(path: &Path) -> bool {
    matches!(path, Path::Context(Context::ToolName | Context::GrantLabel | Context::ClientName))
}

/// `10 calls a minute`, `500 of args.amount a day (UTC)`.
pub(crate) fn quota(
    max: Amount,
    increment_from: Option<&str>,
    window: Window,
    reset: Reset,
) -> String {
    let what = match increment_from {
        Some(path) => format!("{max} of `{path}`"),
        None if max == Amount::ONE => "1 call".to_owned(),
        None => format!("{max} calls"),
    };
    format!("{what} {}", per(window, reset))
}

pub(crate) fn per(window: Window, reset: Reset) -> String {
    let span = match window {
        Window::Second => "a second".to_owned(),
        Window::Minute => "a minute".to_owned(),
        Window::Hour => "an hour".to_owned(),
        Window::Day => "a day".to_owned(),
        Window::Week => "a week".to_owned(),
        Window::Month => "a month".to_owned(),
        Window::Length { count, unit } => {
            let (one, many) = match unit {
                'm' => ("minute", "minutes"),
                'h' => ("hour", "hours"),
                'd' => ("day", "days"),
                _ => ("second", "seconds"),
            };
            format!("in {count} {}", if count == 1 { one } else { many })
        }
    };
    match reset {
        Reset::Sliding => span,
        Reset::Calendar => format!("{span} (UTC calendar)"),
    }
}

/// The sentence for an agent whose call a limit refused. `retry_after_s`: `None` where waiting cannot help.
pub fn limit_message(tool: &str, charge: &Charge, retry_after_s: Option<u64>) -> String {
    let quota = quota(charge.max, charge.increment_from.as_deref(), charge.window, charge.reset);
    let limited = if charge.max == Amount::ZERO {
        format!("{tool} may not be called: its limit is 0.")
    } else {
        format!("{tool} is limited to {quota}.")
    };
    match retry_after_s {
        Some(seconds) => format!("{limited} Retry after {} s.", seconds.max(1)),
        None if charge.max == Amount::ZERO => limited,
        None => format!("{limited} This call asks for {}, which can never fit.", charge.amount),
    }
}
