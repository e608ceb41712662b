//! Lists of approvals: the log of them, and the inbox of what waits.

use chrono::{DateTime, Utc};
use sluice_domain::{ApprovalId, ApprovalStatus, GrantId, ServerId, WorkspaceId};

use super::{Approval, select};
use crate::column::{Value, record};
use crate::conn::{fetch_all, fetch_one};
use crate::text::rows;
use crate::{Conn, StoreError};

/// Which approvals a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApprovalFilter<'a> {
    pub status: Option<ApprovalStatus>,
    pub server: Option<ServerId>,
    pub grant: Option<GrantId>,
    pub tool: Option<&'a str>,
}

/// The approvals, newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: ApprovalFilter<'_>,
    before: Option<ApprovalId>,
    limit: i64,
) -> Result<Vec<Approval>, StoreError> {
    Ok(fetch_all!(
        conn,
        Approval,
        select(
            "($2 IS NULL OR status = $2) AND ($3 IS NULL OR server_id = $3)
             AND ($4 IS NULL OR grant_id = $4) AND ($5 IS NULL OR tool = $5)
             AND ($6 IS NULL OR id < $6) ORDER BY id DESC LIMIT $7"
        ),
        workspace,
        filter.status,
        filter.server,
        filter.grant,
        filter.tool,
        before,
        rows(limit)
    )?)
}

/// How many wait for a person: of one grant, or of all.
pub async fn count_pending(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    grant: Option<GrantId>,
    now: DateTime<Utc>,
) -> Result<i64, StoreError> {
    let pending = fetch_one!(
        conn,
        Value<i64>,
        "SELECT COUNT(*) AS value FROM approvals
         WHERE workspace_id = $1 AND status = 'pending' AND expires_at > $3
           AND ($2 IS NULL OR grant_id = $2)",
        workspace,
        grant,
        now
    )?;
    Ok(pending.0)
}

/// Where an inbox goes on: after this severity and approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxKey {
    /// 0 is the riskiest, see [`inbox`].
    pub rank: i64,
    pub id: ApprovalId,
}

/// What waits at `now`, the riskiest first and of those the oldest, after the given one. The rank:
/// 0 Critical, 1 High, 2 Medium, 3 Low, 4 not rated.
pub async fn inbox(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    after: Option<InboxKey>,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<Approval>, StoreError> {
    Ok(fetch_all!(
        conn,
        Approval,
        select(
            "status = 'pending' AND expires_at > $2 AND ($3 IS NULL OR
                 (CASE severity WHEN 'Critical' THEN 0 WHEN 'High' THEN 1 WHEN 'Medium' THEN 2
                                WHEN 'Low' THEN 3 ELSE 4 END, id) > ($3, $4))
             ORDER BY CASE severity WHEN 'Critical' THEN 0 WHEN 'High' THEN 1 WHEN 'Medium' THEN 2
                                    WHEN 'Low' THEN 3 ELSE 4 END, id LIMIT $5"
        ),
        workspace,
        now,
        after.map(|after| after.rank),
        after.map(|after| after.id),
        rows(limit)
    )?)
}

record! {
    /// How earlier calls of the same tool by the same grant were decided.
    pub struct Past {
        pub approved: i64,
        pub denied: i64,
        pub expired: i64,
    }
}

/// How calls of this tool by this grant were decided before the given one.
pub async fn past(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    grant: GrantId,
    tool: &str,
    before: ApprovalId,
) -> Result<Past, StoreError> {
    Ok(fetch_one!(
        conn,
        Past,
        "SELECT COUNT(*) FILTER (WHERE status IN ('approved', 'running', 'used', 'unknown')) AS approved,
                COUNT(*) FILTER (WHERE status = 'denied') AS denied,
                COUNT(*) FILTER (WHERE status = 'expired') AS expired
         FROM approvals WHERE workspace_id = $1 AND grant_id = $2 AND tool = $3 AND id < $4",
        workspace,
        grant,
        tool,
        before
    )?)
}
