//! Pools and transactions of the two databases.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sluice_domain::WorkspaceId;
use sluice_domain::metrics::Pool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Executor, PgPool, Postgres, Sqlite, SqlitePool, Transaction};

use crate::{Conn, ServingLock, StoreError};

/// How the store connects.
#[derive(Debug, Clone)]
pub struct DbOptions {
    /// Connections at most.
    pub pool_size: u32,
    /// How long to wait for one of them.
    pub acquire_timeout: Duration,
    /// Make the SQLite file if there is none.
    pub create_if_missing: bool,
}

impl Default for DbOptions {
    fn default() -> Self {
        Self { pool_size: 10, acquire_timeout: Duration::from_secs(2), create_if_missing: true }
    }
}

/// A database: a cheap handle on its pools.
#[derive(Debug, Clone)]
pub struct Db {
    pub(crate) pools: Pools,
}

#[derive(Debug, Clone)]
pub(crate) enum Pools {
    Postgres(PgPool),
    /// SQLite has one writer at a time: writers queue here for one connection rather than in the
    /// file's lock, which is not fair.
    Sqlite {
        file: PathBuf,
        write: SqlitePool,
        read: SqlitePool,
    },
}

/// How one pool is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    pub pool: Pool,
    pub busy: u32,
    pub idle: u32,
    /// Connections that may be opened still.
    pub free: u32,
}

impl PoolUse {
    fn of<D: sqlx::Database>(which: Pool, pool: &sqlx::Pool<D>) -> Self {
        let size = pool.size();
        let idle = u32::try_from(pool.num_idle()).unwrap_or(size).min(size);
        let most = pool.options().get_max_connections();
        Self { pool: which, busy: size - idle, idle, free: most.saturating_sub(size) }
    }
}

/// A transaction; dropped without `commit` it is rolled back.
#[derive(Debug)]
pub enum Tx {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

/// Whose rows a transaction on PostgreSQL sees (`migrations/postgres/0085_row_security.sql`).
#[derive(Debug, Clone, Copy)]
enum Scope {
    Everywhere,
    Workspace(WorkspaceId),
}

impl Scope {
    /// Said with the statement that begins the transaction, so that it costs no round trip of its own;
    /// forgotten with its end.
    fn after(self, begin: &str) -> String {
        match self {
            Self::Everywhere => format!("{begin}; SET LOCAL sluice.workspace = '*'"),
            Self::Workspace(id) => format!("{begin}; SET LOCAL sluice.workspace = '{id}'"),
        }
    }
}

impl Tx {
    /// The connection that the store's functions take.
    pub fn conn(&mut self) -> Conn<'_> {
        match self {
            Self::Postgres(tx) => Conn::Postgres(tx),
            Self::Sqlite(tx) => Conn::Sqlite(tx),
        }
    }

    /// Makes it so.
    pub async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.commit().await?,
            Self::Sqlite(tx) => tx.commit().await?,
        }
        Ok(())
    }

    /// Takes it back, without waiting for the drop.
    pub async fn rollback(self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(tx) => tx.rollback().await?,
            Self::Sqlite(tx) => tx.rollback().await?,
        }
        Ok(())
    }
}

impl Db {
    /// Connects to `postgres://…` or `sqlite://…`. Nothing is migrated yet.
    pub async fn connect(url: &str, options: &DbOptions) -> Result<Self, StoreError> {
        let pools = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => postgres(url, options).await?,
            Some("sqlite") => sqlite(url, options).await?,
            _ => {
                let why = "it begins with neither `postgres://` nor `sqlite://`";
                return Err(StoreError::Address(why.to_owned()));
            }
        };
        Ok(Self { pools })
    }

    /// The address of a SQLite file, whatever characters its path has.
    pub fn address_of_file(file: &Path) -> String {
        let mut address = String::from("sqlite://");
        for c in file.to_string_lossy().chars() {
            match c {
                '%' => address.push_str("%25"),
                '?' => address.push_str("%3F"),
                '#' => address.push_str("%23"),
                c => address.push(c),
            }
        }
        address
    }

    /// Begins a transaction that may write, for what belongs to no workspace or to several: signing in,
    /// tokens, upkeep, the operator. What is done in one workspace takes [`Self::begin_in`].
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        self.begin_for(Scope::Everywhere).await
    }

    /// Begins a transaction that may write in this workspace; PostgreSQL hides every other's rows from it.
    pub async fn begin_in(&self, workspace: WorkspaceId) -> Result<Tx, StoreError> {
        self.begin_for(Scope::Workspace(workspace)).await
    }

    /// Begins a transaction that only reads: every statement in it sees the same state. As with
    /// [`Self::begin`], of all workspaces.
    pub async fn read(&self) -> Result<Tx, StoreError> {
        self.read_for(Scope::Everywhere).await
    }

    /// The same in this workspace; PostgreSQL hides every other's rows from it.
    pub async fn read_in(&self, workspace: WorkspaceId) -> Result<Tx, StoreError> {
        self.read_for(Scope::Workspace(workspace)).await
    }

    async fn begin_for(&self, scope: Scope) -> Result<Tx, StoreError> {
        Ok(match &self.pools {
            Pools::Postgres(pool) => Tx::Postgres(begun(pool, scope.after("BEGIN")).await?),
            Pools::Sqlite { write, .. } => Tx::Sqlite(write.begin_with("BEGIN IMMEDIATE").await?),
        })
    }

    async fn read_for(&self, scope: Scope) -> Result<Tx, StoreError> {
        const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Ok(match &self.pools {
            Pools::Postgres(pool) => Tx::Postgres(begun(pool, scope.after(SNAPSHOT)).await?),
            Pools::Sqlite { read, .. } => Tx::Sqlite(read.begin_with("BEGIN DEFERRED").await?),
        })
    }

    /// Whether the role that Sluice connects as passes PostgreSQL's row-level security by, so that the
    /// second wall between workspaces does not stand; then its name.
    pub async fn unwalled_role(&self) -> Result<Option<String>, StoreError> {
        const ROLE: &str = "SELECT rolname::text FROM pg_roles
             WHERE rolname = current_user AND (rolsuper OR rolbypassrls)";
        Ok(match &self.pools {
            Pools::Postgres(pool) => sqlx::query_scalar(ROLE).fetch_optional(pool).await?,
            Pools::Sqlite { .. } => None,
        })
    }

    /// One small question to the database, for readiness.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match &self.pools {
            Pools::Postgres(pool) => sqlx::query("SELECT 1").execute(pool).await.map(drop)?,
            Pools::Sqlite { read, .. } => sqlx::query("SELECT 1").execute(read).await.map(drop)?,
        }
        Ok(())
    }

    /// What time the database thinks it is, to be compared with one's own.
    pub async fn clock(&self) -> Result<DateTime<Utc>, StoreError> {
        Ok(match &self.pools {
            Pools::Postgres(pool) => {
                sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool).await?
            }
            Pools::Sqlite { read, .. } => {
                let sql = "SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')";
                sqlx::query_scalar(sql).fetch_one(read).await?
            }
        })
    }

    /// Makes this process the one that serves a SQLite file, for as long as the lock lives;
    /// `None` on PostgreSQL, which many replicas may share. Commands beside a server need no lock.
    pub fn lock_for_serving(&self) -> Result<Option<ServingLock>, StoreError> {
        match &self.pools {
            Pools::Postgres(_) => Ok(None),
            Pools::Sqlite { file, .. } => ServingLock::take(file).map(Some),
        }
    }

    /// Whether this is SQLite, which serves one replica only.
    pub fn is_sqlite(&self) -> bool {
        matches!(self.pools, Pools::Sqlite { .. })
    }

    /// The SQLite file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.pools {
            Pools::Postgres(_) => None,
            Pools::Sqlite { file, .. } => Some(file),
        }
    }

    /// How the pools of connections are used now.
    pub fn pool_uses(&self) -> Vec<PoolUse> {
        match &self.pools {
            Pools::Postgres(pool) => vec![PoolUse::of(Pool::All, pool)],
            Pools::Sqlite { write, read, .. } => {
                vec![PoolUse::of(Pool::Write, write), PoolUse::of(Pool::Read, read)]
            }
        }
    }

    /// Closes every connection; SQLite folds its write-ahead log into the file.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Postgres(pool) => pool.close().await,
            Pools::Sqlite { write, read, .. } => {
                read.close().await;
                write.close().await;
            }
        }
    }
}

/// Begins in a task of its own. Dropped while it begins, a transaction of sqlx 0.9 is not rolled back,
/// and its connection goes back to the pool inside it: the next one to use it would write into a
/// snapshot that only reads. The task begins to the end, and what nobody waits for any more is then
/// dropped as a whole.
async fn begun(
    pool: &PgPool,
    begin: String,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let pool = pool.clone();
    let begin = async move { pool.begin_with(AssertSqlSafe(begin)).await };
    // A task that panicked or was stopped with its runtime.
    tokio::spawn(begin).await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Nothing waits for ever, whatever the server's own settings are; a migration lifts it for itself.
const SESSION: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s';
     SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = 'warning'";

async fn postgres(url: &str, options: &DbOptions) -> Result<Pools, StoreError> {
    let connect = PgConnectOptions::from_str(url)?.application_name("sluice");
    let pool = PgPoolOptions::new()
        .max_connections(options.pool_size.max(2))
        .acquire_timeout(options.acquire_timeout)
        .after_connect(|conn, _| Box::pin(async move { conn.execute(SESSION).await.map(drop) }))
        .connect_with(connect)
        .await
        .map_err(refused)?;
    Ok(Pools::Postgres(pool))
}

/// A wrong password, an unknown user or database: the address is at fault, and the server says how.
fn refused(error: sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(db) if db.code().is_some_and(|code| code.starts_with("28") || code == "3D000") => {
            StoreError::Address(db.message().to_owned())
        }
        _ => error.into(),
    }
}

async fn sqlite(url: &str, options: &DbOptions) -> Result<Pools, StoreError> {
    let connect = SqliteConnectOptions::from_str(url)?;
    let file = connect.get_filename().to_owned();
    if url.contains(":memory:") || url.contains("mode=memory") {
        let why = "SQLite in memory is not kept; give it a file";
        return Err(StoreError::Address(why.to_owned()));
    }
    let connect = connect
        .create_if_missing(options.create_if_missing)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        // Other processes (the admin commands) may be writing.
        .busy_timeout(Duration::from_secs(5));
    let pool = || SqlitePoolOptions::new().acquire_timeout(options.acquire_timeout);
    // The first connection makes the file and its journal mode; the readers find them made.
    let write = pool().max_connections(1).connect_with(connect.clone()).await?;
    // A write that strays into a reading transaction fails, as it does in PostgreSQL.
    let connect = connect.pragma("query_only", "ON");
    let read = pool().max_connections(options.pool_size.max(1)).connect_lazy_with(connect);
    Ok(Pools::Sqlite { file, write, read })
}
