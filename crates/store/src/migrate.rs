//! Migrations: compiled in, applied in one transaction under a lock, so that of several replicas
//! that start at once one migrates and the rest find it done.

use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::{Executor, PgConnection, Row, SqliteConnection};

use crate::StoreError;
use crate::db::{Db, Pools};

/// Our own table of applied migrations; it is also what marks a database as Sluice's.
const TABLE: &str = "sluice_migrations";
/// "sluice" in ASCII, cut to what an advisory lock's key holds.
const LOCK_KEY: i64 = 0x0073_6c75_6963_6500;

static COMMON: Migrator = sqlx::migrate!("../../migrations");
static POSTGRES: Migrator = sqlx::migrate!("../../migrations/postgres");
static SQLITE: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// Where a database stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaState {
    /// The newest migration in the database; 0 in an empty one.
    pub found: i64,
    /// The newest migration in this binary.
    pub known: i64,
}

fn migrator(own: &Migrator) -> Migrator {
    let migrations = COMMON.iter().chain(own.iter()).cloned().collect();
    let mut all = Migrator::with_migrations(migrations);
    all.set_locking(false);
    all.dangerous_set_table_name(TABLE);
    all
}

fn known(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
}

impl Db {
    /// Brings the schema up to this binary's. Safe to call from several processes at once.
    /// Returns where the database stood before.
    pub async fn migrate(&self) -> Result<SchemaState, StoreError> {
        match &self.pools {
            Pools::Postgres(pool) => {
                let mut tx = pool.begin().await?;
                wait_for_lock(&mut tx).await?;
                let found = inspect_postgres(&mut tx).await?;
                let state = apply(&migrator(&POSTGRES), &mut *tx, found).await?;
                // Tables that a later migration made.
                tx.execute("SELECT sluice_guard_tenants()").await?;
                tx.commit().await?;
                Ok(state)
            }
            Pools::Sqlite { write, .. } => {
                let mut conn = write.acquire().await?;
                // A first start may meet another one's migration: wait for it, not just 5 s.
                conn.execute("PRAGMA busy_timeout = 60000").await?;
                let state = migrate_sqlite(&mut conn).await;
                conn.execute("PRAGMA busy_timeout = 5000").await?;
                state
            }
        }
    }

    /// Where the schema stands, without changing anything; an error if the database is not ours.
    pub async fn schema(&self) -> Result<SchemaState, StoreError> {
        match &self.pools {
            Pools::Postgres(pool) => {
                let found = inspect_postgres(&mut *pool.acquire().await?).await?;
                Ok(SchemaState { found, known: known(&migrator(&POSTGRES)) })
            }
            Pools::Sqlite { read, .. } => {
                let found = inspect_sqlite(&mut *read.acquire().await?).await?;
                Ok(SchemaState { found, known: known(&migrator(&SQLITE)) })
            }
        }
    }

    /// Refuses a database whose schema is not exactly this binary's.
    pub async fn require_current_schema(&self) -> Result<(), StoreError> {
        let SchemaState { found, known } = self.schema().await?;
        match found.cmp(&known) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => Err(StoreError::OlderSchema { found, known }),
            std::cmp::Ordering::Greater => Err(StoreError::NewerSchema { found, known }),
        }
    }
}

async fn wait_for_lock(conn: &mut PgConnection) -> Result<(), StoreError> {
    // Another replica's migration, or our own, may take its time.
    conn.execute(
        "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
         SET LOCAL sluice.workspace = '*'",
    )
    .await?;
    let got: bool = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
        .bind(LOCK_KEY)
        .fetch_one(&mut *conn)
        .await?;
    if !got {
        tracing::info!("Waiting for another replica to migrate the database");
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK_KEY).execute(conn).await?;
    }
    Ok(())
}

async fn migrate_sqlite(conn: &mut SqliteConnection) -> Result<SchemaState, StoreError> {
    let mut tx = sqlx::Connection::begin_with(conn, "BEGIN IMMEDIATE").await?;
    let found = inspect_sqlite(&mut tx).await?;
    let state = apply(&migrator(&SQLITE), &mut *tx, found).await?;
    tx.commit().await?;
    Ok(state)
}

async fn apply<C: Migrate>(
    migrator: &Migrator,
    conn: &mut C,
    found: i64,
) -> Result<SchemaState, StoreError> {
    let known = known(migrator);
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    if found < known {
        tracing::info!(from = found, to = known, "Migrating the database");
    }
    migrator.run_direct(None, conn, false).await.map_err(|error| refused(error, known))?;
    Ok(SchemaState { found, known })
}

fn refused(error: MigrateError, known: i64) -> StoreError {
    match error {
        MigrateError::VersionMissing(found) if found > known => {
            StoreError::NewerSchema { found, known }
        }
        MigrateError::VersionMismatch(version) | MigrateError::VersionMissing(version) => {
            StoreError::AlteredMigration { version }
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => StoreError::Database(Box::new(other)),
    }
}

/// The newest applied migration, 0 in an empty database.
async fn inspect_postgres(conn: &mut PgConnection) -> Result<i64, StoreError> {
    let ours: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(TABLE)
        .fetch_one(&mut *conn)
        .await?;
    if ours {
        let row = conn.fetch_one("SELECT max(version) FROM sluice_migrations").await?;
        return Ok(row.try_get::<Option<i64>, _>(0)?.unwrap_or(0));
    }
    // What an extension brought is nobody's data.
    let other: Option<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c
         WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
           AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
         ORDER BY c.relname LIMIT 1",
    )
    .fetch_optional(conn)
    .await?;
    not_foreign(other)
}

/// The newest applied migration, 0 in an empty database.
async fn inspect_sqlite(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    let ours: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1)",
    )
    .bind(TABLE)
    .fetch_one(&mut *conn)
    .await?;
    if ours {
        let row = conn.fetch_one("SELECT max(version) FROM sluice_migrations").await?;
        return Ok(row.try_get::<Option<i64>, _>(0)?.unwrap_or(0));
    }
    let other: Option<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY name LIMIT 1",
    )
    .fetch_optional(conn)
    .await?;
    not_foreign(other)
}

fn not_foreign(table: Option<String>) -> Result<i64, StoreError> {
    match table {
        None => Ok(0),
        Some(table) => Err(StoreError::NotSluice {
            found: format!("tables of something else, such as `{table}`"),
        }),
    }
}
