//! Messages on their way out, kept until they were taken: to endpoints of a workspace and by mail to
//! people. Written in the transaction of what they tell; sent at least once. Bodies are sealed by
//! the caller, who knows the key; a row's id is the caller's, because they are bound to it.

mod send;

pub use send::{Claim, again, claim, claim_due, dead, put_off, sent};

use chrono::{DateTime, Utc};
use sluice_domain::{DeliveryId, DeliveryStatus, EndpointId, Role, UserId, WorkspaceId};
use uuid::Uuid;

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::text::{key, rows};
use crate::{Conn, StoreError};

record! {
    /// One message.
    pub struct Delivery {
        pub id: DeliveryId,
        /// `None`: mail about an account.
        pub workspace_id: Option<WorkspaceId>,
        /// `None`: it is mail.
        pub endpoint_id: Option<EndpointId>,
        /// The mail's address; empty for an endpoint.
        pub recipient: String,
        /// What it tells: `approval.asked` and the like.
        pub topic: String,
        /// What it is about.
        pub subject_id: Option<Uuid>,
        pub sealed_body: Vec<u8>,
        pub status: DeliveryStatus,
        pub attempts: i64,
        /// When it is sent next; while it is being sent, until when that is the sender's alone.
        pub next_at: DateTime<Utc>,
        pub give_up_at: DateTime<Utc>,
        /// How each attempt ended, a JSON list.
        pub tries: serde_json::Value,
        pub created_at: DateTime<Utc>,
        pub done_at: Option<DateTime<Utc>>,
    }
}

/// A message to be sent.
#[derive(Debug, Clone, Copy)]
pub struct NewDelivery<'a> {
    pub id: DeliveryId,
    pub endpoint: Option<EndpointId>,
    pub recipient: &'a str,
    pub topic: &'a str,
    pub subject: Option<Uuid>,
    pub sealed_body: &'a [u8],
    /// Later it is of no use.
    pub give_up_at: DateTime<Utc>,
}

const COLUMNS: &str = "id, workspace_id, endpoint_id, recipient, topic, subject_id, sealed_body,
     status, attempts, next_at, give_up_at, tries, created_at, done_at";

fn select(rest: &'static str) -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM outbox WHERE {rest}"))
}

/// Puts a message out to be sent.
pub async fn put(
    conn: &mut Conn<'_>,
    workspace: Option<WorkspaceId>,
    new: NewDelivery<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO outbox
             (id, workspace_id, endpoint_id, recipient, topic, subject_id, sealed_body, status,
              attempts, next_at, give_up_at, tries, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 'waiting', 0, $8, $9, '[]', $8)",
        new.id,
        workspace,
        new.endpoint,
        // Counted by this form.
        key(new.recipient),
        new.topic,
        new.subject,
        new.sealed_body,
        now,
        new.give_up_at
    )?;
    Ok(())
}

/// One message of a workspace.
pub async fn find(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: DeliveryId,
) -> Result<Option<Delivery>, StoreError> {
    Ok(fetch_optional!(conn, Delivery, select("workspace_id = $1 AND id = $2"), workspace, id)?)
}

/// Which messages a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    pub endpoint: Option<EndpointId>,
    pub status: Option<DeliveryStatus>,
}

/// A workspace's messages, newest first, before the given one.
pub async fn list(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    filter: DeliveryFilter,
    before: Option<DeliveryId>,
    limit: i64,
) -> Result<Vec<Delivery>, StoreError> {
    Ok(fetch_all!(
        conn,
        Delivery,
        select(
            "workspace_id = $1 AND ($2 IS NULL OR endpoint_id = $2) AND ($3 IS NULL OR status = $3)
             AND ($4 IS NULL OR id < $4) ORDER BY id DESC LIMIT $5"
        ),
        workspace,
        filter.endpoint,
        filter.status,
        before,
        rows(limit)
    )?)
}

/// How many messages wait for an endpoint.
pub async fn count_waiting(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    endpoint: EndpointId,
) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM outbox
               WHERE workspace_id = $1 AND endpoint_id = $2 AND status = 'waiting'";
    Ok(fetch_one!(conn, Value<i64>, sql, workspace, endpoint)?.0)
}

/// How much mail an address was sent since about what happens in workspaces.
pub async fn count_mail(
    conn: &mut Conn<'_>,
    recipient: &str,
    since: DateTime<Utc>,
) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM outbox
               WHERE recipient = $1 AND endpoint_id IS NULL AND workspace_id IS NOT NULL
                 AND created_at > $2";
    Ok(fetch_one!(conn, Value<i64>, sql, key(recipient), since)?.0)
}

/// Sends a message anew that was given up or taken; says whether it was one of those.
pub async fn replay(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: DeliveryId,
    give_up_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET status = 'waiting', attempts = 0, next_at = $4, give_up_at = $3,
                   done_at = NULL
               WHERE workspace_id = $1 AND id = $2 AND status <> 'waiting'";
    Ok(execute!(conn, sql, workspace, id, give_up_at, now)? > 0)
}

/// Whether a member gets mail about parked calls; `None`: no such member.
pub async fn wants_mail(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<bool>, StoreError> {
    let wants = fetch_optional!(
        conn,
        Value<bool>,
        "SELECT mail_approvals AS value FROM memberships WHERE workspace_id = $1 AND user_id = $2",
        workspace,
        user
    )?;
    Ok(wants.map(|wants| wants.0))
}

record! {
    /// Somebody who gets mail about parked calls.
    pub struct MailReader {
        pub user_id: UserId,
        pub email: String,
        pub role: Role,
    }
}

/// The members who may decide anything and want mail about it, oldest account first.
pub async fn mail_readers(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    limit: i64,
) -> Result<Vec<MailReader>, StoreError> {
    Ok(fetch_all!(
        conn,
        MailReader,
        "SELECT m.user_id, u.email, m.role FROM memberships m JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = $1 AND m.mail_approvals AND NOT u.disabled
           AND m.role IN ('policy_manager', 'admin')
         ORDER BY m.user_id LIMIT $2",
        workspace,
        rows(limit)
    )?)
}

/// Notes whether a member wants mail about parked calls.
pub async fn set_wants_mail(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    user: UserId,
    wants: bool,
) -> Result<(), StoreError> {
    let sql = "UPDATE memberships SET mail_approvals = $3 WHERE workspace_id = $1 AND user_id = $2";
    execute!(conn, sql, workspace, user, wants)?;
    Ok(())
}

/// Forgets messages that were done with before `before`, in any workspace, `limit` at most.
pub async fn prune(
    conn: &mut Conn<'_>,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM outbox WHERE id IN
                   (SELECT id FROM outbox WHERE status <> 'waiting' AND done_at < $1 LIMIT $2)";
    Ok(execute!(conn, sql, before, rows(limit))?)
}

/// Every message, in order of id, for the operator's change of keys.
pub async fn list_all(
    conn: &mut Conn<'_>,
    after: Option<DeliveryId>,
    limit: i64,
) -> Result<Vec<Delivery>, StoreError> {
    Ok(fetch_all!(
        conn,
        Delivery,
        select("$1 IS NULL OR id > $1 ORDER BY id LIMIT $2"),
        after,
        rows(limit)
    )?)
}

/// Replaces a sealed body by the same under another key.
pub async fn reseal(
    conn: &mut Conn<'_>,
    id: DeliveryId,
    was: &[u8],
    sealed: &[u8],
) -> Result<bool, StoreError> {
    let sql = "UPDATE outbox SET sealed_body = $3 WHERE id = $1 AND sealed_body = $2";
    Ok(execute!(conn, sql, id, was, sealed)? > 0)
}
