//! The editor's page: the form, and beside it what the document says, changes and would have done.

use askama::Template;
use axum::response::Response;
use sluice_control::{ControlError, PolicyManager, ToolView, TrialsOf};
use sluice_domain::Scope;
use sluice_policy::{Checked, ProblemSeverity};

use super::build::KINDS;
use super::builder::Builder;
use super::input::Input;
use super::{Stale, Subject, Told};
use crate::desk::{Desk, WsFrame, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::ui::text::count;
use crate::ui::{Diff, Field, Flash, Select};
use crate::ws::policy::PolicyHead;
use crate::ws::policy::parts::{Numbered, Problems, Rules, SaidChange};
use crate::ws::policy::trials::OnLog;
use crate::ws::policy_try::{self, CallForm, LogForm, Tried, tests_field};
use crate::ws::server::ServerHead;

/// Calls of the log that a document is tried on.
const TRIED: u32 = 200;
/// Sentences of a change that are shown.
const SAID: usize = 60;
/// Bytes of a document that is sent along for one step back.
const MOST_UNDONE: usize = 64 * 1024;
/// Tools that the list beside the document shows.
const LISTED: usize = 100;

/// What looking at the document found.
#[derive(Debug)]
pub(super) struct Review {
    checked: Checked,
    headline: String,
    problems: Problems,
    lines: Numbered,
    rules: Rules,
    /// Compared with the version that is in force.
    change: Option<(SaidChange, Diff)>,
    trials: Option<OnLog>,
}

impl Review {
    fn class(&self) -> &'static str {
        match (self.checked.ok, self.problems.is_empty()) {
            (true, true) => "flash",
            (true, false) => "flash flash-warn",
            (false, _) => "flash flash-bad",
        }
    }
}

fn headline(checked: &Checked) -> String {
    let errors = checked.problems.iter().filter(|p| p.severity == ProblemSeverity::Error).count();
    let warnings = checked.problems.len() - errors;
    match (errors, warnings) {
        (0, 0) => "The document is valid.".to_owned(),
        (0, _) => format!(
            "The document is valid, with {}. It can be saved.",
            count(warnings, "warning", None)
        ),
        (_, 0) => format!("{} to mend before it can be saved.", count(errors, "error", None)),
        _ => format!(
            "{} to mend before it can be saved, and {}.",
            count(errors, "error", None),
            count(warnings, "warning", None)
        ),
    }
}

/// Checks the document, says it in words, compares it with what is saved, and tries it on recent calls.
pub(super) async fn review(
    desk: &Desk<PolicyManager>,
    subject: &Subject,
    document: &str,
    tried: bool,
) -> Result<Review, Response> {
    let (control, viewer) = (&desk.control, desk.viewer());
    let checked = control.check_document(viewer, subject.id, document).await.map_err(refuse)?;
    let trials = if tried && checked.ok {
        let of = TrialsOf::Log { filter: Box::new(subject.calls()), limit: TRIED };
        match control.simulate(viewer, subject.id, document, of).await {
            Ok(trials) => Some(OnLog::new(&trials, &desk.path("/logs"))),
            Err(ControlError::Invalid(_)) => None,
            Err(other) => return Err(refuse(other)),
        }
    } else {
        None
    };
    let change = subject.saved().filter(|saved| *saved != document).map(|saved| {
        let label = "Change to the saved version";
        (SaidChange::new(saved, document, SAID), Diff::new(label, saved, document))
    });
    Ok(Review {
        headline: headline(&checked),
        problems: Problems::new(&checked.problems),
        lines: Numbered::new("Your text, with line numbers", document, &checked.problems),
        rules: Rules::new(document, None),
        change,
        trials,
        checked,
    })
}

/// The fields for one rule in one go.
#[derive(Debug)]
struct Quick {
    tool: Field,
    kind: Select,
    max: Field,
    window: Select,
    scope: Select,
    replace: bool,
}

pub(super) const WINDOWS: [(&str, &str); 6] = [
    ("second", "a second"),
    ("minute", "a minute"),
    ("hour", "an hour"),
    ("day", "a day"),
    ("week", "a week"),
    ("month", "a month"),
];

pub(super) const SCOPES: [(Scope, &str); 4] = [
    (Scope::Grant, "per grant"),
    (Scope::Session, "per session"),
    (Scope::Server, "all grants of the server together"),
    (Scope::Workspace, "the whole workspace together"),
];

impl Quick {
    fn new(input: &Input, faults: &Faults) -> Self {
        let rule = &input.quick;
        let or = |text: &str, other: &str| {
            if text.is_empty() { other.to_owned() } else { text.to_owned() }
        };
        let scopes = SCOPES.map(|(scope, words)| (scope.as_str(), words));
        let mut window = Select::new("rule_window", "in", WINDOWS, &or(&rule.window, "minute"));
        window.error = faults.at("/rule_window");
        let mut scope = Select::new("rule_scope", "Counted", scopes, &or(&rule.scope, "grant"));
        scope.error = faults.at("/rule_scope");
        let mut kind =
            Select::new("rule_kind", "What becomes of its calls", KINDS, &or(&rule.kind, "limit"));
        kind.error = faults.at("/rule_kind");
        Self {
            tool: Field::text("rule_tool", "Tool or pattern")
                .value(rule.tool.clone())
                .placeholder("delete_*")
                .max(256)
                .code()
                .error(faults.at("/rule_tool")),
            kind,
            max: Field::new("number", "rule_max", "Calls at most")
                .value(or(&rule.max, "10"))
                .error(faults.at("/rule_max")),
            window,
            scope,
            replace: !rule.replace.is_empty(),
        }
    }
}

/// What the page tells besides the form.
pub(super) struct Seen {
    pub(super) told: Told,
    pub(super) stale: Option<Stale>,
    pub(super) review: Review,
}

#[derive(Debug, Template)]
#[template(path = "ws/policy_edit.html")]
pub(super) struct EditPage {
    frame: WsFrame,
    head: Option<PolicyHead>,
    server: Option<ServerHead>,
    /// The script of this page alone.
    script: String,
    problem: Option<String>,
    notice: Option<Flash>,
    undo: bool,
    stale: Option<Stale>,
    name: Field,
    document: Field,
    note: Field,
    version: i64,
    before: String,
    builder: Builder,
    quick: Quick,
    tools: Vec<ToolView>,
    more_tools: usize,
    review: Review,
    call: CallForm,
    log: LogForm,
    cases: Field,
    tried: Tried,
}

const FIELDS: [&str; 6] =
    ["/name", "/note", "/rule_tool", "/rule_max", "/rule_window", "/rule_scope"];

impl EditPage {
    pub(super) fn new(frame: WsFrame, subject: Subject, input: Input, seen: Seen) -> Self {
        let Seen { told, stale, review } = seen;
        let faults = &told.faults;
        let builder = Builder::new(&subject, &input, &told.wrong);
        let call = CallForm::new(&subject.tools, &input.tries, faults);
        let Subject { head, server, mut tools, .. } = subject;
        let more_tools = tools.len().saturating_sub(LISTED);
        tools.truncate(LISTED);
        // The document's own problems are told by the review, line by line.
        let problem = policy_try::untold(faults, &FIELDS).filter(|_| review.checked.ok);
        let wrong = (!review.checked.ok)
            .then(|| "What is wrong is listed above, with its lines.".to_owned());
        let mut document =
            Field::area("document", "Document", 26).value(input.document.clone()).code().required();
        document.error = wrong;
        let mut quick = Quick::new(&input, faults);
        // The example is a tool of the server.
        if let Some(first) = tools.first() {
            quick.tool.placeholder.clone_from(&first.name);
        }
        let path = head.as_ref().map(|head| head.path.clone()).unwrap_or_default();
        Self {
            frame,
            script: crate::assets::url("policy.js"),
            problem,
            notice: told.notice,
            undo: told.undo && input.before.len() <= MOST_UNDONE,
            stale,
            name: Field::text("name", "Name")
                .value(input.name)
                .required()
                .max(80)
                .error(faults.at("/name")),
            document,
            note: Field::text("note", "Why")
                .value(input.note)
                .hint("For the list of versions.")
                .max(sluice_control::MAX_NOTE_CHARS)
                .error(faults.at("/note")),
            version: head.as_ref().map_or(0, |head| head.policy.version),
            before: input.before,
            builder,
            quick,
            tools,
            more_tools,
            review,
            log: LogForm::new(&input.tries),
            cases: tests_field(&input.tries, faults),
            call,
            tried: Tried { path, shown: told.shown },
            head,
            server,
        }
    }
}
