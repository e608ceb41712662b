//! One parked call on a page of its own, deciding it, and looking at its secrets.

use askama::Template;
use axum::extract::Path;
use chrono::TimeDelta;
use serde::Deserialize;
use sluice_control::{Choice as Decision, PolicyManager, Viewer};
use sluice_domain::ApprovalId;
use sluice_web::Form;

use super::item::{Item, Typed};
use crate::desk::{Answer, AsViewer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::count;
use crate::ws::Nothing;

#[derive(Debug, Template)]
#[template(path = "ws/approval.html")]
struct ApprovalPage {
    frame: WsFrame,
    item: Item,
}

async fn show_one<P: AsViewer>(
    desk: Desk<P>,
    id: ApprovalId,
    typed: Typed<'_>,
    faults: &Faults,
) -> Answer {
    let approval = desk.control.approval(desk.viewer(), id).await.map_err(refuse)?;
    let item = Item::new(&desk, approval, typed, faults).await?;
    let page = ApprovalPage { frame: desk.frame("approvals").await?, item };
    Ok(page::private(status(faults), &page))
}

pub(crate) async fn show(desk: Desk<Viewer>, Path((_, id)): Path<(String, String)>) -> Answer {
    let id = id.parse().map_err(|_| absent("approval"))?;
    show_one(desk, id, Typed::default(), &Faults::none()).await
}

/// A POST, because that somebody looked is noted.
pub(crate) async fn reveal(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: ApprovalId = id.parse().map_err(|_| absent("approval"))?;
    let revealed = desk.control.reveal(&desk.who, id).await.map_err(refuse)?;
    let typed = Typed { revealed: Some(revealed), ..Typed::default() };
    show_one(desk, id, typed, &Faults::none()).await
}

/// What a decision's form brings.
#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    decision: String,
    #[serde(default)]
    note: String,
    /// Lets the same call pass for an hour.
    #[serde(default)]
    allow: Option<String>,
}

impl Input {
    /// The decision, if one was made.
    pub(crate) fn decision(&self) -> Option<Decision> {
        match self.decision.as_str() {
            "approve" => {
                let allow = self.allow.as_ref().map(|_| TimeDelta::hours(1));
                Some(Decision { allow, ..Decision::approve(&self.note) })
            }
            "deny" => Some(Decision::deny(&self.note)),
            _ => None,
        }
    }

    pub(crate) fn note(&self) -> &str {
        &self.note
    }
}

/// What a person is told who decided.
pub(crate) fn told(decided: &sluice_control::Decided, approve: bool) -> String {
    let tool = &decided.approval.tool;
    match (approve, decided.missing) {
        (true, 0) if decided.excepted_until.is_some() => {
            format!("Approved `{tool}`. The same call by this grant passes for an hour.")
        }
        (true, 0) => format!("Approved `{tool}`. It runs once, for the agent that asked."),
        (true, more) => {
            let more = count(usize::try_from(more).unwrap_or(1), "person", Some("people"));
            format!("Noted. {more} more must approve `{tool}`.")
        }
        (false, _) => format!("Denied `{tool}`. The agent is told."),
    }
}

/// A GET never decides; this is the form's POST.
pub(crate) async fn decide(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<Input>,
) -> Answer {
    let id: ApprovalId = id.parse().map_err(|_| absent("approval"))?;
    let typed = Typed { note: input.note(), revealed: None };
    let Some(choice) = input.decision() else {
        let faults = Faults::one("", "Choose whether to approve or deny.");
        return show_one(desk, id, typed, &faults).await;
    };
    match desk.control.decide(&desk.who, id, &choice).await {
        Ok(decided) => {
            let said = told(&decided, choice.approve);
            Ok(flash::done(&desk.path("/approvals"), &said))
        }
        Err(error) => show_one(desk, id, typed, &Faults::of(error)?).await,
    }
}
