//! The handle that everything in this crate hangs on, and its settings.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sluice_domain::WorkspaceId;
use sluice_limits::{Clock, Counters};
use sluice_store::{Db, StoreError, Tx};
use sluice_upstream::{Mailer, Upstream};
use sluice_vault::{Passwords, Vault};
use tokio::sync::{Notify, Semaphore, broadcast};
use url::Url;

use crate::catalogue::InUse;
use crate::providers::Known;
use crate::throttle::Throttle;
use crate::{ApprovalNews, ControlError, Provider};

/// Who may make an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signup {
    /// Anybody.
    #[default]
    Open,
    /// Whoever was invited.
    Invite,
    /// Nobody; the operator makes accounts.
    Closed,
}

/// How many of each thing there may be, so that nothing grows without end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    pub workspaces_per_user: i64,
    pub members: i64,
    pub open_invites: i64,
    pub servers: i64,
    pub policies: i64,
    pub grants: i64,
    pub api_tokens: i64,
    /// REST requests of one token.
    pub requests_per_minute: u32,
    /// Where a workspace is told of things.
    pub endpoints: i64,
    /// Messages that wait for one endpoint; what comes beyond that is given up at once.
    pub waiting_messages: i64,
    /// Mail about parked calls that one person gets in an hour.
    pub mails_an_hour: i64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            workspaces_per_user: 50,
            members: 500,
            open_invites: 100,
            servers: 200,
            policies: 500,
            grants: 1_000,
            api_tokens: 100,
            requests_per_minute: 3_000,
            endpoints: 20,
            waiting_messages: 1_000,
            mails_an_hour: 30,
        }
    }
}

/// What the operator decided.
#[derive(Debug, Clone)]
pub struct ControlSettings {
    pub public_url: Url,
    /// What proxy URLs are built from.
    pub proxy_public_url: Url,
    pub signup: Signup,
    /// The built-in example server, where it is on.
    pub example_url: Option<Url>,
    pub bounds: Bounds,
    /// Who vouches for people besides.
    pub providers: Vec<Provider>,
}

/// What a [`Control`] is made of.
#[derive(Debug)]
pub struct ControlParts {
    pub db: Db,
    pub vault: Arc<Vault>,
    pub upstream: Arc<Upstream>,
    pub counters: Counters,
    /// How mail is sent, where the operator set it up.
    pub mailer: Option<Mailer>,
    /// How passwords are hashed.
    pub passwords: Passwords,
    pub settings: ControlSettings,
}

/// What members may do. Cheap to clone.
#[derive(Clone)]
pub struct Control {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) db: Db,
    pub(crate) vault: Arc<Vault>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) counters: Counters,
    /// Counts REST requests. In process they have counters of their own, so that they take no room
    /// from the limits of calls.
    pub(crate) requests: Counters,
    pub(crate) mailer: Option<Mailer>,
    /// Wakes whoever sends messages.
    pub(crate) outgoing: Notify,
    /// For pages that are open.
    pub(crate) approval_news: broadcast::Sender<ApprovalNews>,
    pub(crate) settings: ControlSettings,
    pub(crate) clock: Clock,
    pub(crate) passwords: Passwords,
    /// Password hashes cost memory and time: a few at once, the rest waits.
    pub(crate) hashing: Semaphore,
    pub(crate) throttle: Throttle,
    /// The catalogue in memory.
    pub(crate) shelf: InUse,
    /// What identity providers say of themselves.
    pub(crate) known: Known,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

const HASHES_AT_ONCE: usize = 4;
/// News that a slow reader may lag behind; it then looks for itself.
const NEWS: usize = 256;

impl Control {
    /// Puts the parts together.
    pub fn new(parts: ControlParts, clock: Clock) -> Self {
        let ControlParts { db, vault, upstream, counters, mailer, passwords, settings } = parts;
        let requests = match &counters {
            Counters::Memory(_) => Counters::in_memory(Arc::clone(&clock)),
            Counters::Redis(_) => counters.clone(),
        };
        let inner = Inner {
            db,
            vault,
            upstream,
            counters,
            requests,
            mailer,
            outgoing: Notify::new(),
            approval_news: broadcast::channel(NEWS).0,
            settings,
            throttle: Throttle::new(Arc::clone(&clock)),
            clock,
            passwords,
            hashing: Semaphore::new(HASHES_AT_ONCE),
            shelf: InUse::new(),
            known: Known::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What the operator decided.
    pub fn settings(&self) -> &ControlSettings {
        &self.inner.settings
    }

    /// The time, as every operation sees it.
    pub fn now(&self) -> DateTime<Utc> {
        (self.inner.clock)()
    }

    /// The address at which agents reach a server.
    pub fn proxy_url(&self, server: sluice_domain::ServerId) -> String {
        let base = self.inner.settings.proxy_public_url.as_str().trim_end_matches('/');
        format!("{base}/mcp/{server}")
    }

    /// Signs a short text for one purpose, for forms and links.
    pub fn sign(&self, purpose: &str, message: &[u8]) -> String {
        self.inner.vault.sign(purpose, message)
    }

    /// Whether [`Self::sign`] made this, under any of the master keys.
    pub fn verify(&self, purpose: &str, message: &[u8], signature: &str) -> bool {
        self.inner.vault.verify(purpose, message, signature)
    }

    /// A transaction that may write, over all workspaces: for people before they are in one, and for
    /// upkeep. Whoever has a permission takes [`Self::begin_in`] (`tests/it/walls.rs`).
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        self.inner.db.begin().await
    }

    /// A transaction that may write in one workspace.
    pub(crate) async fn begin_in(&self, workspace: WorkspaceId) -> Result<Tx, StoreError> {
        self.inner.db.begin_in(workspace).await
    }

    /// A transaction that only reads, over all workspaces.
    pub(crate) async fn read(&self) -> Result<Tx, StoreError> {
        self.inner.db.read().await
    }

    /// A transaction that only reads in one workspace.
    pub(crate) async fn read_in(&self, workspace: WorkspaceId) -> Result<Tx, StoreError> {
        self.inner.db.read_in(workspace).await
    }

    /// How often a password was hashed since the start. Two answers that must look alike cost the same.
    pub fn password_runs(&self) -> u64 {
        self.inner.passwords.runs()
    }

    /// Runs a password function off the async threads, a few at once.
    pub(crate) async fn with_passwords<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Passwords) -> T + Send + 'static,
    ) -> Result<T, ControlError> {
        let _turn = self.inner.hashing.acquire().await.map_err(ControlError::internal)?;
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || work(&inner.passwords))
            .await
            .map_err(ControlError::internal)
    }
}
