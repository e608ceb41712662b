//! The policies of a workspace, or of one server.

use askama::Template;
use axum::extract::{Path, Query};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{Page, PolicyView, Viewer};
use sluice_domain::ServerId;

use super::server::{ServerHead, find};
use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::page;
use crate::ui::{Empty, Pager, text::count, text::ticks};

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    after: Option<String>,
}

/// One policy of a list.
#[derive(Debug)]
struct Row {
    policy: PolicyView,
    server: String,
    rules: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/policies.html")]
struct PoliciesPage {
    frame: WsFrame,
    head: Option<ServerHead>,
    now: DateTime<Utc>,
    rows: Vec<Row>,
    empty: Empty,
    pager: Pager,
}

const ON_PAGE: u32 = 50;

/// `2 tools named, the rest refused`
fn rules(document: &str) -> String {
    match sluice_policy::compile(document) {
        Err(_) => "cannot be read".to_owned(),
        Ok(policy) => {
            let document = policy.document();
            let named = document.tools.len() + document.hide.len();
            let rest = match document.default {
                sluice_policy::DefaultAction::Allow => "the rest allowed",
                sluice_policy::DefaultAction::Deny => "the rest refused",
            };
            let watch =
                if policy.mode() == sluice_policy::Mode::Observe { ", observes only" } else { "" };
            format!("{} named, {rest}{watch}", count(named, "tool", None))
        }
    }
}

async fn show(
    desk: Desk<Viewer>,
    server: Option<ServerId>,
    head: Option<ServerHead>,
    after: Option<&str>,
) -> Answer {
    let after = after.and_then(|text| text.parse().ok());
    let page = desk
        .control
        .policies(&desk.who, server, Page { after, limit: ON_PAGE })
        .await
        .map_err(refuse)?;
    let names = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    let name = |id: ServerId| {
        names.iter().find(|one| one.id == id).map(|one| one.name.clone()).unwrap_or_default()
    };
    let path = head
        .as_ref()
        .map_or_else(|| desk.path("/policies"), |head| format!("{}/policies", head.path));
    let frame = desk.frame(if head.is_some() { "servers" } else { "policies" }).await?;
    let action = match &head {
        Some(head) => (head.path.clone(), "Choose a tool".to_owned()),
        None => (desk.path("/servers"), "Choose a server".to_owned()),
    };
    let empty = Empty {
        title: "No policy yet".to_owned(),
        text: ticks(
            "A policy says what a grant may call, and how often. The quickest start is a tool's recommended rule: open a server and press the button beside a tool.",
        ),
        action: frame.is_manager().then_some(action),
    };
    let pager = Pager {
        words: count(page.items.len(), "policy", Some("policies")),
        previous: after.map(|_: sluice_domain::PolicyId| path.clone()),
        next: page.next.map(|next| format!("{path}?after={next}")),
    };
    let row = |policy: PolicyView| Row {
        server: name(policy.server_id),
        rules: rules(&policy.document),
        policy,
    };
    let rows = page.items.into_iter().map(row).collect();
    Ok(page::private(
        StatusCode::OK,
        &PoliciesPage { now: desk.now, frame, head, rows, empty, pager },
    ))
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    show(desk, None, None, input.after.as_deref()).await
}

pub(crate) async fn of_server(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Query(input): Query<Input>,
) -> Answer {
    let head = find(&desk, &id).await?.head(&desk, "Policies");
    let server = head.server.id;
    show(desk, Some(server), Some(head), input.after.as_deref()).await
}
