//! Finding calls, newest first, by keyset. However large the log is, a search reads a bounded number of rows:
//! what has no index of its own is looked for among so many rows of what has one, and the next page goes on
//! from there.

use chrono::{DateTime, Utc};
use sluice_domain::{CallId, CallRecord, Code, GrantId, Outcome, PolicyId, ServerId, WorkspaceId};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::insert::COLUMNS;
use super::tally::day_of;
use crate::column::{Bind, Value, record};
use crate::conn::{fetch_one, fetch_optional};
use crate::text::{contains, rows};
use crate::{Conn, StoreError};

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

/// Calls that were found, and how far was looked.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub calls: Vec<CallRecord>,
    /// Older ones were not looked at; go on before this one. None: what fits is there, up to the limit.
    pub looked_to: Option<CallId>,
}

/// Ids between which the calls are, both included.
#[derive(Debug, Clone, Copy)]
struct Between {
    first: Uuid,
    last: Uuid,
}

impl CallFilter<'_> {
    fn id(&self) -> Option<CallId> {
        self.q.and_then(|q| q.trim().parse().ok())
    }

    /// The filters that have an index which begins with them: the first that is there leads.
    fn leads(&self) -> [(bool, &'static str); 5] {
        let (outcome, code) = (self.outcome, self.code);
        [
            (self.grant.is_some(), " AND grant_id = $3"),
            (self.server.is_some(), " AND server_id = $2"),
            (self.tool.is_some(), " AND tool = $5"),
            // Said as the partial indexes say it.
            (code.is_some_and(|one| one != Code::Allowed), " AND code = $7 AND code <> 'allowed'"),
            (
                outcome.is_some_and(|one| one != Outcome::Allowed),
                " AND outcome = $6 AND outcome <> 'allowed'",
            ),
        ]
    }

    fn lead(&self) -> &'static str {
        self.leads().iter().find(|(there, _)| *there).map_or("", |(_, clause)| clause)
    }

    /// All filters but the range of ids.
    fn clauses(&self, at: &str) -> String {
        let mut sql = String::new();
        for (there, clause) in self.leads() {
            if there {
                sql.push_str(clause);
            }
        }
        let allowed = (Some(Outcome::Allowed), Some(Code::Allowed));
        for (there, clause) in [
            (self.policy.is_some(), " AND policy_id = $4"),
            (self.outcome == allowed.0, " AND outcome = $6"),
            (self.code == allowed.1, " AND code = $7"),
            (self.rule.is_some(), " AND rule = $8"),
            (self.tool_calls, " AND tool IS NOT NULL"),
        ] {
            if there {
                sql.push_str(clause);
            }
        }
        for (there, clause) in [(self.from.is_some(), " >= $9"), (self.to.is_some(), " < $10")] {
            if there {
                sql.push_str(at);
                sql.push_str(clause);
            }
        }
        match self.q {
            None => {}
            Some(_) if self.id().is_some() => sql.push_str(" AND id = $13"),
            Some(_) => sql.push_str(
                r" AND (lower(tool) LIKE lower($11) ESCAPE '\' OR lower(message) LIKE lower($11) ESCAPE '\'
                    OR lower(grant_label) LIKE lower($11) ESCAPE '\' OR lower(rule) LIKE lower($11) ESCAPE '\'
                    OR lower(method) LIKE lower($11) ESCAPE '\'
                    OR lower(client_name) LIKE lower($11) ESCAPE '\')",
            ),
        }
        sql
    }

    /// Whether the leading filter alone says which calls fit.
    fn is_led(&self) -> bool {
        self.id().is_some() || self.clauses("") == self.lead()
    }
}

/// The text of the search. A range of times is a range of ids already; the times themselves are only looked at,
/// so that SQLite sorts no range by them.
fn text(conn: &Conn<'_>, filter: &CallFilter<'_>) -> String {
    let at = match conn {
        Conn::Postgres(_) => " AND at",
        Conn::Sqlite(_) => " AND +at",
    };
    format!(
        "SELECT {COLUMNS} FROM calls WHERE workspace_id = $1{} AND id >= $12 AND id <= $14
         ORDER BY workspace_id DESC, id DESC LIMIT $15",
        filter.clauses(at)
    )
}

/// Binds $1 to $15; a clause is only there if its filter is.
macro_rules! bound {
    ($query:expr, $workspace:expr, $filter:expr, $between:expr, $limit:expr) => {
        $query
            .bind(Bind::stored($workspace))
            .bind(Bind::stored($filter.server))
            .bind(Bind::stored($filter.grant))
            .bind(Bind::stored($filter.policy))
            .bind(Bind::stored($filter.tool))
            .bind(Bind::stored($filter.outcome))
            .bind(Bind::stored($filter.code))
            .bind(Bind::stored($filter.rule))
            .bind(Bind::stored($filter.from))
            .bind(Bind::stored($filter.to))
            .bind(Bind::stored($filter.q.map(|q| contains(q.trim()))))
            .bind($between.first)
            .bind(Bind::stored($filter.id()))
            .bind($between.last)
            .bind(rows($limit))
    };
}

/// The calls that fit the filter, newest first, before the given one; all rows are looked at.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: &CallFilter<'_>,
    before: Option<CallId>,
    limit: i64,
) -> Result<Vec<CallRecord>, StoreError> {
    Ok(search(conn, workspace, filter, before, limit, i64::MAX).await?.calls)
}

/// The calls that fit the filter, newest first, before the given one, among the newest `look` rows of those that
/// an index finds.
pub async fn search(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: &CallFilter<'_>,
    before: Option<CallId>,
    limit: i64,
    look: i64,
) -> Result<Found, StoreError> {
    let nothing = Found { calls: Vec::new(), looked_to: None };
    let Some(mut between) = between(conn, workspace, filter, before).await? else {
        return Ok(nothing);
    };
    let mut end = None;
    if look < i64::MAX && !filter.is_led() {
        end = look_to(conn, workspace, filter, between, look).await?;
        between.first = end.map_or(between.first, CallId::uuid);
    }
    let sql = AssertSqlSafe(text(conn, filter));
    // Only fixed clauses were put together.
    let calls: Vec<CallRecord> = match conn {
        Conn::Postgres(c) => {
            let query = sqlx::query_as::<_, crate::column::Record<CallRecord>>(sql);
            let found = bound!(query, workspace, filter, between, limit).fetch_all(&mut **c);
            crate::column::Unwrap::unwrapped(found.await?)
        }
        Conn::Sqlite(c) => {
            let query = sqlx::query_as::<_, crate::column::Record<CallRecord>>(sql);
            let found = bound!(query, workspace, filter, between, limit).fetch_all(&mut **c);
            crate::column::Unwrap::unwrapped(found.await?)
        }
    };
    let full = i64::try_from(calls.len()).is_ok_and(|found| found >= rows(limit));
    Ok(Found { calls, looked_to: end.filter(|_| !full) })
}

/// How the database means to find them, step by step.
pub async fn plan(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: &CallFilter<'_>,
    before: Option<CallId>,
) -> Result<Vec<String>, StoreError> {
    let Some(between) = between(conn, workspace, filter, before).await? else {
        return Ok(Vec::new());
    };
    let sql = text(conn, filter);
    Ok(match conn {
        Conn::Postgres(c) => {
            let query = sqlx::query(AssertSqlSafe(format!("EXPLAIN {sql}")));
            let steps = bound!(query, workspace, filter, between, 51).fetch_all(&mut **c).await?;
            steps.iter().map(|step| step.try_get(0)).collect::<Result<_, _>>()?
        }
        Conn::Sqlite(c) => {
            let query = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")));
            let steps = bound!(query, workspace, filter, between, 51).fetch_all(&mut **c).await?;
            steps.iter().map(|step| step.try_get("detail")).collect::<Result<_, _>>()?
        }
    })
}

record! {
    /// Of some days: the least and the most that a row's time is after the time in its id, in milliseconds.
    struct Skew {
        low: Option<i64>,
        high: Option<i64>,
    }
}

/// The ids between which the calls are; `None` where there is none.
async fn between(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: &CallFilter<'_>,
    before: Option<CallId>,
) -> Result<Option<Between>, StoreError> {
    let mut between = Between { first: Uuid::nil(), last: Uuid::max() };
    if let Some(newer) = filter.newer {
        let Some(first) = newer.uuid().as_u128().checked_add(1) else { return Ok(None) };
        between.first = Uuid::from_u128(first);
    }
    if let Some(before) = before {
        let Some(last) = before.uuid().as_u128().checked_sub(1) else { return Ok(None) };
        between.last = Uuid::from_u128(last);
    }
    if filter.from.is_some() || filter.to.is_some() {
        let skew = fetch_one!(
            conn,
            Skew,
            "SELECT MIN(skew_low) AS low, MAX(skew_high) AS high FROM call_days
             WHERE workspace_id = $1 AND day >= $2 AND day <= $3",
            workspace,
            filter.from.map_or(i64::MIN, day_of),
            filter.to.map_or(i64::MAX, day_of)
        )?;
        let (Some(low), Some(high)) = (skew.low, skew.high) else { return Ok(None) };
        if let Some(from) = filter.from {
            between.first = between.first.max(first_of(from.timestamp_millis() - high));
        }
        if let Some(to) = filter.to {
            between.last = between.last.min(first_of(to.timestamp_millis() - low + 1));
        }
    }
    Ok((between.first <= between.last).then_some(between))
}

/// The lowest id that is made at this time, in milliseconds.
fn first_of(millis: i64) -> Uuid {
    const MOST: u128 = (1 << 48) - 1;
    Uuid::from_u128(u128::try_from(millis).unwrap_or(0).min(MOST) << 80)
}

/// The last of the newest `look` rows that the leading filter finds; `None` where there are not so many.
async fn look_to(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: &CallFilter<'_>,
    between: Between,
    look: i64,
) -> Result<Option<CallId>, StoreError> {
    let sql = format!(
        "SELECT id AS value FROM calls WHERE workspace_id = $1{} AND id >= $4 AND id <= $8
         ORDER BY workspace_id DESC, id DESC LIMIT 1 OFFSET $9",
        filter.lead()
    );
    let found = fetch_optional!(
        conn,
        Value<CallId>,
        AssertSqlSafe(sql),
        workspace,
        filter.server,
        filter.grant,
        between.first,
        filter.tool,
        filter.outcome,
        filter.code,
        between.last,
        look.max(1) - 1
    )?;
    Ok(found.map(|found| found.0))
}
