//! `/w/{ws}/approvals`: calls that wait for a person, and one of them to decide.

use askama::Template;
use axum::extract::{Path, Query};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{ApprovalView, ApprovalsOf, DecisionView, Page, PolicyManager, Viewer};
use sluice_domain::{ApprovalId, ApprovalStatus, Role};
use sluice_web::Form;

use crate::desk::{Answer, AsViewer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Code, Empty, Field, Pager, Tab, Tabs};

const ON_PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    status: String,
    #[serde(default)]
    after: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "ws/approvals.html")]
struct ApprovalsPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    tabs: Tabs,
    rows: Vec<ApprovalView>,
    empty: Empty,
    pager: Pager,
}

/// A status for people.
fn word(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Pending => "Waiting for a decision",
        ApprovalStatus::Approved => "Approved, not run yet",
        ApprovalStatus::Denied => "Denied",
        ApprovalStatus::Expired => "Expired",
        ApprovalStatus::Running => "Running",
        ApprovalStatus::Used => "Approved and run once",
        ApprovalStatus::Unknown => "Released; outcome unknown",
    }
}

#[expect(clippy::unused_self, reason = "the template calls it")]
impl ApprovalsPage {
    fn word(&self, row: &ApprovalView) -> &'static str {
        word(row.status)
    }
}

fn tabs(path: &str, pending: i64, shown: Option<ApprovalStatus>) -> Tabs {
    let tab = |status: Option<ApprovalStatus>, label: &str| Tab {
        href: match status {
            Some(status) => format!("{path}?status={status}"),
            None => format!("{path}?status=all"),
        },
        label: label.to_owned(),
        current: status == shown,
        count: (status == Some(ApprovalStatus::Pending))
            .then(|| usize::try_from(pending).unwrap_or(0)),
    };
    let tabs = vec![
        tab(Some(ApprovalStatus::Pending), "Waiting"),
        tab(Some(ApprovalStatus::Approved), "Approved"),
        tab(Some(ApprovalStatus::Used), "Run"),
        tab(Some(ApprovalStatus::Denied), "Denied"),
        tab(Some(ApprovalStatus::Expired), "Expired"),
        tab(None, "All"),
    ];
    Tabs { label: "Which approvals".to_owned(), tabs }
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    let shown = match input.status.as_str() {
        "" => Some(ApprovalStatus::Pending),
        text => text.parse().ok(),
    };
    let after = input.after.and_then(|text| text.parse().ok());
    let of = ApprovalsOf { status: shown, ..ApprovalsOf::default() };
    let page = Page { after, limit: ON_PAGE };
    let found = desk.control.approvals(&desk.who, &of, page).await.map_err(refuse)?;
    let frame = desk.frame("approvals").await?;
    let path = desk.path("/approvals");
    let at = shown.map_or("all", ApprovalStatus::as_str);
    let page = ApprovalsPage {
        now: desk.now,
        tabs: tabs(&path, frame.pending, shown),
        empty: Empty {
            title: "Nothing here".to_owned(),
            text: ticks(
                "A call waits here when a rule under `approve_if` catches it. The agent is told that a person has to decide.",
            ),
            action: None,
        },
        pager: Pager {
            words: count(found.items.len(), "approval", None),
            previous: after.map(|_| format!("{path}?status={at}")),
            next: found.next.map(|next| format!("{path}?status={at}&after={next}")),
        },
        rows: found.items,
        frame,
    };
    Ok(page::private(StatusCode::OK, &page))
}

#[derive(Debug, Template)]
#[template(path = "ws/approval.html")]
struct ApprovalPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    approval: ApprovalView,
    word: &'static str,
    arguments: Option<Code>,
    decisions: Vec<DecisionView>,
    /// The caller may decide it now.
    open: bool,
    note: Field,
    problem: Option<String>,
}

async fn one<P: AsViewer>(desk: Desk<P>, id: ApprovalId, note: &str, faults: &Faults) -> Answer {
    let approval = desk.control.approval(desk.viewer(), id).await.map_err(refuse)?;
    let decisions = desk.control.decisions(desk.viewer(), id).await.map_err(refuse)?;
    let open = approval.status == ApprovalStatus::Pending
        && approval.may_decide
        && desk.may(Role::PolicyManager);
    let page = ApprovalPage {
        frame: desk.frame("approvals").await?,
        now: desk.now,
        word: word(approval.status),
        arguments: approval.arguments.as_ref().map(|value| Code::value("Arguments", value)),
        decisions,
        open,
        note: Field::area("note", "Note", 3)
            .value(note)
            .hint("The agent is told it when you deny. It stands in the log.")
            .max(500)
            .error(faults.at("/note")),
        problem: faults.rest(&["/note"]),
        approval,
    };
    Ok(page::private(status(faults), &page))
}

pub(crate) async fn show(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    let id = id.parse().map_err(|_| absent("approval"))?;
    one(desk, id, "", &Faults::none()).await
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice {
    #[serde(default)]
    decision: String,
    #[serde(default)]
    note: String,
}

/// A GET never decides; this is the form's POST.
pub(crate) async fn decide(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(choice): Form<Choice>,
) -> Answer {
    let id: ApprovalId = id.parse().map_err(|_| absent("approval"))?;
    let approve = match choice.decision.as_str() {
        "approve" => true,
        "deny" => false,
        _ => {
            let faults = Faults::one("", "Choose whether to approve or deny.");
            return one(desk, id, &choice.note, &faults).await;
        }
    };
    match desk.control.decide(&desk.who, id, approve, &choice.note).await {
        Ok(decided) => {
            let tool = &decided.approval.tool;
            let said = match (approve, decided.missing) {
                (true, 0) => format!("Approved `{tool}`. It runs once, for the agent that asked."),
                (true, more) => {
                    let more = count(usize::try_from(more).unwrap_or(1), "person", Some("people"));
                    format!("Noted. {more} more must approve `{tool}`.")
                }
                (false, _) => format!("Denied `{tool}`. The agent is told."),
            };
            Ok(flash::done(&desk.path("/approvals"), &said))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            one(desk, id, &choice.note, &faults).await
        }
    }
}
