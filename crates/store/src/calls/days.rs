//! The call log's days on PostgreSQL, each a partition. SQLite has one table, and rows go one by one.
//!
//! Rows of a day without a partition are in `calls_rest`, and move when the day gets one: nothing that is
//! written depends on this having run.

use chrono::{DateTime, Days, NaiveTime, Utc};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::tally::day_of;
use crate::{Conn, StoreError};

/// "days" in ASCII: replicas take turns.
const TURN: i64 = 0x6461_7973;
/// Writers wait behind whoever waits for the tables; then it is tried again at the next time.
const PATIENCE: &str = "SET LOCAL lock_timeout = '2s'";

/// A partition, and the times at which it begins and ends.
#[derive(Debug, sqlx::FromRow)]
struct Day {
    name: String,
    /// None: what was there before there were days.
    since: Option<DateTime<Utc>>,
    until: DateTime<Utc>,
}

/// Makes the partitions of the day of `now` and of the `ahead` next ones; says how many were made.
pub async fn make_days(
    conn: &mut Conn<'_>,
    now: DateTime<Utc>,
    ahead: u64,
) -> Result<u64, StoreError> {
    let Conn::Postgres(conn) = conn else { return Ok(0) };
    if !take_turn(conn).await? {
        return Ok(0);
    }
    let there = days(conn).await?;
    let mut made = 0;
    for next in 0..=ahead {
        let Some(date) = now.date_naive().checked_add_days(Days::new(next)) else { break };
        let from = date.and_time(NaiveTime::MIN).and_utc();
        let name = format!("calls_{}", date.format("%Y%m%d"));
        // What was logged before there were days may reach into this one.
        let covered = there.iter().any(|day| day.name == name || day.is_before_days(from));
        if !covered {
            make_day(conn, &name, from, from + Days::new(1)).await?;
            made += 1;
        }
    }
    Ok(made)
}

/// Drops every partition that ended at `before` or earlier; says how many.
pub async fn drop_days(conn: &mut Conn<'_>, before: DateTime<Utc>) -> Result<u64, StoreError> {
    let Conn::Postgres(conn) = conn else { return Ok(0) };
    if !take_turn(conn).await? {
        return Ok(0);
    }
    let mut dropped = 0;
    for day in days(conn).await? {
        if day.until <= before {
            conn.execute(AssertSqlSafe(format!("DROP TABLE {}", day.name))).await?;
            uncount(conn, &day).await?;
            dropped += 1;
        }
    }
    Ok(dropped)
}

impl Day {
    /// Whether it is what was there before there were days, and `time` is in it.
    fn is_before_days(&self, time: DateTime<Utc>) -> bool {
        self.name == "calls_before" && time < self.until
    }
}

async fn take_turn(conn: &mut PgConnection) -> Result<bool, StoreError> {
    conn.execute(PATIENCE).await?;
    Ok(sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
        .bind(TURN)
        .fetch_one(conn)
        .await?)
}

/// Takes the rows of a partition that is gone out of the counts by day. A partition is whole days.
async fn uncount(conn: &mut PgConnection, day: &Day) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM call_days WHERE day >= $1 AND day < $2",
        "DELETE FROM call_tools WHERE day >= $1 AND day < $2",
    ] {
        let since = day.since.map_or(i64::MIN, day_of);
        sqlx::query(sql).bind(since).bind(day_of(day.until)).execute(&mut *conn).await?;
    }
    Ok(())
}

async fn days(conn: &mut PgConnection) -> Result<Vec<Day>, StoreError> {
    let sql = r"SELECT name, since::timestamptz AS since, until::timestamptz AS until FROM (
            SELECT c.relname::text AS name,
                   (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\)'))[1] AS since,
                   (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1] AS until
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'calls'::regclass) AS days
        WHERE until IS NOT NULL ORDER BY until";
    Ok(sqlx::query_as(sql).fetch_all(conn).await?)
}

/// The rows that are there already move into it, under a lock that keeps others from being added. Writers
/// wait at the whole log: one that had been sent on to `calls_rest` would find its row refused there.
async fn make_day(
    conn: &mut PgConnection,
    name: &str,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<(), StoreError> {
    let (from, until) = (from.to_rfc3339(), until.to_rfc3339());
    let sql = format!(
        "LOCK TABLE ONLY calls IN SHARE ROW EXCLUSIVE MODE;
         LOCK TABLE calls_rest IN ACCESS EXCLUSIVE MODE;
         CREATE TABLE {name} (LIKE calls INCLUDING DEFAULTS);
         WITH moved AS (DELETE FROM calls_rest WHERE at >= '{from}' AND at < '{until}' RETURNING *)
             INSERT INTO {name} SELECT * FROM moved;
         ALTER TABLE calls ATTACH PARTITION {name} FOR VALUES FROM ('{from}') TO ('{until}');"
    );
    conn.execute(AssertSqlSafe(sql)).await?;
    Ok(())
}
