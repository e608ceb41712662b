//! Exceptions: the same call as one that was approved passes for a while without asking. Bound in
//! time and number, and to all that the approval was bound to.

use chrono::{DateTime, Utc};
use sluice_domain::{
    ApprovalId, ChangeKind, ExceptionId, GrantId, PolicyId, ServerId, UserId, WorkspaceId,
};

use super::{Approval, SameCall};
use crate::column::record;
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::text::rows;
use crate::{Conn, StoreError, changes};

record! {
    /// A call that passes for a while.
    pub struct Exception {
        pub id: ExceptionId,
        pub server_id: ServerId,
        pub grant_id: GrantId,
        /// The approval that it was made with.
        pub approval_id: ApprovalId,
        pub policy_id: PolicyId,
        pub rule: String,
        pub tool: String,
        pub tool_hash: Option<String>,
        pub arguments_digest: String,
        pub rules_digest: String,
        pub created_by: UserId,
        pub created_by_email: String,
        pub created_at: DateTime<Utc>,
        pub expires_at: DateTime<Utc>,
        pub max_uses: i64,
        pub uses: i64,
        pub last_used_at: Option<DateTime<Utc>>,
        pub revoked_at: Option<DateTime<Utc>>,
    }
}

/// How far an exception goes.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    pub by: UserId,
    pub expires_at: DateTime<Utc>,
    pub max_uses: i64,
}

const COLUMNS: &str = "e.id, e.server_id, e.grant_id, e.approval_id, e.policy_id, e.rule, e.tool,
     e.tool_hash, e.arguments_digest, e.rules_digest, e.created_by,
     COALESCE((SELECT email FROM users u WHERE u.id = e.created_by), '') AS created_by_email,
     e.created_at, e.expires_at, e.max_uses, e.uses, e.last_used_at, e.revoked_at";

fn select(rest: &'static str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM approval_exceptions e WHERE e.workspace_id = $1 AND {rest}"
    ))
}

/// Lets the calls that are the same as an approved one pass.
pub async fn create_exception(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    approval: &Approval,
    reach: Reach,
    now: DateTime<Utc>,
) -> Result<ExceptionId, StoreError> {
    let id = ExceptionId::new();
    execute!(
        conn,
        "INSERT INTO approval_exceptions
             (id, workspace_id, server_id, grant_id, approval_id, policy_id, rule, tool, tool_hash,
              arguments_digest, rules_digest, created_by, created_at, expires_at, max_uses, uses)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 0)",
        id,
        workspace,
        approval.server_id,
        approval.grant_id,
        approval.id,
        approval.policy_id,
        &approval.rule,
        &approval.tool,
        approval.tool_hash.as_deref(),
        &approval.arguments_digest,
        &approval.rules_digest,
        reach.by,
        now,
        reach.expires_at,
        reach.max_uses
    )?;
    changes::append(conn, workspace, ChangeKind::Approval, approval.id.uuid(), now).await?;
    Ok(id)
}

/// Uses an exception once, if one is in force for this very call: not over, not used up, not taken
/// back, the tool as it was, and made by somebody who might still decide.
pub async fn use_exception(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    call: SameCall<'_>,
    tool_hash: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Option<Exception>, StoreError> {
    let used = execute!(
        conn,
        "UPDATE approval_exceptions SET uses = uses + 1, last_used_at = $6
         WHERE workspace_id = $1 AND uses < max_uses AND revoked_at IS NULL AND expires_at > $6
           AND id = (SELECT e.id FROM approval_exceptions e
                     JOIN memberships m ON m.workspace_id = e.workspace_id AND m.user_id = e.created_by
                     WHERE e.workspace_id = $1 AND e.grant_id = $2 AND e.tool = $3
                       AND e.arguments_digest = $4 AND e.rules_digest = $5
                       AND e.tool_hash IS NOT DISTINCT FROM $7 AND e.revoked_at IS NULL
                       AND e.expires_at > $6 AND e.uses < e.max_uses
                       AND m.role IN ('policy_manager', 'admin')
                     ORDER BY e.expires_at DESC, e.id DESC LIMIT 1)",
        workspace,
        call.grant,
        call.tool,
        call.arguments_digest,
        call.rules_digest,
        now,
        tool_hash
    )? > 0;
    if !used {
        return Ok(None);
    }
    Ok(fetch_optional!(
        conn,
        Exception,
        select(
            "e.grant_id = $2 AND e.tool = $3 AND e.arguments_digest = $4 AND e.rules_digest = $5
             AND e.last_used_at = $6 ORDER BY e.expires_at DESC, e.id DESC LIMIT 1"
        ),
        workspace,
        call.grant,
        call.tool,
        call.arguments_digest,
        call.rules_digest,
        now
    )?)
}

/// One exception.
pub async fn find_exception(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ExceptionId,
) -> Result<Option<Exception>, StoreError> {
    Ok(fetch_optional!(conn, Exception, select("e.id = $2"), workspace, id)?)
}

/// The exceptions, newest first, before the given one; of one grant, or of all; without those whose
/// time is over at `live_at`.
pub async fn list_exceptions(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    grant: Option<GrantId>,
    live_at: Option<DateTime<Utc>>,
    before: Option<ExceptionId>,
    limit: i64,
) -> Result<Vec<Exception>, StoreError> {
    Ok(fetch_all!(
        conn,
        Exception,
        select(
            "($2 IS NULL OR e.grant_id = $2)
             AND ($3 IS NULL OR (e.revoked_at IS NULL AND e.expires_at > $3 AND e.uses < e.max_uses))
             AND ($4 IS NULL OR e.id < $4) ORDER BY e.id DESC LIMIT $5"
        ),
        workspace,
        grant,
        live_at,
        before,
        rows(limit)
    )?)
}

/// Takes an exception back; says whether it was in force.
pub async fn revoke_exception(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ExceptionId,
    by: UserId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE approval_exceptions SET revoked_at = $3, revoked_by = $4
               WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL AND expires_at > $3";
    Ok(execute!(conn, sql, workspace, id, now, by)? > 0)
}

/// Forgets exceptions that ended before `before`, in any workspace, `limit` at most; says how many.
pub async fn prune_exceptions(
    conn: &mut Conn<'_>,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM approval_exceptions WHERE id IN
                   (SELECT id FROM approval_exceptions WHERE expires_at < $1 LIMIT $2)";
    Ok(execute!(conn, sql, before, rows(limit))?)
}
