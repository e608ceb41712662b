//! REST tokens of a workspace. A token can never do more than the member who made it.

use chrono::{DateTime, Utc};
use sluice_domain::{ApiTokenId, Role, UserId, WorkspaceId};

use crate::column::{micros, record};
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::text::rows;
use crate::{Conn, StoreError};

record! {
    /// A REST token as shown to admins.
    pub struct ApiToken {
        pub id: ApiTokenId,
        pub workspace_id: WorkspaceId,
        pub label: String,
        pub role: Role,
        pub last4: String,
        pub created_by: UserId,
        pub created_at: DateTime<Utc>,
        pub expires_at: Option<DateTime<Utc>>,
        pub last_used_at: Option<DateTime<Utc>>,
        pub revoked_at: Option<DateTime<Utc>>,
    }
}

record! {
    /// What a presented token gives: where, as whom, and with which role at most.
    pub struct ApiTokenHolder {
        pub id: ApiTokenId,
        pub workspace_id: WorkspaceId,
        pub workspace_slug: String,
        pub suspended: bool,
        pub label: String,
        pub user_id: UserId,
        pub email: String,
        /// The token's role.
        pub token_role: Role,
        /// The role that its maker has now.
        pub member_role: Role,
        pub last_used_at: Option<DateTime<Utc>>,
    }
}

impl ApiTokenHolder {
    /// What the token may do: its own role, but no more than its maker's.
    pub fn role(&self) -> Role {
        self.token_role.min(self.member_role)
    }
}

/// What a new token is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewApiToken<'a> {
    pub label: &'a str,
    pub role: Role,
    pub token_hash: &'a [u8],
    pub last4: &'a str,
    pub created_by: UserId,
    pub expires_at: Option<DateTime<Utc>>,
}

/// Stores a token.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    new: NewApiToken<'_>,
    now: DateTime<Utc>,
) -> Result<ApiToken, StoreError> {
    let id = ApiTokenId::new();
    execute!(
        conn,
        "INSERT INTO api_tokens
             (id, workspace_id, label, role, token_hash, last4, created_by, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        id,
        workspace,
        new.label,
        new.role,
        new.token_hash,
        new.last4,
        new.created_by,
        now,
        new.expires_at
    )?;
    Ok(ApiToken {
        id,
        workspace_id: workspace,
        label: new.label.to_owned(),
        role: new.role,
        last4: new.last4.to_owned(),
        created_by: new.created_by,
        created_at: micros(now),
        expires_at: new.expires_at.map(micros),
        last_used_at: None,
        revoked_at: None,
    })
}

/// Whose a presented token is; `None` if unknown, expired, revoked, its maker no longer a member
/// or disabled, or the workspace deleted.
pub async fn find_by_hash(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<ApiTokenHolder>, StoreError> {
    Ok(fetch_optional!(
        conn,
        ApiTokenHolder,
        "SELECT t.id, t.workspace_id, w.slug AS workspace_slug, w.suspended, t.label,
                u.id AS user_id, u.email, t.role AS token_role, m.role AS member_role, t.last_used_at
         FROM api_tokens t
         JOIN workspaces w ON w.id = t.workspace_id
         JOIN users u ON u.id = t.created_by
         JOIN memberships m ON m.workspace_id = t.workspace_id AND m.user_id = t.created_by
         WHERE t.token_hash = $1 AND t.revoked_at IS NULL
           AND (t.expires_at IS NULL OR t.expires_at > $2)
           AND NOT u.disabled AND w.deleted_at IS NULL",
        token_hash,
        now
    )?)
}

/// The token of this hash, whatever the workspace and revoked or not: for the operator, who found
/// it somewhere.
pub async fn find_by_token(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
) -> Result<Option<ApiToken>, StoreError> {
    Ok(fetch_optional!(
        conn,
        ApiToken,
        "SELECT id, workspace_id, label, role, last4, created_by, created_at, expires_at,
                last_used_at, revoked_at
         FROM api_tokens WHERE token_hash = $1",
        token_hash
    )?)
}

/// Notes that the token was used.
pub async fn touch(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApiTokenId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let sql = "UPDATE api_tokens SET last_used_at = $3 WHERE workspace_id = $1 AND id = $2";
    execute!(conn, sql, workspace, id, now)?;
    Ok(())
}

/// Ends the token; says whether it was live.
pub async fn revoke(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ApiTokenId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE api_tokens SET revoked_at = $3
               WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL";
    Ok(execute!(conn, sql, workspace, id, now)? > 0)
}

/// The tokens, revoked ones too, newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    before: Option<ApiTokenId>,
    limit: i64,
) -> Result<Vec<ApiToken>, StoreError> {
    Ok(fetch_all!(
        conn,
        ApiToken,
        "SELECT id, workspace_id, label, role, last4, created_by, created_at, expires_at,
                last_used_at, revoked_at
         FROM api_tokens WHERE workspace_id = $1 AND ($2 IS NULL OR id < $2)
         ORDER BY id DESC LIMIT $3",
        workspace,
        before,
        rows(limit)
    )?)
}
