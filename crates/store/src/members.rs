//! Who is in a workspace, and with which role. A workspace never loses its last admin.

use chrono::{DateTime, Utc};
use sluice_domain::{ChangeKind, Role, UserId, WorkspaceId};

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::text::rows;
use crate::{Conn, StoreError, changes};

record! {
    /// A user in a workspace.
    pub struct Member {
        pub user_id: UserId,
        pub email: String,
        pub name: String,
        pub role: Role,
        pub disabled: bool,
        pub created_at: DateTime<Utc>,
    }
}

/// What came of changing or removing a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    Done,
    /// No such member.
    Absent,
    /// It would leave the workspace without an admin.
    LastAdmin,
}

/// Adds a member, or changes nothing if the person is one already; says whether it was added.
pub async fn add(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let added = execute!(
        conn,
        "INSERT INTO memberships (workspace_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (workspace_id, user_id) DO NOTHING",
        workspace,
        user,
        role,
        now
    )? > 0;
    if added {
        changes::append(conn, workspace, ChangeKind::Member, user.uuid(), now).await?;
    }
    Ok(added)
}

/// The member's role.
pub async fn role(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Role>, StoreError> {
    let role = fetch_optional!(
        conn,
        Value<Role>,
        "SELECT role AS value FROM memberships WHERE workspace_id = $1 AND user_id = $2",
        workspace,
        user
    )?;
    Ok(role.map(|role| role.0))
}

/// The members, in the order in which their accounts were made.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<Member>, StoreError> {
    Ok(fetch_all!(
        conn,
        Member,
        "SELECT m.user_id, u.email, u.name, m.role, u.disabled, m.created_at
         FROM memberships m JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = $1 AND ($2 IS NULL OR m.user_id > $2)
         ORDER BY m.user_id LIMIT $3",
        workspace,
        after,
        rows(limit)
    )?)
}

/// Whether some admin of the workspace signs in by this identity provider.
pub async fn has_admin_of_issuer(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    issuer: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM memberships m
               JOIN identities i ON i.user_id = m.user_id JOIN users u ON u.id = m.user_id
               WHERE m.workspace_id = $1 AND m.role = 'admin' AND i.issuer = $2 AND NOT u.disabled";
    Ok(fetch_one!(conn, Value<i64>, sql, workspace, issuer)?.0 > 0)
}

/// Gives the member another role.
pub async fn set_role(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: DateTime<Utc>,
) -> Result<MemberChange, StoreError> {
    if role != Role::Admin && is_last_admin(conn, workspace, user).await? {
        return Ok(MemberChange::LastAdmin);
    }
    let sql = "UPDATE memberships SET role = $3 WHERE workspace_id = $1 AND user_id = $2";
    if execute!(conn, sql, workspace, user, role)? == 0 {
        return Ok(MemberChange::Absent);
    }
    changes::append(conn, workspace, ChangeKind::Member, user.uuid(), now).await?;
    Ok(MemberChange::Done)
}

/// Takes the person out of the workspace.
pub async fn remove(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<MemberChange, StoreError> {
    if is_last_admin(conn, workspace, user).await? {
        return Ok(MemberChange::LastAdmin);
    }
    let sql = "DELETE FROM memberships WHERE workspace_id = $1 AND user_id = $2";
    if execute!(conn, sql, workspace, user)? == 0 {
        return Ok(MemberChange::Absent);
    }
    changes::append(conn, workspace, ChangeKind::Member, user.uuid(), now).await?;
    Ok(MemberChange::Done)
}

/// Locks the workspace's row first, so that two admins cannot remove each other at once.
async fn is_last_admin(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<bool, StoreError> {
    execute!(conn, "UPDATE workspaces SET suspended = suspended WHERE id = $1", workspace)?;
    if role(conn, workspace, user).await? != Some(Role::Admin) {
        return Ok(false);
    }
    let others = fetch_one!(
        conn,
        Value<i64>,
        "SELECT COUNT(*) AS value FROM memberships m JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = $1 AND m.user_id <> $2 AND m.role = 'admin' AND NOT u.disabled",
        workspace,
        user
    )?;
    Ok(others.0 == 0)
}
