//! How far registries were read.

use chrono::{DateTime, Utc};

use crate::column::record;
use crate::conn::{execute, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// How far one registry was read.
    pub struct Sync {
        pub origin: String,
        /// The page to ask for next; `None`: the last run reached the end.
        pub page_cursor: Option<String>,
        /// The run asks for records changed since then; `None`: for all.
        pub since: Option<DateTime<Utc>>,
        pub began_at: DateTime<Utc>,
        /// When the last run that reached the end began.
        pub complete_at: Option<DateTime<Utc>>,
        /// Pages that the run has read.
        pub pages: i64,
    }
}

/// How far this registry was read.
pub async fn find_sync(conn: &mut Conn<'_>, origin: &str) -> Result<Option<Sync>, StoreError> {
    let sql = "SELECT origin, page_cursor, since, began_at, complete_at, pages
               FROM catalogue_syncs WHERE origin = $1";
    Ok(fetch_optional!(conn, Sync, sql, origin)?)
}

/// Notes how far it was read.
pub async fn put_sync(conn: &mut Conn<'_>, sync: &Sync) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO catalogue_syncs (origin, page_cursor, since, began_at, complete_at, pages)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (origin) DO UPDATE SET page_cursor = $2, since = $3, began_at = $4,
             complete_at = $5, pages = $6",
        sync.origin.as_str(),
        sync.page_cursor.as_deref(),
        sync.since,
        sync.began_at,
        sync.complete_at,
        sync.pages
    )?;
    Ok(())
}
