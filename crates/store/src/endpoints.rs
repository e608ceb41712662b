//! Where a workspace is told of things: webhooks and chat channels. Addresses and secrets are
//! sealed by the caller, who knows the key; a row's id is the caller's, because they are bound to it.

use chrono::{DateTime, Utc};
use sluice_domain::{EndpointId, EndpointKind, Notice, UserId, WorkspaceId};

use crate::column::{Value, json, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::text::{key, rows};
use crate::{Conn, StoreError};

record! {
    /// One endpoint.
    pub struct Endpoint {
        pub id: EndpointId,
        pub workspace_id: WorkspaceId,
        pub name: String,
        pub kind: EndpointKind,
        pub sealed_url: Vec<u8>,
        /// What may be shown of the address.
        pub shown_url: String,
        /// Webhooks only.
        pub sealed_secret: Option<Vec<u8>>,
        /// The secret before, which signs too for a while after a rotation.
        pub sealed_previous_secret: Option<Vec<u8>>,
        pub previous_until: Option<DateTime<Utc>>,
        /// What it is told of.
        pub notices: Vec<Notice>,
        pub enabled: bool,
        pub revision: i64,
        pub created_by: Option<UserId>,
        pub created_at: DateTime<Utc>,
        pub updated_at: DateTime<Utc>,
    }
}

/// A new endpoint.
#[derive(Debug, Clone, Copy)]
pub struct NewEndpoint<'a> {
    pub id: EndpointId,
    pub name: &'a str,
    pub kind: EndpointKind,
    pub sealed_url: &'a [u8],
    pub shown_url: &'a str,
    pub sealed_secret: Option<&'a [u8]>,
    pub notices: &'a [Notice],
    pub created_by: Option<UserId>,
}

/// What is changed of an endpoint; what is `None` stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndpointChange<'a> {
    pub name: Option<&'a str>,
    /// Sealed, and what may be shown of it.
    pub url: Option<(&'a [u8], &'a str)>,
    pub notices: Option<&'a [Notice]>,
    pub enabled: Option<bool>,
}

const COLUMNS: &str = "id, workspace_id, name, kind, sealed_url, shown_url, sealed_secret,
     sealed_previous_secret, previous_until, notices, enabled, revision, created_by, created_at,
     updated_at";

fn select(rest: &'static str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM endpoints WHERE {rest}"))
}

/// Makes an endpoint; a name that is taken is the conflict `endpoints_name`.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    new: NewEndpoint<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let made = execute!(
        conn,
        "INSERT INTO endpoints
             (id, workspace_id, name, name_key, kind, sealed_url, shown_url, sealed_secret, notices,
              enabled, revision, created_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, TRUE, 1, $10, $11, $11)
         ON CONFLICT (workspace_id, name_key) DO NOTHING",
        new.id,
        workspace,
        new.name,
        key(new.name),
        new.kind,
        new.sealed_url,
        new.shown_url,
        new.sealed_secret,
        json("endpoints.notices", &new.notices)?,
        new.created_by,
        now
    )?;
    if made == 0 { Err(StoreError::conflict("endpoints_name")) } else { Ok(()) }
}

/// One endpoint.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: EndpointId,
) -> Result<Option<Endpoint>, StoreError> {
    Ok(fetch_optional!(conn, Endpoint, select("workspace_id = $1 AND id = $2"), workspace, id)?)
}

/// The endpoints in the order in which they were made, after the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    after: Option<EndpointId>,
    limit: i64,
) -> Result<Vec<Endpoint>, StoreError> {
    Ok(fetch_all!(
        conn,
        Endpoint,
        select("workspace_id = $1 AND ($2 IS NULL OR id > $2) ORDER BY id LIMIT $3"),
        workspace,
        after,
        rows(limit)
    )?)
}

/// How many there are.
pub async fn count(conn: &mut Conn<'_>, workspace: WorkspaceId) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM endpoints WHERE workspace_id = $1";
    Ok(fetch_one!(conn, Value<i64>, sql, workspace)?.0)
}

/// Changes an endpoint. `expected`: the revision it must have. `None`: no such endpoint.
pub async fn update(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: EndpointId,
    expected: Option<i64>,
    change: EndpointChange<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Endpoint>, StoreError> {
    let taken = match change.name {
        Some(name) => is_taken(conn, workspace, id, name).await?,
        None => false,
    };
    if taken {
        return Err(StoreError::conflict("endpoints_name"));
    }
    let notices = change.notices.map(|all| json("endpoints.notices", &all)).transpose()?;
    let changed = execute!(
        conn,
        "UPDATE endpoints SET name = COALESCE($3, name), name_key = COALESCE($4, name_key),
             sealed_url = COALESCE($5, sealed_url), shown_url = COALESCE($6, shown_url),
             notices = COALESCE($7, notices), enabled = COALESCE($8, enabled),
             revision = revision + 1, updated_at = $9
         WHERE workspace_id = $1 AND id = $2 AND ($10 IS NULL OR revision = $10)",
        workspace,
        id,
        change.name,
        change.name.map(key),
        change.url.map(|(sealed, _)| sealed),
        change.url.map(|(_, shown)| shown),
        notices,
        change.enabled,
        now,
        expected
    )?;
    let found = find(conn, workspace, id).await?;
    match found {
        Some(endpoint) if changed == 0 => Err(StoreError::Stale { current: endpoint.revision }),
        found => Ok(found),
    }
}

async fn is_taken(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: EndpointId,
    name: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM endpoints
               WHERE workspace_id = $1 AND name_key = $2 AND id <> $3";
    Ok(fetch_one!(conn, Value<i64>, sql, workspace, key(name), id)?.0 > 0)
}

/// Gives a webhook a new secret; the old one signs too until `previous_until`. Says whether the
/// endpoint has secrets at all.
pub async fn rotate(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: EndpointId,
    (sealed, sealed_previous): (&[u8], &[u8]),
    previous_until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE endpoints SET sealed_secret = $3, sealed_previous_secret = $4,
                   previous_until = $5, revision = revision + 1, updated_at = $6
               WHERE workspace_id = $1 AND id = $2 AND sealed_secret IS NOT NULL";
    Ok(execute!(conn, sql, workspace, id, sealed, sealed_previous, previous_until, now)? > 0)
}

/// Removes an endpoint with all that is on its way to it; says whether it was there.
pub async fn delete(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: EndpointId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM endpoints WHERE workspace_id = $1 AND id = $2";
    Ok(execute!(conn, sql, workspace, id)? > 0)
}

/// Every endpoint of every workspace, in order of id, for the operator's change of keys.
pub async fn list_all(
    conn: &mut Conn<'_>,
    after: Option<EndpointId>,
    limit: i64,
) -> Result<Vec<Endpoint>, StoreError> {
    Ok(fetch_all!(
        conn,
        Endpoint,
        select("$1 IS NULL OR id > $1 ORDER BY id LIMIT $2"),
        after,
        rows(limit)
    )?)
}

/// Replaces sealed values by the same under another key, if they are still what they were.
pub async fn reseal(
    conn: &mut Conn<'_>,
    was: &Endpoint,
    url: &[u8],
    secret: Option<&[u8]>,
    previous: Option<&[u8]>,
) -> Result<bool, StoreError> {
    let sql =
        "UPDATE endpoints SET sealed_url = $4, sealed_secret = $5, sealed_previous_secret = $6
               WHERE workspace_id = $1 AND id = $2 AND revision = $3";
    Ok(execute!(conn, sql, was.workspace_id, was.id, was.revision, url, secret, previous)? > 0)
}
