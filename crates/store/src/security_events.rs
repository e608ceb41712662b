//! The security log: refused attempts, counted apart from calls because most have no tenant.

use chrono::{DateTime, Utc};
use sluice_domain::{CallId, GrantId, SecurityEvent, SecurityKind, WorkspaceId};

use crate::column::{AnyRow, FromColumns, record};
use crate::conn::{execute, fetch_all};
use crate::text::rows;
use crate::{Conn, StoreError};

impl FromColumns for SecurityEvent {
    fn from_columns<R: AnyRow>(row: &R) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.column("id")?,
            at: row.column("at")?,
            kind: row.column("kind")?,
            workspace: row.column("workspace_id")?,
            grant: row.column("grant_id")?,
            address: row.column("address")?,
            detail: row.column("detail")?,
            times: row.column("times")?,
        })
    }
}

/// Stores events; those that are there already stay as they are. Says how many were new.
pub async fn insert_batch(
    conn: &mut Conn<'_>,
    events: &[SecurityEvent],
) -> Result<u64, StoreError> {
    let mut new = 0;
    for event in events {
        new += execute!(
            conn,
            "INSERT INTO security_events (id, at, kind, workspace_id, grant_id, address, detail, times)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
            event.id,
            event.at,
            event.kind,
            event.workspace,
            event.grant,
            &event.address,
            &event.detail,
            event.times
        )?;
    }
    Ok(new)
}

/// The workspace's events, newest first, before the given one. Events that no token places in a
/// workspace are in none.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    kind: Option<SecurityKind>,
    before: Option<CallId>,
    limit: i64,
) -> Result<Vec<SecurityEvent>, StoreError> {
    Ok(fetch_all!(
        conn,
        SecurityEvent,
        "SELECT id, at, kind, workspace_id, grant_id, address, detail, times FROM security_events
         WHERE workspace_id = $1 AND ($2 IS NULL OR kind = $2) AND ($3 IS NULL OR id < $3)
         ORDER BY id DESC LIMIT $4",
        workspace,
        kind,
        before,
        rows(limit)
    )?)
}

record! {
    /// Attempts of one kind from one place.
    pub struct Attempts {
        pub kind: SecurityKind,
        /// The workspace's slug, where a token tells it.
        pub workspace: Option<String>,
        pub grant_id: Option<GrantId>,
        pub address: String,
        pub times: i64,
        pub last_at: DateTime<Utc>,
    }
}

/// For the operator: who tried what since then, whatever the workspace, the most frequent first.
pub async fn frequent(
    conn: &mut Conn<'_>,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Attempts>, StoreError> {
    Ok(fetch_all!(
        conn,
        Attempts,
        "SELECT e.kind, w.slug AS workspace, e.grant_id, e.address,
                CAST(SUM(e.times) AS BIGINT) AS times, MAX(e.at) AS last_at
         FROM security_events e LEFT JOIN workspaces w ON w.id = e.workspace_id
         WHERE e.at >= $1 GROUP BY e.kind, w.slug, e.grant_id, e.address
         ORDER BY times DESC, last_at DESC, e.kind, e.address LIMIT $2",
        since,
        rows(limit)
    )?)
}

/// Forgets events older than `before`, `limit` at most; says how many.
pub async fn prune(
    conn: &mut Conn<'_>,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, StoreError> {
    Ok(execute!(
        conn,
        "DELETE FROM security_events WHERE id IN
             (SELECT id FROM security_events WHERE at < $1 ORDER BY at LIMIT $2)",
        before,
        limit
    )?)
}
