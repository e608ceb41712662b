//! The call log. Written in batches by id, so that a batch sent twice counts once; read newest
//! first by id, which later calls sort after, so that pages stay put while calls come in.

mod days;
mod insert;
mod statistics;
mod tally;

pub use days::{drop_days, make_days};
use insert::COLUMNS;
pub use insert::insert_batch;
pub use statistics::{
    Breakdown, Count, DaySpan, OfDay, Reason, ToolUse, breakdown, by_day, did_lately, reasons,
    tools_used,
};

use chrono::{DateTime, Utc};
use sluice_domain::{
    CallId, CallRecord, CallTiming, Code, GrantId, Outcome, PolicyId, ServerId, WorkspaceId,
};
use sqlx::AssertSqlSafe;

use crate::column::{AnyRow, FromColumns};
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::text::{contains, rows};
use crate::{Conn, StoreError};

impl FromColumns for CallRecord {
    fn from_columns<R: AnyRow>(row: &R) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.column("id")?,
            workspace: row.column("workspace_id")?,
            server: row.column("server_id")?,
            grant: row.column("grant_id")?,
            grant_label: row.column("grant_label")?,
            at: row.column("at")?,
            method: row.column("method")?,
            tool: row.column("tool")?,
            outcome: row.column("outcome")?,
            code: row.column("code")?,
            rule: row.column("rule")?,
            message: row.column("message")?,
            policy: row.column("policy_id")?,
            policy_version: row.column("policy_version")?,
            observed: row.column("observed")?,
            counter: row.column("counter")?,
            retry_after_s: row.column("retry_after_s")?,
            arguments: row.column("arguments")?,
            trace: row.column("trace")?,
            client_name: row.column("client_name")?,
            protocol_version: row.column("protocol_version")?,
            session: row.column("session")?,
            client_address: row.column("client_address")?,
            request_bytes: row.column("request_bytes")?,
            response_bytes: row.column("response_bytes")?,
            upstream_status: row.column("upstream_status")?,
            timing: CallTiming {
                total_us: row.column("total_us")?,
                limits_us: row.column("limits_us")?,
                approval_us: row.column("approval_us")?,
                upstream_us: row.column("upstream_us")?,
            },
        })
    }
}

/// Which calls a list shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallFilter<'a> {
    pub server: Option<ServerId>,
    pub grant: Option<GrantId>,
    pub policy: Option<PolicyId>,
    /// The exact tool name.
    pub tool: Option<&'a str>,
    pub outcome: Option<Outcome>,
    pub code: Option<Code>,
    /// The exact rule pointer.
    pub rule: Option<&'a str>,
    /// From this time, included.
    pub from: Option<DateTime<Utc>>,
    /// To this time, not included.
    pub to: Option<DateTime<Utc>>,
    /// Free text, found in tool, message, grant label, rule, method, client name; or a call's id.
    pub q: Option<&'a str>,
    /// Only ids after this one.
    pub newer: Option<CallId>,
    /// Only what counts: calls of tools.
    pub tool_calls: bool,
}

/// Parameters $1 to $14 are always bound; a clause is only there if its filter is.
fn clauses(filter: &CallFilter<'_>, before: bool) -> String {
    let mut sql = String::from(" WHERE workspace_id = $1");
    for (present, clause) in [
        (filter.server.is_some(), " AND server_id = $2"),
        (filter.grant.is_some(), " AND grant_id = $3"),
        (filter.policy.is_some(), " AND policy_id = $4"),
        (filter.tool.is_some(), " AND tool = $5"),
        (filter.outcome.is_some(), " AND outcome = $6"),
        // Said as the partial indexes say it.
        (filter.outcome.is_some_and(|one| one != Outcome::Allowed), " AND outcome <> 'allowed'"),
        (filter.code.is_some(), " AND code = $7"),
        (filter.code.is_some_and(|one| one != Code::Allowed), " AND code <> 'allowed'"),
        (filter.rule.is_some(), " AND rule = $8"),
        (filter.from.is_some(), " AND at >= $9"),
        (filter.to.is_some(), " AND at < $10"),
        (before, " AND id < $12"),
        (filter.newer.is_some(), " AND id > $14"),
        (filter.tool_calls, " AND tool IS NOT NULL"),
    ] {
        if present {
            sql.push_str(clause);
        }
    }
    match filter.q {
        None => {}
        Some(q) if q.trim().parse::<CallId>().is_ok() => sql.push_str(" AND id = $13"),
        Some(_) => sql.push_str(
            r" AND (lower(tool) LIKE lower($11) ESCAPE '\' OR lower(message) LIKE lower($11) ESCAPE '\'
                OR lower(grant_label) LIKE lower($11) ESCAPE '\' OR lower(rule) LIKE lower($11) ESCAPE '\'
                OR lower(method) LIKE lower($11) ESCAPE '\'
                OR lower(client_name) LIKE lower($11) ESCAPE '\')",
        ),
    }
    sql
}

/// The calls that fit the filter, newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: &CallFilter<'_>,
    before: Option<CallId>,
    limit: i64,
) -> Result<Vec<CallRecord>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM calls{} ORDER BY workspace_id DESC, id DESC LIMIT $15",
        clauses(filter, before.is_some())
    );
    Ok(fetch_all!(
        conn,
        CallRecord,
        // Only fixed clauses were put together.
        AssertSqlSafe(sql),
        workspace,
        filter.server,
        filter.grant,
        filter.policy,
        filter.tool,
        filter.outcome,
        filter.code,
        filter.rule,
        filter.from,
        filter.to,
        filter.q.map(|q| contains(q.trim())),
        before,
        filter.q.and_then(|q| q.trim().parse::<CallId>().ok()),
        filter.newer,
        rows(limit)
    )?)
}

/// One call.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: CallId,
) -> Result<Option<CallRecord>, StoreError> {
    Ok(fetch_optional!(
        conn,
        CallRecord,
        AssertSqlSafe(format!("SELECT {COLUMNS} FROM calls WHERE workspace_id = $1 AND id = $2")),
        workspace,
        id
    )?)
}

/// Forgets calls older than `before`, `limit` at most, so that no transaction grows long; says
/// how many. Fewer than `limit`: done.
pub async fn prune(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, StoreError> {
    Ok(execute!(
        conn,
        "DELETE FROM calls WHERE workspace_id = $1 AND at < $2 AND id IN
             (SELECT id FROM calls WHERE workspace_id = $1 AND at < $2 ORDER BY at LIMIT $3)",
        workspace,
        before,
        limit
    )?)
}
