//! `/tools/{server}`: one server of the catalogue, also as Markdown and JSON.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde_json::{Value, json};
use sluice_risk::catalogue::{BridgeCommand, bridge_command};

use super::{Form, form};
use crate::catalogue::{self, CatalogueServer};
use crate::filters;
use crate::frame::PublicFrame;
use crate::ui::Bridge;
use crate::ui::text::count;
use crate::visitor::Visitor;
use crate::{errors, page};

#[derive(Debug, Template)]
#[template(path = "public/server.html")]
struct ServerPage {
    frame: PublicFrame,
    server: &'static CatalogueServer,
    state: String,
    bridge: Option<Bridge>,
}

#[derive(Debug, Template)]
#[template(path = "public/server.md")]
struct ServerText {
    base: String,
    server: &'static CatalogueServer,
    bridge: Option<BridgeCommand>,
}

/// `12 tools, 3 of high or critical severity`
fn state(server: &CatalogueServer) -> String {
    let risky = server
        .tools
        .iter()
        .filter(|tool| tool.rating.severity >= sluice_domain::Severity::High)
        .count();
    let all = count(server.tools.len(), "tool", None);
    match (risky, server.entry.tools_complete) {
        (0, _) => all,
        (_, true) => format!("{all}, {risky} of high or critical severity"),
        (_, false) => format!("{all} described here, {risky} of high or critical severity"),
    }
}

fn value(server: &CatalogueServer, base: &str) -> Value {
    let entry = server.entry;
    let tools: Vec<Value> = server
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.definition.name, "description": tool.definition.description,
                "category": tool.rating.category, "severity": tool.rating.severity,
                "rule": tool.rule.fragment, "url": format!("{base}{}", tool.path(server))})
        })
        .collect();
    json!({"slug": entry.slug, "name": entry.owner_name, "title": entry.title, "summary": entry.summary,
        "homepage": entry.homepage, "repository": entry.repository, "transport": entry.transport,
        "upstream_url": entry.upstream_url, "stdio_command": entry.stdio_command,
        "bridge": bridge_command(entry), "note": entry.note, "auth_needed": entry.auth_needed,
        "identity": entry.identity, "source": entry.source, "as_of": entry.as_of,
        "tools_complete": entry.tools_complete, "tools": tools, "url": format!("{base}{}", server.path())})
}

pub(crate) async fn get(visitor: Visitor, Path(text): Path<String>) -> Response {
    let (slug, wanted) = form(&text);
    let Some(server) = catalogue::server(slug) else { return errors::not_found(visitor) };
    let bridge = bridge_command(server.entry);
    match wanted {
        Form::Json => page::json(&value(server, visitor.base())),
        Form::Markdown => {
            let text = ServerText { base: visitor.base().to_owned(), server, bridge };
            page::text("text/markdown; charset=utf-8", text.render().unwrap_or_default())
        }
        Form::Html => page::public(&ServerPage {
            frame: visitor.frame("tools", &server.path()),
            server,
            state: state(server),
            bridge: bridge.map(Bridge::from),
        }),
    }
}
