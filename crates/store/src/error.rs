//! What can go wrong in the store, by what the caller can do about it.

use std::path::PathBuf;

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something of that name (or address, or label) exists already.
    #[error("already taken: {constraint}")]
    Conflict {
        /// Which rule stands in the way: `servers_name`, `users_email` and so on.
        constraint: String,
    },
    /// Somebody else changed it since; `current` is what stands now (a version or revision).
    #[error("changed since it was read; now at {current}")]
    Stale {
        /// The version or revision that stands.
        current: i64,
    },
    /// It names something that does not exist in this workspace or on this server.
    #[error("refers to something that does not exist")]
    DanglingReference,
    /// The database cannot be reached, or no connection came free in time.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// The database was migrated by a newer Sluice.
    #[error(
        "the database has schema {found}, this version of Sluice knows schemas up to {known}; start the newer version, or restore a backup"
    )]
    NewerSchema {
        /// The newest migration in the database.
        found: i64,
        /// The newest migration in this binary.
        known: i64,
    },
    /// The database waits for `sluice migrate`.
    #[error("the database has schema {found}, this version of Sluice needs {known}")]
    OlderSchema {
        /// The newest migration in the database; 0 in an empty one.
        found: i64,
        /// The newest migration in this binary.
        known: i64,
    },
    /// A migration in the database is not the one in this binary.
    #[error("migration {version} was applied in another form than this version of Sluice has")]
    AlteredMigration {
        /// Which one.
        version: i64,
    },
    /// The database belongs to something else.
    #[error("the database is not Sluice's: it has {found}")]
    NotSluice {
        /// What was found there.
        found: String,
    },
    /// Another `serve` runs on the same SQLite file.
    #[error("another Sluice serves this SQLite file (it holds {})", path.display())]
    AlreadyServed {
        /// The lock file.
        path: PathBuf,
    },
    /// The database's address or file cannot be used as given.
    #[error("the database address cannot be used: {0}")]
    Address(String),
    /// A stored value is not one that this version writes.
    #[error("stored {what} cannot be read")]
    Unreadable {
        /// Table and column.
        what: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Anything else that the database said.
    #[error("database error")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What a database said, without the row it said it of: that may hold secrets.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({code})")]
struct Fault {
    code: String,
    message: String,
}

impl StoreError {
    /// Gives a [`Conflict`](Self::Conflict) the name under which callers know it.
    pub(crate) fn conflict(constraint: &'static str) -> Self {
        Self::Conflict { constraint: constraint.to_owned() }
    }

    /// Whether trying again later may help.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// For updates: a violated unique rule becomes the conflict `constraint`.
pub(crate) fn conflict_as(constraint: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| match StoreError::from(error) {
        StoreError::Conflict { .. } => StoreError::conflict(constraint),
        other => other,
    }
}

/// SQLSTATE classes that pass by themselves: connection trouble, resources, shutdown, deadlock.
fn passes(code: &str) -> bool {
    let class = code.get(..2).unwrap_or(code);
    ["08", "53", "57"].contains(&class) || ["40001", "40P01", "55P03"].contains(&code)
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        let Some(db) = error.as_database_error() else {
            return match error {
                // What hangs up in the midst of a greeting, such as a balancer without a server
                // behind it, speaks no protocol.
                E::Io(_)
                | E::Tls(_)
                | E::Protocol(_)
                | E::PoolTimedOut
                | E::PoolClosed
                | E::WorkerCrashed => Self::Unavailable(error),
                E::Configuration(why) => Self::Address(why.to_string()),
                other => Self::Database(other.into()),
            };
        };
        if db.is_unique_violation() {
            let words = db.message();
            let constraint = db
                .constraint()
                .or_else(|| words.strip_prefix("UNIQUE constraint failed: "))
                .unwrap_or("unique");
            return Self::Conflict { constraint: constraint.to_owned() };
        }
        if db.is_foreign_key_violation() {
            return Self::DanglingReference;
        }
        let code = db.code().map(std::borrow::Cow::into_owned).unwrap_or_default();
        if is_sqlite(&error) {
            return sqlite(&code, error);
        }
        if passes(&code) { Self::Unavailable(error) } else { Self::Database(fault(code, &error)) }
    }
}

fn fault(code: String, error: &sqlx::Error) -> Box<dyn std::error::Error + Send + Sync> {
    let message = error.as_database_error().map(|db| db.message().to_owned()).unwrap_or_default();
    Box::new(Fault { code, message })
}

fn is_sqlite(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|db| db.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some())
}

/// SQLite's result codes (sqlite.org/rescode.html); extended codes keep the primary in the low byte.
fn sqlite(code: &str, error: sqlx::Error) -> StoreError {
    match code.parse::<u32>().map(|code| code & 0xff) {
        // BUSY, LOCKED, IOERR, FULL, CANTOPEN.
        Ok(5 | 6 | 10 | 13 | 14) => StoreError::Unavailable(error),
        // NOTADB.
        Ok(26) => StoreError::NotSluice { found: "a file that is no SQLite database".to_owned() },
        _ => StoreError::Database(fault(code.to_owned(), &error)),
    }
}
