//! Limits with how they stand, as the limits page and a grant's page show them.

use std::fmt::Write as _;
use std::time::Duration;

use askama::Template;
use chrono::{DateTime, TimeDelta, Utc};
use sluice_control::{Control, LimitView, ServerName};
use sluice_domain::{Amount, ServerId};

use crate::desk::{AsViewer, Desk};
use crate::next::encode;
use crate::ui::text::{stamp_in, ticks};
use crate::ui::{Html, escape};

/// A table of limits.
#[derive(Debug, Template)]
#[template(path = "ws/limit_rows.html")]
pub(crate) struct LimitRows {
    pub(crate) rows: Vec<Row>,
    /// Where a reset is sent; none for those who may not.
    reset: Option<String>,
    csrf: String,
    /// The page to come back to.
    back: String,
}

impl askama::filters::HtmlSafe for LimitRows {}

/// One counter.
#[derive(Debug)]
pub(crate) struct Row {
    view: LimitView,
    sentence: Html,
    /// Address and pointer of the first rule, and how many more there are.
    rule: (String, String, usize),
    policy: String,
    counts: Html,
    meter: Html,
    left: Html,
    resets: Option<Html>,
}

fn later(now: DateTime<Utc>, wait: Duration) -> Html {
    let wait = TimeDelta::from_std(wait).unwrap_or_default();
    stamp_in(now + wait, now)
}

/// `7 of 10` with a bar.
fn meter(view: &LimitView) -> Html {
    let Some(reading) = view.reading else {
        return Html(format!("<span class=\"muted\">not known of {}</span>", view.max));
    };
    let percent = view.percent().unwrap_or(0).min(100);
    let class = match percent {
        100.. => "use-full",
        _ if view.is_near() => "use-near",
        _ => "use-fine",
    };
    let width = percent * 60 / 100;
    Html(format!(
        "<span class=\"use {class}\"><svg viewBox=\"0 0 60 8\" aria-hidden=\"true\"><rect class=\"off\" width=\"60\" \
         height=\"8\" rx=\"2\"/><rect class=\"on\" width=\"{width}\" height=\"8\" rx=\"2\"/></svg>{} of {}</span>",
        reading.used, view.max
    ))
}

fn left(view: &LimitView, now: DateTime<Utc>) -> Html {
    let Some(reading) = view.reading else { return Html("–".to_owned()) };
    if view.max == Amount::ZERO {
        return Html("none: the limit is 0".to_owned());
    }
    match reading.wait {
        Some(wait) => Html(format!("none, more {}", later(now, wait).0)),
        None => Html(reading.remaining.to_string()),
    }
}

/// Whose calls it counts, with the way there.
fn counts<P: AsViewer>(desk: &Desk<P>, view: &LimitView, server: &str) -> Html {
    let mut out = String::new();
    match (&view.grant, view.scope) {
        (Some((id, label)), scope) => {
            let href = desk.path(&format!("/grants/{id}"));
            let _ = write!(out, "<a href=\"{href}\">{}</a>", escape(label));
            if scope == sluice_domain::Scope::Session {
                match &view.session {
                    Some(session) => {
                        let short: String = session.chars().take(8).collect();
                        let _ = write!(out, ", session <code>{}…</code>", escape(&short));
                    }
                    None => out.push_str(", outside sessions"),
                }
            }
        }
        (None, sluice_domain::Scope::Server) => {
            let _ = write!(out, "every grant of {}", escape(server));
        }
        _ => out.push_str("the whole workspace"),
    }
    Html(out)
}

impl Row {
    fn new<P: AsViewer>(desk: &Desk<P>, view: LimitView, servers: &[ServerName]) -> Self {
        let name = |id: ServerId| {
            servers.iter().find(|one| one.id == id).map(|one| one.name.clone()).unwrap_or_default()
        };
        let policy = desk.path(&format!("/policies/{}", view.policy));
        let pointer = view.rules.first().cloned().unwrap_or_default();
        Self {
            sentence: ticks(&view.sentence),
            rule: (
                desk.path(&format!(
                    "/logs?policy={}&rule={}&outcome=limited",
                    view.policy,
                    encode(&pointer)
                )),
                pointer,
                view.rules.len().saturating_sub(1),
            ),
            policy,
            counts: counts(desk, &view, &name(view.server)),
            meter: meter(&view),
            left: left(&view, desk.now),
            resets: view
                .reading
                .and_then(|reading| reading.resets_in)
                .map(|wait| later(desk.now, wait)),
            view,
        }
    }
}

impl LimitRows {
    /// `back` is the path of the page that shows them.
    pub(crate) fn new<P: AsViewer>(
        desk: &Desk<P>,
        views: Vec<LimitView>,
        servers: &[ServerName],
        back: String,
    ) -> Self {
        let may = desk.may(sluice_domain::Role::PolicyManager);
        Self {
            rows: views.into_iter().map(|view| Row::new(desk, view, servers)).collect(),
            reset: may.then(|| desk.path("/limits/reset")),
            csrf: desk.csrf.clone(),
            back,
        }
    }
}

/// What is wrong with the counters, in words, if something is.
pub(crate) fn trouble(control: &Control, now_unread: bool) -> Option<String> {
    let health = control.counters_health();
    let what = match (health.fault, now_unread) {
        (Some(fault), _) => fault.to_string(),
        (None, true) => "their store gave no answer".to_owned(),
        (None, false) => return None,
    };
    let long =
        health.for_how_long.map_or_else(String::new, |long| format!(", for {} s", long.as_secs()));
    Some(format!(
        "Limits are not being counted: {what}{long}. Until it is back, calls with limits are refused, \
         unless the limit says `on_unavailable: allow`; calls without limits go on. Sluice tries \
         again by itself."
    ))
}
