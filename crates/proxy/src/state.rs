//! What the data path is made of, and how the rest of Sluice reaches into it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use sluice_limits::{Bindings, Clock, Counters};
use sluice_upstream::{Connections, Upstream};
use sluice_vault::Vault;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::bridge::Bridges;
use crate::budget::Budget;
use crate::cache::{Change, RouteCache};
use crate::call_log::CallLog;
use crate::open_count::OpenCount;
use crate::options::ProxyOptions;
use crate::origin::Origins;
use crate::ports::{Approvals, Routes, SecurityLog, Spans, ToolsSeen};
use crate::release::SharedResults;
use crate::remote::Remote;
use crate::route::Route;
use crate::seen::{MAX_NAMES, SeenTools};
use crate::session::{Session, Sessions};

/// Notes about one session or grant, such as which requests of a server wait for an answer.
const MAX_NOTES: usize = 1_000;
/// Upstream sessions that are ended at once.
const ENDED_AT_ONCE: usize = 16;

/// Everything that the data path is given.
pub struct ProxyParts {
    pub routes: Arc<dyn Routes>,
    pub upstream: Upstream,
    pub vault: Arc<Vault>,
    pub counters: Counters,
    /// None: a call that needs a person is refused.
    pub approvals: Option<Arc<dyn Approvals>>,
    pub calls: CallLog,
    pub security: Arc<dyn SecurityLog>,
    pub tools_seen: Arc<dyn ToolsSeen>,
    /// None: no spans are made, and a client's trace context goes up as it came.
    pub spans: Option<Arc<dyn Spans>>,
    pub clock: Clock,
    pub options: ProxyOptions,
}

impl std::fmt::Debug for ProxyParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyParts").field("options", &self.options).finish_non_exhaustive()
    }
}

/// How much the data path has open and keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Routes in the cache.
    pub routes: u64,
    /// Sessions of this process.
    pub sessions: u64,
    /// Requests and streams that are open.
    pub open: usize,
    /// Connections to upstreams.
    pub upstream: Connections,
}

/// The data path. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct ProxyState(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) cache: RouteCache,
    pub(crate) upstream: Upstream,
    pub(crate) counters: Counters,
    /// Small notes that replicas share: whose a task is, which call waits for input.
    pub(crate) bindings: Bindings,
    pub(crate) approvals: Option<Arc<dyn Approvals>>,
    pub(crate) calls: CallLog,
    pub(crate) security: Arc<dyn SecurityLog>,
    pub(crate) tools_seen: Arc<dyn ToolsSeen>,
    pub(crate) spans: Option<Arc<dyn Spans>>,
    pub(crate) clock: Clock,
    pub(crate) options: ProxyOptions,
    pub(crate) origins: Origins,
    pub(crate) sessions: Sessions,
    pub(crate) seen: SeenTools,
    pub(crate) budget: Budget,
    pub(crate) open: OpenCount,
    pub(crate) shared: SharedResults,
    pub(crate) bridges: Bridges,
    pub(crate) remote: Remote,
    pub(crate) stop: CancellationToken,
    ending: Mutex<mpsc::Receiver<Arc<Session>>>,
}

impl std::fmt::Debug for ProxyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyState").field("cache", &self.0.cache).finish_non_exhaustive()
    }
}

impl ProxyState {
    /// Puts the data path together. Must be called within a Tokio runtime.
    pub fn new(parts: ProxyParts) -> Self {
        let ProxyParts { vault, counters, options, clock, .. } = parts;
        let opener = Arc::clone(&vault);
        let cache = RouteCache::new(
            parts.routes,
            Box::new(move |record| Route::compile(record, &opener)),
            Arc::clone(&clock),
            options.cached_routes,
            options.stale_routes,
        );
        let kept = counters.bindings(MAX_NOTES);
        let bindings = counters.bindings(options.sessions_per_grant);
        let names = counters.bindings(MAX_NAMES);
        let budget = Budget::new(options.max_held_bytes);
        let relay = counters.relay(&Uuid::new_v4().simple().to_string());
        let remote = Remote::new(relay, budget.clone());
        let shared = SharedResults::new(kept.clone(), Arc::clone(&vault));
        let (sessions, ending) = Sessions::new(
            vault,
            (bindings, kept.clone()),
            Arc::clone(&clock),
            options.session_idle,
        );
        let inner = Arc::new(Inner {
            cache,
            bindings: kept,
            sessions,
            ending: Mutex::new(ending),
            upstream: parts.upstream,
            counters,
            approvals: parts.approvals,
            calls: parts.calls,
            security: parts.security,
            tools_seen: parts.tools_seen,
            spans: parts.spans,
            origins: Origins::new(&options.allowed_origins, options.loopback_origins),
            budget,
            seen: SeenTools::new(names),
            remote: remote.clone(),
            open: OpenCount::default(),
            shared,
            bridges: Bridges::new(options.session_idle),
            stop: CancellationToken::new(),
            clock,
            options,
        });
        tokio::spawn(remote.run(Arc::downgrade(&inner)));
        Self(inner)
    }

    /// Something changed in the store: routes made from it are forgotten, open streams look again.
    pub fn changed(&self, change: Change) {
        self.0.cache.changed(change);
    }

    /// The change feed was read to its end just now. Without this, for a second, routes are confirmed
    /// one by one; with the store down they are used for a bounded time longer.
    pub fn feed_alive(&self) {
        self.0.cache.feed_alive();
    }

    /// Ends streams that wait for nothing in particular. Calls in flight go on.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// How much is open and kept, for metrics.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            routes: self.0.cache.len(),
            sessions: self.0.sessions.len(),
            open: self.0.open.total(),
            upstream: self.0.upstream.connections(),
        }
    }

    /// Ends idle sessions, here and at their upstreams. To be called every few seconds.
    pub async fn tidy(&self) {
        self.0.sessions.tidy();
        self.0.bridges.tidy();
        let mut ending = self.0.ending.lock().await;
        let mut ended = Vec::new();
        while let Ok(session) = ending.try_recv() {
            ended.push(session);
        }
        drop(ending);
        stream::iter(ended)
            .for_each_concurrent(ENDED_AT_ONCE, |session| async move {
                if self.0.sessions.unused(&session).await {
                    let ending = crate::streams::end_upstream(&self.0, &session);
                    let _ = tokio::time::timeout(Duration::from_secs(5), ending).await;
                }
            })
            .await;
    }
}
