//! `/w/{ws}/`: what happened, what needs a person, and the next step until the first call came.

use askama::Template;
use chrono::{DateTime, Days, NaiveTime, Utc};
use http::StatusCode;
use sluice_control::{
    Breakdown, Control, ControlError, GrantView, GrantsOf, LimitView, LimitsOf, Nearest, Overview,
    Page, ServerView, Span, Viewer,
};
use sluice_domain::{CallRecord, Outcome, ServerId};

use super::limit_rows::trouble;
use crate::desk::{Answer, Desk, WsFrame, refuse};
use crate::filters;
use crate::next::encode;
use crate::page;
use crate::ui::text::{count, day, ticks};
use crate::ui::{Bars, BarsDay, Html, Steps};

/// A number with the rows behind it.
#[derive(Debug)]
struct Stat {
    number: i64,
    words: &'static str,
    href: String,
}

#[derive(Debug, Template)]
#[template(path = "ws/overview.html")]
struct OverviewPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    headline: Html,
    stats: Vec<Stat>,
    attention: Vec<(Html, String, &'static str)>,
    start: Option<(Steps, String, &'static str)>,
    bars: Bars,
    busiest: Vec<BusyRow>,
    last: Option<CallRecord>,
    any_call: bool,
}

/// What was called most.
#[derive(Debug)]
struct BusyRow {
    row: Breakdown,
    server: String,
    href: String,
}

fn midnight(at: DateTime<Utc>) -> DateTime<Utc> {
    at.date_naive().and_time(NaiveTime::MIN).and_utc()
}

/// Outcomes as the four colours of a bar.
fn bars(desk: &Desk<Viewer>, overview: &Overview, since: DateTime<Utc>) -> Bars {
    let one = |n: u64| {
        let start = since.checked_add_days(Days::new(n)).unwrap_or(since);
        let end = start.checked_add_days(Days::new(1)).unwrap_or(start);
        let sum = |wanted: &[Outcome]| -> i64 {
            let of_day = |point: &&sluice_control::SeriesPoint| {
                point.start >= start.timestamp()
                    && point.start < end.timestamp()
                    && wanted.contains(&point.outcome)
            };
            overview.series.iter().filter(of_day).map(|point| point.calls).sum()
        };
        let text = |at: DateTime<Utc>| encode(&at.format("%Y-%m-%dT%H:%M").to_string());
        BarsDay {
            label: day(start),
            href: desk.path(&format!("/logs?from={}&to={}", text(start), text(end))),
            allowed: sum(&[Outcome::Allowed]),
            limited: sum(&[Outcome::Limited]),
            denied: sum(&[Outcome::Denied, Outcome::Hidden]),
            other: sum(&[Outcome::Waiting, Outcome::Failed, Outcome::Rejected]),
        }
    };
    Bars { title: "Calls a day, UTC".to_owned(), days: (0..7).map(one).collect() }
}

fn stats(desk: &Desk<Viewer>, overview: &Overview, today: DateTime<Utc>) -> Vec<Stat> {
    let from = encode(&today.format("%Y-%m-%dT%H:%M").to_string());
    let sum = |wanted: Option<Outcome>| -> i64 {
        let of_today = |point: &&sluice_control::SeriesPoint| {
            point.start >= today.timestamp()
                && wanted.is_none_or(|outcome| point.outcome == outcome)
        };
        overview.series.iter().filter(of_today).map(|point| point.calls).sum()
    };
    let rows = |outcome: &str| desk.path(&format!("/logs?from={from}{outcome}"));
    let stat = |number: i64, words, href| Stat { number, words, href };
    let of = |number: i64, one, many| if number == 1 { one } else { many };
    let calls = sum(None);
    vec![
        stat(calls, of(calls, "call today", "calls today"), rows("")),
        stat(sum(Some(Outcome::Limited)), "limited today", rows("&outcome=limited")),
        stat(sum(Some(Outcome::Denied)), "denied today", rows("&outcome=denied")),
        stat(overview.pending_approvals, "waiting for a person", desk.path("/approvals")),
        stat(
            overview.grants,
            of(overview.grants, "active grant", "active grants"),
            desk.path("/grants"),
        ),
        stat(overview.servers, of(overview.servers, "server", "servers"), desk.path("/servers")),
    ]
}

/// The strip that leads to the first call.
fn start(
    desk: &Desk<Viewer>,
    overview: &Overview,
    servers: &[ServerView],
) -> Option<(Steps, String, &'static str)> {
    if overview.last_call.is_some() {
        return None;
    }
    let first = servers.first().map(|server| desk.path(&format!("/servers/{}", server.id)));
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
    servers: &[ServerView],
    grants: &[GrantView],
    limits: &Nearest,
) -> Vec<(Html, String, &'static str)> {
    let mut out = Vec::new();
    let mut add = |text: String, href: String, words| out.push((ticks(&text), href, words));
    if let Some(trouble) = trouble(&desk.control, limits.fault.is_some()) {
        add(trouble, desk.path("/limits"), "Look");
    }
    if overview.pending_approvals > 0 {
        let waiting = count(
            usize::try_from(overview.pending_approvals).unwrap_or(0),
            "call waits",
            Some("calls wait"),
        );
        add(format!("{waiting} for a person to decide."), desk.path("/approvals"), "Decide");
    }
    if let (near @ 1.., Some(first)) = (limits.near(), limits.rows.first()) {
        add(near_the_edge(near, first), desk.path("/limits"), "Look");
    }
    for server in servers {
        if let Some(error) = &server.last_error {
            let words: String = error.words.chars().take(200).collect();
            add(
                format!("`{}`: {words}", server.name),
                desk.path(&format!("/servers/{}", server.id)),
                "Look",
            );
        }
    }
    let bare = grants.iter().filter(|grant| grant.policy_id.is_none()).count();
    if bare > 0 {
        let bare = count(bare, "grant has", Some("grants have"));
        add(
            format!("{bare} no policy: every call is refused."),
            desk.path("/grants"),
            "Attach one",
        );
    }
    let watching = grants.iter().filter(|grant| grant.observe).count();
    if watching > 0 {
        let watching = count(watching, "grant only observes", Some("grants only observe"));
        add(
            format!("{watching}: what its policy refuses goes through."),
            desk.path("/grants"),
            "Look",
        );
    }
    out
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

async fn load(
    control: &Control,
    viewer: &Viewer,
    span: Span,
) -> Result<(Overview, Vec<ServerView>, Vec<GrantView>), ControlError> {
    const DAY: i64 = 86_400;
    let overview = control.overview(viewer, span, DAY).await?;
    let servers = control.servers(viewer, Page::first(200)).await?.items;
    let grants = control.grants(viewer, GrantsOf::default(), Page::first(200)).await?.items;
    Ok((overview, servers, grants))
}

pub(crate) async fn get(desk: Desk<Viewer>) -> Answer {
    let today = midnight(desk.now);
    let since = today.checked_sub_days(Days::new(6)).unwrap_or(today);
    let span = Span { since, until: desk.now, server: None, grant: None };
    let (overview, servers, grants) =
        load(&desk.control, desk.viewer(), span).await.map_err(refuse)?;
    let names = desk.control.server_names(desk.viewer()).await.map_err(refuse)?;
    let name = |id: ServerId| {
        names.iter().find(|one| one.id == id).map(|one| one.name.clone()).unwrap_or_default()
    };
    let limits =
        desk.control.nearest_limits(desk.viewer(), LimitsOf::default()).await.map_err(refuse)?;
    let attention = attention(&desk, &overview, &servers, &grants, &limits);
    let busiest = overview.busiest.iter().take(8).map(|row| BusyRow {
        server: name(row.server_id),
        href: desk.path(&format!(
            "/logs?server={}&tool={}&outcome={}",
            row.server_id,
            encode(&row.tool),
            row.outcome
        )),
        row: row.clone(),
    });
    let page = OverviewPage {
        now: desk.now,
        headline: headline(&overview, attention.len()),
        stats: stats(&desk, &overview, today),
        start: start(&desk, &overview, &servers),
        bars: bars(&desk, &overview, since),
        busiest: busiest.collect(),
        any_call: overview.last_call.is_some(),
        last: overview.last_call.clone(),
        attention,
        frame: desk.frame("overview").await?,
    };
    Ok(page::private(StatusCode::OK, &page))
}
