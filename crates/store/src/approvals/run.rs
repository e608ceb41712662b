//! The release: an approved call is taken by one replica, once.

use chrono::{DateTime, Utc};
use serde_json::json;
use sluice_domain::{
    ApprovalEventKind, ApprovalId, ApprovalStatus, CallId, ChangeKind, WorkspaceId,
};

use super::{Approval, Closed, NewEvent, find, note};
use crate::conn::{execute, fetch_all};
use crate::{Conn, StoreError, changes};

/// What came of taking an approval.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// The caller runs it now; nobody else can.
    Yours(Approval),
    /// It is not to be run: the approval says why (undecided, refused, expired, taken, used).
    No(Approval),
}

/// Takes an approved call for running under `call`, at the replica `by`. `None`: no such approval.
pub async fn take_for_run(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    by: &str,
    now: DateTime<Utc>,
) -> Result<Option<Taken>, StoreError> {
    let taken = execute!(
        conn,
        "UPDATE approvals SET status = 'running', run_at = $3, run_by = $4, run_call_id = $5
         WHERE workspace_id = $1 AND id = $2 AND status = 'approved' AND live AND expires_at > $3",
        workspace,
        id,
        now,
        by,
        call
    )? > 0;
    if taken {
        let detail = json!({"call": call});
        let event = NewEvent::of(ApprovalEventKind::Released).with(&detail);
        note(conn, workspace, id, event, now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    let approval = find(conn, workspace, id).await?;
    Ok(approval.map(if taken { Taken::Yours } else { Taken::No }))
}

/// The upstream answered: the approval is used up. Says whether it was running.
pub async fn finish(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    end(conn, workspace, id, ApprovalStatus::Used, now).await
}

/// The call was released, and whether it ran is not known. Says whether it was running.
pub async fn give_up(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    end(conn, workspace, id, ApprovalStatus::Unknown, now).await
}

async fn end(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    status: ApprovalStatus,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let ended = execute!(
        conn,
        "UPDATE approvals SET status = $3, live = FALSE, finished_at = $4
         WHERE workspace_id = $1 AND id = $2 AND status = 'running'",
        workspace,
        id,
        status,
        now
    )? > 0;
    if ended {
        let kind = match status {
            ApprovalStatus::Used => ApprovalEventKind::Ran,
            _ => ApprovalEventKind::Unknown,
        };
        note(conn, workspace, id, NewEvent::of(kind), now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    Ok(ended)
}

/// The release was refused before anything was sent (a limit, a lost connection): the approval
/// is good again until it expires. Says whether it was running.
pub async fn put_back(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let back = execute!(
        conn,
        "UPDATE approvals SET status = 'approved', run_at = NULL, run_by = NULL, run_call_id = NULL
         WHERE workspace_id = $1 AND id = $2 AND status = 'running'",
        workspace,
        id
    )? > 0;
    if back {
        note(conn, workspace, id, NewEvent::of(ApprovalEventKind::NotRun), now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    Ok(back)
}

/// What was released before `released_before` and never finished, in any workspace (or only by
/// the replica `by`, which knows at its start that it runs nothing yet), becomes "unknown": it is
/// never run again.
pub async fn mark_unknown(
    conn: &mut Conn<'_>,
    by: Option<&str>,
    released_before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<Closed>, StoreError> {
    let lost = fetch_all!(
        conn,
        Closed,
        "UPDATE approvals SET status = 'unknown', live = FALSE, finished_at = $1
         WHERE status = 'running' AND run_at < $2 AND ($3 IS NULL OR run_by = $3)
         RETURNING workspace_id, id, status, reservation, demands",
        now,
        released_before,
        by
    )?;
    for approval in &lost {
        let (workspace, id) = (approval.workspace_id, approval.id);
        note(conn, workspace, id, NewEvent::of(ApprovalEventKind::Unknown), now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    Ok(lost)
}
