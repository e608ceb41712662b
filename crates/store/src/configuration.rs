//! What `sluice apply` made or took over in a workspace, and how it left it.

use chrono::{DateTime, Utc};
use sluice_domain::{ObjectKind, WorkspaceId};
use uuid::Uuid;

use crate::column::record;
use crate::conn::{execute, fetch_all};
use crate::{Conn, StoreError};

record! {
    /// An object that was applied.
    pub struct AppliedObject {
        pub workspace_id: WorkspaceId,
        pub kind: ObjectKind,
        pub object_id: Uuid,
        /// The name under which a file asked for it, in lower case; the caller's words.
        pub path: String,
        /// How it was left; the caller's words.
        pub digest: String,
        pub applied_at: DateTime<Utc>,
    }
}

/// Everything that was applied in the workspace.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
) -> Result<Vec<AppliedObject>, StoreError> {
    Ok(fetch_all!(
        conn,
        AppliedObject,
        "SELECT workspace_id, kind, object_id, path, digest, applied_at FROM applied_objects
         WHERE workspace_id = $1 ORDER BY kind, path LIMIT 10000",
        workspace
    )?)
}

/// Notes how an object was left.
pub async fn put(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    (kind, object): (ObjectKind, Uuid),
    path: &str,
    digest: &str,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    // An object of this name that is gone by now is another one's past.
    let sql = "DELETE FROM applied_objects
               WHERE workspace_id = $1 AND kind = $2 AND path = $3 AND object_id <> $4";
    execute!(conn, sql, workspace, kind, path, object)?;
    execute!(
        conn,
        "INSERT INTO applied_objects (workspace_id, kind, object_id, path, digest, applied_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (workspace_id, kind, object_id) DO UPDATE
             SET path = excluded.path, digest = excluded.digest, applied_at = excluded.applied_at",
        workspace,
        kind,
        object,
        path,
        digest,
        now
    )?;
    Ok(())
}

/// Forgets an object; says whether it was known.
pub async fn forget(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    (kind, object): (ObjectKind, Uuid),
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM applied_objects
               WHERE workspace_id = $1 AND kind = $2 AND object_id = $3";
    Ok(execute!(conn, sql, workspace, kind, object)? > 0)
}
