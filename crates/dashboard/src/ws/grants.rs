//! The grants of a workspace, or of one server.

use askama::Template;
use axum::extract::{Path, Query};
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{GrantView, GrantsOf, Look, Page, Viewer};
use sluice_domain::{GrantId, PolicyId, ServerId};

use super::logs::time;
use super::server::{ServerHead, find};
use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::next::encode;
use crate::page;
use crate::ui::{Empty, Pager, text::count, text::ticks};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    after: Option<String>,
    /// `1`: revoked ones too.
    #[serde(default)]
    revoked: String,
    /// Only those that were used from this time on.
    #[serde(default)]
    used: String,
    /// `no-policy` or `observes`: only those that need a look for it.
    #[serde(default)]
    look: String,
}

/// What a list may be narrowed to, and the words for it.
const LOOKS: [(&str, Look, &str); 2] = [
    ("no-policy", Look::NoPolicy, "without a policy"),
    ("observes", Look::Observes, "that only observe"),
];

/// One grant of a list.
#[derive(Debug)]
struct Row {
    grant: GrantView,
    server: String,
    policy: Option<(PolicyId, String)>,
    state: (&'static str, &'static str),
}

#[derive(Debug, Template)]
#[template(path = "ws/grants.html")]
struct GrantsPage {
    frame: WsFrame,
    head: Option<ServerHead>,
    now: DateTime<Utc>,
    rows: Vec<Row>,
    empty: Empty,
    pager: Pager,
    path: String,
    revoked: bool,
    used: Option<DateTime<Utc>>,
    look: Option<&'static str>,
}

const ON_PAGE: u32 = 50;

/// A grant's state: class of the mark, and word.
pub(crate) fn state(grant: &GrantView, now: DateTime<Utc>) -> (&'static str, &'static str) {
    if grant.revoked_at.is_some() {
        ("m-hidden", "Revoked")
    } else if grant.expires_at.is_some_and(|at| at <= now) {
        ("m-hidden", "Expired")
    } else if grant.policy_id.is_none() {
        ("m-denied", "No policy: refused")
    } else if grant.observe {
        ("m-limited", "Observes only")
    } else {
        ("m-allowed", "Active")
    }
}

fn empty(
    desk: &Desk<Viewer>,
    head: Option<&ServerHead>,
    path: &str,
    filtered: bool,
    admin: bool,
) -> Empty {
    if filtered {
        return Empty {
            title: "0 grants fit".to_owned(),
            text: ticks("Grants that do not fit are still there."),
            action: Some((path.to_owned(), "Show all grants".to_owned())),
        };
    }
    let action = match head {
        Some(head) => (format!("{}/grants/new", head.path), "Create a grant".to_owned()),
        None => (desk.path("/servers"), "Choose a server".to_owned()),
    };
    Empty {
        title: "No grant yet".to_owned(),
        text: ticks(
            "A grant is a token that lets one agent use one server, under one policy. Make one for each agent: the log then tells them apart, and you can revoke one without the others.",
        ),
        action: admin.then_some(action),
    }
}

async fn show(
    desk: Desk<Viewer>,
    server: Option<ServerId>,
    head: Option<ServerHead>,
    input: Input,
) -> Answer {
    let after: Option<GrantId> = input.after.and_then(|text| text.parse().ok());
    let revoked = input.revoked == "1";
    let used = time(&input.used);
    let look = LOOKS.into_iter().find(|(word, ..)| *word == input.look);
    let of = GrantsOf {
        server,
        include_revoked: revoked,
        used_since: used,
        look: look.map(|(_, why, _)| why),
        live_at: look.map(|_| desk.now),
        ..GrantsOf::default()
    };
    let (control, viewer) = (&desk.control, desk.viewer());
    let page = control.grants(viewer, of, Page { after, limit: ON_PAGE }).await.map_err(refuse)?;
    let names = control.server_names(viewer).await.map_err(refuse)?;
    let policies = control.policies(viewer, server, Page::first(500)).await.map_err(refuse)?.items;
    let path =
        head.as_ref().map_or_else(|| desk.path("/grants"), |head| format!("{}/grants", head.path));
    let frame = desk.frame(if head.is_some() { "servers" } else { "grants" }).await?;
    let empty =
        empty(&desk, head.as_ref(), &path, used.is_some() || look.is_some(), frame.is_admin());
    let revoked_too = if revoked { "&revoked=1" } else { "" };
    let since = used.map(|_| format!("&used={}", encode(&input.used))).unwrap_or_default();
    let why = look.map(|(word, ..)| format!("&look={word}")).unwrap_or_default();
    let keep = format!("{revoked_too}{since}{why}");
    let row = |grant: GrantView| Row {
        server: names
            .iter()
            .find(|one| one.id == grant.server_id)
            .map(|one| one.name.clone())
            .unwrap_or_default(),
        policy: grant.policy_id.map(|id| {
            let name =
                policies.iter().find(|policy| policy.id == id).map(|policy| policy.name.clone());
            (id, name.unwrap_or_else(|| "policy".to_owned()))
        }),
        state: state(&grant, desk.now),
        grant,
    };
    let page = GrantsPage {
        now: desk.now,
        pager: Pager {
            words: count(page.items.len(), "grant", None),
            previous: after.map(|_| format!("{path}?{}", keep.trim_start_matches('&'))),
            next: page.next.map(|next| format!("{path}?after={next}{keep}")),
        },
        rows: page.items.into_iter().map(row).collect(),
        frame,
        head,
        empty,
        path,
        revoked,
        used,
        look: look.map(|(.., words)| words),
    };
    Ok(page::private(StatusCode::OK, &page))
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    show(desk, None, None, input).await
}

pub(crate) async fn of_server(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Query(input): Query<Input>,
) -> Answer {
    let head = find(&desk, &id).await?.head(&desk, "Grants");
    let server = head.server.id;
    show(desk, Some(server), Some(head), input).await
}
