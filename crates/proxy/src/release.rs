//! An approved call on its way: the approval is told exactly once how it
//! ended, and identical calls that waited for it get the same result.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;
use sluice_domain::{ApprovalId, CallId, WorkspaceId};
use sluice_limits::{Bindings, Clock};
use sluice_vault::{Place, Vault};
use tokio::sync::watch;

use crate::ports::{Approvals, Released};

/// Larger results are not kept for identical calls.
const MAX_SHARED: usize = 1 << 20;
const SHARED_FOR: Duration = Duration::from_mins(5);
/// How long a result is left for other replicas, in pieces of this size.
const LEFT_FOR: Duration = Duration::from_mins(1);
const PIECE: usize = 60 * 1024;
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(200);
const MAX_SHARED_RESULTS: u64 = 1_000;

/// What an identical call gets.
#[derive(Debug, Clone)]
pub(crate) enum Shared {
    /// Nobody runs it in this process, yet.
    Idle,
    /// The one call is on its way.
    Running,
    /// Its answer, a JSON-RPC message.
    Result(Bytes),
    /// It ended, and its answer cannot be given again.
    Gone,
}

/// Results of released calls, for a few minutes: in this process, and sealed for the other replicas.
#[derive(Debug, Clone)]
pub(crate) struct SharedResults {
    here: Cache<ApprovalId, Arc<watch::Sender<Shared>>>,
    elsewhere: Bindings,
    vault: Arc<Vault>,
}

impl SharedResults {
    pub(crate) fn new(elsewhere: Bindings, vault: Arc<Vault>) -> Self {
        let here =
            Cache::builder().max_capacity(MAX_SHARED_RESULTS).time_to_live(SHARED_FOR).build();
        Self { here, elsewhere, vault }
    }

    fn channel(&self, id: ApprovalId) -> Arc<watch::Sender<Shared>> {
        self.here.get_with(id, || Arc::new(watch::channel(Shared::Idle).0))
    }

    /// What became of an approval's one call, wherever it runs; waits for it.
    pub(crate) async fn result(&self, workspace: WorkspaceId, id: ApprovalId) -> Option<Bytes> {
        let mut shared = self.channel(id).subscribe();
        let here = async {
            let done = shared.wait_for(|shared| matches!(shared, Shared::Result(_) | Shared::Gone));
            match done.await.as_deref() {
                Ok(Shared::Result(result)) => Some(result.clone()),
                _ => None,
            }
        };
        tokio::select! {
            result = here => result,
            result = self.fetched(workspace, id) => result,
        }
    }

    /// Waits for the word of another replica.
    async fn fetched(&self, workspace: WorkspaceId, id: ApprovalId) -> Option<Bytes> {
        loop {
            if let Ok(Some(count)) = self.elsewhere.peek(&owner(id), "pieces").await {
                let count: usize = std::str::from_utf8(&count).ok()?.parse().ok()?;
                return self.joined(workspace, id, count).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn joined(&self, workspace: WorkspaceId, id: ApprovalId, count: usize) -> Option<Bytes> {
        let mut sealed = Vec::new();
        for at in 0..count {
            sealed.extend(self.elsewhere.peek(&owner(id), &at.to_string()).await.ok()??);
        }
        self.vault.open(place(workspace, id), &sealed).ok().map(|open| Bytes::from(open.to_vec()))
    }

    /// Leaves the result for identical calls at other replicas; without one, that there is none.
    async fn leave(&self, workspace: WorkspaceId, id: ApprovalId, result: Option<&Bytes>) {
        let sealed = result.map(|result| self.vault.seal(place(workspace, id), result));
        let sealed = sealed.unwrap_or_default();
        let mut count = 0;
        for piece in sealed.chunks(PIECE) {
            let put = self.elsewhere.put(&owner(id), &count.to_string(), piece, LEFT_FOR).await;
            if !matches!(put, Ok(true)) {
                return;
            }
            count += 1;
        }
        let count = count.to_string();
        let put = self.elsewhere.put(&owner(id), "pieces", count.as_bytes(), LEFT_FOR).await;
        if !matches!(put, Ok(true)) {
            tracing::warn!(approval = %id, "Identical calls at other replicas do not get the result");
        }
    }
}

fn owner(id: ApprovalId) -> String {
    format!("result:{id}")
}

fn place(workspace: WorkspaceId, id: ApprovalId) -> Place {
    Place::new(workspace, "approvals", id.uuid(), "result")
}

/// Which release of which approval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Which {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: ApprovalId,
    pub(crate) call: CallId,
}

/// A claimed approval. Dropped without word, nobody knows whether the call ran.
pub(crate) struct Release {
    approvals: Arc<dyn Approvals>,
    clock: Clock,
    which: Which,
    shared: SharedResults,
    result: Arc<watch::Sender<Shared>>,
    told: bool,
}

impl Release {
    pub(crate) fn new(
        approvals: Arc<dyn Approvals>,
        clock: Clock,
        which: Which,
        shared: &SharedResults,
    ) -> Self {
        let result = shared.channel(which.id);
        result.send_replace(Shared::Running);
        Self { approvals, clock, which, shared: shared.clone(), result, told: false }
    }

    async fn tell(&mut self, how: Released) {
        self.told = true;
        let now = (self.clock)();
        let Which { workspace, id, call } = self.which;
        if self.approvals.released(workspace, id, call, how, now).await.is_err() {
            tracing::error!(approval = %id, ?how, "Could not note how an approved call ended");
        }
    }

    /// The call ran, and this is its answer.
    pub(crate) async fn ran(mut self, result: Option<Bytes>) {
        let result = result.filter(|result| result.len() <= MAX_SHARED);
        self.result.send_replace(result.clone().map_or(Shared::Gone, Shared::Result));
        let Which { workspace, id, .. } = self.which;
        // The other replicas learn from the store that it is over, so the result is there first.
        self.shared.leave(workspace, id, result.as_ref()).await;
        self.tell(Released::Ran).await;
    }

    /// The call never reached the upstream; the approval may be used again.
    pub(crate) async fn not_run(mut self) {
        // Whoever waits for the result may yet get that of a later run.
        self.result.send_replace(Shared::Idle);
        self.tell(Released::NotRun).await;
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if self.told {
            return;
        }
        self.result.send_replace(Shared::Gone);
        let approvals = Arc::clone(&self.approvals);
        let Which { workspace, id, call } = self.which;
        let now = (self.clock)();
        // Without a runtime the process is going down; the store finds the call running and says so.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if approvals.released(workspace, id, call, Released::Unknown, now).await.is_err() {
                    tracing::error!(approval = %id, "Could not note that an approved call's outcome is unknown");
                }
            });
        }
    }
}
