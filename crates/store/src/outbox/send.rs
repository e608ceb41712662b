//! Sending: a message is claimed for a while, and then told how the attempt ended. A sender that
//! falls leaves its claim to run out, and another sends the message again. Over all workspaces.

use chrono::{DateTime, Utc};
use sluice_domain::{DeliveryId, WorkspaceId};

use super::{COLUMNS, Delivery, find};
use crate::column::{json, micros};
use crate::conn::{execute, fetch_all};
use crate::text::rows;
use crate::{Conn, StoreError};

/// A sender's hold on a message; it ends when another takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub id: DeliveryId,
    until: DateTime<Utc>,
}

/// Claims what is due until `until`, oldest first, `limit` at most. Of several senders at once each
/// message comes to one.
pub async fn claim_due(
    conn: &mut Conn<'_>,
    until: DateTime<Utc>,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<(Claim, Delivery)>, StoreError> {
    let skip = match conn {
        Conn::Postgres(_) => "FOR UPDATE SKIP LOCKED",
        // SQLite has one writer anyway.
        Conn::Sqlite(_) => "",
    };
    let sql = format!(
        "UPDATE outbox SET next_at = $1 WHERE id IN
             (SELECT id FROM outbox WHERE status = 'waiting' AND next_at <= $2
              ORDER BY next_at LIMIT $3 {skip})
         RETURNING {COLUMNS}"
    );
    let mut due = fetch_all!(conn, Delivery, sqlx::AssertSqlSafe(sql), until, now, rows(limit))?;
    due.sort_by_key(|delivery| delivery.id);
    let claim = |delivery: &Delivery| Claim { id: delivery.id, until: micros(until) };
    Ok(due.into_iter().map(|delivery| (claim(&delivery), delivery)).collect())
}

/// Claims one message of a workspace, due or not, until `until`; `None` if it is done with.
pub async fn claim(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: DeliveryId,
    until: DateTime<Utc>,
) -> Result<Option<(Claim, Delivery)>, StoreError> {
    let sql = "UPDATE outbox SET next_at = $3
               WHERE workspace_id = $1 AND id = $2 AND status = 'waiting'";
    if execute!(conn, sql, workspace, id, until)? == 0 {
        return Ok(None);
    }
    let claim = Claim { id, until: micros(until) };
    Ok(find(conn, workspace, id).await?.map(|delivery| (claim, delivery)))
}

/// It was taken. False: the claim had run out.
pub async fn sent(
    conn: &mut Conn<'_>,
    claim: Claim,
    tries: &serde_json::Value,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    end(conn, claim, "sent", tries, now).await
}

/// It is given up. False: the claim had run out.
pub async fn dead(
    conn: &mut Conn<'_>,
    claim: Claim,
    tries: &serde_json::Value,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    end(conn, claim, "dead", tries, now).await
}

async fn end(
    conn: &mut Conn<'_>,
    claim: Claim,
    status: &'static str,
    tries: &serde_json::Value,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET status = $3, attempts = attempts + 1, tries = $4, done_at = $5
               WHERE id = $1 AND next_at = $2 AND status = 'waiting'";
    let tries = json("outbox.tries", tries)?;
    Ok(execute!(conn, sql, claim.id, claim.until, status, tries, now)? > 0)
}

/// It failed and is sent again at `next_at`. False: the claim had run out.
pub async fn again(
    conn: &mut Conn<'_>,
    claim: Claim,
    tries: &serde_json::Value,
    next_at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET attempts = attempts + 1, tries = $3, next_at = $4
               WHERE id = $1 AND next_at = $2 AND status = 'waiting'";
    let tries = json("outbox.tries", tries)?;
    Ok(execute!(conn, sql, claim.id, claim.until, tries, next_at)? > 0)
}

/// It was not tried, because the other side does not answer at the moment.
pub async fn put_off(
    conn: &mut Conn<'_>,
    claim: Claim,
    next_at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET next_at = $3
               WHERE id = $1 AND next_at = $2 AND status = 'waiting'";
    Ok(execute!(conn, sql, claim.id, claim.until, next_at)? > 0)
}
