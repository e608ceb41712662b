//! A fresh database for every test, on SQLite and on PostgreSQL, and the macro that runs one body
//! on both.

use std::hash::{Hash as _, Hasher as _};
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
                let fresh = $crate::db::fresh_postgres::<$kind>().await;
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

    /// An empty database of its own on the tests' PostgreSQL server.
    pub async fn postgres() -> Self {
        let server = Server::of_the_tests();
        server.make_role().await;
        server.fresh("").await.expect("a database can be made")
    }

    /// A database with the whole schema on the tests' PostgreSQL server: a copy of one that was migrated
    /// once, since a copy costs a fraction of the migrations.
    pub async fn postgres_migrated() -> Self {
        let server = Server::of_the_tests();
        let template = format!("sluice_schema_{:016x}", migrations());
        let copy = format!("TEMPLATE {template}");
        match server.fresh(&copy).await {
            Ok(fresh) => fresh,
            Err(error) if missing(&error) => {
                server.make_role().await;
                server.make_template(&template).await;
                server.fresh(&copy).await.expect("the template can be copied")
            }
            Err(error) => panic!("no database can be made: {error}"),
        }
    }

    /// Its address, for `Db::connect` or a binary's `--database-url`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its address for the server's own user, whom row-level security does not hold, and that user's name. A
    /// SQLite file has none.
    pub fn superuser(&self) -> Option<(String, String)> {
        let (server, name) = self.server.as_ref()?;
        let mut url = url::Url::parse(server).ok()?;
        url.set_path(name);
        let user = url.username().to_owned();
        Some((url.into(), user))
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

/// A PostgreSQL database for a test that asks for this kind.
pub async fn fresh_postgres<Kind: FromFresh>() -> FreshDatabase {
    if Kind::EMPTY {
        FreshDatabase::postgres().await
    } else {
        FreshDatabase::postgres_migrated().await
    }
}

/// The PostgreSQL server that `cargo xtask test` started.
struct Server(String);

impl Server {
    #[expect(clippy::disallowed_methods, reason = "only the test runner knows where the server is")]
    fn of_the_tests() -> Self {
        Self(std::env::var(POSTGRES_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "{POSTGRES_VARIABLE} is not set. Run `cargo xtask test`, which starts a private \
                 PostgreSQL, or set it to the address of a server where tests may create databases"
            )
        }))
    }

    /// A new database with these words of `CREATE DATABASE`.
    async fn fresh(&self, how: &str) -> Result<FreshDatabase, sqlx::Error> {
        let name = format!("sluice_test_{}", uuid::Uuid::now_v7().simple());
        try_command(&self.0, format!("CREATE DATABASE {name} OWNER {ROLE} {how}")).await?;
        let server = Some((self.0.clone(), name.clone()));
        Ok(FreshDatabase { url: self.address(&name), _folder: None, server })
    }

    /// The address of one of its databases, for the tests' role.
    fn address(&self, database: &str) -> String {
        let mut url = url::Url::parse(&self.0).expect("the server's address is a URL");
        url.set_path(database);
        url.set_username(ROLE).expect("a user can be set");
        url.into()
    }

    /// Makes the tests' role where it is missing. Several tests may begin at once.
    async fn make_role(&self) {
        let url = url::Url::parse(&self.0).expect("the server's address is a URL");
        let password =
            url.password().map(|text| format!("PASSWORD '{}'", text.replace('\'', "''")));
        let sql = format!(
            "DO $do$ BEGIN
                 CREATE ROLE {ROLE} LOGIN {};
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
             END $do$",
            password.unwrap_or_default()
        );
        command(&self.0, sql).await;
    }

    /// Makes the migrated database that others are copied from; of several tests that want it, one does.
    /// It gets its name last: a half-made one is never copied.
    async fn make_template(&self, name: &str) {
        let mut lock = PgConnection::connect(&self.0).await.expect("the test PostgreSQL answers");
        lock.execute(AssertSqlSafe(format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})")))
            .await
            .expect("the lock is given");
        let made: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
                .bind(name)
                .fetch_one(&mut lock)
                .await
                .expect("databases can be listed");
        if !made {
            let FreshDatabase { url, server, .. } =
                self.fresh("").await.expect("a database can be made");
            let db = Db::connect(&url, &DbOptions::default()).await.expect("connects");
            db.migrate().await.expect("migrates");
            db.close().await;
            let (_, making) = server.expect("it is on a server");
            command(&self.0, format!("ALTER DATABASE {making} RENAME TO {name}")).await;
        }
        lock.close().await.expect("closes");
    }
}

/// The advisory lock under which the template is made.
const TEMPLATE_LOCK: i64 = 0x0073_6c75_7465_7374;

/// What the migrations are, in a number: another set of files has another template.
fn migrations() -> u64 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let mut files = Vec::new();
    for folder in [root.clone(), root.join("postgres")] {
        let entries = std::fs::read_dir(&folder).expect("the migrations are there");
        files.extend(
            entries.map(|entry| entry.expect("a file").path()).filter(|path| path.is_file()),
        );
    }
    files.sort();
    let mut hasher = std::hash::DefaultHasher::new();
    for file in files {
        file.file_name().hash(&mut hasher);
        std::fs::read(&file).expect("a migration can be read").hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether the database or role that was named is not there.
fn missing(error: &sqlx::Error) -> bool {
    // invalid_catalog_name and undefined_object, PostgreSQL's Appendix A.
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("3D000" | "42704"))
}

async fn command(server: &str, sql: String) {
    try_command(server, sql).await.expect("the test PostgreSQL obeys");
}

async fn try_command(server: &str, sql: String) -> Result<(), sqlx::Error> {
    let mut conn = PgConnection::connect(server).await.expect("the test PostgreSQL answers");
    let done = conn.execute(AssertSqlSafe(sql)).await;
    conn.close().await.expect("closes");
    done.map(drop)
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
    /// Whether its PostgreSQL database must have no schema yet.
    const EMPTY: bool = false;

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
    const EMPTY: bool = true;

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
