//! Starting: on an empty database, several at once, on a newer one, on somebody else's.

use sluice_store::{Conn, Db, DbOptions, SchemaState, StoreError};
use sluice_testkit::db::FreshUrl;
use sluice_testkit::on_both;
use sqlx::Executor;

async fn open(url: &FreshUrl) -> Db {
    Db::connect(&url.0, &DbOptions::default()).await.expect("connects")
}

async fn run(db: &Db, sql: &'static str) {
    let mut tx = db.begin().await.expect("begins");
    match tx.conn() {
        Conn::Postgres(conn) => conn.execute(sql).await.map(drop),
        Conn::Sqlite(conn) => conn.execute(sql).await.map(drop),
    }
    .expect("runs");
    tx.commit().await.expect("commits");
}

on_both! {
    async fn three_replicas_that_start_at_once_all_come_up(url: FreshUrl) {
        let replicas = [open(&url).await, open(&url).await, open(&url).await];
        let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(3));
        let starts = replicas.clone().map(|db| {
            let barrier = std::sync::Arc::clone(&barrier);
            tokio::spawn(async move {
                barrier.wait().await;
                db.migrate().await
            })
        });
        let mut found = Vec::new();
        for start in starts {
            found.push(start.await.unwrap().unwrap().found);
        }
        found.sort_unstable();
        let SchemaState { found: now, known } = replicas[0].schema().await.unwrap();
        assert_eq!(now, known);
        assert_eq!(found, [0, known, known], "one migrated, the others found it done");
        for db in &replicas {
            db.require_current_schema().await.unwrap();
        }
        // Once more, as after a restart.
        assert_eq!(replicas[1].migrate().await.unwrap(), SchemaState { found: known, known });
    }

    async fn an_empty_database_waits_for_its_migration(url: FreshUrl) {
        let db = open(&url).await;
        let error = db.require_current_schema().await.unwrap_err();
        assert!(matches!(error, StoreError::OlderSchema { found: 0, known: 4.. }), "{error:?}");
    }

    async fn a_newer_schema_is_refused_and_left_alone(url: FreshUrl) {
        let db = open(&url).await;
        let known = db.migrate().await.unwrap().known;
        run(
            &db,
            "INSERT INTO sluice_migrations
                      (version, description, success, checksum, execution_time, installed_on)
                  VALUES (9999, 'from the future', TRUE, '\\x00', 0, '2031-01-01 00:00:00')",
        )
        .await;
        for error in
            [db.migrate().await.unwrap_err(), db.require_current_schema().await.unwrap_err()]
        {
            let StoreError::NewerSchema { found, known: mine } = error else { panic!("{error:?}") };
            assert_eq!((found, mine), (9999, known));
        }
        assert_eq!(db.schema().await.unwrap(), SchemaState { found: 9999, known });
    }

    async fn a_migration_in_another_form_is_refused(url: FreshUrl) {
        let db = open(&url).await;
        db.migrate().await.unwrap();
        run(&db, "UPDATE sluice_migrations SET checksum = '\\x00' WHERE version = 2").await;
        let error = db.migrate().await.unwrap_err();
        assert!(matches!(error, StoreError::AlteredMigration { version: 2 }), "{error:?}");
    }

    async fn somebody_elses_database_is_left_alone(url: FreshUrl) {
        let db = open(&url).await;
        run(&db, "CREATE TABLE invoices (id INTEGER)").await;
        let error = db.migrate().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the database is not Sluice's: it has tables of something else, such as `invoices`"
        );
        assert!(matches!(db.schema().await, Err(StoreError::NotSluice { .. })));
        run(&db, "DROP TABLE invoices").await;
        db.migrate().await.unwrap();
    }
}

on_both! {
    async fn a_reading_transaction_cannot_write(db: Db) {
        let mut tx = db.read().await.unwrap();
        let made = sluice_store::users::create(
            &mut tx.conn(),
            "ann@example.test",
            "",
            None,
            crate::support::now(),
        )
        .await;
        assert!(matches!(made, Err(StoreError::Database(_))), "{made:?}");
    }

    async fn a_dropped_transaction_leaves_nothing(db: Db) {
        let mut tx = db.begin().await.unwrap();
        let now = crate::support::now();
        sluice_store::users::create(&mut tx.conn(), "ann@example.test", "", None, now)
            .await
            .unwrap();
        drop(tx);
        let mut tx = db.begin().await.unwrap();
        let found = sluice_store::users::find_by_email(&mut tx.conn(), "ann@example.test").await;
        assert_eq!(found.unwrap(), None);
    }

    async fn a_busy_pool_is_unavailable_and_not_a_hang(url: FreshUrl) {
        let options = DbOptions {
            pool_size: 2,
            // Long enough to connect on a busy machine.
            acquire_timeout: std::time::Duration::from_secs(5),
            ..DbOptions::default()
        };
        let db = Db::connect(&url.0, &options).await.unwrap();
        db.migrate().await.unwrap();
        let held = [db.read().await.unwrap(), db.read().await.unwrap()];
        let error = db.read().await.unwrap_err();
        assert!(error.is_unavailable(), "{error:?}");
        drop(held);
        db.ping().await.unwrap();
    }

    async fn the_database_knows_the_time(db: Db) {
        let at = db.clock().await.unwrap();
        let year = at.format("%Y").to_string().parse::<i32>().unwrap();
        assert!((2024..2100).contains(&year), "{at}");
    }
}

#[tokio::test]
async fn a_postgres_address_at_fault_is_told_in_the_servers_words() {
    let fresh = sluice_testkit::db::FreshDatabase::postgres().await;
    let url = fresh.url().replace("sluice_test_", "no_such_database_");
    let error = Db::connect(&url, &DbOptions::default()).await.unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, StoreError::Address(_)), "{error:?}");
    assert!(words.contains("no_such_database_") && words.contains("does not exist"), "{words}");
    fresh.remove().await;
}

#[tokio::test]
async fn a_path_may_have_any_characters() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a b%41?#ü&=+");
    std::fs::create_dir(&odd).unwrap();
    let file = odd.join("sluice.db");
    let db = Db::connect(&Db::address_of_file(&file), &DbOptions::default()).await.unwrap();
    db.migrate().await.unwrap();
    assert!(file.exists());
    assert_eq!(db.file(), Some(file.as_path()));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sluice.db");
    let text = "this is a shopping list, not a database\n".repeat(200);
    std::fs::write(&file, &text).unwrap();
    let url = format!("sqlite://{}", file.display());
    let error = Db::connect(&url, &DbOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotSluice { .. }), "{error:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[tokio::test]
async fn addresses_that_name_no_database_are_refused() {
    for url in ["", "mysql://x/y", "sluice.db", "sqlite::memory:", "sqlite://?mode=memory"] {
        let error = Db::connect(url, &DbOptions::default()).await.unwrap_err();
        assert!(matches!(error, StoreError::Address(_)), "{url}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_within_the_timeout() {
    let started = std::time::Instant::now();
    let url = "postgres://postgres@127.0.0.1:1/x";
    let error = Db::connect(url, &DbOptions::default()).await.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
}

#[tokio::test]
async fn one_process_serves_a_sqlite_file_and_commands_work_beside_it() {
    let fresh = sluice_testkit::db::FreshDatabase::sqlite();
    let server = fresh.connect().await;
    let lock = server.lock_for_serving().unwrap().expect("SQLite has a lock");
    let second = fresh.connect().await;
    let error = second.lock_for_serving().unwrap_err();
    let StoreError::AlreadyServed { path } = &error else { panic!("{error:?}") };
    assert_eq!(path.file_name().unwrap(), "sluice.db.lock");

    // A command beside it writes, and the server sees it.
    let mut tx = second.begin().await.unwrap();
    let user = sluice_store::users::create(
        &mut tx.conn(),
        "ann@example.test",
        "Ann",
        None,
        crate::support::now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let mut tx = server.read().await.unwrap();
    assert_eq!(sluice_store::users::find(&mut tx.conn(), user.id).await.unwrap(), Some(user));

    drop(lock);
    assert!(second.lock_for_serving().unwrap().is_some());
}
