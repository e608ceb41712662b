//! `/tools/{server}`: one server of the catalogue, also as Markdown and JSON.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};
use sluice_domain::{Category, Severity};
use sluice_risk::catalogue::{BridgeCommand, bridge_command};

use super::{Form, form, structured};
use crate::DashboardState;
use crate::catalogue::{self, CatalogueServer, Shown};
use crate::desk::refuse;
use crate::filters;
use crate::frame::PublicFrame;
use crate::ui::text::{count, number};
use crate::ui::{Bridge, Code, Html, code::pretty};
use crate::visitor::Visitor;
use crate::{errors, page};

#[derive(Debug, Template)]
#[template(path = "public/server.html")]
struct ServerPage<'a> {
    frame: PublicFrame,
    server: &'a CatalogueServer,
    state: String,
    severities: Vec<(Severity, usize)>,
    categories: Vec<(Category, usize)>,
    bridge: Option<Bridge>,
    weight: String,
    policy: Code,
    sentences: Vec<String>,
    structured: Html,
}

#[derive(Debug, Template)]
#[template(path = "public/server.md")]
struct ServerText<'a> {
    base: String,
    server: &'a CatalogueServer,
    bridge: Option<BridgeCommand>,
    policy: String,
}

/// `12 tools, 3 of high or critical severity`
fn told(server: &CatalogueServer) -> String {
    let risky = server.tools.iter().filter(|tool| tool.rating.severity >= Severity::High).count();
    let all = count(server.tools.len(), "tool", None);
    match (risky, server.entry.tools_complete) {
        (0, _) => all,
        (_, true) => format!("{all}, {risky} of high or critical severity"),
        (_, false) => format!("{all} described here, {risky} of high or critical severity"),
    }
}

fn value(server: &CatalogueServer, base: &str) -> Value {
    let entry = &server.entry;
    let tools: Vec<Value> = server
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.definition.name, "description": tool.definition.description,
                "category": tool.rating.category, "severity": tool.rating.severity, "findings": tool.findings,
                "rule": tool.rule.fragment, "url": format!("{base}{}", tool.path(server))})
        })
        .collect();
    let changes: Vec<Value> = server
        .changes
        .iter()
        .map(|change| json!({"at": change.at, "kind": change.kind, "what": change.what}))
        .collect();
    json!({"slug": entry.slug, "name": entry.owner_name, "title": entry.title, "summary": entry.summary,
        "homepage": entry.homepage, "repository": entry.repository, "transport": entry.transport,
        "upstream_url": entry.upstream_url, "stdio_command": entry.stdio_command,
        "bridge": bridge_command(entry), "note": entry.note, "auth_needed": entry.auth_needed,
        "version": entry.version, "lifecycle": entry.lifecycle, "lifecycle_note": entry.lifecycle_note,
        "grade": server.grade, "token_weight": server.token_weight(), "policy": server.policy().document,
        "changes": changes, "given_by_workspaces": server.given, "identity": entry.identity, "source": entry.source, "as_of": entry.as_of,
        "tools_complete": entry.tools_complete, "tools": tools, "url": format!("{base}{}", server.path())})
}

/// The server of that slug, also when the slug itself ends in `.md`.
async fn find(
    state: &DashboardState,
    text: &str,
) -> Result<Option<(Shown, Form)>, sluice_control::ControlError> {
    if let Some(server) = catalogue::find(state.control(), text).await? {
        return Ok(Some((server, Form::Html)));
    }
    let (slug, wanted) = form(text);
    if wanted == Form::Html {
        return Ok(None);
    }
    Ok(catalogue::find(state.control(), slug).await?.map(|server| (server, wanted)))
}

pub(crate) async fn get(
    State(state): State<DashboardState>,
    visitor: Visitor,
    Path(text): Path<String>,
) -> Response {
    if let Some(other) = catalogue::joined(&state.control().shelf(), &text, "") {
        return other;
    }
    let (server, wanted) = match find(&state, &text).await {
        Ok(Some(found)) => found,
        Ok(None) => return errors::not_found(visitor),
        Err(error) => return refuse(error),
    };
    let bridge = bridge_command(&server.entry);
    match wanted {
        Form::Json => page::json(&value(&server, visitor.base())),
        Form::Markdown => {
            let policy = pretty(&server.policy().document);
            let text =
                ServerText { base: visitor.base().to_owned(), server: &server, bridge, policy };
            page::text("text/markdown; charset=utf-8", text.render().unwrap_or_default())
        }
        Form::Html => {
            let policy = server.policy();
            let (severities, categories) = server.counts();
            page::public(&ServerPage {
                structured: structured::server(&server, visitor.base()),
                frame: visitor.frame("tools", &server.path()),
                server: &server,
                state: told(&server),
                severities,
                categories,
                bridge: bridge.map(Bridge::from),
                weight: number(i64::try_from(server.token_weight()).unwrap_or(i64::MAX)),
                policy: Code::value("The whole policy", &policy.document),
                sentences: policy.sentences,
            })
        }
    }
}
