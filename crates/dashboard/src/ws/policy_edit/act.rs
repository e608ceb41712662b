//! What the builder's buttons do to the document that is being written. Everything that they do not
//! name stays as it was typed.

use serde_json::Value;
use sluice_policy::edit::{get, put, remove, shift, write_out};
use sluice_policy::{Problem, ProblemSeverity, check, compile, rate_counter};

use super::fate::{self, Fate};
use super::input::Input;
use super::limit::{ApprovalForm, LimitForm};
use super::offer::{Offer, offers};
use super::rule::{RuleForm, Wrong};
use super::{Subject, build, conflict};
use crate::ws::policy::places::segment;

/// Lists that rules and limits stand in.
pub(super) const LISTS: [&str; 4] = ["require", "deny_if", "approve_if", "limits"];

/// What came of a press.
#[derive(Debug, PartialEq)]
pub(super) enum Done {
    /// Nothing was to be done but look.
    Looked,
    /// The document may have changed.
    Changed,
    /// Why not, for the head of the page.
    Refused(String),
    /// What is wrong in the open form.
    Wrong(Vec<Wrong>),
}

/// Whose rules are open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Open {
    All,
    Tool(String),
}

impl Open {
    pub(super) fn read(text: &str) -> Option<Self> {
        let tool = text.strip_prefix("tool:").filter(|name| !name.trim().is_empty());
        match tool {
            Some(name) => Some(Self::Tool(name.trim().to_owned())),
            None => (text == "all").then_some(Self::All),
        }
    }

    /// The entry's pointer.
    pub(super) fn pointer(&self) -> String {
        match self {
            Self::All => "/all_tools".to_owned(),
            Self::Tool(name) => format!("/tools/{}", segment(name)),
        }
    }
}

/// What rules of the open entry can look at: the arguments of the tool, or of the tools that a pattern means.
pub(super) fn offered(subject: &Subject, open: &Open) -> Vec<Offer> {
    let matching = |name: &str| {
        let document = serde_json::json!({"version": "1", "default": "deny", "hide": [name]});
        compile(&document.to_string()).ok()
    };
    let schema = |name: &str| {
        let pattern = matching(name);
        let mut tools = subject.tools.iter();
        let tool = tools.find(|tool| pattern.as_ref().is_some_and(|p| p.hides(&tool.name)));
        tool.and_then(|tool| tool.definition.input_schema.as_ref())
    };
    match open {
        Open::All => offers(None),
        Open::Tool(name) => offers(schema(name)),
    }
}

/// Does what was pressed.
pub(super) fn act(subject: &Subject, input: &mut Input) -> Done {
    let press = std::mem::take(&mut input.press);
    let (verb, rest) = press.split_once(':').unwrap_or((&press, ""));
    match verb {
        "open" | "close" => {
            input.close_forms();
            rest.clone_into(&mut input.open);
            return Done::Looked;
        }
        "name" => {
            input.close_forms();
            input.open = format!("tool:{}", input.quick.tool.trim());
            return Done::Looked;
        }
        "cancel" => {
            input.close_forms();
            return Done::Looked;
        }
        "undo" => {
            input.document = std::mem::take(&mut input.before);
            input.close_forms();
            return Done::Looked;
        }
        "row" => return row(subject, input, rest),
        "fate" | "edit" | "new" | "approval" | "remove" | "up" | "down" | "put" => {}
        _ => return Done::Looked,
    }
    let Ok(policy) = compile(&input.document) else {
        return Done::Refused("Mend the document's errors first.".to_owned());
    };
    if verb == "fate" {
        let Some((word, name)) = rest.split_once(':') else { return Done::Looked };
        let Some(fate) = Fate::read(word).filter(|_| !name.is_empty()) else { return Done::Looked };
        input.close_forms();
        if fate == Fate::Custom {
            input.open = format!("tool:{name}");
            return Done::Looked;
        }
        return match fate::set(&input.document, &policy, name, fate) {
            Ok(text) => changed(input, text),
            Err(words) => Done::Refused(words),
        };
    }
    let Some(open) = Open::read(&input.open) else { return Done::Looked };
    match verb {
        "edit" => edit(subject, input, &open, rest),
        "new" => fresh(subject, input, &open, rest),
        "approval" => {
            input.close_forms();
            let block = get(&input.document, &format!("{}/approval", open.pointer()));
            input.approval = Some(ApprovalForm::of(block.as_ref()));
            Done::Looked
        }
        "put" => put_form(subject, input, &open),
        _ => part(input, &open, verb, rest),
    }
}

fn changed(input: &mut Input, text: String) -> Done {
    if text != input.document {
        let checked = check(&text, None);
        if !checked.ok {
            return Done::Refused(crate::faults::sentence(&conflict(&checked.problems)));
        }
        input.before = std::mem::replace(&mut input.document, text);
    }
    Done::Changed
}

/// The document with the open entry in its long form, so that each part has a place.
fn long(input: &Input, open: &Open) -> String {
    let Open::Tool(name) = open else { return input.document.clone() };
    write_out(&input.document, name).unwrap_or_else(|| input.document.clone())
}

/// List and place of a part of the open entry; none for anything else.
fn place<'p>(open: &Open, pointer: &'p str) -> Option<(&'p str, &'p str)> {
    let base = open.pointer();
    let inside = pointer.strip_prefix(base.as_str())?.strip_prefix('/')?;
    let (list, position) = inside.split_once('/')?;
    let known = LISTS.contains(&list) && position.bytes().all(|byte| byte.is_ascii_digit());
    known.then_some((list, pointer))
}

fn edit(subject: &Subject, input: &mut Input, open: &Open, pointer: &str) -> Done {
    let text = long(input, open);
    let Some((list, pointer)) = place(open, pointer) else { return Done::Looked };
    let Some(value) = get(&text, pointer) else { return Done::Looked };
    input.close_forms();
    if list == "limits" {
        input.limit = Some(LimitForm::of(pointer, &value));
    } else {
        input.rule = Some(RuleForm::of(list, pointer, &value, &offered(subject, open)));
    }
    // The part's place is one of the long form.
    changed(input, text)
}

fn fresh(subject: &Subject, input: &mut Input, open: &Open, list: &str) -> Done {
    input.close_forms();
    if list == "limits" {
        let name = match open {
            Open::All => "all_tools",
            Open::Tool(name) => name,
        };
        input.limit =
            Some(LimitForm::fresh(build::free_counter(&input.document, &rate_counter(name))));
    } else if LISTS.contains(&list) {
        input.rule = Some(RuleForm::fresh(list, &offered(subject, open)));
    }
    Done::Looked
}

fn row(subject: &Subject, input: &mut Input, what: &str) -> Done {
    let offers = Open::read(&input.open).map(|open| offered(subject, &open)).unwrap_or_default();
    if let Some(form) = &mut input.rule {
        match what {
            "and" => form.grow(false, &offers),
            "or" => form.grow(true, &offers),
            index => form.drop_row(index.parse().unwrap_or(usize::MAX)),
        }
    }
    Done::Looked
}

fn part(input: &mut Input, open: &Open, verb: &str, pointer: &str) -> Done {
    let text = long(input, open);
    let approval = format!("{}/approval", open.pointer());
    let inside = place(open, pointer).map(|(_, pointer)| pointer);
    let Some(pointer) = inside.or((pointer == approval).then_some(pointer)) else {
        return Done::Looked;
    };
    let after = match verb {
        "remove" => remove(&text, pointer),
        "up" => shift(&text, pointer, true),
        _ => shift(&text, pointer, false),
    };
    input.close_forms();
    changed(input, after.unwrap_or(text))
}

/// Puts what the open form says into the document.
fn put_form(subject: &Subject, input: &mut Input, open: &Open) -> Done {
    let text = long(input, open);
    let base = open.pointer();
    let written = if let Some(form) = &input.rule {
        let target = target(&text, open, &form.place, &form.list);
        form.rule(&offered(subject, open)).map(|rule| (target, Some(rule)))
    } else if let Some(form) = &input.limit {
        let target = target(&text, open, &form.place, "limits");
        form.limit(get(&text, &target).as_ref()).map(|limit| (target, Some(limit)))
    } else if let Some(form) = &input.approval {
        form.block().map(|block| (format!("{base}/approval"), block))
    } else {
        return Done::Looked;
    };
    let (target, value) = match written {
        Ok(written) => written,
        Err(wrong) => return Done::Wrong(wrong),
    };
    let text = if get(&text, &target).is_some() { text } else { shown_again(text, open) };
    let after = match &value {
        Some(value) => put(&text, &target, value),
        None => remove(&text, &target).or(Some(text)),
    };
    let Some(after) = after else {
        return Done::Refused("The document cannot be read.".to_owned());
    };
    let checked = check(&after, None);
    if !checked.ok {
        return Done::Wrong(fields_of(&checked.problems, &target, input));
    }
    input.close_forms();
    changed(input, after)
}

/// A new rule for a tool that `hide` names by itself takes the name out of there; one that only changes does
/// not, since it says nothing of the tool being hidden.
fn shown_again(text: String, open: &Open) -> String {
    match open {
        Open::All => text,
        Open::Tool(name) => fate::unhide(&text, name),
    }
}

/// Where a form's part goes: its own place if that is still there, else the end of its list.
fn target(text: &str, open: &Open, own: &str, list: &str) -> String {
    let there = place(open, own).is_some_and(|(of, _)| of == list) && get(text, own).is_some();
    if there {
        return own.to_owned();
    }
    let list = format!("{}/{list}", open.pointer());
    let end = get(text, &list).and_then(|items| items.as_array().map(Vec::len)).unwrap_or(0);
    format!("{list}/{end}")
}

/// The checker's errors beside the fields that they are about.
fn fields_of(problems: &[Problem], target: &str, input: &Input) -> Vec<Wrong> {
    let errors = problems.iter().filter(|problem| problem.severity == ProblemSeverity::Error);
    let field = |problem: &Problem| -> String {
        let inside = problem.pointer.strip_prefix(target).unwrap_or_default();
        let last = inside.trim_start_matches('/').split('/').next().unwrap_or_default();
        let prefix = match (&input.rule, &input.limit) {
            (Some(_), _) => "r_",
            (_, Some(_)) => "l_",
            _ => "p_",
        };
        format!("{prefix}{last}")
    };
    errors.map(|problem| (field(problem), crate::faults::sentence(&problem.message))).collect()
}

/// The rules of the open entry, list by list, with their pointers.
pub(super) fn parts(text: &str, open: &Open) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let base = open.pointer();
    let mut out = Vec::new();
    for list in LISTS {
        let pointer = format!("{base}/{list}");
        let many = value.pointer(&pointer).and_then(Value::as_array).map_or(0, Vec::len);
        out.extend((0..many).map(|index| format!("{pointer}/{index}")));
    }
    out
}
