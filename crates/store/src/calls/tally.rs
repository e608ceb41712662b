//! What a batch adds to the counts by day. On PostgreSQL a trigger sees the rows that came; on SQLite, which
//! has none for whole statements, they are counted here and added in the same transaction.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sluice_domain::CallRecord;
use sqlx::{QueryBuilder, Sqlite, SqliteConnection};
use uuid::Uuid;

use super::insert::rows_at_once;
use crate::StoreError;
use crate::column::{micros, text};

/// Workspace, day, call of a tool, outcome, code, observed.
type DayKey = (Uuid, i64, bool, &'static str, &'static str, bool);
/// Workspace, day, server, tool.
type ToolKey<'a> = (Uuid, i64, Uuid, Cow<'a, str>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    calls: i64,
    /// Of the rows' times after those in their ids, in milliseconds.
    skew: (i64, i64),
}

/// Calls by day, and by day and tool.
#[derive(Debug, Default)]
pub(super) struct Tally<'a> {
    days: BTreeMap<DayKey, Counted>,
    tools: BTreeMap<ToolKey<'a>, (i64, DateTime<Utc>)>,
}

/// Days since 1970 (UTC).
pub(super) fn day_of(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(86_400)
}

/// The time in an id, in milliseconds.
pub(super) fn made_at(id: Uuid) -> i64 {
    i64::try_from(id.as_u128() >> 80).unwrap_or(i64::MAX)
}

impl<'a> Tally<'a> {
    pub(super) fn add(&mut self, call: &'a CallRecord) {
        let at = micros(call.at);
        let (workspace, day) = (call.workspace.uuid(), day_of(at));
        let skew = at.timestamp_millis() - made_at(call.id.uuid());
        let of_tool = call.tool.is_some();
        let key =
            (workspace, day, of_tool, call.outcome.as_str(), call.code.as_str(), call.observed);
        let counted = self.days.entry(key).or_insert(Counted { calls: 0, skew: (skew, skew) });
        counted.calls += 1;
        counted.skew = (counted.skew.0.min(skew), counted.skew.1.max(skew));
        if let Some(tool) = &call.tool {
            let key = (workspace, day, call.server.uuid(), text(tool));
            let (calls, last) = self.tools.entry(key).or_insert((0, at));
            *calls += 1;
            *last = at.max(*last);
        }
    }

    pub(super) async fn store(self, conn: &mut SqliteConnection) -> Result<(), StoreError> {
        let days: Vec<_> = self.days.into_iter().collect();
        let mut left = &days[..];
        while !left.is_empty() {
            let (chunk, rest) = left.split_at(rows_at_once(left.len()));
            let sql =
                "INSERT INTO call_days (workspace_id, day, tool_call, outcome, code, observed,
                           calls, skew_low, skew_high) ";
            let mut query = QueryBuilder::<Sqlite>::new(sql);
            query.push_values(
                chunk,
                |mut row, ((workspace, day, tool, outcome, code, seen), of)| {
                    row.push_bind(*workspace).push_bind(*day).push_bind(*tool).push_bind(*outcome);
                    row.push_bind(*code).push_bind(*seen).push_bind(of.calls);
                    row.push_bind(of.skew.0).push_bind(of.skew.1);
                },
            );
            query.push(
                " ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,
                      skew_low = min(skew_low, excluded.skew_low),
                      skew_high = max(skew_high, excluded.skew_high)",
            );
            query.build().execute(&mut *conn).await?;
            left = rest;
        }
        let tools: Vec<_> = self.tools.into_iter().collect();
        let mut left = &tools[..];
        while !left.is_empty() {
            let (chunk, rest) = left.split_at(rows_at_once(left.len()));
            let sql =
                "INSERT INTO call_tools (workspace_id, day, server_id, tool, calls, last_at) ";
            let mut query = QueryBuilder::<Sqlite>::new(sql);
            query.push_values(chunk, |mut row, ((workspace, day, server, tool), (calls, last))| {
                row.push_bind(*workspace).push_bind(*day).push_bind(*server);
                row.push_bind(tool.as_ref()).push_bind(*calls).push_bind(*last);
            });
            query.push(
                " ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,
                      last_at = max(last_at, excluded.last_at)",
            );
            query.build().execute(&mut *conn).await?;
            left = rest;
        }
        Ok(())
    }
}
