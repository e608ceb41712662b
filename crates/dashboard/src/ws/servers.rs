//! `/w/{ws}/servers`: the connected servers.

use askama::Template;
use axum::extract::Query;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{Page, ServerGlance, ServerView, Viewer};

use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::page;
use crate::ui::{Empty, Pager, text::count, text::ticks};

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    after: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "ws/servers.html")]
struct ServersPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    rows: Vec<(ServerView, ServerGlance)>,
    empty: Empty,
    pager: Pager,
}

const ON_PAGE: u32 = 50;

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    let after = input.after.and_then(|text| text.parse().ok());
    let page =
        desk.control.servers(&desk.who, Page { after, limit: ON_PAGE }).await.map_err(refuse)?;
    let glances = desk.control.servers_glance(&desk.who).await.map_err(refuse)?;
    let frame = desk.frame("servers").await?;
    let path = desk.path("/servers");
    let empty = Empty {
        title: "No server yet".to_owned(),
        text: ticks(
            "Connect an MCP server by its address, or start with the built-in example. Its tools are read and rated at once; nothing is exposed until you make a grant.",
        ),
        action: frame
            .is_admin()
            .then(|| (desk.path("/servers/new"), "Connect a server".to_owned())),
    };
    let pager = Pager {
        words: count(page.items.len(), "server", None),
        previous: after.map(|_| path.clone()),
        next: page.next.map(|next| format!("{path}?after={next}")),
    };
    let glance = |server: &ServerView| glances.get(&server.id).copied().unwrap_or_default();
    let rows = page.items.into_iter().map(|server| (server.clone(), glance(&server))).collect();
    let page = ServersPage { frame, now: desk.now, rows, empty, pager };
    Ok(page::private(StatusCode::OK, &page))
}
