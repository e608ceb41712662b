//! How long log rows are kept: whole days go where no workspace keeps them, other rows in small pieces.

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::WorkspaceId;
use sluice_store::{Db, StoreError, approvals, calls, changes, security_events, workspaces};

use crate::settings::BoundsArgs;

const PIECE: i64 = 5_000;
/// Days that have their partition before they begin: replicas may stand still for so long.
const AHEAD: u64 = 3;
/// The change feed's rows are read within seconds.
const CHANGES_KEPT: TimeDelta = TimeDelta::hours(1);

/// What an operator's settings keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    /// `None`: for ever; a workspace's own word goes before.
    calls: Option<TimeDelta>,
    security: Option<TimeDelta>,
    changes: TimeDelta,
}

impl Retention {
    pub(super) fn of(bounds: &BoundsArgs) -> Self {
        let kept = |time: std::time::Duration| {
            (!time.is_zero()).then(|| TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX))
        };
        let stale = TimeDelta::from_std(bounds.stale_routes).unwrap_or(CHANGES_KEPT);
        Self {
            calls: kept(bounds.call_retention),
            security: kept(bounds.security_retention),
            changes: (stale * 2).max(CHANGES_KEPT),
        }
    }

    /// Makes the next days of the call log, and forgets what nobody keeps; says how many rows and days went.
    pub(super) async fn apply(
        &self,
        db: &Db,
        now: DateTime<Utc>,
    ) -> Result<(u64, u64), StoreError> {
        let mut tx = db.begin().await?;
        changes::prune(&mut tx.conn(), now - self.changes).await?;
        tx.commit().await?;
        let mut tx = db.begin().await?;
        calls::make_days(&mut tx.conn(), now, AHEAD).await?;
        tx.commit().await?;
        let mut rows = 0;
        if let Some(kept) = self.security {
            rows += delete(db, Log::Security, now - kept).await?;
        }
        if let Some(kept) = self.calls {
            rows += delete(db, Log::Approvals, now - kept).await?;
        }
        let all = self.workspaces(db).await?;
        let longest = all
            .iter()
            .map(|(_, kept)| *kept)
            .chain([self.calls])
            .max_by_key(|kept| kept.unwrap_or(TimeDelta::MAX));
        let mut days = 0;
        if let Some(Some(longest)) = longest {
            let mut tx = db.begin().await?;
            days = calls::drop_days(&mut tx.conn(), now - longest).await?;
            tx.commit().await?;
        }
        for (workspace, kept) in all {
            if let Some(kept) = kept {
                rows += delete(db, Log::Calls(workspace), now - kept).await?;
            }
        }
        Ok((rows, days))
    }

    /// Every workspace, and how long its calls are kept.
    async fn workspaces(
        &self,
        db: &Db,
    ) -> Result<Vec<(WorkspaceId, Option<TimeDelta>)>, StoreError> {
        let mut all: Vec<(WorkspaceId, Option<TimeDelta>)> = Vec::new();
        loop {
            let mut tx = db.read().await?;
            let after = all.last().map(|(id, _)| *id);
            let page = workspaces::list_all(&mut tx.conn(), after, PIECE).await?;
            tx.rollback().await?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page.iter().map(|one| (one.id, one.limits.log_kept(self.calls))));
        }
    }
}

#[derive(Clone, Copy)]
enum Log {
    Security,
    Approvals,
    Calls(WorkspaceId),
}

/// Deletes in pieces, so that writers get their turn in between.
async fn delete(db: &Db, log: Log, before: DateTime<Utc>) -> Result<u64, StoreError> {
    let mut deleted = 0;
    loop {
        let mut tx = db.begin().await?;
        let conn = &mut tx.conn();
        let rows = match log {
            Log::Security => security_events::prune(conn, before, PIECE).await?,
            Log::Approvals => approvals::prune(conn, before, PIECE).await?,
            Log::Calls(workspace) => calls::prune(conn, workspace, before, PIECE).await?,
        };
        tx.commit().await?;
        deleted += rows;
        if rows < PIECE.unsigned_abs() {
            return Ok(deleted);
        }
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
