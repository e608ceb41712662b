//! `/w/{ws}/logs/live`: the list's new rows as they are written, as server-sent events.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::stream;
use http::HeaderMap;
use sluice_control::{ApprovalNews, CallsOf, Control, Page, Viewer};
use sluice_domain::{CallId, CallRecord};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Input, Row, name_of};
use crate::DashboardState;
use crate::desk::{Answer, Desk, refuse};
use crate::filters;
use crate::ws::watching::{LONGEST, LOOK, Seat, still_welcome};

/// How often the log is read.
const TICK: Duration = Duration::from_secs(1);
/// Rows that are told at once; where more come, the newest of them.
const AT_ONCE: u32 = 100;
/// A row is written when its call ends: of a call that took longer, the list knows, not the live tail.
const LATE: TimeDelta = TimeDelta::minutes(10);

struct Tail {
    control: Control,
    viewer: Viewer,
    filter: CallsOf,
    /// The newest row that the reader had at the beginning.
    newest: Option<CallId>,
    /// What was read the last time; nothing yet at the beginning.
    seen: Option<HashSet<CallId>>,
    stop: Receiver<ApprovalNews>,
    ticks: tokio::time::Interval,
    until: Instant,
    looked: Instant,
    _seat: Seat,
}

/// Rows of the list's table, newest first.
#[derive(Debug, Template)]
#[template(path = "ws/call_rows.html")]
struct Fresh {
    frame: Base,
    rows: Vec<Row>,
    now: DateTime<Utc>,
}

/// Where the workspace's pages are.
#[derive(Debug)]
struct Base(String);

impl Base {
    fn path(&self, rest: &str) -> String {
        format!("/w/{}{rest}", self.0)
    }
}

/// The newest row that the reader has: by the browser's own word when it comes back, else by the page's.
fn newest(headers: &HeaderMap, input: &Input) -> Option<CallId> {
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    header.and_then(|id| id.parse().ok()).or_else(|| input.after.parse().ok())
}

pub(crate) async fn events(
    desk: Desk<Viewer>,
    State(state): State<DashboardState>,
    headers: HeaderMap,
    Query(input): Query<Input>,
) -> Answer {
    let seat = state.watchers.seat(desk.viewer().actor.user).map_err(refuse)?;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let now = Instant::now();
    let tail = Tail {
        newest: newest(&headers, &input),
        filter: input.filter().0,
        stop: desk.control.approval_news(),
        control: desk.control,
        viewer: desk.who,
        seen: None,
        ticks,
        until: now + LONGEST,
        looked: now,
        _seat: seat,
    };
    let events = stream::unfold(tail, |mut tail| async move {
        let event = tail.next().await?;
        Some((Ok::<_, Infallible>(event), tail))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(LOOK)).into_response())
}

impl Tail {
    /// The next rows; none ends the stream.
    async fn next(&mut self) -> Option<Event> {
        while Instant::now() < self.until {
            tokio::select! {
                _ = self.ticks.tick() => {}
                news = self.stop.recv() => match news {
                    Ok(ApprovalNews::Stop) | Err(RecvError::Closed) => return None,
                    Ok(ApprovalNews::Changed(_)) | Err(RecvError::Lagged(_)) => continue,
                },
            }
            let rows = self.fresh().await?;
            if !rows.is_empty() || self.looked.elapsed() >= LOOK {
                self.viewer = still_welcome(&self.control, &self.viewer).await?;
                self.looked = Instant::now();
            }
            if !rows.is_empty() {
                return self.event(rows).await;
            }
        }
        None
    }

    /// What was not read before.
    async fn fresh(&mut self) -> Option<Vec<CallRecord>> {
        let newer = Some(CallId::floor(self.control.now() - LATE));
        let filter = CallsOf { newer, ..self.filter.clone() };
        let page = Page { after: None, limit: AT_ONCE };
        let mut found = self.control.calls(&self.viewer, &filter, page).await.ok()?.items;
        let ids = found.iter().map(|call| call.id).collect();
        // A row whose call took long comes later than rows with higher ids.
        match self.seen.replace(ids) {
            Some(seen) => found.retain(|call| !seen.contains(&call.id)),
            None => found.retain(|call| self.newest.is_none_or(|newest| call.id > newest)),
        }
        Some(found)
    }

    async fn event(&self, calls: Vec<CallRecord>) -> Option<Event> {
        let names = self.control.server_names(&self.viewer).await.ok()?;
        let newest = calls.first()?.id;
        let rows = calls.into_iter().map(|call| Row { server: name_of(&names, &call), call });
        let fresh = Fresh {
            frame: Base(self.viewer.slug.clone()),
            rows: rows.collect(),
            now: self.control.now(),
        };
        let html = fresh.render().ok()?;
        Some(Event::default().event("calls").id(newest.to_string()).data(html))
    }
}
