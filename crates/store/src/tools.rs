//! A server's tools: as last read, and as a person last reviewed them. The first read of a server
//! counts as reviewed; what changes later is marked until somebody accepts it.

mod attention;
mod fingerprint;
mod read;
mod shown;

pub use attention::{Attention, ToLookAt, count_attention, list_attention};
pub use fingerprint::fingerprint;
pub use read::{MAX_NAME_BYTES, ReadChanges, ReadTool, replace_read};
pub use shown::note_shown;

use chrono::{DateTime, Utc};
use sluice_domain::{
    Category, ChangeKind, ServerId, Severity, ToolId, ToolState, UserId, WorkspaceId,
};

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::{Conn, StoreError, changes};

record! {
    /// A tool of a server.
    pub struct Tool {
        pub id: ToolId,
        pub workspace_id: WorkspaceId,
        pub server_id: ServerId,
        pub name: String,
        /// JSON text of the definition as last read.
        pub definition: String,
        /// [`fingerprint`] of `definition`.
        pub hash: String,
        /// JSON text of the definition as last accepted; none if nobody reviewed the tool yet.
        pub reviewed_definition: Option<String>,
        pub reviewed_hash: Option<String>,
        pub reviewed_at: Option<DateTime<Utc>>,
        pub reviewed_by: Option<UserId>,
        pub state: ToolState,
        pub category: Category,
        pub severity: Severity,
        /// The whole rating, as the classifier gave it.
        pub rating: serde_json::Value,
        /// Signs of a poisoned definition.
        pub findings: serde_json::Value,
        pub first_seen_at: DateTime<Utc>,
        /// When the definition last changed.
        pub changed_at: DateTime<Utc>,
        /// When a list that passed by last showed agents something else than what was reviewed.
        pub shown_at: Option<DateTime<Utc>>,
    }
}

/// The tools of a server by name, those that are gone too.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
) -> Result<Vec<Tool>, StoreError> {
    Ok(fetch_all!(
        conn,
        Tool,
        "SELECT id, workspace_id, server_id, name, definition, hash, reviewed_definition,
                reviewed_hash, reviewed_at, reviewed_by, state, category, severity, rating,
                findings, first_seen_at, changed_at, shown_at
         FROM tools WHERE workspace_id = $1 AND server_id = $2 ORDER BY name",
        workspace,
        server
    )?)
}

/// The tool of that exact name.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    name: &str,
) -> Result<Option<Tool>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Tool,
        "SELECT id, workspace_id, server_id, name, definition, hash, reviewed_definition,
                reviewed_hash, reviewed_at, reviewed_by, state, category, severity, rating,
                findings, first_seen_at, changed_at, shown_at
         FROM tools WHERE workspace_id = $1 AND server_id = $2 AND name = $3",
        workspace,
        server,
        name
    )?)
}

/// How many tools of a server are kept, those that are gone too.
pub(crate) async fn count(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
) -> Result<i64, StoreError> {
    let count = fetch_one!(
        conn,
        Value<i64>,
        "SELECT COUNT(*) AS value FROM tools WHERE workspace_id = $1 AND server_id = $2",
        workspace,
        server
    )?;
    Ok(count.0)
}

/// What came of accepting a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    Done,
    /// No such tool in the server's list.
    Absent,
    /// The definition is no longer the one that was looked at.
    ChangedMeanwhile,
}

/// Accepts the definition whose hash the person saw: it is the reviewed one from now on.
pub async fn accept(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    name: &str,
    seen_hash: &str,
    by: (Option<UserId>, DateTime<Utc>),
) -> Result<Accepted, StoreError> {
    let (user, now) = by;
    let done = execute!(
        conn,
        "UPDATE tools SET reviewed_definition = definition, reviewed_hash = hash,
                reviewed_at = $5, reviewed_by = $6, state = 'current'
         WHERE workspace_id = $1 AND server_id = $2 AND name = $3 AND hash = $4 AND state <> 'gone'",
        workspace,
        server,
        name,
        seen_hash,
        now,
        user
    )?;
    if done > 0 {
        changes::append(conn, workspace, ChangeKind::Tools, server.uuid(), now).await?;
        return Ok(Accepted::Done);
    }
    let there = find(conn, workspace, server, name).await?;
    Ok(match there {
        Some(tool) if tool.state != ToolState::Gone => Accepted::ChangedMeanwhile,
        _ => Accepted::Absent,
    })
}
