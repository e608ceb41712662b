//! However large the log is, a page of it comes from an index, in the index's order; and what a search looks at
//! is bounded.

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{CallId, CallRecord, Code, GrantId, Outcome, ServerId};
use sluice_store::calls::{self, CallFilter, DaySpan};
use sluice_store::grants::GrantFilter;
use sluice_store::{Conn, Db, grants, servers, tools};
use sluice_testkit::on_both;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::support::{World, call, kept, later, world};

const SECONDS: i64 = 30 * 86_400;

/// When a row was made: the id says it too, within a few milliseconds.
fn made(id: CallId) -> DateTime<Utc> {
    let (seconds, nanos) = id.uuid().get_timestamp().expect("it has a time").to_unix();
    let seconds = i64::try_from(seconds).expect("a time");
    kept(DateTime::from_timestamp(seconds, nanos).expect("a time"))
}

/// An id of the time before `now`.
fn id_before(now: DateTime<Utc>, seconds: i64) -> CallId {
    let floor = CallId::floor(now - TimeDelta::seconds(seconds)).uuid().as_u128();
    CallId::from_uuid(uuid::Uuid::from_u128(floor | (CallId::new().uuid().as_u128() >> 64)))
}

/// A log of thirty days, of which one row in ten was refused: few servers, many grants.
async fn month(db: &Db, rows: i64) -> (World, DateTime<Utc>) {
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    let now = made(CallId::new());
    calls::make_days(&mut tx.conn(), now - TimeDelta::days(31), 32).await.expect("makes");
    let (servers, grants): (Vec<_>, Vec<_>) =
        ((0..20).map(|_| ServerId::new()).collect(), (0..200).map(|_| GrantId::new()).collect());
    let tools: Vec<String> = (0..40).map(|n| format!("tool_{n}")).collect();
    let refused = |n: i64| (n % 10 == 0).then_some((Outcome::Denied, Code::DenyIfMatched));
    for first in (0..rows).step_by(1_000) {
        let batch = first..rows.min(first + 1_000);
        let row = |n: i64| {
            let id = id_before(now, SECONDS - n * SECONDS / rows);
            let of = |count: usize| usize::try_from(n).expect("small") % count;
            let (outcome, code) = refused(n).unwrap_or((Outcome::Allowed, Code::Allowed));
            let (server, grant) = (servers[of(20)], grants[of(200)]);
            let at = made(id) + TimeDelta::milliseconds(n % 5);
            CallRecord { id, at, server, grant, outcome, code, ..call(&a, &tools[of(40)]) }
        };
        let batch: Vec<_> = batch.map(row).collect();
        calls::insert_batch(&mut tx.conn(), &batch).await.expect("inserts");
    }
    // The tests' own server and grant have a few rows too.
    calls::insert_batch(&mut tx.conn(), &[call(&a, "run")]).await.expect("inserts");
    tx.commit().await.expect("commits");
    let mut tx = db.begin().await.expect("begins");
    match tx.conn() {
        Conn::Postgres(conn) => conn.execute("ANALYZE").await.map(drop),
        // Nobody runs it on SQLite: plans must be right without.
        Conn::Sqlite(_) => Ok(()),
    }
    .expect("analyzes");
    tx.commit().await.expect("commits");
    (a, now)
}

/// Takes from PostgreSQL what it does with few rows: what is left over shows which indexes there are.
async fn as_if_large(conn: &mut Conn<'_>) {
    if let Conn::Postgres(conn) = conn {
        let plans = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off";
        conn.execute(plans).await.expect("sets");
    }
}

on_both! {
    async fn every_filter_of_the_log_has_an_index_that_gives_its_order(db: Db) {
        let (a, now) = month(&db, 3_000).await;
        let none = CallFilter::default();
        let id = CallId::new().to_string();
        let week = Some(now - TimeDelta::days(21));
        let filters = [
            none,
            CallFilter { server: Some(a.server), ..none },
            CallFilter { grant: Some(a.grant), ..none },
            CallFilter { tool: Some("tool_7"), ..none },
            CallFilter { outcome: Some(Outcome::Denied), ..none },
            CallFilter { outcome: Some(Outcome::Allowed), ..none },
            CallFilter { code: Some(Code::DenyIfMatched), ..none },
            CallFilter { code: Some(Code::Allowed), ..none },
            CallFilter { policy: Some(a.policy), ..none },
            CallFilter { rule: Some("/default"), ..none },
            CallFilter { from: week, ..none },
            CallFilter { to: week, ..none },
            CallFilter { from: week, to: Some(now - TimeDelta::days(14)), ..none },
            CallFilter { q: Some("absent"), ..none },
            CallFilter { q: Some(&id), ..none },
            CallFilter { tool_calls: true, ..none },
            CallFilter { newer: Some(CallId::floor(now)), ..none },
            CallFilter { server: Some(a.server), outcome: Some(Outcome::Denied), from: week, ..none },
            CallFilter { tool: Some("tool_7"), q: Some("absent"), to: week, ..none },
        ];
        let mut tx = db.read().await.unwrap();
        as_if_large(&mut tx.conn()).await;
        for filter in filters {
            let before = (filter.newer, filter.q) == (None, None);
            let before = before.then(|| CallId::floor(now));
            let plan = calls::plan(&mut tx.conn(), a.workspace, &filter, before).await.unwrap();
            let whole = plan.join("\n");
            assert!(whole.contains("Index") || whole.contains("USING INDEX"), "{filter:?}\n{whole}");
            let bad = ["Seq Scan", "->  Sort", "Incremental", "SCAN", "TEMP B-TREE", "calls_at"];
            let slow = |step: &&String| bad.iter().any(|bad| step.contains(bad));
            assert_eq!(plan.iter().find(slow), None, "{filter:?}\n{whole}");
        }
    }

    async fn a_range_of_times_finds_what_is_in_it_and_reads_little_else(db: Db) {
        let (a, now) = month(&db, 3_000).await;
        // A row that came late, and one of a clock that is wrong.
        let late = CallRecord { at: kept(now - TimeDelta::days(20)), ..call(&a, "late") };
        let early = CallRecord {
            id: id_before(now, 25 * 86_400),
            at: kept(now - TimeDelta::days(3)),
            ..call(&a, "early")
        };
        let mut tx = db.begin().await.unwrap();
        let conn = &mut tx.conn();
        calls::insert_batch(conn, &[late, early]).await.unwrap();
        let all = calls::list(conn, a.workspace, &CallFilter::default(), None, 10_000).await.unwrap();
        assert_eq!(all.len(), 3_003);
        let ago = |days| Some(kept(now - TimeDelta::days(days)));
        for (from, to) in [(None, ago(10)), (ago(10), None), (ago(21), ago(19)), (ago(4), ago(2)), (ago(2), ago(4))] {
            let filter = CallFilter { from, to, ..CallFilter::default() };
            let found = calls::list(conn, a.workspace, &filter, None, 10_000).await.unwrap();
            let fits = |call: &&CallRecord| {
                from.is_none_or(|from| call.at >= from) && to.is_none_or(|to| call.at < to)
            };
            let expected: Vec<_> = all.iter().filter(fits).cloned().collect();
            assert_eq!(found, expected, "{from:?} to {to:?}");
        }
        // On days when clocks agreed, rows around the range are not even looked at.
        let filter = CallFilter { from: ago(12), to: ago(11), ..CallFilter::default() };
        let found = calls::search(conn, a.workspace, &filter, None, 1_000, 130).await.unwrap();
        assert_eq!((found.calls.len(), found.looked_to), (100, None));
    }

    async fn a_search_looks_at_so_many_rows_and_the_next_goes_on(db: Db) {
        let (a, _) = month(&db, 1_000).await;
        let filter = CallFilter { q: Some("TOOL_7"), ..CallFilter::default() };
        let mut tx = db.read().await.unwrap();
        let conn = &mut tx.conn();
        let (mut before, mut seen, mut pages) = (None, Vec::new(), 0);
        loop {
            let found = calls::search(conn, a.workspace, &filter, before, 5, 100).await.unwrap();
            assert!(found.calls.len() <= 3, "of a hundred rows");
            seen.extend(found.calls.into_iter().map(|call| call.id));
            pages += 1;
            assert!(pages < 20, "it does not end");
            let Some(looked_to) = found.looked_to else { break };
            before = Some(looked_to);
        }
        let all = calls::list(conn, a.workspace, &filter, None, 1_000).await.unwrap();
        assert_eq!((seen.len(), pages), (25, 11));
        assert_eq!(seen, all.iter().map(|call| call.id).collect::<Vec<_>>());
        // A full page goes on after its last row; what an index finds is not bounded.
        let full = calls::search(conn, a.workspace, &filter, None, 2, 100).await.unwrap();
        assert_eq!((full.calls.len(), full.looked_to), (2, None));
        let led = CallFilter { tool: Some("tool_7"), ..CallFilter::default() };
        let found = calls::search(conn, a.workspace, &led, None, 1_000, 10).await.unwrap();
        assert_eq!((found.calls.len(), found.looked_to), (25, None));
    }
}

/// What pages ask for, each in a transaction of its own, and the tables that were read from end to end.
#[tokio::test]
async fn no_page_reads_the_log_from_end_to_end() {
    let fresh = sluice_testkit::db::FreshDatabase::postgres().await;
    let db = fresh.connect().await;
    let (a, now) = month(&db, 3_000).await;
    let mut tx = db.read_in(a.workspace).await.expect("begins");
    let conn = &mut tx.conn();
    as_if_large(conn).await;
    let days = DaySpan::of(now - TimeDelta::days(6), now);
    calls::by_day(conn, a.workspace, days).await.expect("reads");
    calls::reasons(conn, a.workspace, days).await.expect("reads");
    calls::tools_used(conn, a.workspace, days, 8).await.expect("reads");
    calls::did_lately(conn, a.workspace, a.grant, 1_000).await.expect("reads");
    servers::list(conn, a.workspace, None, 50).await.expect("reads");
    grants::list(conn, a.workspace, GrantFilter::default(), None, 50).await.expect("reads");
    tools::count_attention(conn, a.workspace, tools::Attention::Review).await.expect("reads");
    for q in [None, Some("absent")] {
        let filter = CallFilter { q, from: Some(later(-60)), ..CallFilter::default() };
        calls::search(conn, a.workspace, &filter, None, 51, 1_000).await.expect("reads");
    }
    let sql = "SELECT relname::text, seq_tup_read FROM pg_stat_xact_user_tables
               WHERE seq_tup_read > 100 OR (relname LIKE 'calls%' AND seq_tup_read > 5)";
    let Conn::Postgres(conn) = conn else { panic!("it is PostgreSQL") };
    let read = conn.fetch_all(AssertSqlSafe(sql.to_owned())).await.expect("reads");
    let read: Vec<(String, i64)> = read.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(read, []);
    drop(fresh);
}
