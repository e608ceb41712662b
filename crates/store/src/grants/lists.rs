//! Lists and counts of grants.

use chrono::{DateTime, Utc};
use sluice_domain::{GrantId, PolicyId, ServerId, WorkspaceId};
use sqlx::AssertSqlSafe;

use super::Grant;
use crate::column::{Value, record};
use crate::conn::{fetch_all, fetch_one};
use crate::text::rows;
use crate::{Conn, StoreError};

/// Which grants a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrantFilter {
    pub server: Option<ServerId>,
    pub policy: Option<PolicyId>,
    pub include_revoked: bool,
    /// Only those that were used from this time on.
    pub used_since: Option<DateTime<Utc>>,
    /// Only those that need a look, for this reason.
    pub look: Option<Look>,
    /// Only those that are not over at this time.
    pub live_at: Option<DateTime<Utc>>,
}

/// Why a grant that can be used needs a person's look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Every call is refused.
    NoPolicy,
    /// What its policy refuses goes through.
    Observes,
}

/// The grants, newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: GrantFilter,
    before: Option<GrantId>,
    limit: i64,
) -> Result<Vec<Grant>, StoreError> {
    let mut sql = String::from(
        "SELECT id, workspace_id, server_id, label, last4, previous_until, policy_id, expires_at,
                revoked_at, observe, networks, revision, created_by, created_at, updated_at,
                last_used_at, last_used_client
         FROM grants WHERE workspace_id = $1",
    );
    for (present, clause) in [
        (filter.server.is_some(), " AND server_id = $2"),
        (filter.policy.is_some(), " AND policy_id = $3"),
        (!filter.include_revoked, " AND revoked_at IS NULL"),
        (before.is_some(), " AND id < $4"),
        (filter.used_since.is_some(), " AND last_used_at >= $6"),
        (filter.look == Some(Look::NoPolicy), " AND policy_id IS NULL"),
        (filter.look == Some(Look::Observes), " AND observe AND policy_id IS NOT NULL"),
        (filter.live_at.is_some(), " AND (expires_at IS NULL OR expires_at > $7)"),
    ] {
        if present {
            sql.push_str(clause);
        }
    }
    sql.push_str(" ORDER BY workspace_id DESC, id DESC LIMIT $5");
    Ok(fetch_all!(
        conn,
        Grant,
        // Only fixed clauses were put together.
        AssertSqlSafe(sql),
        workspace,
        filter.server,
        filter.policy,
        before,
        rows(limit),
        filter.used_since,
        filter.live_at
    )?)
}

record! {
    /// How many grants that can be used need a person's look.
    pub struct GrantsToLookAt {
        pub no_policy: i64,
        pub observe: i64,
    }
}

/// How many grants need a look, and why.
pub async fn to_look_at(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    now: DateTime<Utc>,
) -> Result<GrantsToLookAt, StoreError> {
    Ok(fetch_one!(
        conn,
        GrantsToLookAt,
        "SELECT COUNT(CASE WHEN policy_id IS NULL THEN 1 END) AS no_policy,
                COUNT(CASE WHEN policy_id IS NOT NULL THEN 1 END) AS observe FROM grants
         WHERE workspace_id = $1 AND revoked_at IS NULL AND (policy_id IS NULL OR observe)
           AND (expires_at IS NULL OR expires_at > $2)",
        workspace,
        now
    )?)
}

/// How many live grants were used from a time on.
pub async fn count_used(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    since: DateTime<Utc>,
) -> Result<i64, StoreError> {
    let count = fetch_one!(
        conn,
        Value<i64>,
        "SELECT COUNT(*) AS value FROM grants
         WHERE workspace_id = $1 AND revoked_at IS NULL AND last_used_at >= $2",
        workspace,
        since
    )?;
    Ok(count.0)
}

record! {
    /// How many live grants are under a policy.
    pub struct UnderPolicy {
        pub policy_id: PolicyId,
        pub grants: i64,
    }
}

/// How many live grants each policy has; those without any are left out.
pub async fn count_by_policy(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Vec<UnderPolicy>, StoreError> {
    Ok(fetch_all!(
        conn,
        UnderPolicy,
        "SELECT policy_id, COUNT(*) AS grants FROM grants
         WHERE workspace_id = $1 AND revoked_at IS NULL AND policy_id IS NOT NULL
         GROUP BY policy_id",
        workspace
    )?)
}

record! {
    /// When a server was last used through any of its grants.
    pub struct LastUse {
        pub server_id: ServerId,
        pub at: DateTime<Utc>,
    }
}

/// When each server was last used; those that never were are left out.
pub async fn last_uses(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Vec<LastUse>, StoreError> {
    Ok(fetch_all!(
        conn,
        LastUse,
        "SELECT server_id, MAX(last_used_at) AS at FROM grants
         WHERE workspace_id = $1 AND last_used_at IS NOT NULL GROUP BY server_id",
        workspace
    )?)
}
