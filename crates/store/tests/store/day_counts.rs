//! The counts by day are those of the log, whatever comes and goes and in which order.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{CallRecord, Code, Outcome, ServerId};
use sluice_store::calls::{self, CallFilter, DaySpan};
use sluice_store::{Conn, Db, workspaces};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::on_both;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::support::{World, call, kept, later, now, world};

async fn insert(db: &Db, batch: &[CallRecord]) -> u64 {
    let mut tx = db.begin().await.expect("begins");
    let new = calls::insert_batch(&mut tx.conn(), batch).await.expect("inserts");
    tx.commit().await.expect("commits");
    new
}

async fn begin_with_world(db: &Db) -> World {
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    tx.commit().await.expect("commits");
    a
}

fn day(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(86_400)
}

/// Each row of a count as text: its key, and what it says.
type Counts = BTreeMap<String, String>;

async fn counts(db: &Db, sql: &str) -> Counts {
    let mut tx = db.read().await.expect("begins");
    let sql = AssertSqlSafe(sql.to_owned());
    let rows: Vec<(String, String)> = match tx.conn() {
        Conn::Postgres(conn) => {
            let rows = conn.fetch_all(sql).await.expect("reads");
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        }
        Conn::Sqlite(conn) => {
            let rows = conn.fetch_all(sql).await.expect("reads");
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        }
    };
    rows.into_iter().collect()
}

const DAYS: &str =
    "SELECT day || ' ' || CASE WHEN tool_call THEN 'tool' ELSE 'other' END || ' ' || outcome
        || ' ' || code || CASE WHEN observed THEN ' observed' ELSE '' END,
    CAST(calls AS TEXT) FROM call_days";
const TOOLS: &str = "SELECT day || ' ' || tool, CAST(calls AS TEXT) FROM call_tools";
const SKEWS: &str =
    "SELECT CAST(day AS TEXT), MIN(skew_low) || ' to ' || MAX(skew_high) FROM call_days
    GROUP BY day";

/// Counts the log row by row and compares.
async fn are_those_of_the_log(db: &Db, a: &World, when: &str) {
    let mut tx = db.read().await.expect("begins");
    let all = CallFilter::default();
    let log = calls::list(&mut tx.conn(), a.workspace, &all, None, 10_000).await.expect("lists");
    drop(tx);
    let (mut days, mut tools) = (BTreeMap::new(), BTreeMap::new());
    for call in &log {
        let kind = if call.tool.is_some() { "tool" } else { "other" };
        let seen = if call.observed { " observed" } else { "" };
        let day = day(call.at);
        *days.entry(format!("{day} {kind} {} {}{seen}", call.outcome, call.code)).or_insert(0) += 1;
        if let Some(tool) = &call.tool {
            *tools.entry(format!("{day} {tool}")).or_insert(0) += 1;
        }
    }
    let text = |counts: BTreeMap<String, i64>| -> Counts {
        counts.into_iter().map(|(key, calls)| (key, calls.to_string())).collect()
    };
    assert_eq!(counts(db, DAYS).await, text(days), "{when}");
    assert_eq!(counts(db, TOOLS).await, text(tools), "{when}");
}

/// Calls of three days: tools and none, each outcome, the last moment of a day and the first of the next.
fn three_days(a: &World) -> Vec<CallRecord> {
    let midnight = DateTime::from_timestamp(day(now()) * 86_400, 0).expect("a time");
    let limited = |at| CallRecord {
        outcome: Outcome::Limited,
        code: Code::RateLimited,
        at: kept(at),
        ..call(a, "run")
    };
    vec![
        call(a, "run"),
        call(a, "delete_note\0"),
        CallRecord { tool: None, method: "tools/list".into(), ..call(a, "") },
        limited(midnight),
        limited(midnight - TimeDelta::microseconds(1)),
        CallRecord { observed: true, ..limited(later(-86_400)) },
        limited(later(-2 * 86_400)),
        CallRecord { at: DateTime::<Utc>::MAX_UTC, ..call(a, "far") },
    ]
}

on_both! {
    async fn each_row_is_counted_once_and_only_while_it_is_there(db: Db) {
        let a = begin_with_world(&db).await;
        let batch = three_days(&a);
        assert_eq!(insert(&db, &batch).await, 8);
        are_those_of_the_log(&db, &a, "new rows").await;
        // A writer that nobody answered writes its batch again, with what came meanwhile; and one row is
        // twice in it.
        let (fresh, late) = (call(&a, "run"), CallRecord { at: kept(later(-86_400)), ..call(&a, "run") });
        let again = [&batch[..3], &[fresh.clone(), late], &batch[3..], &[fresh]].concat();
        assert_eq!(insert(&db, &again).await, 2);
        are_those_of_the_log(&db, &a, "written again").await;
        assert_eq!(insert(&db, &again).await, 0);
        // A transaction that comes to nothing counts nothing.
        let mut tx = db.begin().await.unwrap();
        calls::insert_batch(&mut tx.conn(), &[call(&a, "run")]).await.unwrap();
        tx.rollback().await.unwrap();
        are_those_of_the_log(&db, &a, "rolled back").await;
        // Retention goes through the middle of a day.
        for limit in [1, 100] {
            let mut tx = db.begin().await.unwrap();
            let middle = later(-86_400 + 1);
            assert!(calls::prune(&mut tx.conn(), a.workspace, middle, limit).await.unwrap() > 0);
            tx.commit().await.unwrap();
            are_those_of_the_log(&db, &a, "pruned").await;
        }
        let mut tx = db.begin().await.unwrap();
        workspaces::delete(&mut tx.conn(), a.workspace, later(1)).await.unwrap();
        while workspaces::erase_log(&mut tx.conn(), a.workspace, 2).await.unwrap() > 0 {}
        tx.commit().await.unwrap();
        assert_eq!(counts(&db, DAYS).await, Counts::new());
        assert_eq!(counts(&db, TOOLS).await, Counts::new());
    }

    async fn what_the_overview_reads_is_there(db: Db) {
        let a = begin_with_world(&db).await;
        let other_server = CallRecord { server: ServerId::new(), ..call(&a, "run") };
        let batch = [three_days(&a), vec![call(&a, "run"), other_server]].concat();
        insert(&db, &batch).await;
        let mut tx = db.read().await.unwrap();
        let conn = &mut tx.conn();
        let days = DaySpan::of(later(-86_400), now());
        let today = day(now());
        let by_day = calls::by_day(conn, a.workspace, days).await.unwrap();
        let by_day: Vec<_> = by_day.iter().map(|one| (one.day - today, one.outcome, one.calls)).collect();
        assert_eq!(
            by_day,
            [(-1, Outcome::Limited, 2), (0, Outcome::Allowed, 4), (0, Outcome::Limited, 1)]
        );
        let reasons = calls::reasons(conn, a.workspace, days).await.unwrap();
        let reasons: Vec<_> = reasons.iter().map(|one| (one.code, one.outcome, one.calls)).collect();
        assert_eq!(reasons, [(Code::RateLimited, Outcome::Limited, 3)]);
        let (most, risky) = calls::tools_used(conn, a.workspace, days, 2).await.unwrap();
        let most: Vec<_> = most.iter().map(|one| (one.tool.as_str(), one.calls, one.last_at)).collect();
        assert_eq!(most[0], ("run", 5, kept(now())));
        assert_eq!((most.len(), risky), (2, vec![]));
    }

    async fn an_upgrade_counts_what_was_logged_before(db: Db) {
        let a = begin_with_world(&db).await;
        let odd = CallRecord { at: DateTime::from_timestamp(1_796_000_000, 0).unwrap(), ..call(&a, "run") };
        insert(&db, &[three_days(&a), vec![odd]].concat()).await;
        let (days, tools, skews) =
            (counts(&db, DAYS).await, counts(&db, TOOLS).await, counts(&db, SKEWS).await);
        let mut tx = db.begin().await.unwrap();
        let migration = match tx.conn() {
            Conn::Postgres(_) => include_str!("../../../../migrations/postgres/0126_call_days.sql"),
            Conn::Sqlite(_) => include_str!("../../../../migrations/sqlite/0126_call_days.sql"),
        };
        let fill = migration.split(';').map(str::trim).filter(|one| one.starts_with("INSERT") || one.contains("\nINSERT INTO call_days\n"));
        for sql in ["DELETE FROM call_days", "DELETE FROM call_tools"].into_iter().chain(fill.take(2)) {
            let sql = AssertSqlSafe(sql.to_owned());
            match tx.conn() {
                Conn::Postgres(conn) => conn.execute(sql).await.map(drop),
                Conn::Sqlite(conn) => conn.execute(sql).await.map(drop),
            }
            .expect("runs");
        }
        tx.commit().await.unwrap();
        assert_eq!((counts(&db, DAYS).await, counts(&db, TOOLS).await), (days, tools));
        assert_eq!(counts(&db, SKEWS).await, skews);
    }
}

#[tokio::test]
async fn a_day_that_is_dropped_as_a_whole_is_counted_no_more() {
    let fresh = FreshDatabase::postgres().await;
    let db = fresh.connect().await;
    let a = begin_with_world(&db).await;
    let mut tx = db.begin().await.expect("begins");
    calls::make_days(&mut tx.conn(), later(-2 * 86_400), 3).await.expect("makes");
    tx.commit().await.expect("commits");
    let batch: Vec<_> = (0..6)
        .map(|n| CallRecord { at: kept(later(-(n / 2) * 86_400)), ..call(&a, "run") })
        .collect();
    insert(&db, &batch).await;
    let mut tx = db.begin().await.expect("begins");
    assert_eq!(calls::drop_days(&mut tx.conn(), later(-86_400)).await.expect("drops"), 1);
    tx.commit().await.expect("commits");
    are_those_of_the_log(&db, &a, "dropped").await;
    assert_eq!(counts(&db, TOOLS).await.len(), 2);
    drop(fresh);
}
