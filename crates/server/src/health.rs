//! `/healthz`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use sluice_limits::{Counters, Health};
use sluice_proxy::{CallLog, ProxyState};
use sluice_store::Db;
use tokio_util::sync::CancellationToken;

use crate::feed::FeedState;
use crate::records::Writing;
use crate::settings::{LogUnavailable, Part};

const PATIENCE: Duration = Duration::from_secs(1);

/// What readiness looks at.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) role: Part,
    pub(crate) db: Db,
    pub(crate) counters: Counters,
    pub(crate) calls: CallLog,
    pub(crate) writing: Writing,
    pub(crate) log_unavailable: LogUnavailable,
    pub(crate) feed: Arc<FeedState>,
    pub(crate) stale_routes: Duration,
    pub(crate) stopping: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Ready,
    /// Something is down, and requests are still answered as documented for that case.
    Degraded,
    Unavailable,
}

#[derive(Debug, Serialize)]
struct Readiness {
    status: Level,
    checks: Checks,
}

#[derive(Debug, Serialize)]
struct Checks {
    process: Check,
    database: Check,
    counters: Check,
    call_log: Check,
    change_feed: Check,
}

#[derive(Debug, Serialize)]
struct Check {
    status: Level,
    detail: String,
}

/// Liveness and readiness: answered for any `Host`.
pub(crate) fn probes(watched: Watched) -> Router {
    Router::new()
        .route("/healthz", get(|| async { Json(serde_json::json!({"status": "alive"})) }))
        .route("/readyz", get(ready))
        .with_state(watched)
}

/// `/metrics`; where it shares the main address, for loopback clients only.
pub(crate) fn metrics(
    recorder: PrometheusHandle,
    watched: Watched,
    proxy: ProxyState,
    shared: bool,
) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state((recorder, watched, proxy, shared))
}

async fn ready(State(watched): State<Watched>) -> Response {
    let checks = watched.checks().await;
    let all = [
        &checks.process,
        &checks.database,
        &checks.counters,
        &checks.call_log,
        &checks.change_feed,
    ];
    let status = all.iter().map(|check| check.status).max().unwrap_or(Level::Ready);
    let code = match status {
        Level::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Level::Ready | Level::Degraded => StatusCode::OK,
    };
    let headers = [(header::CACHE_CONTROL, "no-store")];
    (code, headers, Json(Readiness { status, checks })).into_response()
}

impl Watched {
    async fn checks(&self) -> Checks {
        let (database, counters) = tokio::join!(self.database(), self.counting());
        Checks {
            process: self.process(),
            database,
            counters,
            call_log: self.call_log(),
            change_feed: self.change_feed(),
        }
    }

    fn process(&self) -> Check {
        if self.stopping.is_cancelled() {
            return check(Level::Unavailable, "stopping");
        }
        check(Level::Ready, "running")
    }

    async fn database(&self) -> Check {
        match tokio::time::timeout(PATIENCE, self.db.ping()).await {
            Ok(Ok(())) => check(Level::Ready, "answers"),
            _ if self.serves_from_cache() => {
                check(Level::Degraded, "down; cached grants go on, pages and the API do not")
            }
            _ => check(Level::Unavailable, "down"),
        }
    }

    fn serves_from_cache(&self) -> bool {
        self.role.serves_proxy() && self.feed.silent_for() < self.stale_routes
    }

    async fn counting(&self) -> Check {
        let health = tokio::time::timeout(PATIENCE, self.counters.probe()).await;
        let fault = match health.map(|health| health.fault) {
            Ok(None) => return check(Level::Ready, "answer"),
            Ok(Some(reason)) => reason.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        let meaning = "calls with limits are refused unless the limit allows them";
        check(Level::Degraded, format!("{fault}; {meaning}"))
    }

    fn call_log(&self) -> Check {
        let waiting = self.calls.capacity() - self.calls.free();
        let aside = self.writing.aside();
        if self.calls.free() == 0 {
            return match self.log_unavailable {
                LogUnavailable::Deny => check(
                    Level::Unavailable,
                    format!("full: {waiting} rows wait, calls are refused"),
                ),
                LogUnavailable::Allow => check(
                    Level::Degraded,
                    format!("full: {waiting} rows wait, what comes now is not logged"),
                ),
            };
        }
        if self.writing.is_failing() || aside > 0 {
            let words = format!("{waiting} rows and {aside} bytes in files wait for the database");
            return check(Level::Degraded, words);
        }
        check(Level::Ready, format!("{waiting} rows wait"))
    }

    fn change_feed(&self) -> Check {
        let silent = self.feed.silent_for();
        let seconds = silent.as_secs_f32();
        if silent < Duration::from_secs(2) {
            return check(Level::Ready, format!("read {seconds:.1} s ago"));
        }
        let level = if self.serves_from_cache() { Level::Degraded } else { Level::Unavailable };
        check(level, format!("read {seconds:.0} s ago; changes and revocations may be missing"))
    }
}

fn check(status: Level, detail: impl Into<String>) -> Check {
    Check { status, detail: detail.into() }
}

async fn scrape(
    State((recorder, watched, proxy, shared)): State<(PrometheusHandle, Watched, ProxyState, bool)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> Response {
    if shared && !peer.ip().to_canonical().is_loopback() {
        return StatusCode::NOT_FOUND.into_response();
    }
    let waiting = watched.calls.capacity() - watched.calls.free();
    metrics::gauge!("sluice_log_waiting", "log" => "call").set(counted(waiting));
    metrics::gauge!("sluice_log_capacity", "log" => "call").set(counted(watched.calls.capacity()));
    let aside = u32::try_from(watched.writing.aside() / 1024).unwrap_or(u32::MAX);
    metrics::gauge!("sluice_log_aside_kibibytes", "log" => "call").set(f64::from(aside));
    let sizes = proxy.sizes();
    metrics::gauge!("sluice_routes").set(counted(sizes.routes));
    metrics::gauge!("sluice_sessions").set(counted(sizes.sessions));
    metrics::gauge!("sluice_open_requests").set(counted(sizes.open));
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    metrics::gauge!("sluice_tasks").set(counted(tasks));
    gauge_limits(&watched.counters.health());
    metrics::gauge!("sluice_change_feed_lag_seconds").set(watched.feed.silent_for().as_secs_f64());
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, recorder.render()).into_response()
}

fn counted(count: impl TryInto<u32>) -> f64 {
    count.try_into().map_or(f64::from(u32::MAX), f64::from)
}

fn gauge_limits(health: &Health) {
    let store = health.store;
    let up = if health.is_well() { 1.0 } else { 0.0 };
    metrics::gauge!("sluice_limits_up", "store" => store).set(up);
    metrics::counter!("sluice_limits_faults_total", "store" => store).absolute(health.faults);
    metrics::gauge!("sluice_limits_refunds_waiting").set(counted(health.waiting_refunds));
    metrics::counter!("sluice_limits_refunds_lost_total").absolute(health.lost_refunds);
}
