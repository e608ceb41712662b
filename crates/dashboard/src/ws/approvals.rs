//! `/w/{ws}/approvals`: the inbox of calls that wait for a person, and the lists of what became of
//! others.

pub(crate) mod exceptions;
pub(crate) mod item;
pub(crate) mod live;
pub(crate) mod one;
pub(crate) mod words;

use askama::Template;
use axum::extract::Query;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{
    ApprovalView, ApprovalsOf, Choice, InboxKey, Page, PageOf, PolicyManager, Viewer,
};
use sluice_domain::{ApprovalId, ApprovalStatus};
use sluice_web::FormFields;

use self::item::Item;
use self::words::status_word;
use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Empty, Field, Pager, Tab, Tabs, Tone};

const ON_PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    status: String,
    #[serde(default)]
    after: Option<String>,
    /// Which one of the inbox is open.
    #[serde(default)]
    open: Option<String>,
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

#[expect(clippy::unused_self, reason = "the template calls it")]
impl ApprovalsPage {
    fn word(&self, row: &ApprovalView) -> &'static str {
        status_word(row.status)
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/inbox.html")]
struct InboxPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    tabs: Tabs,
    rows: Vec<ApprovalView>,
    open: Option<Item>,
    note: Field,
    empty: Empty,
    pager: Pager,
}

impl InboxPage {
    fn is_open(&self, row: &ApprovalView) -> bool {
        self.open.as_ref().is_some_and(|item| item.approval.id == row.id)
    }
}

/// Which list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Of(Option<ApprovalStatus>),
    Exceptions,
}

fn tabs(path: &str, pending: i64, shown: Shown) -> Tabs {
    let tab = |status: Option<ApprovalStatus>, label: &str| Tab {
        href: match status {
            Some(ApprovalStatus::Pending) => path.to_owned(),
            Some(status) => format!("{path}?status={status}"),
            None => format!("{path}?status=all"),
        },
        label: label.to_owned(),
        current: Shown::Of(status) == shown,
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
        Tab {
            href: format!("{path}/exceptions"),
            label: "Let through".to_owned(),
            current: shown == Shown::Exceptions,
            count: None,
        },
    ];
    Tabs { label: "Which approvals".to_owned(), tabs }
}

fn empty() -> Empty {
    Empty {
        title: "Nothing here".to_owned(),
        text: ticks(
            "A call waits here when a rule under `approve_if` catches it. The agent is told that a person has to decide.",
        ),
        action: None,
    }
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    match input.status.as_str() {
        "" | "pending" => inbox(desk, input).await,
        text => {
            let status = text.parse().ok();
            log(desk, status, input.after).await
        }
    }
}

async fn log(desk: Desk<Viewer>, status: Option<ApprovalStatus>, after: Option<String>) -> Answer {
    let after = after.and_then(|text| text.parse().ok());
    let of = ApprovalsOf { status, ..ApprovalsOf::default() };
    let page = Page { after, limit: ON_PAGE };
    let found = desk.control.approvals(&desk.who, &of, page).await.map_err(refuse)?;
    let frame = desk.frame("approvals").await?;
    let path = desk.path("/approvals");
    let at = status.map_or("all", ApprovalStatus::as_str);
    let page = ApprovalsPage {
        now: desk.now,
        tabs: tabs(&path, frame.pending, Shown::Of(status)),
        empty: empty(),
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

/// `{rank}.{id}`, as the address of a next page has it.
fn key(text: &str) -> Option<InboxKey> {
    let (rank, id) = text.split_once('.')?;
    Some(InboxKey { rank: rank.parse().ok()?, id: id.parse().ok()? })
}

/// The riskiest first and of those the oldest, one of them open.
async fn inbox(desk: Desk<Viewer>, input: Input) -> Answer {
    let after = input.after.as_deref().and_then(key);
    let page = Page { after, limit: ON_PAGE };
    let PageOf { items, next } = desk.control.inbox(&desk.who, page).await.map_err(refuse)?;
    let asked: Option<ApprovalId> = input.open.as_deref().and_then(|text| text.parse().ok());
    let open = asked.or_else(|| items.first().map(|first| first.id));
    let open = match open {
        // One that was decided meanwhile is shown as such; one that is not there is left out.
        Some(id) => Item::find(&desk, id).await?,
        None => None,
    };
    let frame = desk.frame("approvals").await?;
    let path = desk.path("/approvals");
    let page = InboxPage {
        now: desk.now,
        tabs: tabs(&path, frame.pending, Shown::Of(Some(ApprovalStatus::Pending))),
        note: Field::text("why", "Why").hint("Told to each agent, with the refusal.").max(500),
        empty: empty(),
        pager: Pager {
            words: count(items.len(), "call waits", Some("calls wait")),
            previous: after.map(|_| path.clone()),
            next: next.map(|next| format!("{path}?after={}.{}", next.rank, next.id)),
        },
        rows: items,
        open,
        frame,
    };
    Ok(page::private(StatusCode::OK, &page))
}

/// Refuses several at once; what somebody else decided meanwhile, or this person may not decide, is
/// told.
pub(crate) async fn deny_all(desk: Desk<PolicyManager>, form: FormFields) -> Answer {
    let to = desk.path("/approvals");
    let choice = Choice::deny(form.get("why"));
    let ids: Vec<ApprovalId> =
        form.all("id").filter_map(|text| text.parse().ok()).take(ON_PAGE as usize).collect();
    if ids.is_empty() {
        return Ok(flash::redirect(&to, Tone::Warn, "Choose the calls to deny first."));
    }
    let (mut denied, mut left) = (0, Vec::new());
    for id in ids {
        match desk.control.decide(&desk.who, id, &choice).await {
            Ok(_) => denied += 1,
            Err(error) => {
                let faults = Faults::of(error)?;
                left.push(faults.rest(&[]).unwrap_or_default());
            }
        }
    }
    let mut said = format!("Denied {}.", count(denied, "call", None));
    let tone = if left.is_empty() { Tone::Good } else { Tone::Warn };
    if let Some(first) = left.first() {
        let many = count(left.len(), "is", Some("are"));
        said = format!("{said} {many} left: {first}");
    }
    Ok(flash::redirect(&to, tone, &said))
}
