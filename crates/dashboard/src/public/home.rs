//! `/`: what Sluice does, and the way in.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use sluice_domain::Severity;
use sluice_risk::Attack;

use crate::DashboardState;
use crate::catalogue::{self, CatalogueServer, ToolRow};
use crate::filters;
use crate::frame::PublicFrame;
use crate::page;
use crate::ui::Code;
use crate::visitor::Visitor;

#[derive(Debug, Template)]
#[template(path = "public/home.html")]
struct HomePage {
    frame: PublicFrame,
    tools: Vec<ToolRow>,
    servers: usize,
    tool_count: usize,
    attacks: Vec<&'static Attack>,
    policy: Code,
}

/// The riskiest tool of each server that has a risky one: servers people know, not one server's list.
fn notable() -> Vec<ToolRow> {
    let riskiest = |server: &'static CatalogueServer| {
        let tool = server.tools.iter().rev().max_by_key(|tool| tool.rating.severity)?;
        (tool.rating.severity >= Severity::High).then(|| ToolRow::of(server, tool))
    };
    catalogue::servers().iter().filter_map(riskiest).take(8).collect()
}

const POLICY: &str = r#"{
  "version": "1",
  "default": "deny",
  "tools": {
    "executePython": {
      "limits": [
        { "counter": "executepython_rate",
          "window": "minute", "max": 10 }
      ]
    }
  }
}"#;

pub(crate) async fn get(State(state): State<DashboardState>, visitor: Visitor) -> Response {
    let shelf = state.control().shelf();
    page::public(&HomePage {
        frame: visitor.frame("home", "/"),
        tools: notable(),
        servers: shelf.servers().len(),
        tool_count: shelf.tools().len(),
        attacks: sluice_risk::attacks().iter().take(6).collect(),
        policy: Code::json("Policy, version 1", POLICY),
    })
}
