//! A fresh database for every test, on SQLite and on PostgreSQL, and the macro that runs one body
//! on both.

use std::path::{Path, PathBuf};

use sluice_store::{Db, DbOptions};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// Where the tests' PostgreSQL server is: a `postgres://` address whose user may create databases.
pub const POSTGRES_VARIABLE: &str = "SLUICE_TEST_POSTGRES_URL";

/// Owns the tests' databases and is no superuser: row-level security holds for it, as it does for the role
/// that Sluice should have.
const ROLE: &str = "sluice_tests";

/// Runs each test body on SQLite and on PostgreSQL, each with a fresh database. The argument is a
/// migrated [`Db`] or the [`FreshUrl`] of an empty one.
///
/// ```text
/// on_both! {
///     async fn nothing_is_there(db: Db) { … }
/// }
/// ```
#[macro_export]
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($arg:ident: $kind:ident) $body:block)+) => { $(
        $(#[$meta])*
        #[cfg(test)]
        mod $name {
            use super::*;

            async fn body($arg: $kind) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let fresh = $crate::db::FreshDatabase::sqlite();
                body(<$kind as $crate::db::FromFresh>::from_fresh(&fresh).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let fresh = $crate::db::FreshDatabase::postgres().await;
                body(<$kind as $crate::db::FromFresh>::from_fresh(&fresh).await).await;
                fresh.remove().await;
            }
        }
    )+ };
}

/// An empty database of one test.
#[derive(Debug)]
pub struct FreshDatabase {
    url: String,
    /// The SQLite file's folder, which goes with this value.
    _folder: Option<TempDir>,
    /// The PostgreSQL server and the database's name there.
    server: Option<(String, String)>,
}

impl FreshDatabase {
    /// A SQLite file in a temporary folder.
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file: PathBuf = folder.path().join("sluice.db");
        let url = format!("sqlite://{}", file.display());
        Self { url, _folder: Some(folder), server: None }
    }

    /// A database of its own on the tests' PostgreSQL server.
    pub async fn postgres() -> Self {
        let server = postgres_server();
        let name = format!("sluice_test_{}", uuid::Uuid::now_v7().simple());
        let mut url = url::Url::parse(&server).expect("the server's address is a URL");
        command(&server, role(url.password())).await;
        command(&server, format!("CREATE DATABASE {name} OWNER {ROLE}")).await;
        url.set_path(&name);
        url.set_username(ROLE).expect("a user can be set");
        Self { url: url.into(), _folder: None, server: Some((server, name)) }
    }

    /// Its address, for `Db::connect` or a binary's `--database-url`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connects and migrates.
    pub async fn connect(&self) -> Db {
        let db = Db::connect(&self.url, &DbOptions::default()).await.expect("connects");
        db.migrate().await.expect("migrates");
        db
    }

    /// Removes the database, whoever is still connected. Without it the server's end removes it.
    pub async fn remove(self) {
        if let Some((server, name)) = &self.server {
            command(server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        }
    }
}

/// Makes the tests' role where it is missing. Several tests may begin at once.
fn role(password: Option<&str>) -> String {
    let password = password.map(|text| format!("PASSWORD '{}'", text.replace('\'', "''")));
    format!(
        "DO $do$ BEGIN
             CREATE ROLE {ROLE} LOGIN {};
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
         END $do$",
        password.unwrap_or_default()
    )
}

/// The server that `cargo xtask test` started.
#[expect(clippy::disallowed_methods, reason = "only the test runner knows where the server is")]
fn postgres_server() -> String {
    std::env::var(POSTGRES_VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{POSTGRES_VARIABLE} is not set. Run `cargo xtask test`, which starts a private \
             PostgreSQL, or set it to the address of a server where tests may create databases"
        )
    })
}

async fn command(server: &str, sql: String) {
    let mut conn = PgConnection::connect(server).await.expect("the test PostgreSQL answers");
    conn.execute(AssertSqlSafe(sql)).await.expect("the test PostgreSQL obeys");
    conn.close().await.expect("closes");
}

/// Waits until every transaction of a PostgreSQL database that is open now has ended; half a minute.
pub async fn until_transactions_end(url: &str) {
    let mut conn = PgConnection::connect(url).await.expect("the test PostgreSQL answers");
    let now: String = sqlx::query_scalar("SELECT clock_timestamp()::text")
        .fetch_one(&mut conn)
        .await
        .expect("the time");
    let older = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                 AND pid <> pg_backend_pid() AND xact_start <= $1::timestamptz";
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let open: i64 =
            sqlx::query_scalar(older).bind(&now).fetch_one(&mut conn).await.expect("a count");
        if open == 0 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{open} transactions stay open");
    }
    conn.close().await.expect("closes");
}

/// What a test body of [`on_both!`] may ask for.
pub trait FromFresh: Sized {
    /// Makes it from an empty database.
    fn from_fresh(fresh: &FreshDatabase) -> impl Future<Output = Self> + Send;
}

impl FromFresh for Db {
    async fn from_fresh(fresh: &FreshDatabase) -> Self {
        fresh.connect().await
    }
}

/// The address of an empty database.
#[derive(Debug, Clone)]
pub struct FreshUrl(pub String);

impl FromFresh for FreshUrl {
    async fn from_fresh(fresh: &FreshDatabase) -> Self {
        Self(fresh.url.clone())
    }
}

/// Takes PostgreSQL's notifications out of the change feed; what is left is that readers look.
pub async fn silence_feed(url: &str) {
    let sql =
        "CREATE OR REPLACE FUNCTION sluice_number_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock(6011087501201);
            UPDATE changes SET seq = nextval('changes_seq') WHERE seq = NEW.seq;
            RETURN NULL;
        END $$";
    command(url, sql.to_owned()).await;
}

/// Somebody who writes to a SQLite file and does not come to an end.
#[derive(Debug)]
pub struct WriteLock(SqliteConnection);

impl WriteLock {
    /// Takes the file's one place for writers.
    pub async fn on(file: &Path) -> Self {
        let address = format!("sqlite://{}", file.display());
        let mut conn = SqliteConnection::connect(&address).await.expect("the file opens");
        conn.execute("BEGIN IMMEDIATE").await.expect("it can be locked");
        Self(conn)
    }

    /// Lets others write again.
    pub async fn release(mut self) {
        self.0.execute("ROLLBACK").await.expect("it can be let go");
        self.0.close().await.expect("closes");
    }
}
