//! Upstream MCP servers of a workspace. A deleted server stays as a row without its credentials,
//! so that the log can still name it.

mod sealed;

pub use sealed::{SealedHeaders, list_sealed, reseal};

use chrono::{DateTime, Utc};
use sluice_domain::{ChangeKind, ServerId, ServerSettings, UserId, WorkspaceId};

use crate::column::{Value, json, micros, record};
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::error::conflict_as;
use crate::text::{key, rows};
use crate::{Conn, StoreError, changes};

record! {
    /// An upstream MCP server.
    pub struct Server {
        pub id: ServerId,
        pub workspace_id: WorkspaceId,
        pub name: String,
        pub upstream_url: String,
        pub settings: ServerSettings,
        /// Sealed upstream headers; only the vault opens them.
        pub sealed_headers: Option<Vec<u8>>,
        /// The names of the sealed headers, for show.
        pub header_names: Vec<String>,
        /// The gateway's own example server.
        pub is_example: bool,
        /// Rises with every change that a person makes.
        pub revision: i64,
        /// The tools were read at least once.
        pub tools_read: bool,
        /// When the tools were last read with success.
        pub last_read_at: Option<DateTime<Utc>>,
        /// A stable word for what went wrong last; none after a success.
        pub last_error_code: Option<String>,
        /// The same in words for people.
        pub last_error_words: Option<String>,
        pub last_error_at: Option<DateTime<Utc>>,
        pub protocol_version: Option<String>,
        /// What the server calls itself.
        pub server_name: Option<String>,
        pub created_by: Option<UserId>,
        pub created_at: DateTime<Utc>,
        pub updated_at: DateTime<Utc>,
    }
}

/// What a new server is made of. The id comes from the caller, because sealed headers are bound to it.
#[derive(Debug, Clone, Copy)]
pub struct NewServer<'a> {
    pub id: ServerId,
    pub name: &'a str,
    pub upstream_url: &'a str,
    pub settings: &'a ServerSettings,
    pub sealed_headers: Option<&'a [u8]>,
    pub header_names: &'a [String],
    pub is_example: bool,
    pub created_by: Option<UserId>,
}

/// Makes a server; a name that a server of the workspace has, in any case, is the conflict
/// `servers_name`.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    new: NewServer<'_>,
    now: DateTime<Utc>,
) -> Result<Server, StoreError> {
    let made = execute!(
        conn,
        "INSERT INTO servers
             (id, workspace_id, name, name_key, upstream_url, settings, sealed_headers,
              header_names, is_example, revision, tools_read, created_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, FALSE, $10, $11, $11)
         ON CONFLICT DO NOTHING",
        new.id,
        workspace,
        new.name,
        key(new.name),
        new.upstream_url,
        json("servers.settings", new.settings)?,
        new.sealed_headers,
        json("servers.header_names", &new.header_names)?,
        new.is_example,
        new.created_by,
        now
    )?;
    if made == 0 {
        return Err(StoreError::conflict("servers_name"));
    }
    changes::append(conn, workspace, ChangeKind::Server, new.id.uuid(), now).await?;
    let now = micros(now);
    Ok(Server {
        id: new.id,
        workspace_id: workspace,
        name: new.name.to_owned(),
        upstream_url: new.upstream_url.to_owned(),
        settings: new.settings.clone(),
        sealed_headers: new.sealed_headers.map(<[u8]>::to_vec),
        header_names: new.header_names.to_vec(),
        is_example: new.is_example,
        revision: 1,
        tools_read: false,
        last_read_at: None,
        last_error_code: None,
        last_error_words: None,
        last_error_at: None,
        protocol_version: None,
        server_name: None,
        created_by: new.created_by,
        created_at: now,
        updated_at: now,
    })
}

/// The server, unless deleted.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ServerId,
) -> Result<Option<Server>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Server,
        "SELECT id, workspace_id, name, upstream_url, settings, sealed_headers, header_names,
                is_example, revision, tools_read, last_read_at, last_error_code, last_error_words,
                last_error_at, protocol_version, server_name, created_by, created_at, updated_at
         FROM servers WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL",
        workspace,
        id
    )?)
}

/// The server of that name, in any case, unless deleted.
pub async fn find_by_name(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    name: &str,
) -> Result<Option<Server>, StoreError> {
    let id = fetch_optional!(
        conn,
        Value<ServerId>,
        "SELECT id AS value FROM servers
         WHERE workspace_id = $1 AND name_key = $2 AND deleted_at IS NULL",
        workspace,
        key(name)
    )?;
    match id {
        Some(id) => find(conn, workspace, id.0).await,
        None => Ok(None),
    }
}

/// The servers, newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    before: Option<ServerId>,
    limit: i64,
) -> Result<Vec<Server>, StoreError> {
    Ok(fetch_all!(
        conn,
        Server,
        "SELECT id, workspace_id, name, upstream_url, settings, sealed_headers, header_names,
                is_example, revision, tools_read, last_read_at, last_error_code, last_error_words,
                last_error_at, protocol_version, server_name, created_by, created_at, updated_at
         FROM servers
         WHERE workspace_id = $1 AND deleted_at IS NULL AND ($2 IS NULL OR id < $2)
         ORDER BY id DESC LIMIT $3",
        workspace,
        before,
        rows(limit)
    )?)
}

/// Servers whose last contact failed, newest first.
pub async fn list_failing(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    limit: i64,
) -> Result<Vec<Server>, StoreError> {
    Ok(fetch_all!(
        conn,
        Server,
        "SELECT id, workspace_id, name, upstream_url, settings, sealed_headers, header_names,
                is_example, revision, tools_read, last_read_at, last_error_code, last_error_words,
                last_error_at, protocol_version, server_name, created_by, created_at, updated_at
         FROM servers
         WHERE workspace_id = $1 AND deleted_at IS NULL AND last_error_code IS NOT NULL
         ORDER BY id DESC LIMIT $2",
        workspace,
        rows(limit)
    )?)
}

record! {
    /// A server's name, deleted ones too, for logs.
    pub struct ServerName {
        pub id: ServerId,
        pub name: String,
        pub deleted: bool,
    }
}

/// The names of all servers that the workspace has or had, for showing logs.
pub async fn names(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Vec<ServerName>, StoreError> {
    Ok(fetch_all!(
        conn,
        ServerName,
        "SELECT id, name, deleted_at IS NOT NULL AS deleted FROM servers WHERE workspace_id = $1
         ORDER BY id DESC LIMIT 10000",
        workspace
    )?)
}

/// What an edit may change; what is `None` stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerChange<'a> {
    pub name: Option<&'a str>,
    pub upstream_url: Option<&'a str>,
    pub settings: Option<&'a ServerSettings>,
    /// New sealed headers and their names; `Some((None, &[]))` removes them.
    pub headers: Option<(Option<&'a [u8]>, &'a [String])>,
}

/// Edits the server if it still is at `expected` (`None`: whatever is there); `Ok(None)` if there
/// is none, [`StoreError::Stale`] if somebody was faster.
pub async fn update(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ServerId,
    expected: Option<i64>,
    change: ServerChange<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Server>, StoreError> {
    let Some(mut server) = lock(conn, workspace, id).await? else { return Ok(None) };
    if expected.is_some_and(|expected| expected != server.revision) {
        return Err(StoreError::Stale { current: server.revision });
    }
    if let Some(name) = change.name {
        name.clone_into(&mut server.name);
    }
    if let Some(url) = change.upstream_url {
        url.clone_into(&mut server.upstream_url);
    }
    if let Some(settings) = change.settings {
        settings.clone_into(&mut server.settings);
    }
    if let Some((sealed, names)) = change.headers {
        server.sealed_headers = sealed.map(<[u8]>::to_vec);
        server.header_names = names.to_vec();
    }
    server.revision += 1;
    server.updated_at = micros(now);
    execute!(
        conn,
        "UPDATE servers SET name = $3, name_key = $4, upstream_url = $5, settings = $6,
                sealed_headers = $7, header_names = $8, revision = $9, updated_at = $10
         WHERE workspace_id = $1 AND id = $2",
        workspace,
        id,
        &server.name,
        key(&server.name),
        &server.upstream_url,
        json("servers.settings", &server.settings)?,
        server.sealed_headers.as_deref(),
        json("servers.header_names", &server.header_names)?,
        server.revision,
        now
    )
    .map_err(conflict_as("servers_name"))?;
    changes::append(conn, workspace, ChangeKind::Server, id.uuid(), now).await?;
    Ok(Some(server))
}

/// Takes the row's lock and reads it.
pub(crate) async fn lock(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ServerId,
) -> Result<Option<Server>, StoreError> {
    let sql = "UPDATE servers SET revision = revision WHERE workspace_id = $1 AND id = $2";
    execute!(conn, sql, workspace, id)?;
    find(conn, workspace, id).await
}

/// Deletes the server: its credentials are wiped, its grants revoked, its policies closed.
/// Says whether it was there.
pub async fn delete(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ServerId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let gone = execute!(
        conn,
        "UPDATE servers SET deleted_at = $3, sealed_headers = NULL, header_names = '[]'
         WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL",
        workspace,
        id,
        now
    )?;
    if gone == 0 {
        return Ok(false);
    }
    execute!(
        conn,
        "UPDATE grants SET revoked_at = $3 WHERE workspace_id = $1 AND server_id = $2
         AND revoked_at IS NULL",
        workspace,
        id,
        now
    )?;
    execute!(
        conn,
        "UPDATE policies SET deleted_at = $3 WHERE workspace_id = $1 AND server_id = $2
         AND deleted_at IS NULL",
        workspace,
        id,
        now
    )?;
    changes::append(conn, workspace, ChangeKind::Server, id.uuid(), now).await?;
    Ok(true)
}

/// How the last contact with the upstream went.
#[derive(Debug, Clone, Copy)]
pub enum Health<'a> {
    /// The tools were read.
    Read { protocol_version: Option<&'a str>, server_name: Option<&'a str> },
    /// It failed: a stable word, and words for people.
    Failed { code: &'a str, words: &'a str },
}

/// Notes how the last contact went. Touches neither the revision nor the feed.
pub async fn set_health(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ServerId,
    health: Health<'_>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let touched = match health {
        Health::Read { protocol_version, server_name } => execute!(
            conn,
            "UPDATE servers SET last_read_at = $3, protocol_version = $4, server_name = $5,
                    last_error_code = NULL, last_error_words = NULL, last_error_at = NULL
             WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL",
            workspace,
            id,
            now,
            protocol_version,
            server_name
        ),
        Health::Failed { code, words } => execute!(
            conn,
            "UPDATE servers SET last_error_code = $4, last_error_words = $5, last_error_at = $3
             WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL",
            workspace,
            id,
            now,
            code,
            words
        ),
    }?;
    Ok(touched > 0)
}
