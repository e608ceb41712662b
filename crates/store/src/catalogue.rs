//! The public catalogue: records, their tools, what changed, and how far registries were read. It belongs
//! to no workspace, and nothing of one is in it but what it agreed to give and can take back (`shared`).

mod insert;
mod reports;
mod shared;
mod sync;

pub use insert::{insert_changes, insert_servers, insert_tools};
pub use reports::{Report, put_report, remove_report, reports};
pub use shared::{
    SharedTools, feeder, find_shared, lock_shared, put_shared, remove_record, remove_shared,
    sharing,
};
pub use sync::{Sync, find_sync, put_sync};

use chrono::{DateTime, Utc};
use sluice_domain::{Category, Severity};
use uuid::Uuid;

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::text::rows;
use crate::{Conn, StoreError};

record! {
    /// One record.
    pub struct CatalogueServer {
        pub id: Uuid,
        pub slug: String,
        /// A registry's address, or `file`.
        pub origin: String,
        /// JSON text of the record, without its tools.
        pub entry: String,
        pub is_deleted: bool,
        /// Its registry proves who publishes under a name.
        pub is_proven: bool,
        pub record_updated_at: Option<DateTime<Utc>>,
        /// When the tools were first told; `None`: they are not known.
        pub tools_first_at: Option<DateTime<Utc>>,
        pub tools_last_at: Option<DateTime<Utc>>,
        pub first_seen_at: DateTime<Utc>,
        pub changed_at: DateTime<Utc>,
    }
}

record! {
    /// A tool of a record.
    pub struct CatalogueTool {
        pub server_id: Uuid,
        pub name: String,
        /// Its place in the server's list.
        pub place: i64,
        /// JSON text of the definition.
        pub definition: String,
        /// The beginning of its description.
        pub about: String,
        pub category: Category,
        pub severity: Severity,
        /// Its definition has signs of poison.
        pub poisoned: bool,
    }
}

record! {
    /// What search and lists need of a tool.
    pub struct ListedTool {
        pub server_id: Uuid,
        pub name: String,
        pub about: String,
        pub category: Category,
        pub severity: Severity,
        pub poisoned: bool,
    }
}

record! {
    /// Something that changed in a record.
    pub struct CatalogueChange {
        pub id: Uuid,
        pub server_id: Uuid,
        pub at: DateTime<Utc>,
        /// `added`, `changed`, `removed` for tools, `record` for the record itself.
        pub kind: String,
        pub what: String,
    }
}

/// The statements that pages wait for; a test looks at their plans.
pub mod sql {
    /// A record by its place in URLs.
    pub const FIND: &str = "SELECT id, slug, origin, entry, is_deleted, is_proven, record_updated_at, \
         tools_first_at, tools_last_at, first_seen_at, changed_at FROM catalogue_servers WHERE slug = $1";
    /// A record's tools in its own order.
    pub const TOOLS: &str = "SELECT server_id, name, place, definition, about, category, severity, poisoned \
         FROM catalogue_tools WHERE server_id = $1 ORDER BY place, name";
    /// A record's newest changes.
    pub const CHANGES: &str = "SELECT id, server_id, at, kind, what FROM catalogue_changes \
         WHERE server_id = $1 ORDER BY id DESC LIMIT $2";
    /// The next records in the order of their places.
    pub const NEXT_SERVERS: &str = "SELECT id, slug, origin, entry, is_deleted, is_proven, record_updated_at, \
         tools_first_at, tools_last_at, first_seen_at, changed_at FROM catalogue_servers \
         WHERE slug > $1 ORDER BY slug LIMIT $2";
    /// The next tools in the order of their key.
    pub const NEXT_TOOLS: &str = "SELECT server_id, name, about, category, severity, poisoned FROM catalogue_tools \
         WHERE (server_id, name) > ($1, $2) ORDER BY server_id, name LIMIT $3";
}

/// A record by its place in URLs.
pub async fn find(conn: &mut Conn<'_>, slug: &str) -> Result<Option<CatalogueServer>, StoreError> {
    Ok(fetch_optional!(conn, CatalogueServer, sql::FIND, slug)?)
}

/// A record's tools in its own order.
pub async fn tools(conn: &mut Conn<'_>, server: Uuid) -> Result<Vec<CatalogueTool>, StoreError> {
    Ok(fetch_all!(conn, CatalogueTool, sql::TOOLS, server)?)
}

/// A record's changes, newest first.
pub async fn changes(
    conn: &mut Conn<'_>,
    server: Uuid,
    limit: i64,
) -> Result<Vec<CatalogueChange>, StoreError> {
    Ok(fetch_all!(conn, CatalogueChange, sql::CHANGES, server, rows(limit))?)
}

/// How many tools of a record changed since then; a tool that changed twice counts once.
pub async fn count_changed(
    conn: &mut Conn<'_>,
    server: Uuid,
    since: DateTime<Utc>,
) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(DISTINCT what) AS value FROM catalogue_changes
               WHERE server_id = $1 AND at >= $2 AND kind <> 'record'";
    Ok(fetch_one!(conn, Value<i64>, sql, server, since)?.0)
}

/// The next records behind this place; `""` is before the first.
pub async fn next_servers(
    conn: &mut Conn<'_>,
    after: &str,
    limit: i64,
) -> Result<Vec<CatalogueServer>, StoreError> {
    Ok(fetch_all!(conn, CatalogueServer, sql::NEXT_SERVERS, after, rows(limit))?)
}

/// The next tools behind this one; the nil id with `""` is before the first.
pub async fn next_tools(
    conn: &mut Conn<'_>,
    after: (Uuid, &str),
    limit: i64,
) -> Result<Vec<ListedTool>, StoreError> {
    Ok(fetch_all!(conn, ListedTool, sql::NEXT_TOOLS, after.0, after.1, rows(limit))?)
}

/// Changes a record.
pub async fn update_server(
    conn: &mut Conn<'_>,
    server: &CatalogueServer,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "UPDATE catalogue_servers SET origin = $2, entry = $3, is_deleted = $4, is_proven = $5,
             record_updated_at = $6, tools_first_at = $7, tools_last_at = $8, changed_at = $9
         WHERE id = $1",
        server.id,
        server.origin.as_str(),
        server.entry.as_str(),
        server.is_deleted,
        server.is_proven,
        server.record_updated_at,
        server.tools_first_at,
        server.tools_last_at,
        server.changed_at
    )?;
    Ok(())
}

/// Takes a tool out of a record; says whether it was there.
pub async fn remove_tool(
    conn: &mut Conn<'_>,
    server: Uuid,
    name: &str,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM catalogue_tools WHERE server_id = $1 AND name = $2";
    Ok(execute!(conn, sql, server, name)? > 0)
}

/// A number that rises with every change.
pub async fn revision(conn: &mut Conn<'_>) -> Result<i64, StoreError> {
    let sql = "SELECT revision AS value FROM catalogue_revision WHERE one = 1";
    Ok(fetch_one!(conn, Value<i64>, sql)?.0)
}

/// Says that something changed.
pub async fn note_change(conn: &mut Conn<'_>) -> Result<(), StoreError> {
    execute!(conn, "UPDATE catalogue_revision SET revision = revision + 1 WHERE one = 1")?;
    Ok(())
}
