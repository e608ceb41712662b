//! Tools of all servers that somebody should look at.

use sluice_domain::{ServerId, ToolId, WorkspaceId};
use sqlx::AssertSqlSafe;

use super::Tool;
use crate::column::record;
use crate::conn::fetch_all;
use crate::text::rows;
use crate::{Conn, StoreError};

/// Why a tool should be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// It changed since its review, or is held until there is one.
    Review,
    /// Its definition shows signs of poison.
    Poisoned,
}

impl Attention {
    /// Said as the partial indexes say it.
    const fn clause(self) -> &'static str {
        match self {
            Self::Review => "state IN ('changed', 'held')",
            Self::Poisoned => "findings <> '[]' AND state <> 'gone'",
        }
    }
}

record! {
    /// How many tools of a server should be looked at.
    pub struct ToLookAt {
        pub server_id: ServerId,
        pub tools: i64,
    }
}

/// How many there are, by server; servers without any are left out.
pub async fn count_attention(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    why: Attention,
) -> Result<Vec<ToLookAt>, StoreError> {
    let sql = format!(
        "SELECT server_id, COUNT(*) AS tools FROM tools WHERE workspace_id = $1 AND {}
         GROUP BY server_id ORDER BY server_id",
        why.clause()
    );
    // Only fixed clauses were put together.
    Ok(fetch_all!(conn, ToLookAt, AssertSqlSafe(sql), workspace)?)
}

/// The tools, the oldest first, after the given one.
pub async fn list_attention(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    why: Attention,
    after: Option<ToolId>,
    limit: i64,
) -> Result<Vec<Tool>, StoreError> {
    let sql = format!(
        "SELECT id, workspace_id, server_id, name, definition, hash, reviewed_definition,
                reviewed_hash, reviewed_at, reviewed_by, state, category, severity, rating,
                findings, first_seen_at, changed_at, shown_at
         FROM tools WHERE workspace_id = $1 AND {} AND ($2 IS NULL OR id > $2)
         ORDER BY id LIMIT $3",
        why.clause()
    );
    Ok(fetch_all!(conn, Tool, AssertSqlSafe(sql), workspace, after, rows(limit))?)
}
