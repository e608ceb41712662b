//! MCP sessions as the client sees them: ids of our own, each bound to one
//! grant, one server and the upstream's own session id.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use moka::notification::RemovalCause;
use moka::sync::Cache;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sluice_domain::{GrantId, ServerId};
use sluice_limits::{Bindings, Clock, Unavailable};
use sluice_mcp::RawId;
use sluice_vault::Vault;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::cache::Entry;

/// Sessions kept in process; more are read from the bindings again when used.
const LOCAL: u64 = 100_000;
/// An upstream's session id is not longer than this.
const MAX_UPSTREAM_ID: usize = 4_096;
/// How long a request of the server may wait for the client's answer.
const ISSUED_FOR: Duration = Duration::from_hours(1);
/// Sessions that wait to be ended at their upstream.
const ENDING: usize = 10_000;
const PURPOSE: &str = "mcp session";

/// What the bindings keep of a session.
#[derive(Debug, Serialize, Deserialize)]
struct Bound {
    server: ServerId,
    upstream: String,
    client: Option<String>,
    version: Option<String>,
    #[serde(default)]
    announces: bool,
}

/// One open session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) grant: GrantId,
    pub(crate) server: ServerId,
    /// The upstream's own id for it.
    pub(crate) upstream: HeaderValue,
    pub(crate) client_name: Option<String>,
    /// The version that the client asked for.
    pub(crate) version: Option<String>,
    /// The route that used it last.
    pub(crate) entry: ArcSwap<Entry>,
    open: Mutex<HashMap<String, Arc<AtomicBool>>>,
    touched: AtomicI64,
    /// The server said that it announces changed lists of tools.
    announces: AtomicBool,
}

/// Where a session id leads.
#[derive(Debug)]
pub(crate) enum Found {
    Session(Arc<Session>),
    /// Ended, expired or never there.
    Gone,
    /// Not an id of this grant and server.
    Foreign,
}

/// A request that is open in a session; its id is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    session: Arc<Session>,
    key: String,
    cancelled: Arc<AtomicBool>,
}

impl OpenRequest {
    /// Whether the client sent `notifications/cancelled` for it.
    pub(crate) fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.session.open.lock().remove(&self.key);
    }
}

impl Session {
    /// Opens a request; none if one with this id is open already.
    pub(crate) fn open(self: &Arc<Self>, id: RawId<'_>) -> Option<OpenRequest> {
        let key = id.key();
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut open = self.open.lock();
        if open.contains_key(&key) {
            return None;
        }
        open.insert(key.clone(), Arc::clone(&cancelled));
        drop(open);
        Some(OpenRequest { session: Arc::clone(self), key, cancelled })
    }

    /// Whether the client was told to expect `notifications/tools/list_changed`.
    pub(crate) fn announces(&self) -> bool {
        self.announces.load(Ordering::Relaxed)
    }

    /// Notes that the client gave up on a request.
    pub(crate) fn cancel(&self, id: RawId<'_>) {
        if let Some(flag) = self.open.lock().get(&id.key()) {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

/// All sessions of this process, over the bindings that replicas share.
#[derive(Debug)]
pub(crate) struct Sessions {
    vault: Arc<Vault>,
    bindings: Bindings,
    clock: ClockFn,
    idle: Duration,
    local: Cache<String, Arc<Session>>,
    /// Ids of each grant in the order they were made.
    order: Mutex<HashMap<GrantId, VecDeque<String>>>,
}

#[derive(Clone)]
struct ClockFn(Clock);

impl std::fmt::Debug for ClockFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Sessions {
    /// The receiver gets the sessions that expired here, to be ended at their upstream.
    pub(crate) fn new(
        vault: Arc<Vault>,
        bindings: Bindings,
        clock: Clock,
        idle: Duration,
    ) -> (Self, mpsc::Receiver<Arc<Session>>) {
        let (ended, ending) = mpsc::channel(ENDING);
        let local = Cache::builder()
            .max_capacity(LOCAL)
            .time_to_idle(idle)
            .eviction_listener(move |_, session: Arc<Session>, cause| {
                if matches!(cause, RemovalCause::Expired) {
                    // Full: the upstream's own expiry will have to do.
                    let _ = ended.try_send(session);
                }
            })
            .build();
        let clock = ClockFn(clock);
        (Self { vault, bindings, clock, idle, local, order: Mutex::default() }, ending)
    }

    fn now(&self) -> i64 {
        (self.clock.0)().timestamp_micros()
    }

    /// Lets expired sessions go.
    pub(crate) fn tidy(&self) {
        self.local.run_pending_tasks();
        let mut order = self.order.lock();
        order.retain(|_, ids| {
            ids.retain(|id| self.local.contains_key(id));
            !ids.is_empty()
        });
    }

    /// How many sessions are open here.
    pub(crate) fn len(&self) -> u64 {
        self.local.entry_count()
    }

    /// Looks a client's session id up.
    pub(crate) async fn find(&self, id: &str, entry: &Arc<Entry>) -> Result<Found, Unavailable> {
        let (grant, server) = (entry.route.record.grant.id, entry.route.record.server.id);
        if let Some(session) = self.local.get(id) {
            if session.grant != grant || session.server != server {
                return Ok(Found::Foreign);
            }
            return self.used(session, entry).await;
        }
        let Some((random, signature)) = id.split_once('.') else { return Ok(Found::Gone) };
        if random.len() != 32 || id.len() > 128 {
            return Ok(Found::Gone);
        }
        if !self.vault.verify(PURPOSE, &signed(grant, server, random), signature) {
            return Ok(Found::Foreign);
        }
        let Some(value) = self.bindings.get(&grant.to_string(), id, self.idle).await? else {
            return Ok(Found::Gone);
        };
        let Some(session) = self.restore(id, grant, &value, entry) else { return Ok(Found::Gone) };
        Ok(Found::Session(self.local.get_with(id.to_owned(), || session)))
    }

    /// Keeps a session from being let go as idle, for as long as a stream of it is open.
    pub(crate) async fn keep(&self, session: &Session, entry: &Arc<Entry>) {
        if let Some(session) = self.local.get(&session.id) {
            let _ = self.used(session, entry).await;
        }
    }

    /// A session that is being used; now and then its binding is told.
    async fn used(&self, session: Arc<Session>, entry: &Arc<Entry>) -> Result<Found, Unavailable> {
        if !Arc::ptr_eq(&session.entry.load(), entry) {
            session.entry.store(Arc::clone(entry));
        }
        let now = self.now();
        let last = session.touched.load(Ordering::Relaxed);
        let due = i64::try_from(self.idle.as_micros() / 4).unwrap_or(i64::MAX);
        if now.saturating_sub(last) < due {
            return Ok(Found::Session(session));
        }
        session.touched.store(now, Ordering::Relaxed);
        match self.bindings.get(&session.grant.to_string(), &session.id, self.idle).await {
            Ok(None) => {
                self.local.invalidate(&session.id);
                Ok(Found::Gone)
            }
            // With the store away, what is known here goes on.
            Ok(Some(_)) | Err(_) => Ok(Found::Session(session)),
        }
    }

    fn restore(
        &self,
        id: &str,
        grant: GrantId,
        value: &[u8],
        entry: &Arc<Entry>,
    ) -> Option<Arc<Session>> {
        let bound: Bound = serde_json::from_slice(value).ok()?;
        let upstream = HeaderValue::from_str(&bound.upstream).ok()?;
        if bound.server != entry.route.record.server.id {
            return None;
        }
        let session = self.make(id.to_owned(), grant, upstream, bound.client, bound.version, entry);
        session.announces.store(bound.announces, Ordering::Relaxed);
        Some(session)
    }

    fn make(
        &self,
        id: String,
        grant: GrantId,
        upstream: HeaderValue,
        client_name: Option<String>,
        version: Option<String>,
        entry: &Arc<Entry>,
    ) -> Arc<Session> {
        Arc::new(Session {
            id,
            grant,
            server: entry.route.record.server.id,
            upstream,
            client_name,
            version,
            entry: ArcSwap::new(Arc::clone(entry)),
            open: Mutex::default(),
            touched: AtomicI64::new(self.now()),
            announces: AtomicBool::new(false),
        })
    }

    /// Binds a new session of ours to the one that the upstream just opened; none if it cannot be kept.
    pub(crate) async fn bind(
        &self,
        upstream: &HeaderValue,
        client: Option<&str>,
        version: Option<&str>,
        entry: &Arc<Entry>,
    ) -> Option<Arc<Session>> {
        let (grant, server) = (entry.route.record.grant.id, entry.route.record.server.id);
        let text = upstream.to_str().ok().filter(|text| text.len() <= MAX_UPSTREAM_ID)?;
        let random = Uuid::new_v4().simple().to_string();
        let signature = self.vault.sign(PURPOSE, &signed(grant, server, &random));
        let id = format!("{random}.{signature}");
        let cut = |text: &str| text.chars().take(256).collect::<String>();
        let bound = Bound {
            server,
            upstream: text.to_owned(),
            client: client.map(cut),
            version: version.map(cut),
            announces: false,
        };
        let value = serde_json::to_vec(&bound).ok()?;
        if !self.put(grant, &id, &value).await {
            return None;
        }
        let session = self.make(id, grant, upstream.clone(), bound.client, bound.version, entry);
        self.local.insert(session.id.clone(), Arc::clone(&session));
        self.order.lock().entry(grant).or_default().push_back(session.id.clone());
        Some(session)
    }

    /// Remembers that the server announces changed lists of tools.
    pub(crate) async fn announces(&self, session: &Session) {
        session.announces.store(true, Ordering::Relaxed);
        let bound = Bound {
            server: session.server,
            upstream: session.upstream.to_str().unwrap_or_default().to_owned(),
            client: session.client_name.clone(),
            version: session.version.clone(),
            announces: true,
        };
        if let Ok(value) = serde_json::to_vec(&bound) {
            self.put(session.grant, &session.id, &value).await;
        }
    }

    /// Keeps a binding; at the cap, the grant's oldest session here makes room.
    async fn put(&self, grant: GrantId, id: &str, value: &[u8]) -> bool {
        let owner = grant.to_string();
        for _ in 0..3 {
            match self.bindings.put(&owner, id, value, self.idle).await {
                // With the store away the session lives in this process alone.
                Ok(true) | Err(_) => return true,
                Ok(false) => {}
            }
            let oldest = self.order.lock().get_mut(&grant).and_then(VecDeque::pop_front);
            let Some(oldest) = oldest else { return false };
            let _ = self.bindings.delete(&owner, &oldest).await;
            self.local.invalidate(&oldest);
        }
        false
    }

    /// Forgets a session.
    pub(crate) async fn forget(&self, session: &Session) {
        self.local.invalidate(&session.id);
        if self.bindings.delete(&session.grant.to_string(), &session.id).await.is_err() {
            tracing::warn!(grant = %session.grant, "Could not delete the binding of an ended session");
        }
    }

    /// Whether no replica uses an expired session any more.
    pub(crate) async fn unused(&self, session: &Session) -> bool {
        let kept = self.bindings.get(&session.grant.to_string(), &session.id, self.idle).await;
        matches!(kept, Ok(None))
    }

    /// Notes a request that the upstream sent to the client of `scope`.
    pub(crate) async fn issued(&self, scope: &str, id: RawId<'_>) {
        let put = self.bindings.put(scope, &id.key(), b"", ISSUED_FOR).await;
        if !matches!(put, Ok(true)) {
            tracing::warn!("Could not note a request of a server; its answer will be refused");
        }
    }

    /// Takes a note of [`Self::issued`] back; false if there is none.
    pub(crate) async fn take_issued(
        &self,
        scope: &str,
        id: RawId<'_>,
    ) -> Result<bool, Unavailable> {
        self.bindings.delete(scope, &id.key()).await
    }
}

fn signed(grant: GrantId, server: ServerId, random: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(grant.uuid().as_bytes());
    out.extend_from_slice(server.uuid().as_bytes());
    out.extend_from_slice(random.as_bytes());
    out
}
