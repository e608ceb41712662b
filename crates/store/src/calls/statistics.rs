//! Counts over the call log, for overviews.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use sluice_domain::{Category, Code, GrantId, Outcome, ServerId, Severity, WorkspaceId};

use super::tally::day_of;
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

/// Days since 1970 (UTC), both included. What is counted by days is read from counts that are kept with the
/// log, never from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaySpan {
    pub first: i64,
    pub last: i64,
}

impl DaySpan {
    /// The days of the two times and those between.
    pub fn of(first: DateTime<Utc>, last: DateTime<Utc>) -> Self {
        Self { first: day_of(first), last: day_of(last) }
    }
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
    days: DaySpan,
) -> Result<Vec<Reason>, StoreError> {
    Ok(fetch_all!(
        conn,
        Reason,
        "SELECT code, outcome, CAST(SUM(calls) AS BIGINT) AS calls FROM call_days
         WHERE workspace_id = $1 AND day >= $2 AND day <= $3 AND tool_call AND outcome <> 'allowed'
         GROUP BY code, outcome ORDER BY SUM(calls) DESC, code, outcome",
        workspace,
        days.first,
        days.last
    )?)
}

record! {
    /// Tool calls of one outcome on one day.
    pub struct OfDay {
        pub day: i64,
        pub outcome: Outcome,
        pub calls: i64,
    }
}

impl OfDay {
    /// Seconds since 1970 at which the day begins.
    pub const fn start(&self) -> i64 {
        self.day * 86_400
    }
}

/// Tool calls by day and outcome; days without calls are left out.
pub async fn by_day(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    days: DaySpan,
) -> Result<Vec<OfDay>, StoreError> {
    Ok(fetch_all!(
        conn,
        OfDay,
        "SELECT day, outcome, CAST(SUM(calls) AS BIGINT) AS calls FROM call_days
         WHERE workspace_id = $1 AND day >= $2 AND day <= $3 AND tool_call
         GROUP BY day, outcome ORDER BY day, outcome",
        workspace,
        days.first,
        days.last
    )?)
}

record! {
    /// Calls of one tool of one server.
    pub struct ToolUse {
        pub server_id: ServerId,
        pub tool: String,
        /// What it was rated, where the server still offers it.
        pub category: Option<Category>,
        pub severity: Option<Severity>,
        pub calls: i64,
        pub last_at: DateTime<Utc>,
    }
}

/// The tools that were called most, and those of severity High and Critical that were called, the riskiest
/// and most called first; `limit` of each.
pub async fn tools_used(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    days: DaySpan,
    limit: i64,
) -> Result<(Vec<ToolUse>, Vec<ToolUse>), StoreError> {
    // Grouped once for both.
    let found = fetch_all!(
        conn,
        Ranked,
        "WITH used AS MATERIALIZED (
             SELECT server_id, tool, CAST(SUM(calls) AS BIGINT) AS calls, MAX(last_at) AS last_at
             FROM call_tools WHERE workspace_id = $1 AND day >= $2 AND day <= $3
             GROUP BY server_id, tool),
         most AS (SELECT * FROM used ORDER BY calls DESC, tool, server_id LIMIT $4),
         risky AS (
             SELECT used.server_id, used.tool, tools.category, tools.severity, used.calls, used.last_at
             FROM used JOIN tools ON tools.workspace_id = $1 AND tools.server_id = used.server_id
                                 AND tools.name = used.tool
             WHERE tools.severity IN ('High', 'Critical')
             ORDER BY tools.severity, used.calls DESC, used.tool, used.server_id LIMIT $4)
         SELECT FALSE AS risky, most.server_id, most.tool, tools.category, tools.severity, most.calls,
                most.last_at
         FROM most LEFT JOIN tools ON tools.workspace_id = $1 AND tools.server_id = most.server_id
                                  AND tools.name = most.tool
         UNION ALL
         SELECT TRUE AS risky, server_id, tool, category, severity, calls, last_at FROM risky
         ORDER BY risky, calls DESC, tool, server_id",
        workspace,
        days.first,
        days.last,
        rows(limit)
    )?;
    let (mut risky, most): (Vec<Ranked>, Vec<Ranked>) =
        found.into_iter().partition(|one| one.risky);
    // The gravest first; a sort keeps the order of what is alike.
    risky.sort_by_key(|one| Reverse(one.severity));
    let plain = |all: Vec<Ranked>| all.into_iter().map(Ranked::tool_use).collect();
    Ok((plain(most), plain(risky)))
}

record! {
    /// A row of either list.
    struct Ranked {
        risky: bool,
        server_id: ServerId,
        tool: String,
        category: Option<Category>,
        severity: Option<Severity>,
        calls: i64,
        last_at: DateTime<Utc>,
    }
}

impl Ranked {
    fn tool_use(self) -> ToolUse {
        ToolUse {
            server_id: self.server_id,
            tool: self.tool,
            category: self.category,
            severity: self.severity,
            calls: self.calls,
            last_at: self.last_at,
        }
    }
}
