//! `/w/{ws}/security`: attempts with tokens of the workspace that were refused at the door.

use std::collections::HashMap;

use askama::Template;
use axum::extract::Query;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{Admin, GrantsOf, Page};
use sluice_domain::{CallId, GrantId, SecurityEvent, SecurityKind};

use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::page;
use crate::ui::text::{count, number, ticks};
use crate::ui::{Empty, Pager};

const ON_PAGE: u32 = 50;
/// Grants whose labels are shown.
const GRANTS: u32 = 1_000;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    after: Option<CallId>,
}

#[derive(Debug, Template)]
#[template(path = "ws/security.html")]
struct SecurityPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    rows: Vec<SecurityEvent>,
    labels: HashMap<GrantId, String>,
    empty: Empty,
    pager: Pager,
}

#[expect(clippy::unused_self, reason = "the template calls it")]
impl SecurityPage {
    fn what(&self, kind: SecurityKind) -> &'static str {
        match kind {
            SecurityKind::BadToken => "No token that is known",
            SecurityKind::ExpiredToken => "A token whose time is over",
            SecurityKind::RevokedToken => "A revoked token",
            SecurityKind::WrongServer => "A server that the grant does not open",
            SecurityKind::UnknownServer => "A server that does not exist",
            SecurityKind::ForeignOrigin => "A foreign web page",
            SecurityKind::ForeignSession => "A session of another grant",
            SecurityKind::NetworkNotAllowed => "A network that the grant does not allow",
            SecurityKind::LoginFailed => "A failed login",
        }
    }

    fn label(&self, grant: Option<GrantId>) -> Option<&str> {
        self.labels.get(&grant?).map(String::as_str)
    }

    fn times(&self, times: i64) -> String {
        if times == 1 { "once".to_owned() } else { format!("{} times", number(times)) }
    }
}

pub(crate) async fn list(desk: Desk<Admin>, Query(input): Query<Input>) -> Answer {
    let page = Page { after: input.after, limit: ON_PAGE };
    let found = desk.control.security_events(&desk.who, None, page).await.map_err(refuse)?;
    let grants = desk.control.grants(&desk.who, GrantsOf::default(), Page::first(GRANTS)).await;
    let grants = grants.map_err(refuse)?.items;
    let path = desk.path("/security");
    let text = "Uses of revoked and expired tokens, of tokens at servers that are not theirs, and from networks that are not allowed would be here.";
    let page = SecurityPage {
        frame: desk.frame("security").await?,
        now: desk.now,
        labels: grants.into_iter().map(|grant| (grant.id, grant.label)).collect(),
        empty: Empty { title: "Nobody was refused".to_owned(), text: ticks(text), action: None },
        pager: Pager {
            words: count(found.items.len(), "row", None),
            previous: input.after.map(|_| path.clone()),
            next: found.next.map(|next| format!("{path}?after={next}")),
        },
        rows: found.items,
    };
    Ok(page::private(StatusCode::OK, &page))
}
