//! What time does to approvals: they expire, lose their arguments, and are forgotten. For the
//! operator's jobs, so over all workspaces.

use chrono::{DateTime, Utc};
use sluice_domain::{
    ApprovalEventKind, ApprovalId, ApprovalStatus, ChangeKind, ReservationId, WorkspaceId,
};

use super::{NewEvent, note};
use crate::column::record;
use crate::conn::{execute, fetch_all};
use crate::text::rows;
use crate::{Conn, StoreError, changes};

record! {
    /// An approval that was just closed, not by a person.
    pub struct Closed {
        pub workspace_id: WorkspaceId,
        pub id: ApprovalId,
        pub status: ApprovalStatus,
        /// To be given back by the caller, if the status is `expired`.
        pub reservation: Option<ReservationId>,
        pub demands: Option<String>,
    }
}

/// Closes what nobody decided, or nobody came for, in time, in any workspace, `limit` at most, and
/// says what; each is a change in the feed. Of several callers at once each row comes to one.
pub async fn expire_due(
    conn: &mut Conn<'_>,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Closed>, StoreError> {
    // SQLite has one writer anyway.
    let sql = match conn {
        Conn::Postgres(_) => {
            "UPDATE approvals SET live = FALSE, status = 'expired'
             WHERE status IN ('pending', 'approved') AND expires_at <= $1
               AND id IN (SELECT id FROM approvals
                          WHERE status IN ('pending', 'approved') AND expires_at <= $1
                          ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
             RETURNING workspace_id, id, status, reservation, demands"
        }
        Conn::Sqlite(_) => {
            "UPDATE approvals SET live = FALSE, status = 'expired'
             WHERE status IN ('pending', 'approved') AND expires_at <= $1
               AND id IN (SELECT id FROM approvals
                          WHERE status IN ('pending', 'approved') AND expires_at <= $1
                          ORDER BY expires_at LIMIT $2)
             RETURNING workspace_id, id, status, reservation, demands"
        }
    };
    let due = fetch_all!(conn, Closed, sql, now, limit)?;
    for approval in &due {
        let (workspace, id) = (approval.workspace_id, approval.id);
        note(conn, workspace, id, NewEvent::of(ApprovalEventKind::Expired), now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    Ok(due)
}

/// Notes of what nobody decided in the time that its workspace sets that others are to be told, in
/// any workspace, `limit` at most; says of how many. Each is noted once.
pub async fn escalate_due(
    conn: &mut Conn<'_>,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<usize, StoreError> {
    let skip = match conn {
        Conn::Postgres(_) => "FOR UPDATE SKIP LOCKED",
        Conn::Sqlite(_) => "",
    };
    let sql = format!(
        "UPDATE approvals SET escalated_at = $1
         WHERE id IN (SELECT id FROM approvals
                      WHERE status = 'pending' AND escalated_at IS NULL AND escalate_at IS NOT NULL
                        AND escalate_at <= $1 AND expires_at > $1
                      ORDER BY escalate_at LIMIT $2 {skip})
         RETURNING workspace_id, id, status, reservation, demands"
    );
    let due = fetch_all!(conn, Closed, sqlx::AssertSqlSafe(sql), now, rows(limit))?;
    for approval in &due {
        let (workspace, id) = (approval.workspace_id, approval.id);
        note(conn, workspace, id, NewEvent::of(ApprovalEventKind::Escalated), now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    Ok(due.len())
}

/// Wipes the arguments of approvals that were closed before `before`; says of how many. A denied one
/// refuses the same call until it expires, and is closed then.
pub async fn wipe_arguments(conn: &mut Conn<'_>, before: DateTime<Utc>) -> Result<u64, StoreError> {
    Ok(execute!(
        conn,
        "UPDATE approvals SET sealed_arguments = NULL
         WHERE sealed_arguments IS NOT NULL AND (NOT live OR expires_at < $1)
           AND COALESCE(finished_at, decided_at, expires_at) < $1",
        before
    )?)
}

record! {
    /// Sealed arguments, for rewrapping keys.
    pub struct SealedArguments {
        pub workspace_id: WorkspaceId,
        pub id: ApprovalId,
        pub sealed_arguments: Vec<u8>,
    }
}

/// Every workspace's sealed arguments in order of id, after the given one: for key rotation.
pub async fn list_sealed(
    conn: &mut Conn<'_>,
    after: Option<ApprovalId>,
    limit: i64,
) -> Result<Vec<SealedArguments>, StoreError> {
    Ok(fetch_all!(
        conn,
        SealedArguments,
        "SELECT workspace_id, id, sealed_arguments FROM approvals
         WHERE sealed_arguments IS NOT NULL AND ($1 IS NULL OR id > $1) ORDER BY id LIMIT $2",
        after,
        rows(limit)
    )?)
}

/// Replaces sealed arguments by the same ones under a newer key; says whether they still stood there.
pub async fn reseal(
    conn: &mut Conn<'_>,
    sealed: &SealedArguments,
    new: &[u8],
) -> Result<bool, StoreError> {
    let sql = "UPDATE approvals SET sealed_arguments = $4
               WHERE workspace_id = $1 AND id = $2 AND sealed_arguments = $3";
    let was = sealed.sealed_arguments.as_slice();
    Ok(execute!(conn, sql, sealed.workspace_id, sealed.id, was, new)? > 0)
}

/// Forgets approvals that were made before `before` and are closed, `limit` at most; says how many.
pub async fn prune(
    conn: &mut Conn<'_>,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, StoreError> {
    Ok(execute!(
        conn,
        "DELETE FROM approvals WHERE id IN
             (SELECT id FROM approvals WHERE created_at < $1 AND (NOT live OR expires_at < $1)
              AND status IN ('denied', 'expired', 'used', 'unknown') LIMIT $2)",
        before,
        rows(limit)
    )?)
}
