//! MCP sessions as the client sees them: ids of our own, each bound to one
//! grant, one server and the upstream's own session id.

use std::collections::HashMap;
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
use sluice_mcp::{Envelope, RawId};
use sluice_vault::Vault;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::cache::Entry;
use crate::headers;
use crate::page;

/// Sessions kept in process; more are read from the bindings again when used.
const LOCAL: u64 = 100_000;
/// An upstream's session id is not longer than this.
const MAX_UPSTREAM_ID: usize = 4_096;
/// Sessions that wait to be ended at their upstream.
const ENDING: usize = 10_000;
const PURPOSE: &str = "mcp session";
/// The binding is told of a use once in this part of the idle time.
const TOLD: u32 = 4;

/// What the bindings keep of a session.
#[derive(Debug, Serialize, Deserialize)]
struct Bound {
    server: ServerId,
    upstream: String,
    client: Option<String>,
    version: Option<String>,
    #[serde(default)]
    announces: bool,
    #[serde(default)]
    opens_pages: bool,
}

/// What a client says of itself when it opens a session.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: Option<String>,
    /// The version that it asked for.
    pub(crate) version: Option<String>,
    /// It opens pages for its user.
    pub(crate) opens_pages: bool,
}

impl Client {
    /// As much of it as is kept.
    pub(crate) fn of(envelope: &Envelope<'_>) -> Self {
        let cut = |text: &str| text.chars().take(256).collect::<String>();
        Self {
            name: envelope.client_name.as_deref().map(cut),
            version: envelope.initialize_version.as_deref().map(cut),
            opens_pages: page::declared(envelope),
        }
    }
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
    /// The client said that it opens pages for its user.
    opens_pages: bool,
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
    pub(crate) session: Arc<Session>,
    pub(crate) key: String,
    pub(crate) cancelled: Arc<AtomicBool>,
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

    /// Whether the client said that it opens pages for its user.
    pub(crate) const fn opens_pages(&self) -> bool {
        self.opens_pages
    }

    /// Notes that the client gave up on a request; false if it is not open here.
    pub(crate) fn cancel(&self, id: RawId<'_>) -> bool {
        let open = self.open.lock();
        let flag = open.get(&id.key());
        flag.inspect(|flag| flag.store(true, Ordering::Relaxed)).is_some()
    }
}

/// All sessions of this process, over the bindings that replicas share.
#[derive(Debug)]
pub(crate) struct Sessions {
    vault: Arc<Vault>,
    bindings: Bindings,
    /// What is known of sessions beside their bindings, with a bound of its own.
    pub(crate) notes: Bindings,
    clock: ClockFn,
    pub(crate) idle: Duration,
    local: Cache<String, Arc<Session>>,
    /// Sessions that ended here, to be ended at their upstream.
    ended: mpsc::Sender<Arc<Session>>,
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
        (bindings, notes): (Bindings, Bindings),
        clock: Clock,
        idle: Duration,
    ) -> (Self, mpsc::Receiver<Arc<Session>>) {
        let (ended, ending) = mpsc::channel(ENDING);
        let expired = ended.clone();
        let local = Cache::builder()
            .max_capacity(LOCAL)
            .time_to_idle(idle)
            .eviction_listener(move |_, session: Arc<Session>, cause| {
                if matches!(cause, RemovalCause::Expired) {
                    // Full: the upstream's own expiry will have to do.
                    let _ = expired.try_send(session);
                }
            })
            .build();
        let clock = ClockFn(clock);
        (Self { vault, bindings, notes, clock, idle, local, ended }, ending)
    }

    /// How long a binding is kept. Uses are told to it only now and then, so it outlives the last one
    /// that it was told of by more than the idle time.
    fn kept(&self) -> Duration {
        self.idle + self.idle / TOLD
    }

    fn now(&self) -> i64 {
        (self.clock.0)().timestamp_micros()
    }

    /// Lets expired sessions go.
    pub(crate) fn tidy(&self) {
        self.local.run_pending_tasks();
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
        let Some(value) = self.bindings.get(&grant.to_string(), id, self.kept()).await? else {
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
        let due = i64::try_from((self.idle / TOLD).as_micros()).unwrap_or(i64::MAX);
        if now.saturating_sub(last) < due {
            return Ok(Found::Session(session));
        }
        session.touched.store(now, Ordering::Relaxed);
        match self.bindings.get(&session.grant.to_string(), &session.id, self.kept()).await {
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
        let client =
            Client { name: bound.client, version: bound.version, opens_pages: bound.opens_pages };
        let session = self.make(id.to_owned(), grant, upstream, client, entry);
        session.announces.store(bound.announces, Ordering::Relaxed);
        Some(session)
    }

    fn make(
        &self,
        id: String,
        grant: GrantId,
        upstream: HeaderValue,
        client: Client,
        entry: &Arc<Entry>,
    ) -> Arc<Session> {
        Arc::new(Session {
            id,
            grant,
            server: entry.route.record.server.id,
            upstream,
            client_name: client.name,
            version: client.version,
            opens_pages: client.opens_pages,
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
        client: Client,
        entry: &Arc<Entry>,
    ) -> Option<Arc<Session>> {
        let (grant, server) = (entry.route.record.grant.id, entry.route.record.server.id);
        let text = upstream.to_str().ok().filter(|text| text.len() <= MAX_UPSTREAM_ID)?;
        let random = Uuid::new_v4().simple().to_string();
        let signature = self.vault.sign(PURPOSE, &signed(grant, server, &random));
        let id = format!("{random}.{signature}");
        let bound = Bound {
            server,
            upstream: text.to_owned(),
            client: client.name.clone(),
            version: client.version.clone(),
            announces: false,
            opens_pages: client.opens_pages,
        };
        let value = serde_json::to_vec(&bound).ok()?;
        self.put(grant, &id, &value, entry).await?;
        let upstream = headers::copied(upstream)?;
        let session = self.make(id, grant, upstream, client, entry);
        self.local.insert(session.id.clone(), Arc::clone(&session));
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
            opens_pages: session.opens_pages,
        };
        if let Ok(value) = serde_json::to_vec(&bound) {
            self.put(session.grant, &session.id, &value, &session.entry.load_full()).await;
        }
    }

    /// Keeps a binding; at the cap, the grant's sessions that were not used for longest make room, and
    /// end at their upstream. None if it cannot be kept at all.
    async fn put(&self, grant: GrantId, id: &str, value: &[u8], entry: &Arc<Entry>) -> Option<()> {
        let owner = grant.to_string();
        let displaced = match self.bindings.put_displacing(&owner, id, value, self.kept()).await {
            Ok(displaced) => displaced?,
            // With the store away the session lives in this process alone.
            Err(_) => return Some(()),
        };
        for gone in displaced {
            self.local.invalidate(&gone.key);
            if let Some(session) = self.restore(&gone.key, grant, &gone.value, entry) {
                let _ = self.ended.try_send(session);
            }
        }
        Some(())
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
        let kept = self.bindings.peek(&session.grant.to_string(), &session.id).await;
        matches!(kept, Ok(None))
    }
}

fn signed(grant: GrantId, server: ServerId, random: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(grant.uuid().as_bytes());
    out.extend_from_slice(server.uuid().as_bytes());
    out.extend_from_slice(random.as_bytes());
    out
}
