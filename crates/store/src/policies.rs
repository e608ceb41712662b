//! Policies of a server and their versions. A version's document is the text that was saved and
//! never changes.

use chrono::{DateTime, Utc};
use sluice_domain::{ChangeKind, PolicyId, PolicyKind, ServerId, UserId, WorkspaceId};

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::error::conflict_as;
use crate::text::{key, rows};
use crate::{Conn, StoreError, changes, servers};

record! {
    /// A policy with its newest document.
    pub struct Policy {
        pub id: PolicyId,
        pub workspace_id: WorkspaceId,
        pub server_id: ServerId,
        pub name: String,
        pub kind: PolicyKind,
        /// The newest version's number, from 1.
        pub version: i64,
        /// The newest version's text, as saved.
        pub document: String,
        pub created_by: Option<UserId>,
        pub created_at: DateTime<Utc>,
        pub updated_at: DateTime<Utc>,
    }
}

record! {
    /// One version of a policy.
    pub struct PolicyVersion {
        pub version: i64,
        pub document: String,
        pub author: Option<UserId>,
        pub note: String,
        pub created_at: DateTime<Utc>,
    }
}

/// A document to save, and who saves it why.
#[derive(Debug, Clone, Copy)]
pub struct NewVersion<'a> {
    pub document: &'a str,
    pub author: Option<UserId>,
    pub note: &'a str,
}

/// Makes a policy with its first version. A name that a policy of the server has, in any case, is
/// the conflict `policies_name`; a second button policy `policies_button`.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    name: &str,
    kind: PolicyKind,
    first: NewVersion<'_>,
    now: DateTime<Utc>,
) -> Result<Policy, StoreError> {
    // The server's row lock: it cannot be deleted before this policy is seen to be on it.
    if servers::lock(conn, workspace, server).await?.is_none() {
        return Err(StoreError::DanglingReference);
    }
    let id = PolicyId::new();
    let made = execute!(
        conn,
        "INSERT INTO policies (id, workspace_id, server_id, name, name_key, kind, version,
                               created_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $8) ON CONFLICT DO NOTHING",
        id,
        workspace,
        server,
        name,
        key(name),
        kind,
        first.author,
        now
    )?;
    if made == 0 {
        let taken = find_by_name(conn, workspace, server, name).await?.is_some();
        return Err(StoreError::conflict(if taken { "policies_name" } else { "policies_button" }));
    }
    write_version(conn, workspace, id, 1, first, now).await?;
    changes::append(conn, workspace, ChangeKind::Policy, id.uuid(), now).await?;
    found(find(conn, workspace, id).await?)
}

fn found(policy: Option<Policy>) -> Result<Policy, StoreError> {
    policy.ok_or(StoreError::DanglingReference)
}

async fn write_version(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
    version: i64,
    new: NewVersion<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO policy_versions
             (workspace_id, policy_id, version, document, author, note, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        workspace,
        id,
        version,
        new.document,
        new.author,
        new.note,
        now
    )?;
    Ok(())
}

/// Saves a new version if the policy still is at `expected` (`None`: whatever is there). `Ok(None)`
/// if there is no such policy, [`StoreError::Stale`] if somebody was faster.
pub async fn save_version(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
    expected: Option<i64>,
    new: NewVersion<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Policy>, StoreError> {
    let Some(current) = lock(conn, workspace, id).await? else { return Ok(None) };
    if expected.is_some_and(|expected| expected != current) {
        return Err(StoreError::Stale { current });
    }
    let version = current + 1;
    write_version(conn, workspace, id, version, new, now).await?;
    let sql =
        "UPDATE policies SET version = $3, updated_at = $4 WHERE workspace_id = $1 AND id = $2";
    execute!(conn, sql, workspace, id, version, now)?;
    changes::append(conn, workspace, ChangeKind::Policy, id.uuid(), now).await?;
    find(conn, workspace, id).await
}

/// Takes the policy's row lock; its version, if it is there.
async fn lock(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
) -> Result<Option<i64>, StoreError> {
    let version = fetch_optional!(
        conn,
        Value<i64>,
        "UPDATE policies SET version = version
         WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING version AS value",
        workspace,
        id
    )?;
    Ok(version.map(|version| version.0))
}

/// Changes the name; says whether the policy exists.
pub async fn rename(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
    name: &str,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE policies SET name = $3, name_key = $4, updated_at = $5
               WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL";
    let found = execute!(conn, sql, workspace, id, name, key(name), now)
        .map_err(conflict_as("policies_name"))?
        > 0;
    if found {
        // Answers to agents name the policy.
        changes::append(conn, workspace, ChangeKind::Policy, id.uuid(), now).await?;
    }
    Ok(found)
}

/// The policy, unless deleted.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
) -> Result<Option<Policy>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Policy,
        "SELECT p.id, p.workspace_id, p.server_id, p.name, p.kind, p.version, v.document,
                p.created_by, p.created_at, p.updated_at
         FROM policies p JOIN policy_versions v ON v.workspace_id = p.workspace_id
              AND v.policy_id = p.id AND v.version = p.version
         WHERE p.workspace_id = $1 AND p.id = $2 AND p.deleted_at IS NULL",
        workspace,
        id
    )?)
}

/// The server's policy of that name, in any case.
pub async fn find_by_name(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    name: &str,
) -> Result<Option<Policy>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Policy,
        "SELECT p.id, p.workspace_id, p.server_id, p.name, p.kind, p.version, v.document,
                p.created_by, p.created_at, p.updated_at
         FROM policies p JOIN policy_versions v ON v.workspace_id = p.workspace_id
              AND v.policy_id = p.id AND v.version = p.version
         WHERE p.workspace_id = $1 AND p.server_id = $2 AND p.name_key = $3
           AND p.deleted_at IS NULL",
        workspace,
        server,
        key(name)
    )?)
}

/// The server's policy of the recommended-rule button, if the button was pressed before.
pub async fn find_button(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
) -> Result<Option<Policy>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Policy,
        "SELECT p.id, p.workspace_id, p.server_id, p.name, p.kind, p.version, v.document,
                p.created_by, p.created_at, p.updated_at
         FROM policies p JOIN policy_versions v ON v.workspace_id = p.workspace_id
              AND v.policy_id = p.id AND v.version = p.version
         WHERE p.workspace_id = $1 AND p.server_id = $2 AND p.kind = 'button'
           AND p.deleted_at IS NULL",
        workspace,
        server
    )?)
}

/// The policies of a server (`None`: of all), newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: Option<ServerId>,
    before: Option<PolicyId>,
    limit: i64,
) -> Result<Vec<Policy>, StoreError> {
    Ok(fetch_all!(
        conn,
        Policy,
        "SELECT p.id, p.workspace_id, p.server_id, p.name, p.kind, p.version, v.document,
                p.created_by, p.created_at, p.updated_at
         FROM policies p JOIN policy_versions v ON v.workspace_id = p.workspace_id
              AND v.policy_id = p.id AND v.version = p.version
         WHERE p.workspace_id = $1 AND p.deleted_at IS NULL
           AND ($2 IS NULL OR p.server_id = $2) AND ($3 IS NULL OR p.id < $3)
         ORDER BY p.id DESC LIMIT $4",
        workspace,
        server,
        before,
        rows(limit)
    )?)
}

/// The versions, newest first, below the given number.
pub async fn versions(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
    below: Option<i64>,
    limit: i64,
) -> Result<Vec<PolicyVersion>, StoreError> {
    Ok(fetch_all!(
        conn,
        PolicyVersion,
        "SELECT version, document, author, note, created_at FROM policy_versions
         WHERE workspace_id = $1 AND policy_id = $2 AND ($3 IS NULL OR version < $3)
         ORDER BY version DESC LIMIT $4",
        workspace,
        id,
        below,
        rows(limit)
    )?)
}

/// One version, of deleted policies too: the log names it.
pub async fn find_version(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
    version: i64,
) -> Result<Option<PolicyVersion>, StoreError> {
    Ok(fetch_optional!(
        conn,
        PolicyVersion,
        "SELECT version, document, author, note, created_at FROM policy_versions
         WHERE workspace_id = $1 AND policy_id = $2 AND version = $3",
        workspace,
        id,
        version
    )?)
}

/// How many live grants have the policy.
pub async fn in_use_by(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
) -> Result<i64, StoreError> {
    let grants = fetch_one!(
        conn,
        Value<i64>,
        "SELECT COUNT(*) AS value FROM grants
         WHERE workspace_id = $1 AND policy_id = $2 AND revoked_at IS NULL",
        workspace,
        id
    )?;
    Ok(grants.0)
}

/// What came of deleting a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyDeletion {
    Done,
    Absent,
    /// So many live grants have it.
    InUse(i64),
}

/// Deletes the policy unless a live grant has it. Its versions stay for the log.
pub async fn delete(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
    now: DateTime<Utc>,
) -> Result<PolicyDeletion, StoreError> {
    if lock(conn, workspace, id).await?.is_none() {
        return Ok(PolicyDeletion::Absent);
    }
    let users = in_use_by(conn, workspace, id).await?;
    if users > 0 {
        return Ok(PolicyDeletion::InUse(users));
    }
    let sql = "UPDATE policies SET deleted_at = $3 WHERE workspace_id = $1 AND id = $2";
    execute!(conn, sql, workspace, id, now)?;
    changes::append(conn, workspace, ChangeKind::Policy, id.uuid(), now).await?;
    Ok(PolicyDeletion::Done)
}
