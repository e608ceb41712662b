//! Compiled routes by token hash: bounded, filled on a miss, told of changes by
//! the feed, and used for a bounded time longer when the store is down.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;
use parking_lot::Mutex;
use sluice_domain::{GrantId, PolicyId, RouteRecord, ServerId, WorkspaceId};
use sluice_limits::Clock;
use sluice_vault::TokenHash;
use tokio_util::sync::CancellationToken;

use crate::ports::{Routes, StoreUnavailable};
use crate::route::Route;

/// Without word from the feed for this long, routes are confirmed one by one.
const FEED_SILENCE: i64 = 1_000_000;
/// How long a confirmation counts, and how long a store that failed is left alone.
const CONFIRMED_FOR: i64 = 1_000_000;
const LOAD_TIMEOUT: Duration = Duration::from_millis(1_500);
const CONFIRM_TIMEOUT: Duration = Duration::from_millis(500);
const REMEMBERED_CHANGES: usize = 4_096;
const ABSENT_FOR: Duration = Duration::from_secs(1);
const ABSENT_TOKENS: u64 = 10_000;
/// About what all compiled routes together may take.
const MAX_WEIGHT_PER_ROUTE: u64 = 64 * 1024;

/// Something changed that routes were made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A workspace: suspended, or everything in it.
    Workspace(WorkspaceId),
    /// A server or its tools.
    Server(ServerId),
    /// A policy.
    Policy(PolicyId),
    /// A grant.
    Grant(GrantId),
    /// Unknown what.
    Everything,
}

impl Change {
    fn touches(self, record: &RouteRecord) -> bool {
        match self {
            Self::Workspace(id) => record.workspace == id,
            Self::Server(id) => record.server.id == id,
            Self::Policy(id) => record.policy.as_ref().is_some_and(|policy| policy.id == id),
            Self::Grant(id) => record.grant.id == id,
            Self::Everything => true,
        }
    }
}

/// A cached route.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) route: Route,
    /// Cancelled when the route is no longer what the store holds; open streams watch it.
    pub(crate) changed: CancellationToken,
    checked_at: AtomicI64,
    next_check: AtomicI64,
    /// Number of changes known when it was loaded.
    seen: u64,
}

/// The last changes, to notice one that came while a route was being loaded.
#[derive(Debug, Default)]
struct Changes {
    count: u64,
    last: VecDeque<Change>,
}

impl Changes {
    /// Whether `record`, loaded when `seen` changes were known, may be out of date.
    fn overtook(&self, seen: u64, record: &RouteRecord) -> bool {
        let missed = usize::try_from(self.count - seen).unwrap_or(usize::MAX);
        missed > self.last.len()
            || self.last.iter().rev().take(missed).any(|change| change.touches(record))
    }
}

#[derive(Debug, Clone, Copy)]
enum Miss {
    Absent,
    Unavailable,
}

type Compile = Box<dyn Fn(RouteRecord) -> Route + Send + Sync>;

pub(crate) struct RouteCache {
    routes: Arc<dyn Routes>,
    compile: Compile,
    clock: Clock,
    stale_for: i64,
    entries: Cache<TokenHash, Arc<Entry>>,
    absent: Cache<TokenHash, ()>,
    changes: Mutex<Changes>,
    known_changes: AtomicU64,
    feed_at: AtomicI64,
    store_down_until: AtomicI64,
}

impl RouteCache {
    pub(crate) fn new(
        routes: Arc<dyn Routes>,
        compile: Compile,
        clock: Clock,
        capacity: u64,
        stale_for: Duration,
    ) -> Self {
        let entries = Cache::builder()
            .weigher(|_, entry: &Arc<Entry>| entry.route.weight())
            .max_capacity(capacity.saturating_mul(MAX_WEIGHT_PER_ROUTE))
            .time_to_idle(Duration::from_hours(1))
            .build();
        let absent = Cache::builder().max_capacity(ABSENT_TOKENS).time_to_live(ABSENT_FOR).build();
        Self {
            routes,
            compile,
            clock,
            stale_for: i64::try_from(stale_for.as_micros()).unwrap_or(i64::MAX),
            entries,
            absent,
            changes: Mutex::default(),
            known_changes: AtomicU64::new(0),
            feed_at: AtomicI64::new(i64::MIN),
            store_down_until: AtomicI64::new(i64::MIN),
        }
    }

    fn now(&self) -> i64 {
        (self.clock)().timestamp_micros()
    }

    /// The feed was read to its end just now.
    pub(crate) fn feed_alive(&self) {
        self.feed_at.store(self.now(), Ordering::Relaxed);
    }

    /// Forgets the routes that a change touches. Whoever watches them is told at once.
    pub(crate) fn changed(&self, change: Change) {
        {
            let mut changes = self.changes.lock();
            changes.count += 1;
            if changes.last.len() == REMEMBERED_CHANGES {
                changes.last.pop_front();
            }
            changes.last.push_back(change);
            self.known_changes.store(changes.count, Ordering::Release);
        }
        for (_, entry) in &self.entries {
            if change.touches(&entry.route.record) {
                entry.changed.cancel();
            }
        }
        if change == Change::Everything {
            self.absent.invalidate_all();
        }
    }

    /// How many routes are cached.
    pub(crate) fn len(&self) -> u64 {
        self.entries.entry_count()
    }

    /// The route of a token; none if there is no such token.
    pub(crate) async fn find(
        &self,
        token: &TokenHash,
    ) -> Result<Option<Arc<Entry>>, StoreUnavailable> {
        match self.entries.get(token).await {
            Some(entry) if !entry.changed.is_cancelled() => self.confirmed(token, entry).await,
            _ if self.absent.contains_key(token) => Ok(None),
            // Boxed: seldom, and every call would hold room for it.
            _ => Box::pin(self.load(token)).await,
        }
    }

    /// An entry that is known to be current, or may be used although that is not known.
    async fn confirmed(
        &self,
        token: &TokenHash,
        entry: Arc<Entry>,
    ) -> Result<Option<Arc<Entry>>, StoreUnavailable> {
        let now = self.now();
        let feed_at = self.feed_at.load(Ordering::Relaxed);
        let last = entry.checked_at.load(Ordering::Relaxed).max(feed_at);
        if now.saturating_sub(feed_at) <= FEED_SILENCE || now.saturating_sub(last) <= CONFIRMED_FOR
        {
            return Ok(Some(entry));
        }
        let due = entry.next_check.load(Ordering::Relaxed);
        let mine = now >= due
            && now >= self.store_down_until.load(Ordering::Relaxed)
            && entry
                .next_check
                .compare_exchange(due, now + CONFIRMED_FOR, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if mine {
            match tokio::time::timeout(CONFIRM_TIMEOUT, self.routes.load(token)).await {
                Ok(Ok(Some(record))) if record == entry.route.record => {
                    entry.checked_at.store(now, Ordering::Relaxed);
                    return Ok(Some(entry));
                }
                Ok(Ok(_)) => {
                    entry.changed.cancel();
                    return Box::pin(self.load(token)).await;
                }
                Ok(Err(_)) | Err(_) => {
                    self.store_down_until.store(now + CONFIRMED_FOR, Ordering::Relaxed);
                }
            }
        }
        if now.saturating_sub(last) <= self.stale_for {
            Ok(Some(entry))
        } else {
            Err(StoreUnavailable)
        }
    }

    async fn load(&self, token: &TokenHash) -> Result<Option<Arc<Entry>>, StoreUnavailable> {
        // A change may overtake each read; after a few the last one is as good as any.
        for _ in 0..4 {
            let stale = self.entries.get(token).await.filter(|entry| entry.changed.is_cancelled());
            if stale.is_some() {
                self.entries.invalidate(token).await;
            }
            let entry = match self.entries.try_get_with(*token, self.read(token)).await {
                Ok(entry) => entry,
                Err(miss) => {
                    return match *miss {
                        Miss::Absent => {
                            self.absent.insert(*token, ()).await;
                            Ok(None)
                        }
                        Miss::Unavailable => Err(StoreUnavailable),
                    };
                }
            };
            if self.changes.lock().overtook(entry.seen, &entry.route.record) {
                entry.changed.cancel();
            }
            if !entry.changed.is_cancelled() {
                return Ok(Some(entry));
            }
        }
        Err(StoreUnavailable)
    }

    async fn read(&self, token: &TokenHash) -> Result<Arc<Entry>, Miss> {
        let seen = self.known_changes.load(Ordering::Acquire);
        let loaded = tokio::time::timeout(LOAD_TIMEOUT, self.routes.load(token)).await;
        let record = match loaded {
            Ok(Ok(record)) => record.ok_or(Miss::Absent)?,
            Ok(Err(_)) | Err(_) => return Err(Miss::Unavailable),
        };
        let now = self.now();
        Ok(Arc::new(Entry {
            route: (self.compile)(record),
            changed: CancellationToken::new(),
            checked_at: AtomicI64::new(now),
            next_check: AtomicI64::new(now + CONFIRMED_FOR),
            seen,
        }))
    }
}

impl std::fmt::Debug for RouteCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteCache").field("routes", &self.len()).finish_non_exhaustive()
    }
}
