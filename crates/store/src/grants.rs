//! Grants: labelled bearer tokens for one server, with at most one of its policies.

mod lists;

pub use lists::{
    GrantFilter, GrantsToLookAt, LastUse, Look, UnderPolicy, count_by_policy, count_used,
    last_uses, list, to_look_at,
};

use chrono::{DateTime, Utc};
use sluice_domain::{ChangeKind, GrantId, PolicyId, ServerId, UserId, WorkspaceId};

use crate::column::{json, micros, record};
use crate::conn::{execute, fetch_optional};
use crate::error::conflict_as;
use crate::text::key;
use crate::{Conn, StoreError, changes, servers};

record! {
    /// A grant, without its token.
    pub struct Grant {
        pub id: GrantId,
        pub workspace_id: WorkspaceId,
        pub server_id: ServerId,
        pub label: String,
        /// The token's last characters, for show.
        pub last4: String,
        /// Until when the token before the last rotation still works.
        pub previous_until: Option<DateTime<Utc>>,
        pub policy_id: Option<PolicyId>,
        pub expires_at: Option<DateTime<Utc>>,
        pub revoked_at: Option<DateTime<Utc>>,
        pub observe: bool,
        /// Networks (CIDR) that may use it; empty: any.
        pub networks: Vec<String>,
        pub revision: i64,
        pub created_by: Option<UserId>,
        pub created_at: DateTime<Utc>,
        pub updated_at: DateTime<Utc>,
        pub last_used_at: Option<DateTime<Utc>>,
        /// What the client last called itself.
        pub last_used_client: Option<String>,
    }
}

/// What a new grant is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewGrant<'a> {
    pub label: &'a str,
    pub token_hash: &'a [u8],
    pub last4: &'a str,
    pub policy: Option<PolicyId>,
    pub expires_at: Option<DateTime<Utc>>,
    pub observe: bool,
    pub networks: &'a [String],
    pub created_by: Option<UserId>,
}

/// Makes a grant; a label that a live grant of the server has, in any case, is the conflict
/// `grants_label`; a policy of another server is a dangling reference.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    new: NewGrant<'_>,
    now: DateTime<Utc>,
) -> Result<Grant, StoreError> {
    // The server's row lock: it cannot be deleted before this grant is seen to be on it.
    if servers::lock(conn, workspace, server).await?.is_none() {
        return Err(StoreError::DanglingReference);
    }
    check_policy(conn, workspace, server, new.policy).await?;
    let id = GrantId::new();
    let made = execute!(
        conn,
        "INSERT INTO grants
             (id, workspace_id, server_id, label, label_key, token_hash, last4, policy_id,
              expires_at, observe, networks, revision, created_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, $13, $13)
         ON CONFLICT DO NOTHING",
        id,
        workspace,
        server,
        new.label,
        key(new.label),
        new.token_hash,
        new.last4,
        new.policy,
        new.expires_at,
        new.observe,
        json("grants.networks", &new.networks)?,
        new.created_by,
        now
    )?;
    if made == 0 {
        return Err(StoreError::conflict("grants_label"));
    }
    changes::append(conn, workspace, ChangeKind::Grant, id.uuid(), now).await?;
    find(conn, workspace, id).await?.ok_or(StoreError::DanglingReference)
}

/// The reference in the schema keeps tenants and servers apart; this one also sees deletion.
async fn check_policy(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    policy: Option<PolicyId>,
) -> Result<(), StoreError> {
    let Some(policy) = policy else { return Ok(()) };
    // The row's lock: the policy cannot be deleted before this grant is seen to use it.
    let sql = "UPDATE policies SET version = version
               WHERE workspace_id = $1 AND server_id = $2 AND id = $3 AND deleted_at IS NULL";
    match execute!(conn, sql, workspace, server, policy)? {
        0 => Err(StoreError::DanglingReference),
        _ => Ok(()),
    }
}

/// The grant, revoked ones too.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: GrantId,
) -> Result<Option<Grant>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Grant,
        "SELECT id, workspace_id, server_id, label, last4, previous_until, policy_id, expires_at,
                revoked_at, observe, networks, revision, created_by, created_at, updated_at,
                last_used_at, last_used_client
         FROM grants WHERE workspace_id = $1 AND id = $2",
        workspace,
        id
    )?)
}

/// The grant that has this token, or had it before its last rotation, whatever the workspace and
/// revoked or not: for the operator, who found the token somewhere.
pub async fn find_by_token(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
) -> Result<Option<Grant>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Grant,
        "SELECT id, workspace_id, server_id, label, last4, previous_until, policy_id, expires_at,
                revoked_at, observe, networks, revision, created_by, created_at, updated_at,
                last_used_at, last_used_client
         FROM grants WHERE token_hash = $1 OR previous_token_hash = $1",
        token_hash
    )?)
}

/// What an edit may change; what is `None` stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrantChange<'a> {
    pub label: Option<&'a str>,
    /// `Some(None)` takes the policy away: every call is refused then.
    pub policy: Option<Option<PolicyId>>,
    pub expires_at: Option<Option<DateTime<Utc>>>,
    pub observe: Option<bool>,
    pub networks: Option<&'a [String]>,
}

/// Edits a live grant if it still is at `expected` (`None`: whatever is there). `Ok(None)` if
/// there is none, [`StoreError::Stale`] if somebody was faster.
pub async fn update(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: GrantId,
    expected: Option<i64>,
    change: GrantChange<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Grant>, StoreError> {
    let Some(mut grant) = lock(conn, workspace, id).await? else { return Ok(None) };
    if expected.is_some_and(|expected| expected != grant.revision) {
        return Err(StoreError::Stale { current: grant.revision });
    }
    if let Some(policy) = change.policy {
        check_policy(conn, workspace, grant.server_id, policy).await?;
        grant.policy_id = policy;
    }
    if let Some(label) = change.label {
        label.clone_into(&mut grant.label);
    }
    grant.expires_at = change.expires_at.map_or(grant.expires_at, |at| at.map(micros));
    grant.observe = change.observe.unwrap_or(grant.observe);
    if let Some(networks) = change.networks {
        grant.networks = networks.to_vec();
    }
    grant.revision += 1;
    grant.updated_at = micros(now);
    execute!(
        conn,
        "UPDATE grants SET label = $3, label_key = $4, policy_id = $5, expires_at = $6,
                observe = $7, networks = $8, revision = $9, updated_at = $10
         WHERE workspace_id = $1 AND id = $2",
        workspace,
        id,
        &grant.label,
        key(&grant.label),
        grant.policy_id,
        grant.expires_at,
        grant.observe,
        json("grants.networks", &grant.networks)?,
        grant.revision,
        now
    )
    .map_err(conflict_as("grants_label"))?;
    changes::append(conn, workspace, ChangeKind::Grant, id.uuid(), now).await?;
    Ok(Some(grant))
}

/// Takes the row's lock and reads the grant, if it is live.
async fn lock(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: GrantId,
) -> Result<Option<Grant>, StoreError> {
    let sql = "UPDATE grants SET revision = revision
               WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL";
    if execute!(conn, sql, workspace, id)? == 0 {
        return Ok(None);
    }
    find(conn, workspace, id).await
}

/// Gives the grant a new token; the old one works until `old_until` (`None`: ends now).
/// `Ok(None)` if there is no live grant.
pub async fn rotate(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: GrantId,
    new: (&[u8], &str),
    old_until: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<Option<Grant>, StoreError> {
    let (token_hash, last4) = new;
    let done = execute!(
        conn,
        "UPDATE grants SET
                previous_token_hash = CASE WHEN $5 IS NULL THEN NULL ELSE token_hash END,
                previous_until = $5, token_hash = $3, last4 = $4,
                revision = revision + 1, updated_at = $6
         WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL",
        workspace,
        id,
        token_hash,
        last4,
        old_until,
        now
    )?;
    if done == 0 {
        return Ok(None);
    }
    changes::append(conn, workspace, ChangeKind::Grant, id.uuid(), now).await?;
    find(conn, workspace, id).await
}

/// Ends the grant for good; says whether it was live.
pub async fn revoke(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: GrantId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let done = execute!(
        conn,
        "UPDATE grants SET revoked_at = $3, updated_at = $3, revision = revision + 1
         WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL",
        workspace,
        id,
        now
    )?;
    if done > 0 {
        changes::append(conn, workspace, ChangeKind::Grant, id.uuid(), now).await?;
    }
    Ok(done > 0)
}

/// That a grant was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantUse {
    pub workspace: WorkspaceId,
    pub grant: GrantId,
    pub at: DateTime<Utc>,
    pub client: Option<String>,
}

/// Notes uses of grants; an earlier use never replaces a later one. No change for the feed.
pub async fn touch_last_used(conn: &mut Conn<'_>, uses: &[GrantUse]) -> Result<(), StoreError> {
    // In order of id, so that two replicas that note the same grants cannot wait for each other.
    let mut sorted: Vec<_> = uses.iter().collect();
    sorted.sort_by_key(|used| (used.workspace, used.grant));
    for used in sorted {
        execute!(
            conn,
            "UPDATE grants SET last_used_at = $3, last_used_client = COALESCE($4, last_used_client)
             WHERE workspace_id = $1 AND id = $2 AND (last_used_at IS NULL OR last_used_at < $3)",
            used.workspace,
            used.grant,
            used.at,
            used.client.as_ref()
        )?;
    }
    Ok(())
}
