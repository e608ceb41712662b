//! `/`: what Sluice does, and the way in.

use askama::Template;
use axum::response::Response;
use sluice_domain::Severity;
use sluice_risk::Attack;

use crate::catalogue::{self, CatalogueServer, CatalogueTool};
use crate::filters;
use crate::frame::PublicFrame;
use crate::page;
use crate::ui::Code;
use crate::visitor::Visitor;

#[derive(Debug, Template)]
#[template(path = "public/home.html")]
struct HomePage {
    frame: PublicFrame,
    tools: Vec<(&'static CatalogueServer, &'static CatalogueTool)>,
    servers: usize,
    tool_count: usize,
    attacks: Vec<&'static Attack>,
    policy: Code,
}

/// The riskiest tool of each server that has a risky one: servers people know, not one server's list.
fn notable() -> Vec<(&'static CatalogueServer, &'static CatalogueTool)> {
    let riskiest = |server: &'static CatalogueServer| {
        let tool = server.tools.iter().rev().max_by_key(|tool| tool.rating.severity)?;
        (tool.rating.severity >= Severity::High).then_some((server, tool))
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

pub(crate) async fn get(visitor: Visitor) -> Response {
    page::public(&HomePage {
        frame: visitor.frame("home", "/"),
        tools: notable(),
        servers: catalogue::servers().len(),
        tool_count: catalogue::tools().count(),
        attacks: sluice_risk::attacks().iter().take(6).collect(),
        policy: Code::json("Policy, version 1", POLICY),
    })
}
