//! The visual builder: what becomes of each tool, and the open entry's rules, limits and approvals
//! with the form that is being filled in. It shows what the document says, and writes nothing itself.

use askama::Template;
use sluice_domain::Severity;
use sluice_policy::{CompiledPolicy, compile};

use super::act::{Open, offered, parts};
use super::fate::{self, Fate};
use super::form::PartForm;
use super::input::Input;
use super::{Subject, rule::Wrong};
use crate::filters;
use crate::ui::text::ticks;
use crate::ui::{Field, Html};
use crate::ws::policy::parts::told;

/// Tools that the list shows.
const LISTED: usize = 60;

/// A tool, or a name or pattern of the document.
#[derive(Debug)]
struct Row {
    name: String,
    severity: Option<Severity>,
    fate: Fate,
    /// What decides it, where that is not an entry of its own.
    by: Option<String>,
    open: bool,
}

impl Row {
    fn new(
        policy: &CompiledPolicy,
        name: &str,
        severity: Option<Severity>,
        open: Option<&Open>,
    ) -> Self {
        let (fate, by) = fate::of(policy, name);
        let here = Open::Tool(name.to_owned());
        Self { name: name.to_owned(), severity, fate, by, open: open == Some(&here) }
    }

    const fn fates() -> [Fate; 5] {
        Fate::ALL
    }

    fn is(&self, fate: Fate) -> bool {
        self.fate == fate
    }
}

/// One rule, limit or approval block of the open entry.
#[derive(Debug)]
struct Part {
    pointer: String,
    html: Html,
    first: bool,
    last: bool,
}

/// The open entry.
#[derive(Debug)]
struct Panel {
    title: Html,
    /// A pattern, or a name that the server does not have.
    note: Option<&'static str>,
    parts: Vec<Part>,
    approval: Option<Part>,
    form: Option<PartForm>,
}

/// See the module's head.
#[derive(Debug, Template)]
#[template(path = "ws/policy_builder.html")]
pub(super) struct Builder {
    /// The document can be read.
    ok: bool,
    open: String,
    find: Field,
    rows: Vec<Row>,
    /// Tools that are not listed.
    more: usize,
    /// Names and patterns of the document that no tool has.
    others: Vec<Row>,
    all_open: bool,
    /// Rules that hold for every tool.
    all_rules: usize,
    panel: Option<Panel>,
}

impl askama::filters::HtmlSafe for Builder {}

impl Builder {
    pub(super) fn new(subject: &Subject, input: &Input, wrong: &[Wrong]) -> Self {
        let find = Field::new("search", "find", "Find a tool").value(&input.find).max(256);
        let Ok(policy) = compile(&input.document) else {
            return Self {
                ok: false,
                open: input.open.clone(),
                find,
                rows: Vec::new(),
                more: 0,
                others: Vec::new(),
                all_open: false,
                all_rules: 0,
                panel: None,
            };
        };
        let open = Open::read(&input.open);
        let wanted = input.find.trim().to_lowercase();
        let mut rows: Vec<Row> = subject
            .tools
            .iter()
            .filter(|tool| tool.name.to_lowercase().contains(&wanted))
            .map(|tool| Row::new(&policy, &tool.name, Some(tool.rating.severity), open.as_ref()))
            .collect();
        let more = rows.len().saturating_sub(LISTED);
        rows.truncate(LISTED);
        let all = &policy.document().all_tools;
        Self {
            ok: true,
            open: input.open.clone(),
            find,
            rows,
            more,
            others: others(subject, &policy, open.as_ref()),
            all_open: open == Some(Open::All),
            all_rules: all.rule_count() + all.limits.len(),
            panel: open.map(|open| panel(subject, input, &open, wrong)),
        }
    }
}

/// Entries and hidden names that are no tool's name.
fn others(subject: &Subject, policy: &CompiledPolicy, open: Option<&Open>) -> Vec<Row> {
    let document = policy.document();
    let names = document.tools.iter().map(|(name, _)| name).chain(&document.hide);
    let mut out: Vec<Row> = Vec::new();
    for name in names {
        let known = subject.tools.iter().any(|tool| tool.name == *name)
            || out.iter().any(|row| row.name == *name);
        if !known && out.len() < LISTED {
            out.push(Row::new(policy, name, None, open));
        }
    }
    out
}

fn panel(subject: &Subject, input: &Input, open: &Open, wrong: &[Wrong]) -> Panel {
    let base = open.pointer();
    let said = told(&input.document);
    // Pointers are those of the long form; the buttons write it out first where that differs.
    let pointers = match sluice_policy::check(&input.document, None).normalised {
        Some(long) => parts(&long.to_string(), open),
        None => Vec::new(),
    };
    let sentence = |pointer: &str| {
        let found = said.iter().find(|rule| rule.pointer == pointer);
        // What is hidden is not told rule by rule.
        ticks(&found.map_or_else(
            || format!("`{pointer}`, which `hide` overrules."),
            |rule| rule.text.clone(),
        ))
    };
    let sibling = |pointer: &str, step: i64| {
        let (list, position) = pointer.rsplit_once('/')?;
        let position = position.parse::<i64>().ok()? + step;
        Some(format!("{list}/{position}")).filter(|other| pointers.contains(other))
    };
    let rows = pointers
        .iter()
        .map(|pointer| Part {
            html: sentence(pointer),
            first: sibling(pointer, -1).is_none(),
            last: sibling(pointer, 1).is_none(),
            pointer: pointer.clone(),
        })
        .collect();
    let approval = format!("{base}/approval");
    let block = said.iter().find(|rule| rule.pointer == approval).map(|rule| Part {
        pointer: approval.clone(),
        html: ticks(&rule.text),
        first: true,
        last: true,
    });
    let known = |name: &String| subject.tools.iter().any(|tool| tool.name == *name);
    let (title, note) = match open {
        Open::All => (
            "Rules for every call".to_owned(),
            Some("They hold besides the tool’s own rules, and never widen access."),
        ),
        Open::Tool(name) if name.contains(['*', '?']) => (
            format!("Rules of tools named like `{name}`"),
            Some("An exact name beats a pattern; among patterns the one with more letters wins."),
        ),
        Open::Tool(name) if known(name) => (format!("Rules of `{name}`"), None),
        Open::Tool(name) => {
            (format!("Rules of `{name}`"), Some("The server does not list a tool of this name."))
        }
    };
    Panel {
        title: ticks(&title),
        note,
        parts: rows,
        approval: block,
        form: PartForm::new(input, &offered(subject, open), wrong),
    }
}
