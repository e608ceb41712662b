//! Invitations into a workspace, by e-mail address. One open invitation an address.

use chrono::{DateTime, Utc};
use sluice_domain::{InviteId, Role, UserId, WorkspaceId};

use crate::column::{micros, record};
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::text::{key, rows};
use crate::{Conn, StoreError};

record! {
    /// An invitation.
    pub struct Invite {
        pub id: InviteId,
        pub workspace_id: WorkspaceId,
        pub email: String,
        pub role: Role,
        pub created_by: Option<UserId>,
        pub created_at: DateTime<Utc>,
        pub expires_at: DateTime<Utc>,
    }
}

/// What a new invitation is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewInvite<'a> {
    pub email: &'a str,
    pub role: Role,
    pub token_hash: &'a [u8],
    pub created_by: Option<UserId>,
    pub expires_at: DateTime<Utc>,
}

/// Invites an address; an open invitation of the same address is revoked and replaced.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    new: NewInvite<'_>,
    now: DateTime<Utc>,
) -> Result<Invite, StoreError> {
    execute!(
        conn,
        "UPDATE invites SET revoked_at = $3 WHERE workspace_id = $1 AND email_key = $2
         AND accepted_at IS NULL AND revoked_at IS NULL",
        workspace,
        key(new.email),
        now
    )?;
    let id = InviteId::new();
    let made = execute!(
        conn,
        "INSERT INTO invites
             (id, workspace_id, email, email_key, role, token_hash, created_by, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
        id,
        workspace,
        new.email.trim(),
        key(new.email),
        new.role,
        new.token_hash,
        new.created_by,
        now,
        new.expires_at
    )?;
    if made == 0 {
        return Err(StoreError::conflict("invites_email"));
    }
    Ok(Invite {
        id,
        workspace_id: workspace,
        email: new.email.trim().to_owned(),
        role: new.role,
        created_by: new.created_by,
        created_at: micros(now),
        expires_at: micros(new.expires_at),
    })
}

/// The open invitation of a token, whatever the workspace: the token is the right to see it.
pub async fn find_open(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<Invite>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Invite,
        "SELECT i.id, i.workspace_id, i.email, i.role, i.created_by, i.created_at, i.expires_at
         FROM invites i JOIN workspaces w ON w.id = i.workspace_id
         WHERE i.token_hash = $1 AND i.expires_at > $2 AND i.accepted_at IS NULL
           AND i.revoked_at IS NULL AND w.deleted_at IS NULL",
        token_hash,
        now
    )?)
}

/// Uses the invitation up; false if somebody was faster or it is no longer open.
pub async fn accept(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: InviteId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE invites SET accepted_at = $3 WHERE workspace_id = $1 AND id = $2
               AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > $3";
    Ok(execute!(conn, sql, workspace, id, now)? > 0)
}

/// Takes the invitation back; says whether it was open.
pub async fn revoke(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: InviteId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE invites SET revoked_at = $3 WHERE workspace_id = $1 AND id = $2
               AND accepted_at IS NULL AND revoked_at IS NULL";
    Ok(execute!(conn, sql, workspace, id, now)? > 0)
}

/// The open invitations, newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    now: DateTime<Utc>,
    before: Option<InviteId>,
    limit: i64,
) -> Result<Vec<Invite>, StoreError> {
    Ok(fetch_all!(
        conn,
        Invite,
        "SELECT id, workspace_id, email, role, created_by, created_at, expires_at FROM invites
         WHERE workspace_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL
           AND expires_at > $2 AND ($3 IS NULL OR id < $3)
         ORDER BY id DESC LIMIT $4",
        workspace,
        now,
        before,
        rows(limit)
    )?)
}
