//! One tool of a connected server: its definition, its risk, what changed, its rule.

use askama::Template;
use axum::extract::Path;
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{PolicyManager, ToolView, Viewer};
use sluice_domain::{ServerId, ToolDefinition};
use sluice_web::Form;

use super::server::{ServerHead, find};
use super::tools::Row;
use crate::catalogue::{Parameter, parameters};
use crate::desk::{Answer, Desk, WsFrame, absent};
use crate::faults::{Faults, sentence};
use crate::filters;
use crate::flash;
use crate::next::{encode, segment};
use crate::page;
use crate::ui::code::pretty;
use crate::ui::{Code, Diff, Tone};

/// `{id}` and `{tool}` of a path.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolPath {
    pub(crate) id: String,
    pub(crate) tool: String,
}

impl ToolPath {
    pub(crate) fn server(&self) -> Result<ServerId, axum::response::Response> {
        self.id.parse().map_err(|_| absent("server"))
    }
}

#[derive(Debug, Template)]
#[template(path = "ws/tool.html")]
struct ToolPage {
    frame: WsFrame,
    head: ServerHead,
    row: Row,
    parameters: Vec<Parameter>,
    definition: Code,
    change: Option<Diff>,
    logs: String,
}

fn text(definition: &ToolDefinition) -> String {
    serde_json::to_value(definition).map(|value| pretty(&value)).unwrap_or_default()
}

fn change(tool: &ToolView) -> Option<Diff> {
    let before = tool.reviewed.as_ref()?;
    Some(Diff::new("What changed since it was reviewed", &text(before), &text(&tool.definition)))
}

pub(crate) async fn show(desk: Desk<Viewer>, Path(path): Path<ToolPath>) -> Answer {
    let found = find(&desk, &path.id).await?;
    let head = found.head(&desk, "Tools");
    let mut all = found.tools.into_iter().zip(found.standings);
    let (tool, standings) =
        all.find(|(tool, _)| tool.name == path.tool).ok_or_else(|| absent("tool"))?;
    let page = ToolPage {
        frame: desk.frame("servers").await?,
        parameters: parameters(tool.definition.input_schema.as_ref()),
        definition: Code::json("Definition, as the server sends it", &text(&tool.definition)),
        change: change(&tool),
        logs: desk.path(&format!("/logs?server={}&tool={}", head.server.id, encode(&tool.name))),
        row: Row::new(tool, standings, &head.path),
        head,
    };
    Ok(page::private(StatusCode::OK, &page))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Seen {
    #[serde(default)]
    hash: String,
}

pub(crate) async fn accept(
    desk: Desk<PolicyManager>,
    Path(path): Path<ToolPath>,
    Form(seen): Form<Seen>,
) -> Answer {
    let server = path.server()?;
    let to = desk.path(&format!("/servers/{server}/tools/{}", segment(&path.tool)));
    match desk.control.accept_tool(&desk.who, server, &path.tool, &seen.hash).await {
        Ok(_) => Ok(flash::done(&to, &format!("Accepted the definition of `{}`.", path.tool))),
        Err(error) => {
            let said = sentence(&error.to_string());
            Faults::of(error)?;
            Ok(flash::redirect(&to, Tone::Bad, &said))
        }
    }
}
