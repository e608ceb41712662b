//! What workspaces agreed to give to the public catalogue, and may take back.

use chrono::{DateTime, Utc};
use sluice_domain::{ServerId, WorkspaceId};

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// The published definitions of one server of a workspace.
    pub struct SharedTools {
        pub server_id: ServerId,
        /// The record's place in URLs.
        pub slug: String,
        /// The public address.
        pub address: String,
        /// JSON text of the definitions.
        pub definitions: String,
        /// Tools that were left out because they hold something private.
        pub withheld: i64,
        pub since: DateTime<Utc>,
    }
}

/// Lets one transaction at a time give or take back: who feeds a record is decided among all that give.
pub async fn lock_shared(conn: &mut Conn<'_>) -> Result<(), StoreError> {
    execute!(conn, "UPDATE catalogue_revision SET revision = revision WHERE one = 1")?;
    Ok(())
}

/// What this server gives.
pub async fn find_shared(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
) -> Result<Option<SharedTools>, StoreError> {
    let sql = "SELECT server_id, slug, address, definitions, withheld, since FROM catalogue_shared
               WHERE workspace_id = $1 AND server_id = $2";
    Ok(fetch_optional!(conn, SharedTools, sql, workspace, server)?)
}

/// Keeps what the server gives from now on; since when it does stays.
pub async fn put_shared(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    shared: &SharedTools,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO catalogue_shared
             (workspace_id, server_id, slug, address, definitions, withheld, since)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (server_id) DO UPDATE SET slug = $3, address = $4, definitions = $5, withheld = $6",
        workspace,
        shared.server_id,
        shared.slug.as_str(),
        shared.address.as_str(),
        shared.definitions.as_str(),
        shared.withheld,
        shared.since
    )?;
    Ok(())
}

/// Takes back what the server gave; says whether it gave anything.
pub async fn remove_shared(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM catalogue_shared WHERE workspace_id = $1 AND server_id = $2";
    Ok(execute!(conn, sql, workspace, server)? > 0)
}

/// The servers of a workspace that give something.
pub async fn sharing(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Vec<ServerId>, StoreError> {
    let sql = "SELECT server_id AS value FROM catalogue_shared WHERE workspace_id = $1 ORDER BY server_id";
    let found = fetch_all!(conn, Value<ServerId>, sql, workspace)?;
    Ok(found.into_iter().map(|one| one.0).collect())
}

/// Of all that give to a record the one that feeds it, whichever workspace it belongs to: what comes of it is
/// public.
pub async fn feeder(conn: &mut Conn<'_>, slug: &str) -> Result<Option<SharedTools>, StoreError> {
    let sql = "SELECT server_id, slug, address, definitions, withheld, since FROM catalogue_shared
               WHERE slug = $1 ORDER BY since, server_id LIMIT 1";
    Ok(fetch_optional!(conn, SharedTools, sql, slug)?)
}

/// Removes a record that was made of what workspaces gave, with its tools and its history.
pub async fn remove_record(
    conn: &mut Conn<'_>,
    slug: &str,
    origin: &str,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM catalogue_servers WHERE slug = $1 AND origin = $2";
    Ok(execute!(conn, sql, slug, origin)? > 0)
}
