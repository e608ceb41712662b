//! Calls that somebody lets pass for a while: seen by all, taken back by whoever decides.

use askama::Template;
use axum::extract::{Path, Query};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{ExceptionState, ExceptionView, Page, PolicyManager, Viewer};
use sluice_domain::ExceptionId;
use sluice_web::Form;

use super::{Shown, tabs};
use crate::desk::{Answer, Desk, WsFrame, absent};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Empty, Pager, Tabs, Tone};
use crate::ws::Nothing;

const ON_PAGE: u32 = 50;

/// A state for people: class of the mark, and words.
pub(crate) fn state(state: ExceptionState) -> (&'static str, &'static str) {
    match state {
        ExceptionState::InForce => ("m-allowed", "Passes without asking"),
        ExceptionState::Revoked => ("m-hidden", "Taken back"),
        ExceptionState::Expired => ("m-hidden", "Over"),
        ExceptionState::UsedUp => ("m-hidden", "Used up"),
        ExceptionState::RulesChanged => ("m-hidden", "Ended: the rules changed"),
        ExceptionState::ToolChanged => ("m-hidden", "Ended: the tool changed"),
        ExceptionState::GrantRevoked => ("m-hidden", "Ended: the grant was revoked"),
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/exceptions.html")]
struct ExceptionsPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    tabs: Tabs,
    rows: Vec<ExceptionView>,
    all: bool,
    empty: Empty,
    pager: Pager,
}

#[expect(clippy::unused_self, reason = "the template calls it")]
impl ExceptionsPage {
    fn state(&self, row: &ExceptionView) -> (&'static str, &'static str) {
        state(row.state)
    }

    fn in_force(&self, row: &ExceptionView) -> bool {
        row.state == ExceptionState::InForce
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    /// `1`: those that are over as well.
    #[serde(default)]
    all: String,
    #[serde(default)]
    after: Option<String>,
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    let all = input.all == "1";
    let after = input.after.and_then(|text| text.parse().ok());
    let page = Page { after, limit: ON_PAGE };
    let found = desk.control.exceptions(&desk.who, None, all, page).await;
    let found = found.map_err(crate::desk::refuse)?;
    let frame = desk.frame("approvals").await?;
    let path = desk.path("/approvals");
    let here = format!("{path}/exceptions?all={}", u8::from(all));
    let page = ExceptionsPage {
        now: desk.now,
        tabs: tabs(&path, frame.pending, Shown::Exceptions),
        all,
        empty: Empty {
            title: "Every call is asked about".to_owned(),
            text: ticks(
                "Whoever approves a call can let the same call pass for an hour. It stands here until then, and can be taken back.",
            ),
            action: None,
        },
        pager: Pager {
            words: count(found.items.len(), "exception", None),
            previous: after.map(|_| here.clone()),
            next: found.next.map(|next| format!("{here}&after={next}")),
        },
        rows: found.items,
        frame,
    };
    Ok(page::private(StatusCode::OK, &page))
}

pub(crate) async fn revoke(
    desk: Desk<PolicyManager>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: ExceptionId = id.parse().map_err(|_| absent("exception"))?;
    let to = desk.path("/approvals/exceptions");
    match desk.control.revoke_exception(&desk.who, id).await {
        Ok(()) => Ok(flash::done(&to, "Taken back. The next such call asks again.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            let said = faults.rest(&[]).unwrap_or_default();
            Ok(flash::redirect(&to, Tone::Warn, &said))
        }
    }
}
