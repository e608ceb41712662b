//! `/w/{ws}/`: what happened, what needs a person, and the next step until the first call came.

mod numbers;

use askama::Template;
use chrono::{DateTime, Days, Utc};
use http::StatusCode;
use sluice_control::{
    Control, ControlError, DaySpan, Glance, LimitView, LimitsOf, Nearest, Overview, Page,
    ServerView, Viewer,
};
use sluice_domain::{CallRecord, ServerId};

use self::numbers::{ReasonRow, Stat, ToolRow, midnight};
use super::limit_rows::trouble;
use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::page;
use crate::ui::text::{count, ticks};
use crate::ui::{Bars, Html, Steps};

#[derive(Debug, Template)]
#[template(path = "ws/overview.html")]
struct OverviewPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    headline: Html,
    today: Vec<Stat>,
    standing: Vec<Stat>,
    reasons: Vec<ReasonRow>,
    risky: Vec<ToolRow>,
    attention: Vec<(Html, String, &'static str)>,
    start: Option<(Steps, String, &'static str)>,
    bars: Bars,
    busiest: Vec<ToolRow>,
    last: Option<CallRecord>,
    any_call: bool,
}

/// The strip that leads to the first call.
fn start(
    desk: &Desk<Viewer>,
    overview: &Overview,
    server: Option<&ServerView>,
) -> Option<(Steps, String, &'static str)> {
    if overview.last_call.is_some() {
        return None;
    }
    let first = server.map(|server| desk.path(&format!("/servers/{}", server.id)));
    let (done, href, words) = match (first, overview.policies, overview.grants) {
        (None, ..) => (0, desk.path("/servers/new"), "Connect a server"),
        (Some(path), 0, _) => (1, path, "Choose a tool and apply its rule"),
        (Some(path), _, 0) => (2, format!("{path}/grants/new"), "Create a grant"),
        (Some(path), ..) => (3, format!("{path}/try"), "Send the first call"),
    };
    let steps = Steps::at(
        done,
        &[
            ("Connect a server", "its tools are read and rated"),
            ("Apply a rule", "shown before it is saved"),
            ("Create a grant", "a token for one agent"),
            ("First call", "and the log fills"),
        ],
    );
    Some((steps, href, words))
}

/// What a person should look at.
fn attention(
    desk: &Desk<Viewer>,
    overview: &Overview,
    limits: &Nearest,
) -> Vec<(Html, String, &'static str)> {
    let mut out = Vec::new();
    let mut add = |text: String, href: String, words| out.push((ticks(&text), href, words));
    if let Some(trouble) = trouble(&desk.control, limits.fault.is_some()) {
        add(trouble, desk.path("/limits"), "Look");
    }
    if overview.pending_approvals > 0 {
        let waiting = several(overview.pending_approvals, "call waits", "calls wait");
        add(format!("{waiting} for a person to decide."), desk.path("/approvals"), "Decide");
    }
    if let (near @ 1.., Some(first)) = (limits.near(), limits.rows.first()) {
        add(near_the_edge(near, first), desk.path("/limits"), "Look");
    }
    for server in &overview.failing {
        if let Some(error) = &server.last_error {
            let words: String = error.words.chars().take(200).collect();
            add(
                format!("`{}`: {words}", server.name),
                desk.path(&format!("/servers/{}", server.id)),
                "Look",
            );
        }
    }
    let grants = &overview.grants_to_look_at;
    if grants.no_policy > 0 {
        let bare = several(grants.no_policy, "grant has", "grants have");
        let href = desk.path("/grants?look=no-policy");
        add(format!("{bare} no policy: every call is refused."), href, "Attach one");
    }
    if grants.observe > 0 {
        let watching = several(grants.observe, "grant only observes", "grants only observe");
        let href = desk.path("/grants?look=observes");
        add(format!("{watching}: what its policy refuses goes through."), href, "Look");
    }
    out
}

fn several(number: i64, one: &str, many: &str) -> String {
    count(usize::try_from(number).unwrap_or(0), one, Some(many))
}

/// `2 counters are near their edge: `money` of ci-agent has 3 of 100 left.`
fn near_the_edge(near: usize, first: &LimitView) -> String {
    let counters = count(near, "counter is near its edge", Some("counters are near their edge"));
    let left = first.reading.map(|reading| reading.remaining).unwrap_or_default();
    let whose =
        first.grant.as_ref().map_or_else(String::new, |(_, label)| format!(" of `{label}`"));
    format!("{counters}: `{}`{whose} has {left} of {} left.", first.counter, first.max)
}

fn headline(overview: &Overview, attention: usize) -> Html {
    let grants = count(usize::try_from(overview.grants).unwrap_or(0), "active grant", None);
    ticks(&match (overview.grants, attention) {
        (0, _) => "No agent has access: there is no active grant.".to_owned(),
        (1, 0) => format!("{grants}, under its policy. Nothing needs you."),
        (_, 0) => format!("{grants}, each under its policy. Nothing needs you."),
        (_, 1) => format!("{grants}. One thing needs you."),
        (_, several) => format!("{grants}. {several} things need you."),
    })
}

/// What the page is made of.
struct Loaded {
    overview: Overview,
    glance: Glance,
    /// The newest, where the quick start goes on.
    server: Option<ServerView>,
    limits: Nearest,
}

async fn load(
    control: &Control,
    viewer: &Viewer,
    days: DaySpan,
    today: DateTime<Utc>,
) -> Result<Loaded, ControlError> {
    Ok(Loaded {
        overview: control.overview(viewer, days).await?,
        glance: control.glance(viewer, days, today).await?,
        server: control.servers(viewer, Page::first(1)).await?.items.pop(),
        limits: control.nearest_limits(viewer, LimitsOf::default()).await?,
    })
}

pub(crate) async fn get(desk: Desk<Viewer>) -> Answer {
    let today = midnight(desk.now);
    let week = today.checked_sub_days(Days::new(6)).unwrap_or(today);
    let days = DaySpan::of(week, desk.now);
    let loaded = load(&desk.control, desk.viewer(), days, today).await.map_err(refuse)?;
    let Loaded { overview, glance, server, limits } = &loaded;
    let names = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    let name = |id: ServerId| {
        names.iter().find(|one| one.id == id).map(|one| one.name.clone()).unwrap_or_default()
    };
    let attention = attention(&desk, overview, limits);
    let page = OverviewPage {
        now: desk.now,
        headline: headline(overview, attention.len()),
        today: numbers::today(&desk, overview, glance, today),
        standing: numbers::standing(&desk, overview, glance, limits, week),
        reasons: numbers::reasons(&desk, glance, week),
        risky: numbers::risky(&desk, glance, week, name),
        start: start(&desk, overview, server.as_ref()),
        bars: numbers::bars(&desk, overview, week),
        busiest: numbers::busiest(&desk, glance, week, name),
        any_call: overview.last_call.is_some(),
        last: overview.last_call.clone(),
        attention,
        frame: desk.frame("overview").await?,
    };
    Ok(page::private(StatusCode::OK, &page))
}
