//! `/w/{ws}/tools`: tools of all servers that somebody should look at.

use askama::Template;
use axum::extract::Query;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Deserialize;
use sluice_control::{Attention, Page, ToolView, Viewer};

use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::next::segment;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Empty, Pager, Tab, Tabs};

const ON_PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Input {
    /// `poisoned`; else what changed.
    #[serde(default)]
    why: String,
    #[serde(default)]
    after: String,
}

#[derive(Debug)]
struct Row {
    tool: ToolView,
    href: String,
    /// Its address and name.
    server: (String, String),
}

#[derive(Debug, Template)]
#[template(path = "ws/look.html")]
struct LookPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    tabs: Tabs,
    rows: Vec<Row>,
    empty: Empty,
    pager: Pager,
}

fn empty(why: Attention) -> Empty {
    let (title, text) = match why {
        Attention::Review => (
            "No definition changed",
            "When a server offers another definition than the one that was reviewed, it stands here until somebody accepts it.",
        ),
        Attention::Poisoned => (
            "No sign of poison",
            "Definitions with hidden text, orders to the model or look-alike names stand here. Look at each before an agent uses it.",
        ),
    };
    Empty { title: title.to_owned(), text: ticks(text), action: None }
}

pub(crate) async fn list(desk: Desk<Viewer>, Query(input): Query<Input>) -> Answer {
    let poisoned = input.why == "poisoned";
    let why = if poisoned { Attention::Poisoned } else { Attention::Review };
    let after = input.after.parse().ok();
    let (control, viewer) = (&desk.control, desk.viewer());
    let asked = Page { after, limit: ON_PAGE };
    let found = control.tools_to_look_at(viewer, why, asked).await.map_err(refuse)?;
    let names = control.server_names(viewer).await.map_err(refuse)?;
    let path = desk.path("/tools");
    let query = if poisoned { "?why=poisoned" } else { "?why=review" };
    let tab = |query: &str, label: &str, current| Tab {
        href: format!("{path}{query}"),
        label: label.to_owned(),
        current,
        count: None,
    };
    let row = |(server, tool): (sluice_domain::ServerId, ToolView)| {
        let href = desk.path(&format!("/servers/{server}"));
        let name = names.iter().find(|one| one.id == server).map(|one| one.name.clone());
        Row {
            href: format!("{href}/tools/{}", segment(&tool.name)),
            server: (href, name.unwrap_or_default()),
            tool,
        }
    };
    let page = LookPage {
        frame: desk.frame("servers").await?,
        now: desk.now,
        tabs: Tabs {
            label: "Why they should be looked at".to_owned(),
            tabs: vec![
                tab("?why=review", "Changed since review", !poisoned),
                tab("?why=poisoned", "Signs of poison", poisoned),
            ],
        },
        empty: empty(why),
        pager: Pager {
            words: count(found.items.len(), "tool", None),
            previous: after.map(|_: sluice_domain::ToolId| format!("{path}{query}")),
            next: found.next.map(|next| format!("{path}{query}&after={next}")),
        },
        rows: found.items.into_iter().map(row).collect(),
    };
    Ok(page::private(StatusCode::OK, &page))
}
