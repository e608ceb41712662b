//! What every page of a server begins with: its name, its state in words, its tabs.

use sluice_control::{ControlError, ServerView};
use sluice_control::{Effect, Standing, ToolView};
use sluice_domain::{ServerId, ToolState};

use crate::desk::{AsViewer, Desk, absent, refuse};
use crate::ui::text::{ago, count};
use crate::ui::{Tab, Tabs};
use axum::response::Response;

/// The head of a server's page.
#[derive(Debug)]
pub(crate) struct ServerHead {
    pub(crate) server: ServerView,
    /// `/w/{ws}/servers/{id}`
    pub(crate) path: String,
    pub(crate) state: String,
    pub(crate) tabs: Tabs,
}

/// A server with its tools and what its policies do to them.
#[derive(Debug)]
pub(crate) struct ServerTools {
    pub(crate) server: ServerView,
    pub(crate) tools: Vec<ToolView>,
    pub(crate) standings: Vec<Vec<Standing>>,
}

/// The server of the path.
pub(crate) async fn find<P: AsViewer>(desk: &Desk<P>, id: &str) -> Result<ServerTools, Response> {
    let id: ServerId = id.parse().map_err(|_| absent("server"))?;
    let (control, viewer) = (&desk.control, desk.viewer());
    let load = async {
        let server = control.server(viewer, id).await?;
        let tools = control.tools(viewer, id).await?;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let standings = control.standings(viewer, id, &names).await?;
        Ok::<_, ControlError>(ServerTools { server, tools, standings })
    };
    load.await.map_err(refuse)
}

impl ServerTools {
    /// Tools that the server still offers.
    pub(crate) fn live(&self) -> usize {
        self.tools.iter().filter(|tool| tool.state != ToolState::Gone).count()
    }

    fn with_effect(&self, effect: Effect) -> usize {
        let has = |standings: &&Vec<Standing>| standings.iter().any(|one| one.effect == effect);
        self.standings.iter().filter(has).count()
    }

    /// `12 tools, 3 limited, 1 hidden, read 2 min ago`
    fn state<P: AsViewer>(&self, desk: &Desk<P>) -> String {
        if !self.server.tools_read {
            return "Its tools have not been read yet".to_owned();
        }
        let mut parts = vec![count(self.live(), "tool", None)];
        for (effect, word) in [
            (Effect::Limited, "limited"),
            (Effect::Approval, "with approval"),
            (Effect::Conditional, "under conditions"),
            (Effect::Hidden, "hidden"),
        ] {
            let number = self.with_effect(effect);
            if number > 0 {
                parts.push(format!("{number} {word}"));
            }
        }
        let review = |tool: &&ToolView| matches!(tool.state, ToolState::Changed | ToolState::Held);
        let to_review = self.tools.iter().filter(review).count();
        if to_review > 0 {
            parts.push(format!("{to_review} to review"));
        }
        if let Some(at) = self.server.last_read_at {
            parts.push(format!("read {}", ago(at, desk.now)));
        }
        parts.join(", ")
    }

    /// The head with `current` as the open tab.
    pub(crate) fn head<P: AsViewer>(&self, desk: &Desk<P>, current: &str) -> ServerHead {
        let path = desk.path(&format!("/servers/{}", self.server.id));
        let tab = |rest: &str, label: &str, count| Tab {
            href: if rest == "/logs" || rest == "/limits" {
                desk.path(&format!("{rest}?server={}", self.server.id))
            } else {
                format!("{path}{rest}")
            },
            label: label.to_owned(),
            current: current == label,
            count,
        };
        let mut tabs = vec![
            tab("", "Tools", self.server.tools_read.then(|| self.live())),
            tab("/policies", "Policies", None),
            tab("/grants", "Grants", None),
            tab("/limits", "Limits", None),
            tab("/try", "Try it", None),
            tab("/logs", "Logs", None),
        ];
        if desk.access().role == sluice_domain::Role::Admin {
            tabs.push(tab("/settings", "Settings", None));
        }
        ServerHead {
            server: self.server.clone(),
            state: self.state(desk),
            tabs: Tabs { label: "Server".to_owned(), tabs },
            path,
        }
    }
}
