//! The policies of a workspace, or of one server.

use askama::Template;
use axum::extract::{Path, Query};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{Page, PolicyView, ServerName, Viewer};
use sluice_domain::{PolicyId, PolicyKind, ServerId};
use sluice_policy::{DefaultAction, Mode, compile, sentences};

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
    grants: usize,
}

impl Row {
    fn kind(&self) -> &'static str {
        kind(self.policy.kind)
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/policies.html")]
struct PoliciesPage {
    frame: WsFrame,
    head: Option<ServerHead>,
    now: DateTime<Utc>,
    rows: Vec<Row>,
    /// Servers that a policy can be written for.
    servers: Vec<ServerName>,
    empty: Empty,
    pager: Pager,
}

const ON_PAGE: u32 = 50;

/// Who makes a policy's versions, in words.
pub(crate) const fn kind(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Button => "Recommended rules",
        PolicyKind::Custom => "Written here",
    }
}

/// `5 sentences, the rest refused`
fn rules(document: &str) -> String {
    let Ok(policy) = compile(document) else { return "cannot be read".to_owned() };
    let document = policy.document();
    // What the document says of the tools that it does not name is told beside.
    let said = sentences(document)
        .iter()
        .filter(|rule| !["/default", "/mode"].contains(&rule.pointer.as_str()))
        .count();
    let rest = match document.default {
        DefaultAction::Allow => "the rest allowed",
        DefaultAction::Deny => "the rest refused",
    };
    let watch = if policy.mode() == Mode::Observe { ", observes only" } else { "" };
    format!("{}, {rest}{watch}", count(said, "sentence", None))
}

/// The list with nothing in it teaches what a policy is for.
fn empty(desk: &Desk<Viewer>, head: Option<&ServerHead>, manager: bool, any_server: bool) -> Empty {
    let action = match head {
        Some(head) => (head.path.clone(), "Choose a tool".to_owned()),
        None if any_server => (desk.path("/servers"), "Choose a server".to_owned()),
        None => (desk.path("/servers/new"), "Connect a server".to_owned()),
    };
    Empty {
        title: "No policy yet".to_owned(),
        text: ticks(
            "A policy says what a grant may call, how often, and what waits for a person: \
             “`execute_code` may run 10 times a minute per grant.” The quickest start is a tool's \
             recommended rule: open a server and press the button beside a tool.",
        ),
        action: manager.then_some(action),
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
    let used = desk.control.grants_by_policy(desk.viewer()).await.map_err(refuse)?;
    let name = |id: ServerId| {
        names.iter().find(|one| one.id == id).map(|one| one.name.clone()).unwrap_or_default()
    };
    let path = head
        .as_ref()
        .map_or_else(|| desk.path("/policies"), |head| format!("{}/policies", head.path));
    let frame = desk.frame(if head.is_some() { "servers" } else { "policies" }).await?;
    let pager = Pager {
        words: count(page.items.len(), "policy", Some("policies")),
        previous: after.map(|_: PolicyId| path.clone()),
        next: page.next.map(|next| format!("{path}?after={next}")),
    };
    let row = |policy: PolicyView| Row {
        server: name(policy.server_id),
        rules: rules(&policy.document),
        grants: used.get(&policy.id).copied().unwrap_or(0),
        policy,
    };
    let rows = page.items.into_iter().map(row).collect();
    let servers: Vec<_> = names.iter().filter(|one| !one.deleted).cloned().collect();
    let page = PoliciesPage {
        now: desk.now,
        empty: empty(&desk, head.as_ref(), frame.is_manager(), !servers.is_empty()),
        frame,
        head,
        rows,
        servers,
        pager,
    };
    Ok(page::private(StatusCode::OK, &page))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_the_document_comes_to() {
        for (document, said) in [
            (
                r#"{"version":"1","default":"deny","hide":["a"],"tools":{"b":{}}}"#,
                "2 sentences, the rest refused",
            ),
            (
                r#"{"version":"1","default":"allow","mode":"observe"}"#,
                "0 sentences, the rest allowed, observes only",
            ),
            ("{", "cannot be read"),
        ] {
            assert_eq!(rules(document), said);
        }
    }
}
