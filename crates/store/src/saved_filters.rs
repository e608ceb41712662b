//! A member's own names for filters of the log.

use chrono::{DateTime, Utc};
use sluice_domain::{FilterId, UserId, WorkspaceId};

use crate::column::record;
use crate::conn::{execute, fetch_all};
use crate::{Conn, StoreError};

record! {
    /// Filters with a name.
    pub struct SavedFilter {
        pub id: FilterId,
        pub name: String,
        /// As the page's address has them, without the question mark.
        pub query: String,
    }
}

/// The member's, by name.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Vec<SavedFilter>, StoreError> {
    Ok(fetch_all!(
        conn,
        SavedFilter,
        "SELECT id, name, query FROM saved_filters WHERE workspace_id = $1 AND user_id = $2
         ORDER BY name, id",
        workspace,
        user
    )?)
}

/// Keeps filters under a name of the member's; one that is taken is the conflict `saved_filters_name`.
pub async fn create(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
    (name, query): (&str, &str),
    now: DateTime<Utc>,
) -> Result<FilterId, StoreError> {
    let id = FilterId::new();
    let made = execute!(
        conn,
        "INSERT INTO saved_filters (id, workspace_id, user_id, name, query, created_at)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (workspace_id, user_id, name) DO NOTHING",
        id,
        workspace,
        user,
        name,
        query,
        now
    )?;
    if made == 0 { Err(StoreError::conflict("saved_filters_name")) } else { Ok(id) }
}

/// Forgets one of the member's; says whether it was there.
pub async fn delete(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
    id: FilterId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM saved_filters WHERE workspace_id = $1 AND user_id = $2 AND id = $3";
    Ok(execute!(conn, sql, workspace, user, id)? > 0)
}
