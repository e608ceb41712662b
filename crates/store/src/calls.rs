//! The call log. Written in batches by id, so that a batch sent twice counts once; read newest
//! first by id, which later calls sort after, so that pages stay put while calls come in.

mod days;
mod insert;
mod search;
mod statistics;
mod tally;

pub use days::{drop_days, make_days};
use insert::COLUMNS;
pub use insert::insert_batch;
pub use search::{CallFilter, Found, list, plan, search};
pub use statistics::{
    Breakdown, Count, DaySpan, OfDay, Reason, ToolUse, breakdown, by_day, did_lately, reasons,
    tools_used,
};

use chrono::{DateTime, Utc};
use sluice_domain::{CallId, CallRecord, CallTiming, WorkspaceId};
use sqlx::AssertSqlSafe;

use crate::column::{AnyRow, FromColumns};
use crate::conn::{execute, fetch_optional};
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
