//! People deciding. Of several at once one wins; the others learn who.

use chrono::{DateTime, Utc};
use serde_json::json;
use sluice_domain::{
    ApprovalEventKind, ApprovalId, ApprovalStatus, ChangeKind, UserId, WorkspaceId,
};

use super::{Approval, NewEvent, find, note};
use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one};
use crate::{Conn, StoreError, changes};

record! {
    /// One person's decision.
    pub struct Decision {
        pub user_id: UserId,
        pub approve: bool,
        pub note: String,
        pub at: DateTime<Utc>,
        /// For how many seconds the person would let the same call pass.
        pub allow_s: Option<i64>,
    }
}

/// What came of deciding.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is decided now.
    Decided(Approval),
    /// Counted; so many more must approve.
    MoreNeeded { approval: Approval, missing: i64 },
    /// This person counted already, and more are needed.
    AlreadyYours(Approval),
    /// Somebody else was faster, or its time is over; the approval says what and who.
    TooLate(Approval),
}

/// Counts a person's decision. A refusal decides at once; an approval when `quorum` people gave
/// it. Whether the person may decide is for the caller to know. `None`: no such approval.
pub async fn decide(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    by: Decision,
) -> Result<Option<Verdict>, StoreError> {
    // The row's lock, so that deciders come one after the other.
    let sql = "UPDATE approvals SET quorum = quorum WHERE workspace_id = $1 AND id = $2";
    execute!(conn, sql, workspace, id)?;
    let Some(approval) = find(conn, workspace, id).await? else { return Ok(None) };
    if approval.status != ApprovalStatus::Pending || approval.expires_at <= by.at {
        return Ok(Some(Verdict::TooLate(approval)));
    }
    let counted = execute!(
        conn,
        "INSERT INTO approval_decisions (workspace_id, approval_id, user_id, approve, note, at, allow_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        workspace,
        id,
        by.user_id,
        by.approve,
        &by.note,
        by.at,
        by.allow_s
    )? > 0;
    if !counted && by.approve {
        return Ok(Some(Verdict::AlreadyYours(approval)));
    }
    let missing = if by.approve { missing(conn, &approval).await? } else { 0 };
    let kind = if by.approve { ApprovalEventKind::Approved } else { ApprovalEventKind::Denied };
    let detail = json!({"note": by.note, "missing": missing});
    let event = NewEvent::of(kind).by(by.user_id).with(&detail);
    note(conn, workspace, id, event, by.at).await?;
    if missing > 0 {
        changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), by.at).await?;
        return Ok(Some(Verdict::MoreNeeded { approval, missing }));
    }
    close(conn, workspace, id, &by).await?;
    Ok(find(conn, workspace, id).await?.map(Verdict::Decided))
}

async fn missing(conn: &mut Conn<'_>, approval: &Approval) -> Result<i64, StoreError> {
    let given = fetch_one!(
        conn,
        Value<i64>,
        "SELECT COUNT(*) AS value FROM approval_decisions
         WHERE workspace_id = $1 AND approval_id = $2 AND approve",
        approval.workspace_id,
        approval.id
    )?;
    Ok(approval.quorum - given.0)
}

async fn close(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
    by: &Decision,
) -> Result<(), StoreError> {
    let status = if by.approve { ApprovalStatus::Approved } else { ApprovalStatus::Denied };
    execute!(
        conn,
        "UPDATE approvals SET status = $3, decided_at = $4, decided_by = $5, note = $6
         WHERE workspace_id = $1 AND id = $2",
        workspace,
        id,
        status,
        by.at,
        by.user_id,
        &by.note
    )?;
    changes::append(conn, workspace, ChangeKind::Approval, id.uuid(), by.at).await
}

/// Who decided what, oldest first.
pub async fn decisions(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
) -> Result<Vec<Decision>, StoreError> {
    Ok(fetch_all!(
        conn,
        Decision,
        "SELECT user_id, approve, note, at, allow_s FROM approval_decisions
         WHERE workspace_id = $1 AND approval_id = $2 ORDER BY at, user_id",
        workspace,
        id
    )?)
}
