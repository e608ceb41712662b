//! One parked call, with all that a person needs to decide it: the arguments, why the tool is risky,
//! and what this agent did before.

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde_json::Value;
use sluice_control::{
    ApprovalView, CallsOf, ControlError, DecisionView, Page, PastDecisions, Viewer,
};
use sluice_domain::{ApprovalId, ApprovalStatus, CallRecord, REDACTED, Role};

use super::words::{sentence, status_word};
use crate::desk::{AsViewer, Desk, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::ui::Field;
use crate::ui::code::pretty;
use crate::ui::text::count;

/// Calls of the same agent that are shown.
const CALLS_BEFORE: u32 = 5;
/// Longer values are folded.
const LONG_CHARS: usize = 240;
const LONG_LINES: usize = 8;

/// One member of the arguments.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) text: String,
    /// What a folded value shows before it is opened.
    pub(crate) start: Option<String>,
}

/// Why the tool is rated as it is.
#[derive(Debug)]
pub(super) struct Reason {
    pub(super) cue: String,
    pub(super) place: String,
    pub(super) quote: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/approval_item.html")]
pub(super) struct Item {
    pub(super) approval: ApprovalView,
    pub(super) word: &'static str,
    now: DateTime<Utc>,
    /// `/w/{slug}`
    base: String,
    csrf: String,
    server: String,
    arguments: Option<Vec<Argument>>,
    /// Some of the arguments are masked, and this person may see them.
    can_reveal: bool,
    revealed: bool,
    reasons: Vec<Reason>,
    past: String,
    before: Vec<CallRecord>,
    history: Vec<(DateTime<Utc>, String)>,
    decisions: Vec<DecisionView>,
    /// The caller may decide it now.
    open: bool,
    note: Field,
    problem: Option<String>,
}

impl askama::filters::HtmlSafe for Item {}

/// What a form brought back.
#[derive(Debug, Default)]
pub(super) struct Typed<'a> {
    pub(super) note: &'a str,
    /// The arguments with their secrets, once they are asked for.
    pub(super) revealed: Option<Value>,
}

impl Item {
    /// The parked call, or none if there is no such one.
    pub(super) async fn find(
        desk: &Desk<Viewer>,
        id: ApprovalId,
    ) -> Result<Option<Self>, Response> {
        match desk.control.approval(&desk.who, id).await {
            Ok(approval) => {
                Self::new(desk, approval, Typed::default(), &Faults::none()).await.map(Some)
            }
            Err(ControlError::NotFound(_)) => Ok(None),
            Err(error) => Err(refuse(error)),
        }
    }

    /// Notes that the caller has seen it.
    pub(super) async fn new<P: AsViewer>(
        desk: &Desk<P>,
        approval: ApprovalView,
        typed: Typed<'_>,
        faults: &Faults,
    ) -> Result<Self, Response> {
        let (control, viewer, id) = (&desk.control, desk.viewer(), approval.id);
        control.approval_shown(viewer, id).await.map_err(refuse)?;
        let past = control.approval_past(viewer, approval.grant, &approval.tool, id).await;
        let history = control.approval_history(viewer, id).await.map_err(refuse)?;
        let of = CallsOf { grant: Some(approval.grant), ..CallsOf::default() };
        let page = Page { after: Some(approval.call), limit: CALLS_BEFORE };
        let before = control.calls(viewer, &of, page).await.map_err(refuse)?.items;
        let names = control.server_names(viewer).await.map_err(refuse)?;
        let server = names.into_iter().find(|one| one.id == approval.server);
        let decides = approval.may_decide && desk.may(Role::PolicyManager);
        let shown = typed.revealed.as_ref().or(approval.arguments.as_ref());
        Ok(Self {
            word: status_word(approval.status),
            now: desk.now,
            base: desk.path(""),
            csrf: desk.csrf.clone(),
            server: server.map(|one| one.name).unwrap_or_default(),
            arguments: shown.map(arguments),
            can_reveal: decides
                && typed.revealed.is_none()
                && approval.arguments.as_ref().is_some_and(is_masked),
            revealed: typed.revealed.is_some(),
            reasons: reasons(desk, &approval).await?,
            past: before_words(&past.map_err(refuse)?),
            before,
            history: history.iter().map(|event| (event.at, sentence(event))).collect(),
            decisions: control.decisions(viewer, id).await.map_err(refuse)?,
            open: approval.status == ApprovalStatus::Pending && decides,
            note: Field::area("note", "Note", 2)
                .value(typed.note)
                .hint("The agent is told it when you deny. It stands in the log.")
                .max(500)
                .error(faults.at("/note")),
            problem: faults.rest(&["/note"]),
            approval,
        })
    }
}

async fn reasons<P: AsViewer>(
    desk: &Desk<P>,
    approval: &ApprovalView,
) -> Result<Vec<Reason>, Response> {
    let found = desk.control.tool(desk.viewer(), approval.server, &approval.tool).await;
    let tool = match found {
        Ok(tool) => tool,
        Err(ControlError::NotFound(_)) => return Ok(Vec::new()),
        Err(error) => return Err(refuse(error)),
    };
    let reason = |reason: &sluice_risk::Reason| Reason {
        cue: reason.cue.to_string(),
        place: reason.place.clone(),
        quote: reason.quote.clone(),
    };
    Ok(tool.rating.reasons.iter().map(reason).collect())
}

fn before_words(past: &PastDecisions) -> String {
    let some = |n: i64, word: &str| {
        let n = usize::try_from(n).unwrap_or(0);
        (n > 0).then(|| count(n, word, Some(word)))
    };
    let parts: Vec<String> = [
        some(past.approved, "approved"),
        some(past.denied, "denied"),
        some(past.expired, "expired"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        return "The first call of this tool by this grant that a person is asked about."
            .to_owned();
    }
    format!("Earlier calls of this tool by this grant: {}.", parts.join(", "))
}

/// The arguments one by one; what is no object is one argument without a name.
pub(crate) fn arguments(value: &Value) -> Vec<Argument> {
    let Value::Object(members) = value else { return vec![argument("", value)] };
    members.iter().map(|(name, value)| argument(name, value)).collect()
}

fn argument(name: &str, value: &Value) -> Argument {
    let text = match value {
        Value::String(text) => text.clone(),
        other => pretty(other),
    };
    let long = text.chars().count() > LONG_CHARS || text.lines().count() > LONG_LINES;
    let start = long.then(|| {
        let start: String = text.lines().next().unwrap_or_default().chars().take(80).collect();
        format!("{start}… ({})", count(text.chars().count(), "character", None))
    });
    Argument { name: name.to_owned(), text, start }
}

fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text == REDACTED,
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(members) => members.values().any(is_masked),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_values_are_folded_and_masked_ones_found() {
        let value =
            json!({"a": "x".repeat(300), "b": 1.50, "c": {"token": "[redacted]"}, "d": "1\n2"});
        let shown = arguments(&value);
        assert_eq!(
            shown.iter().map(|one| one.start.is_some()).collect::<Vec<_>>(),
            [true, false, false, false]
        );
        assert!(
            shown[0].start.as_deref().is_some_and(|start| start.ends_with("… (300 characters)"))
        );
        assert_eq!(shown[3].text, "1\n2");
        assert!(is_masked(&value) && !is_masked(&json!({"b": ["x"]})));
    }
}
