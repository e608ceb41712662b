//! The overview's numbers: each leads to as many rows as it says.

use chrono::{DateTime, Days, NaiveTime, Utc};
use sluice_control::{Glance, Nearest, Overview, Reason, ToolUse, Viewer};
use sluice_domain::{Outcome, ServerId};

use crate::desk::Desk;
use crate::next::{encode, segment};
use crate::ui::text::day;
use crate::ui::{Bars, BarsDay};
use crate::ws::call::why;

/// A number with the rows behind it.
#[derive(Debug)]
pub(super) struct Stat {
    pub(super) number: i64,
    pub(super) words: &'static str,
    pub(super) href: String,
}

/// Why calls were not let through.
#[derive(Debug)]
pub(super) struct ReasonRow {
    pub(super) reason: Reason,
    pub(super) words: &'static str,
    pub(super) href: String,
}

/// A tool that was called.
#[derive(Debug)]
pub(super) struct ToolRow {
    pub(super) used: ToolUse,
    pub(super) server: String,
    /// The tool's page, while the server offers it.
    pub(super) tool_href: Option<String>,
    pub(super) href: String,
}

pub(super) fn midnight(at: DateTime<Utc>) -> DateTime<Utc> {
    at.date_naive().and_time(NaiveTime::MIN).and_utc()
}

fn minute(at: DateTime<Utc>) -> String {
    encode(&at.format("%Y-%m-%dT%H:%M").to_string())
}

/// The log of what is counted from a time on, with more filters.
fn log(desk: &Desk<Viewer>, from: DateTime<Utc>, more: &str) -> String {
    desk.path(&format!("/logs?kind=tools&from={}{more}", minute(from)))
}

/// Outcomes as the four colours of a bar.
pub(super) fn bars(desk: &Desk<Viewer>, overview: &Overview, since: DateTime<Utc>) -> Bars {
    let one = |n: u64| {
        let start = since.checked_add_days(Days::new(n)).unwrap_or(since);
        let end = start.checked_add_days(Days::new(1)).unwrap_or(start);
        let sum = |wanted: &[Outcome]| -> i64 {
            let of_day = |point: &&sluice_control::OfDay| {
                point.start() >= start.timestamp()
                    && point.start() < end.timestamp()
                    && wanted.contains(&point.outcome)
            };
            overview.by_day.iter().filter(of_day).map(|point| point.calls).sum()
        };
        BarsDay {
            label: day(start),
            href: log(desk, start, &format!("&to={}", minute(end))),
            allowed: sum(&[Outcome::Allowed]),
            limited: sum(&[Outcome::Limited]),
            denied: sum(&[Outcome::Denied, Outcome::Hidden]),
            other: sum(&[Outcome::Waiting, Outcome::Failed, Outcome::Rejected]),
        }
    };
    Bars { title: "Calls a day, UTC".to_owned(), days: (0..7).map(one).collect() }
}

const fn of(number: i64, one: &'static str, many: &'static str) -> &'static str {
    if number == 1 { one } else { many }
}

fn calls_since(overview: &Overview, from: DateTime<Utc>, wanted: Option<Outcome>) -> i64 {
    let fits = |point: &&sluice_control::OfDay| {
        point.start() >= from.timestamp() && wanted.is_none_or(|outcome| point.outcome == outcome)
    };
    overview.by_day.iter().filter(fits).map(|point| point.calls).sum()
}

/// What happened since midnight.
pub(super) fn today(
    desk: &Desk<Viewer>,
    overview: &Overview,
    glance: &Glance,
    today: DateTime<Utc>,
) -> Vec<Stat> {
    let stat = |number: i64, words, href| Stat { number, words, href };
    let sum = |wanted| calls_since(overview, today, wanted);
    let rows = |more: &str| log(desk, today, more);
    let calls = sum(None);
    vec![
        stat(calls, of(calls, "call today", "calls today"), rows("")),
        stat(sum(Some(Outcome::Limited)), "limited today", rows("&outcome=limited")),
        stat(sum(Some(Outcome::Denied)), "denied today", rows("&outcome=denied")),
        stat(sum(Some(Outcome::Hidden)), "hidden today", rows("&outcome=hidden")),
        stat(sum(Some(Outcome::Failed)), "failed today", rows("&outcome=failed")),
        stat(
            glance.active,
            of(glance.active, "agent active today", "agents active today"),
            desk.path(&format!("/grants?used={}", minute(today))),
        ),
    ]
}

/// How things stand, and the week's calls.
pub(super) fn standing(
    desk: &Desk<Viewer>,
    overview: &Overview,
    glance: &Glance,
    limits: &Nearest,
    week: DateTime<Utc>,
) -> Vec<Stat> {
    let stat = |number: i64, words, href: String| Stat { number, words, href };
    let calls = calls_since(overview, week, None);
    let near = i64::try_from(limits.near()).unwrap_or(i64::MAX);
    vec![
        stat(calls, of(calls, "call this week", "calls this week"), log(desk, week, "")),
        stat(overview.pending_approvals, "waiting for a person", desk.path("/approvals")),
        stat(
            near,
            of(near, "limit near its edge", "limits near their edge"),
            desk.path("/limits?near=1"),
        ),
        stat(
            glance.to_review,
            of(glance.to_review, "tool changed", "tools changed"),
            desk.path("/tools?why=review"),
        ),
        stat(
            glance.poisoned,
            of(glance.poisoned, "tool looks poisoned", "tools look poisoned"),
            desk.path("/tools?why=poisoned"),
        ),
        stat(
            overview.grants,
            of(overview.grants, "active grant", "active grants"),
            desk.path("/grants"),
        ),
        stat(overview.servers, of(overview.servers, "server", "servers"), desk.path("/servers")),
    ]
}

/// Refusals of the week by reason.
pub(super) fn reasons(desk: &Desk<Viewer>, glance: &Glance, week: DateTime<Utc>) -> Vec<ReasonRow> {
    let row = |reason: &Reason| ReasonRow {
        words: why(reason.code),
        href: log(desk, week, &format!("&code={}&outcome={}", reason.code, reason.outcome)),
        reason: reason.clone(),
    };
    glance.reasons.iter().map(row).collect()
}

/// A tool that was called in the week.
fn tool_row(
    desk: &Desk<Viewer>,
    used: &ToolUse,
    week: DateTime<Utc>,
    name: impl Fn(ServerId) -> String,
) -> ToolRow {
    let page = || desk.path(&format!("/servers/{}/tools/{}", used.server_id, segment(&used.tool)));
    ToolRow {
        server: name(used.server_id),
        tool_href: used.severity.map(|_| page()),
        href: log(desk, week, &format!("&server={}&tool={}", used.server_id, encode(&used.tool))),
        used: used.clone(),
    }
}

/// Dangerous tools that were called in the week.
pub(super) fn risky(
    desk: &Desk<Viewer>,
    glance: &Glance,
    week: DateTime<Utc>,
    name: impl Fn(ServerId) -> String,
) -> Vec<ToolRow> {
    glance.risky.iter().map(|used| tool_row(desk, used, week, &name)).collect()
}

/// What was called most in the week.
pub(super) fn busiest(
    desk: &Desk<Viewer>,
    glance: &Glance,
    week: DateTime<Utc>,
    name: impl Fn(ServerId) -> String,
) -> Vec<ToolRow> {
    glance.busiest.iter().map(|used| tool_row(desk, used, week, &name)).collect()
}
