//! E-mail domains whose people may join a workspace by themselves.

use chrono::{DateTime, Utc};
use sluice_domain::{JoinDomainId, Role, UserId, WorkspaceId};

use crate::column::{micros, record};
use crate::conn::{execute, fetch_all};
use crate::{Conn, StoreError};

record! {
    /// A domain of a workspace.
    pub struct JoinDomain {
        pub id: JoinDomainId,
        pub workspace_id: WorkspaceId,
        /// In lower case.
        pub domain: String,
        pub role: Role,
        pub created_at: DateTime<Utc>,
    }
}

record! {
    /// A workspace that somebody may join, and as what.
    pub struct Joinable {
        pub workspace_id: WorkspaceId,
        pub slug: String,
        pub name: String,
        pub role: Role,
    }
}

/// The workspace's domains, by name.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Vec<JoinDomain>, StoreError> {
    Ok(fetch_all!(
        conn,
        JoinDomain,
        "SELECT id, workspace_id, domain, role, created_at FROM join_domains
         WHERE workspace_id = $1 ORDER BY domain LIMIT 1000",
        workspace
    )?)
}

/// Adds a domain; one that is there already is the conflict `join_domains_domain`.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    (domain, role): (&str, Role),
    by: Option<UserId>,
    now: DateTime<Utc>,
) -> Result<JoinDomain, StoreError> {
    let id = JoinDomainId::new();
    let made = execute!(
        conn,
        "INSERT INTO join_domains (id, workspace_id, domain, role, created_by, created_at)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (workspace_id, domain) DO NOTHING",
        id,
        workspace,
        domain,
        role,
        by,
        now
    )?;
    if made == 0 {
        return Err(StoreError::conflict("join_domains_domain"));
    }
    let domain = domain.to_owned();
    Ok(JoinDomain { id, workspace_id: workspace, domain, role, created_at: micros(now) })
}

/// Takes a domain away; says whether it was there.
pub async fn delete(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: JoinDomainId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM join_domains WHERE workspace_id = $1 AND id = $2";
    Ok(execute!(conn, sql, workspace, id)? > 0)
}

/// The workspaces that people of a domain may join and this one is not in, by name.
pub async fn joinable(
    conn: &mut Conn<'_>,
    domain: &str,
    user: UserId,
) -> Result<Vec<Joinable>, StoreError> {
    Ok(fetch_all!(
        conn,
        Joinable,
        "SELECT d.workspace_id, w.slug, w.name, d.role
         FROM join_domains d JOIN workspaces w ON w.id = d.workspace_id
         WHERE d.domain = $1 AND w.deleted_at IS NULL AND NOT w.suspended
           AND NOT EXISTS (SELECT 1 FROM memberships m
                           WHERE m.workspace_id = d.workspace_id AND m.user_id = $2)
         ORDER BY lower(w.name), w.slug LIMIT 100",
        domain,
        user
    )?)
}
