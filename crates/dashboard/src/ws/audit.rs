//! `/w/{ws}/audit`: what was done in the workspace, by whom.

use askama::Template;
use axum::extract::Query;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{Admin, EventFilter, EventView, Page};
use sluice_web::OwnSite;
use sluice_web::export::{self, Format};

use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::page;
use crate::ui::code::pretty;
use crate::ui::text::{count, ticks};
use crate::ui::{Empty, Export, Pager};

const ON_PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    action: String,
    #[serde(default)]
    after: Option<i64>,
}

#[derive(Debug, Template)]
#[template(path = "ws/audit.html")]
struct AuditPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    action: String,
    rows: Vec<EventView>,
    empty: Empty,
    pager: Pager,
    export: Export,
}

#[expect(clippy::unused_self, reason = "the template calls it")]
impl AuditPage {
    fn shown(&self, value: &serde_json::Value) -> String {
        pretty(value)
    }
}

impl Input {
    fn filter(&self) -> EventFilter {
        let action = self.action.trim();
        let action = (!action.is_empty()).then(|| action.to_owned());
        EventFilter { action, ..EventFilter::default() }
    }
}

/// Every event that the page's filter leaves, as a file.
pub(crate) async fn csv(desk: Desk<Admin>, _: OwnSite, Query(input): Query<Input>) -> Answer {
    Ok(export::events(desk.control, desk.who, input.filter(), Format::Csv))
}

pub(crate) async fn ndjson(desk: Desk<Admin>, _: OwnSite, Query(input): Query<Input>) -> Answer {
    Ok(export::events(desk.control, desk.who, input.filter(), Format::Ndjson))
}

pub(crate) async fn list(desk: Desk<Admin>, Query(input): Query<Input>) -> Answer {
    let action = input.action.trim().to_owned();
    let filter = input.filter();
    let page = Page { after: input.after, limit: ON_PAGE };
    let found = desk.control.admin_events(&desk.who, &filter, page).await.map_err(refuse)?;
    let path = desk.path("/audit");
    let link = |after: Option<i64>| {
        let mut pairs = Vec::new();
        if !action.is_empty() {
            pairs.push(("action", action.clone()));
        }
        pairs.extend(after.map(|after| ("after", after.to_string())));
        let query = serde_urlencoded::to_string(pairs).unwrap_or_default();
        if query.is_empty() { path.clone() } else { format!("{path}?{query}") }
    };
    let (title, text) = if action.is_empty() {
        (
            "Nothing was done yet",
            "Every change to servers, policies, grants, members and settings is kept here.",
        )
    } else {
        ("No such event", "No event has this action. Clear the filter to see all of them.")
    };
    let page = AuditPage {
        frame: desk.frame("audit").await?,
        now: desk.now,
        empty: Empty { title: title.to_owned(), text: ticks(text), action: None },
        pager: Pager {
            words: count(found.items.len(), "event", None),
            previous: input.after.map(|_| link(None)),
            next: found.next.map(|next| link(Some(next))),
        },
        rows: found.items,
        export: Export::of(&path, link(None).strip_prefix(&path).unwrap_or_default()),
        action: action.clone(),
    };
    Ok(page::private(StatusCode::OK, &page))
}
