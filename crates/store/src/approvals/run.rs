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
        "UPDATE approvals SET status = 'running', run_at = $3, run_seen_at = $3, run_by = $4,
                run_call_id = $5
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

/// Notes that a released call still runs, so that nobody takes it for lost.
pub async fn still_running(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "UPDATE approvals SET run_seen_at = $4
         WHERE workspace_id = $1 AND id = $2 AND run_call_id = $3 AND status = 'running'",
        workspace,
        id,
        call,
        now
    )?;
    Ok(())
}

/// The upstream answered: the approval is used up. Says whether it was running, as this call, or was
/// taken for lost meanwhile.
pub async fn finish(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    end(conn, workspace, id, call, ApprovalStatus::Used, now).await
}

/// The call was released, and whether it ran is not known; until its expiry the same call is told so.
/// Says whether it was running, as this call.
pub async fn give_up(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    end(conn, workspace, id, call, ApprovalStatus::Unknown, now).await
}

async fn end(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    status: ApprovalStatus,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let ended = execute!(
        conn,
        "UPDATE approvals SET status = $4, live = $5, finished_at = $6
         WHERE workspace_id = $1 AND id = $2 AND run_call_id = $3
           AND (status = 'running' OR (status = 'unknown' AND NOT $5))",
        workspace,
        id,
        call,
        status,
        status == ApprovalStatus::Unknown,
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
/// is good again until it expires. Says whether it was running, as this call.
pub async fn put_back(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    call: CallId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let back = execute!(
        conn,
        "UPDATE approvals SET status = 'approved', run_at = NULL, run_seen_at = NULL, run_by = NULL,
                run_call_id = NULL
         WHERE workspace_id = $1 AND id = $2 AND run_call_id = $3 AND status = 'running'",
        workspace,
        id,
        call
    )? > 0;
    if back {
        note(conn, workspace, id, NewEvent::of(ApprovalEventKind::NotRun), now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    Ok(back)
}

/// What was released and whose replica has not said since `seen_before` that it still runs, in any
/// workspace, becomes "unknown": it is never run again.
pub async fn mark_unknown(
    conn: &mut Conn<'_>,
    seen_before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<Closed>, StoreError> {
    let lost = fetch_all!(
        conn,
        Closed,
        "UPDATE approvals SET status = 'unknown', finished_at = $1
         WHERE status = 'running' AND COALESCE(run_seen_at, run_at) < $2
         RETURNING workspace_id, id, status, reservation, demands",
        now,
        seen_before
    )?;
    for approval in &lost {
        let (workspace, id) = (approval.workspace_id, approval.id);
        note(conn, workspace, id, NewEvent::of(ApprovalEventKind::Unknown), now).await?;
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), now).await?;
    }
    Ok(lost)
}
