//! `/w/{ws}/find`: one search for pages, servers, tools, policies, grants and the handbook. `/` goes to its
//! field on every page; with script the places appear under it while one types.

use askama::Template;
use axum::extract::Query;
use http::StatusCode;
use serde::Deserialize;
use sluice_control::Viewer;
use sluice_domain::CallId;

use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::next::{encode, segment};
use crate::page;
use crate::public::docs::find::find;

/// Places in the handbook.
const DOCS: usize = 5;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    q: String,
}

/// Where one can go.
#[derive(Debug)]
struct Place {
    href: String,
    name: String,
    /// What it belongs to.
    of: String,
    kind: &'static str,
    icon: &'static str,
}

#[derive(Debug, Template)]
#[template(path = "ws/find.html")]
struct FindPage {
    frame: WsFrame,
    q: String,
    places: Vec<Place>,
}

/// Pages of the workspace that have every word in their name or address.
fn pages(frame: &WsFrame, q: &str) -> Vec<Place> {
    let more = [
        ("/servers/new", "Connect a server", "plus"),
        ("/tools?why=review", "Tools that changed", "server"),
        ("/tools?why=poisoned", "Tools that look poisoned", "server"),
        ("/approvals/exceptions", "Exceptions from approvals", "inbox"),
    ];
    let nav = frame.nav().into_iter().chain(frame.nav_more());
    let nav = nav.map(|entry| (entry.href, entry.label, entry.icon));
    let more = more.into_iter().map(|(rest, name, icon)| (frame.path(rest), name, icon));
    let account =
        [("/account".to_owned(), "Account", "user"), ("/docs".to_owned(), "Docs", "book")];
    let fits = |name: &str| {
        let name = name.to_lowercase();
        q.to_lowercase().split_whitespace().all(|word| name.contains(word))
    };
    nav.chain(more)
        .chain(account)
        .filter(|(_, name, _)| fits(name))
        .map(|(href, name, icon)| Place {
            href,
            name: name.to_owned(),
            of: String::new(),
            kind: "Page",
            icon,
        })
        .collect()
}

/// What the workspace has of that name.
async fn things(desk: &Desk<Viewer>, q: &str) -> Result<Vec<Place>, axum::response::Response> {
    let hits = desk.control.find(desk.viewer(), q).await.map_err(refuse)?;
    let place = |href, name, of, (kind, icon)| Place { href, name, of, kind, icon };
    let mut out = Vec::new();
    for hit in hits.servers {
        let href = desk.path(&format!("/servers/{}", hit.id));
        out.push(place(href, hit.name, String::new(), ("Server", "server")));
    }
    for hit in hits.tools {
        let href = desk.path(&format!("/servers/{}/tools/{}", hit.server_id, segment(&hit.name)));
        out.push(place(href, hit.name, hit.server, ("Tool", "execute")));
    }
    for hit in hits.policies {
        let href = desk.path(&format!("/policies/{}", hit.id));
        out.push(place(href, hit.name, hit.server, ("Policy", "policy")));
    }
    for hit in hits.grants {
        let href = desk.path(&format!("/grants/{}", hit.id));
        out.push(place(href, hit.label, hit.server, ("Grant", "key")));
    }
    Ok(out)
}

/// The log, where the words may be as well, and a call by its id.
fn log(desk: &Desk<Viewer>, q: &str) -> Place {
    let (href, name) = match q.parse::<CallId>() {
        Ok(id) => (format!("/logs/{id}"), format!("The call {id}")),
        Err(_) => (format!("/logs?q={}", encode(q)), format!("“{q}” in the log")),
    };
    Place { href: desk.path(&href), name, of: String::new(), kind: "Log", icon: "log" }
}

pub(crate) async fn show(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    let q: String = input.q.trim().chars().take(100).collect();
    let frame = desk.frame("find").await?;
    let mut places = pages(&frame, &q);
    if !q.is_empty() {
        places.extend(things(&desk, &q).await?);
        places.extend(find(&q).into_iter().take(DOCS).map(|hit| Place {
            href: hit.href,
            name: if hit.section.is_empty() { hit.title.clone() } else { hit.section },
            of: hit.title,
            kind: "Docs",
            icon: "book",
        }));
        places.push(log(&desk, &q));
    }
    Ok(page::private(StatusCode::OK, &FindPage { frame, q, places }))
}
