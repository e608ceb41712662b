//! Workspaces that were deleted: for a while they can be restored, then all they own goes.

use chrono::{DateTime, Utc};
use sluice_domain::{ChangeKind, UserId, WorkspaceId};

use crate::column::record;
use crate::conn::{execute, fetch_all};
use crate::text::rows;
use crate::{Conn, StoreError, changes};

record! {
    /// A deleted workspace as one of its admins sees it.
    pub struct ClosedWorkspace {
        pub id: WorkspaceId,
        pub slug: String,
        pub name: String,
        pub deleted_at: DateTime<Utc>,
    }
}

/// The deleted workspaces of which the person is an admin, newest first.
pub async fn list_closed(
    conn: &mut Conn<'_>,
    user: UserId,
) -> Result<Vec<ClosedWorkspace>, StoreError> {
    Ok(fetch_all!(
        conn,
        ClosedWorkspace,
        "SELECT w.id, w.slug, w.name, w.deleted_at
         FROM memberships m JOIN workspaces w ON w.id = m.workspace_id
         WHERE m.user_id = $1 AND m.role = 'admin' AND w.deleted_at IS NOT NULL
         ORDER BY w.deleted_at DESC LIMIT 1000",
        user
    )?)
}

/// Marks the workspace deleted: nothing finds it any more, its grants stop, its slug stays taken.
pub async fn delete(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE workspaces SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL";
    let found = execute!(conn, sql, workspace, now)? > 0;
    if found {
        changes::append(conn, workspace, ChangeKind::Workspace, workspace.uuid(), now).await?;
    }
    Ok(found)
}

/// Brings back a workspace that was deleted after `since`; says whether there is one.
pub async fn restore(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE workspaces SET deleted_at = NULL WHERE id = $1 AND deleted_at > $2";
    let found = execute!(conn, sql, workspace, since)? > 0;
    if found {
        changes::append(conn, workspace, ChangeKind::Workspace, workspace.uuid(), now).await?;
    }
    Ok(found)
}

/// Workspaces that were deleted at `until` or before.
pub async fn closed_until(
    conn: &mut Conn<'_>,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<ClosedWorkspace>, StoreError> {
    Ok(fetch_all!(
        conn,
        ClosedWorkspace,
        "SELECT id, slug, name, deleted_at FROM workspaces
         WHERE deleted_at <= $1 ORDER BY deleted_at LIMIT $2",
        until,
        rows(limit)
    )?)
}

/// Deletes at most `limit` rows of what a deleted workspace logged; says how many went.
pub async fn erase_log(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    limit: i64,
) -> Result<u64, StoreError> {
    let calls = execute!(
        conn,
        "DELETE FROM calls WHERE workspace_id = $1 AND id IN (
           SELECT c.id FROM calls c JOIN workspaces w ON w.id = c.workspace_id
           WHERE c.workspace_id = $1 AND w.deleted_at IS NOT NULL ORDER BY c.id LIMIT $2)",
        workspace,
        rows(limit)
    )?;
    if calls > 0 {
        return Ok(calls);
    }
    Ok(execute!(
        conn,
        "DELETE FROM approvals WHERE workspace_id = $1 AND id IN (
           SELECT a.id FROM approvals a JOIN workspaces w ON w.id = a.workspace_id
           WHERE a.workspace_id = $1 AND w.deleted_at IS NOT NULL ORDER BY a.id LIMIT $2)",
        workspace,
        rows(limit)
    )?)
}

/// Deletes a workspace that was deleted at `until` or before, with all it owns; says whether it was there.
/// Erase its log first: that may be long.
pub async fn erase(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    until: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM workspaces WHERE id = $1 AND deleted_at <= $2";
    if execute!(conn, sql, workspace, until)? == 0 {
        return Ok(false);
    }
    for sql in [
        "DELETE FROM calls WHERE workspace_id = $1",
        "DELETE FROM call_days WHERE workspace_id = $1",
        "DELETE FROM call_tools WHERE workspace_id = $1",
        "DELETE FROM security_events WHERE workspace_id = $1",
        "DELETE FROM idempotency_keys WHERE workspace_id = $1",
        "DELETE FROM changes WHERE workspace_id = $1",
    ] {
        execute!(conn, sql, workspace)?;
    }
    Ok(true)
}

/// The person who answers for the workspace from now on.
pub async fn set_created_by(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<(), StoreError> {
    let sql = "UPDATE workspaces SET created_by = $2 WHERE id = $1";
    execute!(conn, sql, workspace, user)?;
    Ok(())
}
