//! Sealed headers of servers under newer keys.

use sluice_domain::{ServerId, WorkspaceId};

use crate::column::record;
use crate::conn::{execute, fetch_all};
use crate::text::rows;
use crate::{Conn, StoreError};

/// Replaces sealed headers by the same ones under a newer key; no change for anybody else.
pub async fn reseal(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: ServerId,
    was: &[u8],
    sealed: &[u8],
) -> Result<bool, StoreError> {
    let sql = "UPDATE servers SET sealed_headers = $4
               WHERE workspace_id = $1 AND id = $2 AND sealed_headers = $3";
    Ok(execute!(conn, sql, workspace, id, was, sealed)? > 0)
}

record! {
    /// Sealed headers, for rewrapping keys.
    pub struct SealedHeaders {
        pub workspace_id: WorkspaceId,
        pub id: ServerId,
        pub sealed_headers: Vec<u8>,
    }
}

/// Every workspace's sealed headers in order of id, after the given server: for key rotation,
/// which is the operator's.
pub async fn list_sealed(
    conn: &mut Conn<'_>,
    after: Option<ServerId>,
    limit: i64,
) -> Result<Vec<SealedHeaders>, StoreError> {
    Ok(fetch_all!(
        conn,
        SealedHeaders,
        "SELECT workspace_id, id, sealed_headers FROM servers
         WHERE sealed_headers IS NOT NULL AND ($1 IS NULL OR id > $1) ORDER BY id LIMIT $2",
        after,
        rows(limit)
    )?)
}
