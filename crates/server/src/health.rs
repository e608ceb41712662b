//! `/healthz`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use sluice_domain::metrics::{self, CounterStore, Log, Use};
use sluice_limits::{Counters, Health};
use sluice_proxy::{CallLog, ProxyState, Sizes};
use sluice_store::Db;
use tokio_util::sync::CancellationToken;

use crate::feed::FeedState;
use crate::ports::SecurityQueue;
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
    pub(crate) security: SecurityQueue,
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
pub(crate) fn metrics(watched: Watched, proxy: ProxyState, shared: bool) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state((watched, proxy, shared))
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
    State((watched, proxy, shared)): State<(Watched, ProxyState, bool)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> Response {
    if shared && !peer.ip().to_canonical().is_loopback() {
        return StatusCode::NOT_FOUND.into_response();
    }
    watched.tell();
    tell_proxy(&proxy.sizes());
    tell_process();
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, metrics::exposition()).into_response()
}

impl Watched {
    /// What is only looked at when somebody asks.
    fn tell(&self) {
        let calls = [Log::Call as usize];
        metrics::LOG_WAITING.count(calls, self.calls.capacity() - self.calls.free());
        metrics::LOG_CAPACITY.count(calls, self.calls.capacity());
        metrics::LOG_ASIDE_KIB.count(calls, self.writing.aside() / 1024);
        let (security, most) = ([Log::Security as usize], self.security.capacity());
        metrics::LOG_WAITING.count(security, self.security.waiting());
        metrics::LOG_CAPACITY.count(security, most);
        metrics::FEED_LAG.tell([], self.feed.silent_for().as_secs_f64());
        tell_limits(&self.counters.health());
        for used in self.db.pool_uses() {
            let pool = used.pool as usize;
            metrics::DATABASE_CONNECTIONS.count([pool, Use::Busy as usize], used.busy);
            metrics::DATABASE_CONNECTIONS.count([pool, Use::Idle as usize], used.idle);
            metrics::DATABASE_CONNECTIONS.count([pool, Use::Free as usize], used.free);
        }
    }
}

fn tell_proxy(sizes: &Sizes) {
    metrics::ROUTES.count([], sizes.routes);
    metrics::SESSIONS.count([], sizes.sessions);
    metrics::OPEN_REQUESTS.count([], sizes.open);
    metrics::UPSTREAM_CONNECTIONS.count([], sizes.upstream.open);
    metrics::UPSTREAM_CONNECTED.count([], sizes.upstream.made);
    metrics::UPSTREAM_POOLS.count([], sizes.upstream.pools);
}

fn tell_limits(health: &Health) {
    let redis = health.store == CounterStore::Redis.as_str();
    let store = [if redis { CounterStore::Redis } else { CounterStore::Memory } as usize];
    metrics::LIMITS_UP.count(store, u64::from(health.is_well()));
    metrics::LIMITS_FAULTS.count(store, health.faults);
    metrics::LIMITS_REFUNDS_WAITING.count([], health.waiting_refunds);
    metrics::LIMITS_REFUNDS_LOST.count([], health.lost_refunds);
    if let Some(counters) = health.counters {
        metrics::COUNTERS.count([], counters);
    }
    if let Some(used) = health.redis {
        metrics::REDIS_COMMANDS.count([], used.commands);
        metrics::REDIS_WAITING.count([], used.waiting);
        metrics::REDIS_CONNECTED.count([], used.connected);
    }
}

fn tell_process() {
    metrics::BUILD.count([0], 1_u64);
    metrics::TASKS.count([], tokio::runtime::Handle::current().metrics().num_alive_tasks());
    // Where there is no such file system, both are left out.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    if let Some(kib) = kib {
        metrics::MEMORY.count([], kib * 1024);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        // The folder itself is one of them while it is read.
        metrics::FILES.count([], files.count().saturating_sub(1));
    }
}
