//! Counts over the call log, for overviews.

use chrono::{DateTime, Utc};
use sluice_domain::{Category, Code, GrantId, Outcome, ServerId, Severity, WorkspaceId};

use crate::column::record;
use crate::conn::fetch_all;
use crate::text::rows;
use crate::{Conn, StoreError};

/// Which calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub server: Option<ServerId>,
    pub grant: Option<GrantId>,
    /// From this time, included.
    pub since: DateTime<Utc>,
    /// To this time, not included.
    pub until: DateTime<Utc>,
}

record! {
    /// How many calls had an outcome.
    pub struct OutcomeCount {
        pub outcome: Outcome,
        /// The policy only observed: they went through.
        pub observed: bool,
        pub calls: i64,
    }
}

/// Tool calls by outcome.
pub async fn counts_by_outcome(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    count: Count,
) -> Result<Vec<OutcomeCount>, StoreError> {
    Ok(fetch_all!(
        conn,
        OutcomeCount,
        "SELECT outcome, observed, COUNT(*) AS calls FROM calls
         WHERE workspace_id = $1 AND at >= $2 AND at < $3 AND tool IS NOT NULL
           AND ($4 IS NULL OR server_id = $4) AND ($5 IS NULL OR grant_id = $5)
         GROUP BY outcome, observed ORDER BY outcome, observed",
        workspace,
        count.since,
        count.until,
        count.server,
        count.grant
    )?)
}

record! {
    /// Calls of one tool by one grant with one outcome.
    pub struct Breakdown {
        pub server_id: ServerId,
        pub grant_id: GrantId,
        pub tool: String,
        pub outcome: Outcome,
        pub calls: i64,
        pub last_at: DateTime<Utc>,
    }
}

/// Tool calls by server, grant, tool and outcome, the most frequent first.
pub async fn breakdown(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    count: Count,
    limit: i64,
) -> Result<Vec<Breakdown>, StoreError> {
    Ok(fetch_all!(
        conn,
        Breakdown,
        "SELECT server_id, grant_id, tool, outcome, COUNT(*) AS calls, MAX(at) AS last_at FROM calls
         WHERE workspace_id = $1 AND at >= $2 AND at < $3 AND tool IS NOT NULL
           AND ($4 IS NULL OR server_id = $4) AND ($5 IS NULL OR grant_id = $5)
         GROUP BY server_id, grant_id, tool, outcome
         ORDER BY COUNT(*) DESC, tool, server_id, grant_id, outcome LIMIT $6",
        workspace,
        count.since,
        count.until,
        count.server,
        count.grant,
        rows(limit)
    )?)
}

/// What the newest tool calls of a grant were, the most frequent first; `newest` of them are looked at.
pub async fn did_lately(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    grant: GrantId,
    newest: i64,
) -> Result<Vec<Breakdown>, StoreError> {
    Ok(fetch_all!(
        conn,
        Breakdown,
        "SELECT server_id, grant_id, tool, outcome, COUNT(*) AS calls, MAX(at) AS last_at
         FROM (SELECT server_id, grant_id, tool, outcome, at FROM calls
               WHERE workspace_id = $1 AND grant_id = $2 AND tool IS NOT NULL
               ORDER BY id DESC LIMIT $3) AS newest
         GROUP BY server_id, grant_id, tool, outcome ORDER BY COUNT(*) DESC, tool, outcome",
        workspace,
        grant,
        rows(newest)
    )?)
}

record! {
    /// How many calls were not let through for one reason.
    pub struct Reason {
        pub code: Code,
        pub outcome: Outcome,
        pub calls: i64,
    }
}

/// Tool calls that were not let through, by reason, the most frequent first.
pub async fn reasons(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    count: Count,
) -> Result<Vec<Reason>, StoreError> {
    Ok(fetch_all!(
        conn,
        Reason,
        "SELECT code, outcome, COUNT(*) AS calls FROM calls
         WHERE workspace_id = $1 AND at >= $2 AND at < $3 AND tool IS NOT NULL
           AND ($4 IS NULL OR server_id = $4) AND ($5 IS NULL OR grant_id = $5)
           AND outcome <> 'allowed'
         GROUP BY code, outcome ORDER BY COUNT(*) DESC, code, outcome",
        workspace,
        count.since,
        count.until,
        count.server,
        count.grant
    )?)
}

record! {
    /// Calls of a tool that is dangerous.
    pub struct RiskyUse {
        pub server_id: ServerId,
        pub tool: String,
        pub category: Category,
        pub severity: Severity,
        pub calls: i64,
        pub last_at: DateTime<Utc>,
    }
}

/// Tools of severity High and Critical that were called, the riskiest and most called first.
pub async fn risky_uses(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    count: Count,
    limit: i64,
) -> Result<Vec<RiskyUse>, StoreError> {
    Ok(fetch_all!(
        conn,
        RiskyUse,
        "SELECT used.server_id, used.tool, tools.category, tools.severity, used.calls, used.last_at
         FROM (SELECT server_id, tool, COUNT(*) AS calls, MAX(at) AS last_at FROM calls
               WHERE workspace_id = $1 AND at >= $2 AND at < $3 AND tool IS NOT NULL
                 AND ($4 IS NULL OR server_id = $4) AND ($5 IS NULL OR grant_id = $5)
               GROUP BY server_id, tool) AS used
         JOIN tools ON tools.workspace_id = $1 AND tools.server_id = used.server_id
                   AND tools.name = used.tool
         WHERE tools.severity IN ('High', 'Critical')
         ORDER BY tools.severity, used.calls DESC, used.tool, used.server_id LIMIT $6",
        workspace,
        count.since,
        count.until,
        count.server,
        count.grant,
        rows(limit)
    )?)
}

record! {
    /// Calls of one outcome in one span of time.
    pub struct SeriesPoint {
        /// Seconds since 1970 at which the span begins.
        pub start: i64,
        pub outcome: Outcome,
        pub calls: i64,
    }
}

/// Tool calls by outcome in spans of `span_s` seconds; spans without calls are left out.
pub async fn series(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    count: Count,
    span_s: i64,
) -> Result<Vec<SeriesPoint>, StoreError> {
    // Each database has its own way from a time to seconds.
    let sql = match conn {
        Conn::Postgres(_) => {
            "SELECT CAST(floor(extract(epoch FROM at) / $6) AS BIGINT) * $6 AS start, outcome,
                    COUNT(*) AS calls FROM calls
             WHERE workspace_id = $1 AND at >= $2 AND at < $3 AND tool IS NOT NULL
               AND ($4 IS NULL OR server_id = $4) AND ($5 IS NULL OR grant_id = $5)
             GROUP BY start, outcome ORDER BY start, outcome LIMIT 10000"
        }
        Conn::Sqlite(_) => {
            "SELECT CAST(strftime('%s', at) AS INTEGER) / $6 * $6 AS start, outcome,
                    COUNT(*) AS calls FROM calls
             WHERE workspace_id = $1 AND at >= $2 AND at < $3 AND tool IS NOT NULL
               AND ($4 IS NULL OR server_id = $4) AND ($5 IS NULL OR grant_id = $5)
             GROUP BY start, outcome ORDER BY start, outcome LIMIT 10000"
        }
    };
    let span_s = span_s.max(1);
    Ok(fetch_all!(
        conn,
        SeriesPoint,
        sql,
        workspace,
        count.since,
        count.until,
        count.server,
        count.grant,
        span_s
    )?)
}
