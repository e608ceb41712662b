//! The call log's days on PostgreSQL: made ahead, dropped as a whole, and no row lost on the way.

use chrono::{DateTime, Days, Utc};
use sluice_domain::{CallId, CallRecord};
use sluice_store::calls::{self, CallFilter};
use sluice_store::{Conn, Db};
use sluice_testkit::db::FreshDatabase;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::support::{World, call, kept, now, world};

async fn fresh() -> (FreshDatabase, Db, World) {
    let fresh = FreshDatabase::postgres().await;
    let db = fresh.connect().await;
    let mut tx = db.begin().await.expect("begins");
    let a = world(&mut tx.conn(), "a").await;
    tx.commit().await.expect("commits");
    (fresh, db, a)
}

fn day(number: u64) -> DateTime<Utc> {
    kept(now() + Days::new(number))
}

fn at(a: &World, time: DateTime<Utc>) -> CallRecord {
    CallRecord { at: time, ..call(a, "run") }
}

async fn insert(db: &Db, batch: &[CallRecord]) -> u64 {
    let mut tx = db.begin().await.expect("begins");
    let new = calls::insert_batch(&mut tx.conn(), batch).await.expect("inserts");
    tx.commit().await.expect("commits");
    new
}

async fn make(db: &Db, from: DateTime<Utc>, ahead: u64) -> u64 {
    let mut tx = db.begin().await.expect("begins");
    let made = calls::make_days(&mut tx.conn(), from, ahead).await.expect("makes");
    tx.commit().await.expect("commits");
    made
}

async fn drop_until(db: &Db, before: DateTime<Utc>) -> u64 {
    let mut tx = db.begin().await.expect("begins");
    let dropped = calls::drop_days(&mut tx.conn(), before).await.expect("drops");
    tx.commit().await.expect("commits");
    dropped
}

async fn rows_of(db: &Db, table: &str) -> i64 {
    let mut tx = db.read().await.expect("begins");
    let Conn::Postgres(conn) = tx.conn() else { panic!("it is PostgreSQL") };
    let sql = format!("SELECT count(*) FROM {table}");
    conn.fetch_one(AssertSqlSafe(sql)).await.expect("counts").get(0)
}

async fn ids(db: &Db, a: &World) -> Vec<CallId> {
    let mut tx = db.read().await.expect("begins");
    let all = CallFilter::default();
    let found = calls::list(&mut tx.conn(), a.workspace, &all, None, 1_000).await.expect("lists");
    found.into_iter().map(|call| call.id).collect()
}

#[tokio::test]
async fn rows_of_a_day_without_a_partition_are_kept_and_move_into_it() {
    let (fresh, db, a) = fresh().await;
    let batch: Vec<_> = (0..6).map(|number| at(&a, day(number / 2))).collect();
    assert_eq!(insert(&db, &batch).await, 6);
    assert_eq!(rows_of(&db, "calls_rest").await, 6);
    assert_eq!(make(&db, day(0), 1).await, 2);
    assert_eq!(rows_of(&db, "calls_rest").await, 2, "the third day has none yet");
    assert_eq!(rows_of(&db, &format!("calls_{}", day(1).format("%Y%m%d"))).await, 2);
    assert_eq!(make(&db, day(0), 2).await, 1, "what is there stays");
    assert_eq!((rows_of(&db, "calls_rest").await, rows_of(&db, "calls").await), (0, 6));
    assert_eq!(insert(&db, &batch).await, 0, "a row is there once, wherever it lies");
    let mut expected: Vec<_> = batch.iter().map(|call| call.id).collect();
    expected.reverse();
    assert_eq!(ids(&db, &a).await, expected);
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_lose_nothing_while_days_are_made() {
    let (fresh, db, a) = fresh().await;
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let db = db.clone();
            tokio::spawn(async move {
                for number in 0..20 {
                    insert(&db, &[at(&a, day(number % 5)), at(&a, day(number % 5))]).await;
                }
            })
        })
        .collect();
    for ahead in 0..5 {
        make(&db, day(0), ahead).await;
    }
    for writer in writers {
        writer.await.expect("writes");
    }
    assert_eq!(ids(&db, &a).await.len(), 160);
    make(&db, day(0), 4).await;
    assert_eq!((rows_of(&db, "calls_rest").await, rows_of(&db, "calls").await), (0, 160));
    fresh.remove().await;
}

#[tokio::test]
async fn whole_days_are_dropped_and_no_other_row() {
    let (fresh, db, a) = fresh().await;
    make(&db, day(0), 2).await;
    let batch: Vec<_> = (0..4).map(|number| at(&a, day(number))).collect();
    insert(&db, &batch).await;
    assert_eq!(drop_until(&db, day(1)).await, 1, "the second day is not over");
    assert_eq!(ids(&db, &a).await, [batch[3].id, batch[2].id, batch[1].id]);
    assert_eq!(drop_until(&db, day(1)).await, 0);
    assert_eq!(drop_until(&db, day(40)).await, 2);
    assert_eq!(ids(&db, &a).await, [batch[3].id], "a row without a day is not dropped with one");
    assert_eq!(make(&db, day(0), 0).await, 1, "a dropped day may come again");
    fresh.remove().await;
}

/// The files of migrations below 90, in order: the schema before there were days.
fn before_days() -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
    let folders = [root.to_owned(), format!("{root}/postgres")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        file.is_file() && name.as_str() < "0090"
    });
    files.sort_by_key(|file| file.file_name().map(std::ffi::OsStr::to_owned));
    files.iter().map(|file| std::fs::read_to_string(file).expect("reads")).collect()
}

#[tokio::test]
async fn a_log_from_before_there_were_days_stays_whole_and_goes_when_it_is_old() {
    let fresh = FreshDatabase::postgres().await;
    let db = Db::connect(fresh.url(), &sluice_store::DbOptions::default()).await.expect("connects");
    let mut tx = db.begin().await.expect("begins");
    let Conn::Postgres(conn) = tx.conn() else { panic!("it is PostgreSQL") };
    for sql in before_days() {
        conn.execute(AssertSqlSafe(sql)).await.expect("migrates");
    }
    let a = world(&mut tx.conn(), "a").await;
    let batch: Vec<_> = (0..3).map(|number| at(&a, day(number))).collect();
    calls::insert_batch(&mut tx.conn(), &batch).await.expect("inserts");
    let Conn::Postgres(conn) = tx.conn() else { panic!("it is PostgreSQL") };
    for migration in [
        include_str!("../../../../migrations/postgres/0090_call_days.sql"),
        include_str!("../../../../migrations/postgres/0126_call_days.sql"),
    ] {
        conn.execute(migration).await.expect("migrates");
    }
    tx.commit().await.expect("commits");
    assert_eq!(ids(&db, &a).await, [batch[2].id, batch[1].id, batch[0].id]);
    assert_eq!(insert(&db, &batch).await, 0, "a row from before is known");
    assert_eq!(make(&db, day(0), 2).await, 0, "those days lie in what was before");
    // Whatever day this test runs on, what was before ends with the last of its rows or with today.
    let long_after = day(2).max(DateTime::from(std::time::SystemTime::now())) + Days::new(2);
    insert(&db, &[at(&a, long_after)]).await;
    assert_eq!(rows_of(&db, "call_days").await, 4, "what was there is counted");
    assert_eq!(drop_until(&db, long_after).await, 1);
    assert_eq!(rows_of(&db, "call_days").await, 1);
    assert_eq!(ids(&db, &a).await.len(), 1);
    fresh.remove().await;
}
