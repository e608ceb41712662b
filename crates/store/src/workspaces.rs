//! Workspaces: the tenants.

mod closed;

use chrono::{DateTime, Utc};
use sluice_domain::{ChangeKind, Role, UserId, WorkspaceId, WorkspaceLimits};

use crate::column::{Value, json, micros, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::error::conflict_as;
use crate::text::rows;
use crate::{Conn, StoreError, changes};

record! {
    /// A tenant.
    pub struct Workspace {
        pub id: WorkspaceId,
        pub slug: String,
        pub name: String,
        /// Switched off by the operator.
        pub suspended: bool,
        /// What the workspace's admins set; the keys are the caller's.
        pub settings: serde_json::Value,
        /// What the operator allows.
        pub limits: WorkspaceLimits,
        pub created_by: Option<UserId>,
        pub created_at: DateTime<Utc>,
    }
}

record! {
    /// A workspace as one of its members sees it.
    pub struct WorkspaceOfMember {
        pub id: WorkspaceId,
        pub slug: String,
        pub name: String,
        pub suspended: bool,
        pub role: Role,
    }
}

pub use closed::{
    ClosedWorkspace, closed_until, delete, erase, erase_log, list_closed, restore, set_created_by,
};

record! {
    /// How much a workspace has, for its bounds.
    pub struct Counts {
        pub servers: i64,
        pub policies: i64,
        /// Live ones.
        pub grants: i64,
        pub members: i64,
        /// Live ones.
        pub api_tokens: i64,
        /// What the operator allows.
        pub limits: WorkspaceLimits,
    }
}

/// Every workspace, in order of id, after the given one: for the operator's jobs.
pub async fn list_all(
    conn: &mut Conn<'_>,
    after: Option<WorkspaceId>,
    limit: i64,
) -> Result<Vec<Workspace>, StoreError> {
    Ok(fetch_all!(
        conn,
        Workspace,
        "SELECT id, slug, name, suspended, settings, limits, created_by, created_at
         FROM workspaces WHERE $1 IS NULL OR id > $1 ORDER BY id LIMIT $2",
        after,
        rows(limit)
    )?)
}

/// How much the workspace has.
pub async fn counts(conn: &mut Conn<'_>, workspace: WorkspaceId) -> Result<Counts, StoreError> {
    Ok(fetch_one!(
        conn,
        Counts,
        "SELECT
           (SELECT COUNT(*) FROM servers WHERE workspace_id = $1 AND deleted_at IS NULL) AS servers,
           (SELECT COUNT(*) FROM policies WHERE workspace_id = $1 AND deleted_at IS NULL) AS policies,
           (SELECT COUNT(*) FROM grants WHERE workspace_id = $1 AND revoked_at IS NULL) AS grants,
           (SELECT COUNT(*) FROM memberships WHERE workspace_id = $1) AS members,
           (SELECT COUNT(*) FROM api_tokens WHERE workspace_id = $1 AND revoked_at IS NULL) AS api_tokens,
           limits FROM workspaces WHERE id = $1",
        workspace
    )?)
}

/// Makes a workspace, without members yet. A slug that is or was another's is the conflict
/// `workspaces_slug`.
pub async fn create(
    conn: &mut Conn<'_>,
    slug: &str,
    name: &str,
    created_by: Option<UserId>,
    now: DateTime<Utc>,
) -> Result<Workspace, StoreError> {
    let id = WorkspaceId::new();
    let made = execute!(
        conn,
        "INSERT INTO workspaces (id, slug, name, suspended, settings, limits, created_by, created_at)
         SELECT $1, $2, $3, FALSE, '{}', '{}', $4, $5
         WHERE NOT EXISTS (SELECT 1 FROM slug_history WHERE slug = $2)
         ON CONFLICT (slug) DO NOTHING",
        id,
        slug,
        name,
        created_by,
        now
    )?;
    if made == 0 {
        return Err(StoreError::conflict("workspaces_slug"));
    }
    Ok(Workspace {
        id,
        slug: slug.to_owned(),
        name: name.to_owned(),
        suspended: false,
        settings: serde_json::json!({}),
        limits: WorkspaceLimits::default(),
        created_by,
        created_at: micros(now),
    })
}

/// The workspace, unless deleted.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Option<Workspace>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Workspace,
        "SELECT id, slug, name, suspended, settings, limits, created_by, created_at
         FROM workspaces WHERE id = $1 AND deleted_at IS NULL",
        workspace
    )?)
}

/// The workspace that has, or used to have, this slug. For the operator's commands; members
/// come in by [`find_for_member`].
pub async fn find_by_slug(
    conn: &mut Conn<'_>,
    slug: &str,
) -> Result<Option<Workspace>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Workspace,
        "SELECT id, slug, name, suspended, settings, limits, created_by, created_at
         FROM workspaces
         WHERE deleted_at IS NULL AND (slug = $1
            OR id = (SELECT workspace_id FROM slug_history WHERE slug = $1))",
        slug
    )?)
}

/// The workspace that has, or used to have, this slug, with the person's role in it; `None` also
/// where the person is no member.
pub async fn find_for_member(
    conn: &mut Conn<'_>,
    slug: &str,
    user: UserId,
) -> Result<Option<(Workspace, Role)>, StoreError> {
    let Some(workspace) = find_by_slug(conn, slug).await? else { return Ok(None) };
    let role = fetch_optional!(
        conn,
        Value<Role>,
        "SELECT role AS value FROM memberships WHERE workspace_id = $1 AND user_id = $2",
        workspace.id,
        user
    )?;
    Ok(role.map(|role| (workspace, role.0)))
}

/// The person's workspaces, by name.
pub async fn list_for_user(
    conn: &mut Conn<'_>,
    user: UserId,
) -> Result<Vec<WorkspaceOfMember>, StoreError> {
    Ok(fetch_all!(
        conn,
        WorkspaceOfMember,
        "SELECT w.id, w.slug, w.name, w.suspended, m.role
         FROM memberships m JOIN workspaces w ON w.id = m.workspace_id
         WHERE m.user_id = $1 AND w.deleted_at IS NULL
         ORDER BY lower(w.name), w.slug LIMIT 1000",
        user
    )?)
}

/// Changes the shown name; says whether the workspace exists.
pub async fn rename(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    name: &str,
) -> Result<bool, StoreError> {
    let sql = "UPDATE workspaces SET name = $2 WHERE id = $1 AND deleted_at IS NULL";
    Ok(execute!(conn, sql, workspace, name)? > 0)
}

/// Changes the slug; the old one goes on leading here and stays taken.
pub async fn change_slug(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    slug: &str,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let Some(before) = find(conn, workspace).await? else { return Ok(false) };
    if before.slug == slug {
        return Ok(true);
    }
    let taken_by = fetch_optional!(
        conn,
        Value<WorkspaceId>,
        "SELECT workspace_id AS value FROM slug_history WHERE slug = $1",
        slug
    )?;
    if taken_by.is_some_and(|other| other.0 != workspace) {
        return Err(StoreError::conflict("workspaces_slug"));
    }
    execute!(conn, "DELETE FROM slug_history WHERE slug = $1", slug)?;
    execute!(conn, "UPDATE workspaces SET slug = $2 WHERE id = $1", workspace, slug)
        .map_err(conflict_as("workspaces_slug"))?;
    execute!(
        conn,
        "INSERT INTO slug_history (slug, workspace_id, replaced_at) VALUES ($1, $2, $3)",
        &before.slug,
        workspace,
        now
    )?;
    changes::append(conn, workspace, ChangeKind::Workspace, workspace.uuid(), now).await?;
    Ok(true)
}

/// Switches the workspace off or on; says whether it exists.
pub async fn set_suspended(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    suspended: bool,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE workspaces SET suspended = $2 WHERE id = $1 AND deleted_at IS NULL";
    let found = execute!(conn, sql, workspace, suspended)? > 0;
    if found {
        changes::append(conn, workspace, ChangeKind::Workspace, workspace.uuid(), now).await?;
    }
    Ok(found)
}

/// After how many seconds others are told of a parked call that nobody decided; `None`: never.
pub async fn escalate_after(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT escalate_after_s AS value FROM workspaces WHERE id = $1";
    Ok(fetch_optional!(conn, Value<Option<i64>>, sql, workspace)?.and_then(|found| found.0))
}

/// Sets [`escalate_after`], for calls that are parked from now on.
pub async fn set_escalate_after(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    seconds: Option<i64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE workspaces SET escalate_after_s = $2 WHERE id = $1";
    execute!(conn, sql, workspace, seconds)?;
    Ok(())
}

/// Writes the settings that admins set; says whether the workspace exists.
pub async fn set_settings(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    settings: &serde_json::Value,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let text = json("workspaces.settings", settings)?;
    let sql = "UPDATE workspaces SET settings = $2 WHERE id = $1 AND deleted_at IS NULL";
    let found = execute!(conn, sql, workspace, text)? > 0;
    if found {
        changes::append(conn, workspace, ChangeKind::Workspace, workspace.uuid(), now).await?;
    }
    Ok(found)
}

/// Writes the limits that the operator sets; says whether the workspace exists.
pub async fn set_limits(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    limits: WorkspaceLimits,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let text = json("workspaces.limits", &limits)?;
    let sql = "UPDATE workspaces SET limits = $2 WHERE id = $1 AND deleted_at IS NULL";
    let found = execute!(conn, sql, workspace, text)? > 0;
    if found {
        changes::append(conn, workspace, ChangeKind::Workspace, workspace.uuid(), now).await?;
    }
    Ok(found)
}
