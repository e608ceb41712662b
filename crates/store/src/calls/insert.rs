//! The batch insert, with each database's own text.

use std::collections::HashSet;

use sluice_domain::CallRecord;
use sqlx::{PgConnection, QueryBuilder, Sqlite, SqliteConnection};
use tokio::task::yield_now;
use uuid::Uuid;

use super::tally::Tally;

use crate::column::{micros, text};
use crate::{Conn, StoreError};

/// Named one by one: a column that a newer version adds must not change a prepared statement.
pub(super) const COLUMNS: &str = "workspace_id, id, server_id, grant_id, grant_label, at, method, tool, outcome, code, \
     rule, message, policy_id, policy_version, observed, counter, retry_after_s, arguments, trace, \
     client_name, protocol_version, session, client_address, request_bytes, response_bytes, \
     upstream_status, total_us, limits_us, approval_us, upstream_us";

/// Most rows in one statement; SQLite takes 32,766 parameters, and a row has 30.
const SQLITE_ROWS: usize = 512;

/// Stores calls; those that are there already stay as they are. Says how many were new.
pub async fn insert_batch(conn: &mut Conn<'_>, calls: &[CallRecord]) -> Result<u64, StoreError> {
    if calls.is_empty() {
        return Ok(0);
    }
    match conn {
        Conn::Postgres(conn) => postgres(conn, calls).await,
        Conn::Sqlite(conn) => {
            let mut new = 0;
            let mut left = calls;
            let mut tally = Tally::default();
            while !left.is_empty() {
                let (chunk, rest) = left.split_at(rows_at_once(left.len()));
                new += sqlite(conn, chunk, &mut tally).await?;
                left = rest;
            }
            tally.store(conn).await?;
            Ok(new)
        }
    }
}

/// One array a column: the text of the statement is the same for every size of batch.
async fn postgres(conn: &mut PgConnection, calls: &[CallRecord]) -> Result<u64, StoreError> {
    let sql = format!(
        "INSERT INTO calls ({COLUMNS}) SELECT * FROM UNNEST(
            $1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[],
            $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
            $13::uuid[], $14::bigint[], $15::boolean[], $16::text[], $17::bigint[], $18::text[],
            $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::bigint[],
            $25::bigint[], $26::integer[], $27::bigint[], $28::bigint[], $29::bigint[],
            $30::bigint[]) ON CONFLICT DO NOTHING"
    );
    macro_rules! column {
        ($call:ident => $value:expr) => {
            calls.iter().map(|$call| $value).collect::<Vec<_>>()
        };
    }
    // Calls go on between the columns: to make all of them ready takes as long as some dozens of calls.
    let query = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(column!(call => call.workspace.uuid()))
        .bind(column!(call => call.id.uuid()))
        .bind(column!(call => call.server.uuid()))
        .bind(column!(call => call.grant.uuid()))
        .bind(column!(call => text(&call.grant_label)))
        .bind(column!(call => micros(call.at)));
    yield_now().await;
    let query = query
        .bind(column!(call => text(&call.method)))
        .bind(column!(call => call.tool.as_deref().map(text)))
        .bind(column!(call => call.outcome.as_str()))
        .bind(column!(call => call.code.as_str()))
        .bind(column!(call => text(&call.rule)));
    yield_now().await;
    let query = query
        .bind(column!(call => text(&call.message)))
        .bind(column!(call => call.policy.map(sluice_domain::PolicyId::uuid)))
        .bind(column!(call => call.policy_version))
        .bind(column!(call => call.observed))
        .bind(column!(call => call.counter.as_deref().map(text)))
        .bind(column!(call => call.retry_after_s));
    yield_now().await;
    let query = query
        .bind(column!(call => call.arguments.as_deref().map(text)))
        .bind(column!(call => call.trace.as_deref().map(text)));
    yield_now().await;
    let query = query
        .bind(column!(call => call.client_name.as_deref().map(text)))
        .bind(column!(call => call.protocol_version.as_deref().map(text)))
        .bind(column!(call => call.session.as_deref().map(text)))
        .bind(column!(call => call.client_address.as_deref().map(text)));
    yield_now().await;
    let query = query
        .bind(column!(call => call.request_bytes))
        .bind(column!(call => call.response_bytes))
        .bind(column!(call => call.upstream_status))
        .bind(column!(call => call.timing.total_us))
        .bind(column!(call => call.timing.limits_us))
        .bind(column!(call => call.timing.approval_us))
        .bind(column!(call => call.timing.upstream_us));
    let done = query.execute(conn).await?;
    Ok(done.rows_affected())
}

/// Powers of two only: ten statements, prepared once, serve batches of every size.
pub(super) const fn rows_at_once(rows: usize) -> usize {
    if rows >= SQLITE_ROWS { SQLITE_ROWS } else { 1 << rows.ilog2() }
}

async fn sqlite<'a>(
    conn: &mut SqliteConnection,
    calls: &'a [CallRecord],
    tally: &mut Tally<'a>,
) -> Result<u64, StoreError> {
    let mut query = QueryBuilder::<Sqlite>::new(format!("INSERT INTO calls ({COLUMNS}) "));
    query.push_values(calls, |mut row, call| {
        row.push_bind(call.workspace.uuid())
            .push_bind(call.id.uuid())
            .push_bind(call.server.uuid())
            .push_bind(call.grant.uuid())
            .push_bind(text(&call.grant_label))
            .push_bind(micros(call.at))
            .push_bind(text(&call.method))
            .push_bind(call.tool.as_deref().map(text))
            .push_bind(call.outcome.as_str())
            .push_bind(call.code.as_str())
            .push_bind(text(&call.rule))
            .push_bind(text(&call.message))
            .push_bind(call.policy.map(sluice_domain::PolicyId::uuid))
            .push_bind(call.policy_version)
            .push_bind(call.observed)
            .push_bind(call.counter.as_deref().map(text))
            .push_bind(call.retry_after_s)
            .push_bind(call.arguments.as_deref().map(text))
            .push_bind(call.trace.as_deref().map(text))
            .push_bind(call.client_name.as_deref().map(text))
            .push_bind(call.protocol_version.as_deref().map(text))
            .push_bind(call.session.as_deref().map(text))
            .push_bind(call.client_address.as_deref().map(text))
            .push_bind(call.request_bytes)
            .push_bind(call.response_bytes)
            .push_bind(call.upstream_status)
            .push_bind(call.timing.total_us)
            .push_bind(call.timing.limits_us)
            .push_bind(call.timing.approval_us)
            .push_bind(call.timing.upstream_us);
    });
    query.push(" ON CONFLICT DO NOTHING");
    let done = query.build().execute(&mut *conn).await?;
    let new = done.rows_affected();
    if new == calls.len() as u64 {
        for call in calls {
            tally.add(call);
        }
    } else if new > 0 {
        // Some were there. The new rows have the last numbers, one after the other.
        let last = done.last_insert_rowid();
        let sql = "SELECT id FROM calls WHERE rowid > $1 AND rowid <= $2";
        let before = last.saturating_sub(i64::try_from(new).unwrap_or(i64::MAX));
        let came = sqlx::query_scalar(sql).bind(before).bind(last).fetch_all(conn).await?;
        let mut came: HashSet<Uuid> = came.into_iter().collect();
        for call in calls.iter().filter(|call| came.remove(&call.id.uuid())) {
            tally.add(call);
        }
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_cut_into_few_statements_of_few_sizes() {
        for (rows, cuts) in [(1, vec![1]), (7, vec![4, 2, 1]), (1_030, vec![512, 512, 4, 2])] {
            let mut left = rows;
            let mut sizes = Vec::new();
            while left > 0 {
                sizes.push(rows_at_once(left));
                left -= rows_at_once(left);
            }
            assert_eq!(sizes, cuts);
        }
    }
}
