//! Links by which one approval can be decided. The id alone is worth nothing: whoever hands links
//! out signs it.

use chrono::{DateTime, Utc};
use sluice_domain::{ApprovalId, ApprovalLinkId, UserId, WorkspaceId};

use crate::column::{micros, record};
use crate::conn::{execute, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// A link that was handed out.
    pub struct ApprovalLink {
        pub id: ApprovalLinkId,
        pub workspace_id: WorkspaceId,
        pub approval_id: ApprovalId,
        /// Who decides by it; `None`: whoever signs in and may.
        pub user_id: Option<UserId>,
        pub created_at: DateTime<Utc>,
        pub used_at: Option<DateTime<Utc>>,
    }
}

/// Makes a link.
pub async fn create_link(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    approval: ApprovalId,
    user: Option<UserId>,
    now: DateTime<Utc>,
) -> Result<ApprovalLink, StoreError> {
    let id = ApprovalLinkId::new();
    execute!(
        conn,
        "INSERT INTO approval_links (id, workspace_id, approval_id, user_id, created_at)
         VALUES ($1, $2, $3, $4, $5)",
        id,
        workspace,
        approval,
        user,
        now
    )?;
    Ok(ApprovalLink {
        id,
        workspace_id: workspace,
        approval_id: approval,
        user_id: user,
        created_at: micros(now),
        used_at: None,
    })
}

/// The link, whatever the workspace: its signature, which the caller has checked, is the right to
/// see it.
pub async fn find_link(
    conn: &mut Conn<'_>,
    id: ApprovalLinkId,
) -> Result<Option<ApprovalLink>, StoreError> {
    Ok(fetch_optional!(
        conn,
        ApprovalLink,
        "SELECT l.id, l.workspace_id, l.approval_id, l.user_id, l.created_at, l.used_at
         FROM approval_links l JOIN workspaces w ON w.id = l.workspace_id
         WHERE l.id = $1 AND w.deleted_at IS NULL",
        id
    )?)
}

/// Uses a link up; false if it was used before.
pub async fn use_link(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApprovalLinkId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE approval_links SET used_at = $3
               WHERE workspace_id = $1 AND id = $2 AND used_at IS NULL";
    Ok(execute!(conn, sql, workspace, id, now)? > 0)
}
