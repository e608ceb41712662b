//! `/w/{ws}/servers/{id}`: the server's tools, each with its risk, its standing and its rule.

use askama::Template;
use axum::extract::{Path, Query};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{Admin, Effect, Standing, ToolView, Viewer};
use sluice_domain::ToolState;
use sluice_web::Form;

use super::Nothing;
use super::server::{ServerHead, find};
use crate::catalogue::verb;
use crate::desk::{Answer, Desk, WsFrame, absent, refuse};
use crate::faults::sentence;
use crate::filters;
use crate::flash;
use crate::next::segment;
use crate::page;
use crate::ui::{Html, Tone, text::count, text::ticks};

/// One tool of the list.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) tool: ToolView,
    pub(crate) standings: Vec<Standing>,
    pub(crate) href: String,
    pub(crate) why: Html,
    pub(crate) verb: &'static str,
    /// A policy names it, so that the button changes a rule rather than makes the first.
    pub(crate) ruled: bool,
}

impl Row {
    pub(crate) fn new(tool: ToolView, standings: Vec<Standing>, server_path: &str) -> Self {
        Self {
            href: format!("{server_path}/tools/{}", segment(&tool.name)),
            why: why(&tool),
            verb: verb(tool.rating.category),
            ruled: standings.iter().any(|one| one.effect != Effect::Denied),
            tool,
            standings,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.tool.state == ToolState::Gone
    }

    pub(crate) fn to_review(&self) -> bool {
        matches!(self.tool.state, ToolState::Changed | ToolState::Held)
    }
}

/// The words that decided, in one line.
fn why(tool: &ToolView) -> Html {
    let Some(reason) = tool.rating.reasons.first() else {
        return ticks("Nothing in its definition says what it does");
    };
    let quote: String = reason.quote.chars().take(80).collect();
    let place = match reason.place.as_str() {
        // The cue says as much.
        "name" | "title" | "description" => String::new(),
        place => format!(" in `{place}`"),
    };
    ticks(&format!("“{quote}”: {}{place}", reason.cue))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Input {
    #[serde(default)]
    wanted: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/tools.html")]
struct ToolsPage {
    frame: WsFrame,
    head: ServerHead,
    rows: Vec<Row>,
    gone: usize,
    changed: usize,
    wanted: String,
}

pub(crate) async fn list(
    desk: Desk<Viewer>,
    Path((_, id)): Path<(String, String)>,
    Query(input): Query<Input>,
) -> Answer {
    let found = find(&desk, &id).await?;
    let head = found.head(&desk, "Tools");
    let mut rows: Vec<Row> = found
        .tools
        .into_iter()
        .zip(found.standings)
        .map(|(tool, standings)| Row::new(tool, standings, &head.path))
        .collect();
    // What needs a look first, then the riskiest.
    rows.sort_by(|a, b| {
        let key = |row: &Row| {
            (row.is_gone(), !row.to_review(), std::cmp::Reverse(row.tool.rating.severity))
        };
        key(a).cmp(&key(b)).then_with(|| a.tool.name.cmp(&b.tool.name))
    });
    let page = ToolsPage {
        frame: desk.frame("servers").await?,
        gone: rows.iter().filter(|row| row.is_gone()).count(),
        changed: rows.iter().filter(|row| row.tool.state == ToolState::Changed).count(),
        wanted: input.wanted.chars().take(200).collect(),
        head,
        rows,
    };
    Ok(page::private(StatusCode::OK, &page))
}

pub(crate) async fn refresh(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id = id.parse().map_err(|_| absent("server"))?;
    let path = desk.path(&format!("/servers/{id}"));
    match desk.control.refresh(&desk.who, id).await {
        Ok(report) => {
            let mut said = vec![format!(
                "Read {}",
                count(report.unchanged + report.added.len() + report.changed.len(), "tool", None)
            )];
            for (names, word) in [
                (&report.added, "new"),
                (&report.changed, "changed"),
                (&report.removed, "gone"),
                (&report.held, "held for review"),
            ] {
                if !names.is_empty() {
                    said.push(format!("{} {word}", names.len()));
                }
            }
            Ok(flash::done(&path, &format!("{}.", said.join(", "))))
        }
        Err(error @ sluice_control::ControlError::Upstream { .. }) => {
            Ok(flash::redirect(&path, Tone::Bad, &sentence(&error.to_string())))
        }
        Err(error) => Err(refuse(error)),
    }
}

pub(crate) async fn accept_all(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id = id.parse().map_err(|_| absent("server"))?;
    let accepted = desk.control.accept_all_tools(&desk.who, id).await.map_err(refuse)?;
    let path = desk.path(&format!("/servers/{id}"));
    Ok(flash::done(&path, &format!("Accepted {}.", count(accepted, "changed definition", None))))
}
