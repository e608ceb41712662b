//! Parked calls, in the database: arguments sealed, waiters woken by the change feed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sluice_domain::{ApprovalId, ApprovalStatus, CallId, WorkspaceId};
use sluice_limits::Clock;
use sluice_proxy::{
    Approval, ApprovalKey, Approvals, Exception, ParkError, ParkedCall, Released, StoreUnavailable,
};
use sluice_store::approvals::{self, NewApproval, Parked, SameCall, Taken};
use sluice_store::{Db, StoreError};
use sluice_vault::{Place, Vault};
use tokio::sync::broadcast;
use tracing::{debug, error};

/// Calls of one grant that may wait at once.
const MAX_PENDING: i64 = 50;
/// How often a waiter looks by itself, should the feed be late.
const LOOK: Duration = Duration::from_secs(2);
/// How long the end of a call is tried to be written, and how long its client waits for that.
const WRITE_FOR: Duration = Duration::from_mins(5);
const WRITE_WAIT: Duration = Duration::from_secs(1);
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// The proxy's approvals, in the database.
#[derive(Debug)]
pub(crate) struct StoredApprovals {
    pub(crate) db: Db,
    pub(crate) vault: Arc<Vault>,
    pub(crate) clock: ClockOf,
    /// Who releases here, for the record.
    pub(crate) replica: String,
    /// Approvals that the feed says have changed.
    pub(crate) changed: broadcast::Sender<ApprovalId>,
    /// What this replica runs.
    pub(crate) running: Running,
}

/// Approved calls on their way, and in which workspace.
pub(crate) type Running = Arc<Mutex<HashMap<(ApprovalId, CallId), WorkspaceId>>>;

/// A clock that can be shown.
#[derive(Clone)]
pub(crate) struct ClockOf(pub(crate) Clock);

impl std::fmt::Debug for ClockOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl StoredApprovals {
    async fn find(
        &self,
        key: &ApprovalKey,
        now: DateTime<Utc>,
    ) -> Result<Option<Approval>, StoreError> {
        let (arguments, rules) = (hex(&key.arguments_digest), hex(&key.rules_digest));
        let same = SameCall {
            grant: key.grant,
            tool: &key.tool,
            arguments_digest: &arguments,
            rules_digest: &rules,
        };
        let mut tx = self.db.read_in(key.workspace).await?;
        let found = approvals::find_live(&mut tx.conn(), key.workspace, same, now).await?;
        tx.rollback().await?;
        found.map(|row| stand(row, now)).transpose()
    }

    async fn excepted(
        &self,
        key: &ApprovalKey,
        hash: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Option<Exception>, StoreError> {
        let (arguments, rules) = (hex(&key.arguments_digest), hex(&key.rules_digest));
        let same = SameCall {
            grant: key.grant,
            tool: &key.tool,
            arguments_digest: &arguments,
            rules_digest: &rules,
        };
        let mut tx = self.db.begin_in(key.workspace).await?;
        let conn = &mut tx.conn();
        let used = approvals::use_exception(conn, key.workspace, same, hash, now).await?;
        tx.commit().await?;
        Ok(used.map(|one| Exception { by: one.created_by_email, until: one.expires_at }))
    }

    async fn park(&self, call: &ParkedCall) -> Result<Option<Approval>, StoreError> {
        let (id, key) = (ApprovalId::new(), &call.key);
        let (arguments, rules) = (hex(&key.arguments_digest), hex(&key.rules_digest));
        let place = Place::approval_arguments(key.workspace, id);
        let sealed = self.vault.seal(place, call.arguments.as_bytes());
        let demands = serde_json::to_string(&call.demands).map_err(|e| unreadable(e.into()))?;
        let new = NewApproval {
            id,
            server: key.server,
            grant: key.grant,
            grant_label: &call.grant_label,
            call: call.call,
            tool: &key.tool,
            tool_hash: call.definition_hash.as_deref(),
            arguments_digest: &arguments,
            sealed_arguments: &sealed,
            policy: key.policy,
            policy_version: key.policy_version,
            rule: &call.rule,
            rules_digest: &rules,
            session: call.session.as_deref(),
            client_name: call.client_name.as_deref(),
            reservation: Some(call.reservation),
            demands: Some(&demands),
            approvers: &call.approvers,
            quorum: i64::from(call.quorum),
            self_allowed: call.self_allowed,
            hold_until: call.at + call.hold,
            expires_at: call.at + call.expires,
        };
        let mut tx = self.db.begin_in(key.workspace).await?;
        let workspace = key.workspace;
        let parked =
            approvals::create_or_join(&mut tx.conn(), workspace, new, MAX_PENDING, call.at).await?;
        tx.commit().await?;
        match parked {
            Parked::Created(row) | Parked::Joined(row) => stand(row, call.at).map(Some),
            Parked::TooMany => Ok(None),
        }
    }

    async fn look(&self, workspace: WorkspaceId, id: ApprovalId) -> Result<Approval, StoreError> {
        let mut tx = self.db.read_in(workspace).await?;
        let row = approvals::find(&mut tx.conn(), workspace, id).await?;
        tx.rollback().await?;
        stand(row.ok_or(StoreError::DanglingReference)?, (self.clock.0)())
    }

    async fn decided(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
    ) -> Result<Approval, StoreError> {
        let mut changed = self.changed.subscribe();
        loop {
            match self.look(workspace, id).await {
                Ok(approval) if approval.status == ApprovalStatus::Pending => {}
                Err(StoreError::DanglingReference) => return Err(StoreError::DanglingReference),
                // Away for a while: the call is held as long as its rule says all the same.
                Err(error) => debug!(error = ?error, "An approval cannot be read now"),
                decided => return decided,
            }
            let told = async { while changed.recv().await.is_ok_and(|which| which != id) {} };
            tokio::time::timeout(LOOK, told).await.ok();
        }
    }

    async fn claim(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let mut tx = self.db.begin_in(workspace).await?;
        let by = &self.replica;
        let taken = approvals::take_for_run(&mut tx.conn(), workspace, id, call, by, now).await?;
        tx.commit().await?;
        let yours = matches!(taken, Some(Taken::Yours(_)));
        if yours {
            self.running.lock().insert((id, call), workspace);
        }
        Ok(yours)
    }

    /// Says of every approved call that runs here that it does.
    pub(crate) async fn say_what_runs(&self) -> Result<(), StoreError> {
        let running: Vec<_> =
            self.running.lock().iter().map(|(of, workspace)| (*of, *workspace)).collect();
        if running.is_empty() {
            return Ok(());
        }
        let now = (self.clock.0)();
        let mut tx = self.db.begin().await?;
        for ((id, call), workspace) in running {
            approvals::still_running(&mut tx.conn(), workspace, id, call, now).await?;
        }
        tx.commit().await
    }

    /// Writes down how a call ended, in the background if the database lets its client wait too long.
    async fn ended(&self, ended: Ended) -> Result<(), StoreUnavailable> {
        let (db, running) = (self.db.clone(), Arc::clone(&self.running));
        let writing = tokio::spawn(async move {
            let written = tokio::time::timeout(WRITE_FOR, async {
                while let Err(error) = ended.write(&db).await {
                    debug!(error = ?error, "How an approved call ended cannot be written now");
                    tokio::time::sleep(WRITE_AGAIN).await;
                }
            });
            let written = written.await;
            // From now on nobody says that it runs: if it could not be written, it is unknown soon.
            running.lock().remove(&(ended.id, ended.call));
            written.map_err(|_| StoreUnavailable)
        });
        match tokio::time::timeout(WRITE_WAIT, writing).await {
            Ok(Ok(written)) => written,
            Ok(Err(_)) | Err(_) => Err(StoreUnavailable),
        }
    }
}

/// How a released call ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    how: Released,
    at: DateTime<Utc>,
}

impl Ended {
    async fn write(&self, db: &Db) -> Result<(), StoreError> {
        let Self { workspace, id, call, how, at } = *self;
        let mut tx = db.begin_in(workspace).await?;
        let conn = &mut tx.conn();
        match how {
            Released::Ran => approvals::finish(conn, workspace, id, call, at).await?,
            Released::NotRun => approvals::put_back(conn, workspace, id, call, at).await?,
            Released::Unknown => approvals::give_up(conn, workspace, id, call, at).await?,
        };
        tx.commit().await
    }
}

impl Approvals for StoredApprovals {
    fn find<'a>(
        &'a self,
        key: &'a ApprovalKey,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Approval>, StoreUnavailable>> {
        self.find(key, now).map(told).boxed()
    }

    fn excepted<'a>(
        &'a self,
        key: &'a ApprovalKey,
        definition_hash: Option<&'a str>,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Exception>, StoreUnavailable>> {
        self.excepted(key, definition_hash, now).map(told).boxed()
    }

    fn park(&self, call: ParkedCall) -> BoxFuture<'_, Result<Approval, ParkError>> {
        async move { told(self.park(&call).await)?.ok_or(ParkError::TooMany) }.boxed()
    }

    fn decided(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
    ) -> BoxFuture<'_, Result<Approval, StoreUnavailable>> {
        self.decided(workspace, id).map(told).boxed()
    }

    fn claim(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        now: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<bool, StoreUnavailable>> {
        self.claim(workspace, id, call, now).map(told).boxed()
    }

    fn released(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        how: Released,
        now: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        self.ended(Ended { workspace, id, call, how, at: now }).boxed()
    }
}

/// The proxy only learns that the store does not help; why is for the log.
fn told<T>(result: Result<T, StoreError>) -> Result<T, StoreUnavailable> {
    result.map_err(|error| {
        error!(error = ?error, "An approval cannot be read or written");
        StoreUnavailable
    })
}

/// How a stored approval stands now: one that is due and not yet swept has expired all the same.
fn stand(row: approvals::Approval, now: DateTime<Utc>) -> Result<Approval, StoreError> {
    let due = row.expires_at <= now
        && matches!(row.status, ApprovalStatus::Pending | ApprovalStatus::Approved);
    let demands = match &row.demands {
        Some(text) => serde_json::from_str(text).map_err(|error| unreadable(error.into()))?,
        None => Vec::new(),
    };
    let reservation =
        row.reservation.ok_or_else(|| unreadable("an approval without a reservation".into()))?;
    Ok(Approval {
        id: row.id,
        status: if due { ApprovalStatus::Expired } else { row.status },
        expires_at: row.expires_at,
        note: row.note,
        reservation,
        demands,
        definition_hash: row.tool_hash,
    })
}

fn unreadable(source: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    StoreError::Unreadable { what: "approvals.demands", source }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
