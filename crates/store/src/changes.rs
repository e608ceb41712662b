//! The change feed: every write that touches what a replica caches adds a row in the same
//! transaction. Numbers become visible in order on both databases.

use chrono::{DateTime, Utc};
use sluice_domain::{ChangeKind, WorkspaceId};
use uuid::Uuid;

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one};
use crate::{Conn, StoreError};

record! {
    /// One change.
    pub struct Change {
        pub seq: i64,
        pub workspace_id: WorkspaceId,
        pub kind: ChangeKind,
        pub object_id: Uuid,
        pub at: DateTime<Utc>,
    }
}

/// The most changes that one read gives.
pub const BATCH: i64 = 1000;

/// Adds a change; it is seen when the transaction commits.
pub async fn append(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    kind: ChangeKind,
    object_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO changes (workspace_id, kind, object_id, at) VALUES ($1, $2, $3, $4)",
        workspace,
        kind,
        object_id,
        now
    )?;
    Ok(())
}

/// The changes after a number, oldest first, [`BATCH`] at most.
pub async fn since(conn: &mut Conn<'_>, seq: i64) -> Result<Vec<Change>, StoreError> {
    Ok(fetch_all!(
        conn,
        Change,
        "SELECT seq, workspace_id, kind, object_id, at FROM changes
         WHERE seq > $1 ORDER BY seq LIMIT $2",
        seq,
        BATCH
    )?)
}

/// The newest number; 0 if there was no change yet.
pub async fn latest(conn: &mut Conn<'_>) -> Result<i64, StoreError> {
    let newest = fetch_one!(conn, Value<Option<i64>>, "SELECT MAX(seq) AS value FROM changes")?;
    Ok(newest.0.unwrap_or(0))
}

/// Forgets changes older than `before`, which must lie further back than any cache lives without
/// its feed. The newest row stays, so that [`latest`] never goes back.
pub async fn prune(conn: &mut Conn<'_>, before: DateTime<Utc>) -> Result<u64, StoreError> {
    let sql = "DELETE FROM changes WHERE at < $1 AND seq < (SELECT MAX(seq) FROM changes)";
    Ok(execute!(conn, sql, before)?)
}
