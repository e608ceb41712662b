//! `Idempotency-Key`: the same request sent again gets the same answer and acts once. An answer
//! that holds a secret must be sealed by the caller.

use chrono::{DateTime, Utc};
use sluice_domain::WorkspaceId;
use uuid::Uuid;

use crate::column::record;
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::text::rows;
use crate::{Conn, StoreError};

/// Whose key it is.
#[derive(Debug, Clone, Copy)]
pub struct KeyOf<'a> {
    /// `None` for an account's own requests.
    pub workspace: Option<WorkspaceId>,
    /// The user or API token.
    pub actor: Uuid,
    pub key: &'a str,
}

impl KeyOf<'_> {
    fn workspace(&self) -> Uuid {
        self.workspace.map_or(Uuid::nil(), WorkspaceId::uuid)
    }
}

/// Where a request with a key stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Go on; then [`finish`] in the same transaction as the work.
    New,
    /// Answered before: this is the answer.
    Answered { status: i32, headers: Option<String>, body: Vec<u8> },
    /// The first one is still at work.
    InProgress,
    /// The key was used for another request.
    Mismatch,
}

record! {
    /// A key that was used.
    struct Row {
        request_hash: Vec<u8>,
        status: Option<i32>,
        headers: Option<String>,
        body: Option<Vec<u8>>,
    }
}

/// Claims a key for a request. A claim that was never finished can be claimed anew when it is
/// older than `abandoned_before`.
pub async fn begin(
    conn: &mut Conn<'_>,
    of: KeyOf<'_>,
    request_hash: &[u8],
    abandoned_before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Begun, StoreError> {
    let claimed = execute!(
        conn,
        "INSERT INTO idempotency_keys (workspace_id, actor_id, key, request_hash, created_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (workspace_id, actor_id, key) DO UPDATE
             SET request_hash = excluded.request_hash, created_at = excluded.created_at
             WHERE idempotency_keys.status IS NULL AND idempotency_keys.created_at < $6",
        of.workspace(),
        of.actor,
        of.key,
        request_hash,
        now,
        abandoned_before
    )?;
    if claimed > 0 {
        return Ok(Begun::New);
    }
    let row = fetch_optional!(
        conn,
        Row,
        "SELECT request_hash, status, headers, body FROM idempotency_keys
         WHERE workspace_id = $1 AND actor_id = $2 AND key = $3",
        of.workspace(),
        of.actor,
        of.key
    )?;
    Ok(match row {
        Some(row) if row.request_hash != request_hash => Begun::Mismatch,
        Some(Row { status: Some(status), headers, body, .. }) => {
            Begun::Answered { status, headers, body: body.unwrap_or_default() }
        }
        _ => Begun::InProgress,
    })
}

/// Keeps the answer: its status, the headers that a repeat gives again, and its sealed body.
pub async fn finish(
    conn: &mut Conn<'_>,
    of: KeyOf<'_>,
    status: i32,
    headers: Option<&str>,
    body: &[u8],
) -> Result<(), StoreError> {
    execute!(
        conn,
        "UPDATE idempotency_keys SET status = $4, headers = $6, body = $5
         WHERE workspace_id = $1 AND actor_id = $2 AND key = $3",
        of.workspace(),
        of.actor,
        of.key,
        status,
        body,
        headers
    )?;
    Ok(())
}

/// Gives a claim up, so that the request can be tried again: nothing was done.
pub async fn abandon(conn: &mut Conn<'_>, of: KeyOf<'_>) -> Result<(), StoreError> {
    execute!(
        conn,
        "DELETE FROM idempotency_keys
         WHERE workspace_id = $1 AND actor_id = $2 AND key = $3 AND status IS NULL",
        of.workspace(),
        of.actor,
        of.key
    )?;
    Ok(())
}

record! {
    /// A sealed answer, for rewrapping keys.
    pub struct SealedAnswer {
        /// The nil UUID for an account's own requests.
        pub workspace_id: Uuid,
        pub actor_id: Uuid,
        pub key: String,
        pub body: Vec<u8>,
    }
}

/// Everybody's sealed answers in order, after the given one: for key rotation.
pub async fn list_sealed(
    conn: &mut Conn<'_>,
    after: Option<&SealedAnswer>,
    limit: i64,
) -> Result<Vec<SealedAnswer>, StoreError> {
    let nil = Uuid::nil();
    let (workspace, actor, key) =
        after.map_or((nil, nil, ""), |last| (last.workspace_id, last.actor_id, last.key.as_str()));
    Ok(fetch_all!(
        conn,
        SealedAnswer,
        "SELECT workspace_id, actor_id, key, body FROM idempotency_keys
         WHERE body IS NOT NULL AND (workspace_id, actor_id, key) > ($1, $2, $3)
         ORDER BY workspace_id, actor_id, key LIMIT $4",
        workspace,
        actor,
        key,
        rows(limit)
    )?)
}

/// Replaces a sealed answer by the same one under a newer key; says whether it still stood there.
pub async fn reseal(
    conn: &mut Conn<'_>,
    sealed: &SealedAnswer,
    new: &[u8],
) -> Result<bool, StoreError> {
    let sql = "UPDATE idempotency_keys SET body = $5
               WHERE workspace_id = $1 AND actor_id = $2 AND key = $3 AND body = $4";
    let was = sealed.body.as_slice();
    Ok(execute!(conn, sql, sealed.workspace_id, sealed.actor_id, &sealed.key, was, new)? > 0)
}

/// Forgets keys older than `before`; says how many.
pub async fn prune(conn: &mut Conn<'_>, before: DateTime<Utc>) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM idempotency_keys WHERE created_at < $1", before)?)
}
