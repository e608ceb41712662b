//! An approved call on its way: the approval is told exactly once how it
//! ended, and identical calls that waited for it get the same result.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;
use sluice_domain::{ApprovalId, CallId, WorkspaceId};
use sluice_limits::Clock;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::ports::{Approvals, Released};

/// Larger results are not kept for identical calls.
const MAX_SHARED: usize = 1 << 20;
const SHARED_FOR: Duration = Duration::from_mins(5);
/// How long a claimed call takes to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);
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

/// Results of released calls in this process, for a few minutes.
#[derive(Debug, Clone)]
pub(crate) struct SharedResults(Cache<ApprovalId, Arc<watch::Sender<Shared>>>);

impl Default for SharedResults {
    fn default() -> Self {
        let results =
            Cache::builder().max_capacity(MAX_SHARED_RESULTS).time_to_live(SHARED_FOR).build();
        Self(results)
    }
}

impl SharedResults {
    fn channel(&self, id: ApprovalId) -> Arc<watch::Sender<Shared>> {
        self.0.get_with(id, || Arc::new(watch::channel(Shared::Idle).0))
    }

    /// What became of an approval's one call, if it runs in this process; waits for it up to `hold`.
    pub(crate) async fn result(&self, id: ApprovalId, hold: Duration) -> Option<Bytes> {
        let mut shared = self.channel(id).subscribe();
        // Whoever claimed the approval begins at once, unless it is another process.
        let begun = shared.wait_for(|shared| !matches!(shared, Shared::Idle));
        timeout(BEGINS_WITHIN, begun).await.ok()?.ok()?;
        let done = shared.wait_for(|shared| !matches!(shared, Shared::Running));
        match &*timeout(hold, done).await.ok()?.ok()? {
            Shared::Result(result) => Some(result.clone()),
            Shared::Idle | Shared::Running | Shared::Gone => None,
        }
    }
}

/// A claimed approval. Dropped without word, nobody knows whether the call ran.
pub(crate) struct Release {
    approvals: Arc<dyn Approvals>,
    clock: Clock,
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    result: Arc<watch::Sender<Shared>>,
    told: bool,
}

impl Release {
    pub(crate) fn new(
        approvals: Arc<dyn Approvals>,
        clock: Clock,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        shared: &SharedResults,
    ) -> Self {
        let result = shared.channel(id);
        result.send_replace(Shared::Running);
        Self { approvals, clock, workspace, id, call, result, told: false }
    }

    async fn tell(&mut self, how: Released) {
        self.told = true;
        let now = (self.clock)();
        let told = self.approvals.released(self.workspace, self.id, self.call, how, now).await;
        if told.is_err() {
            tracing::error!(approval = %self.id, ?how, "Could not note how an approved call ended");
        }
    }

    /// The call ran, and this is its answer.
    pub(crate) async fn ran(mut self, result: Option<Bytes>) {
        let result = result.filter(|result| result.len() <= MAX_SHARED);
        self.result.send_replace(result.map_or(Shared::Gone, Shared::Result));
        self.tell(Released::Ran).await;
    }

    /// The call never reached the upstream; the approval may be used again.
    pub(crate) async fn not_run(mut self) {
        self.result.send_replace(Shared::Gone);
        self.tell(Released::NotRun).await;
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if self.told {
            return;
        }
        self.result.send_replace(Shared::Gone);
        let (approvals, workspace, id, call) =
            (Arc::clone(&self.approvals), self.workspace, self.id, self.call);
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
