//! Links that are mailed to a person, known by their hash alone.

use chrono::{DateTime, Utc};
use sluice_domain::{LinkPurpose, UserId};
use uuid::Uuid;

use crate::column::record;
use crate::conn::{execute, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// A link that still works, and whose it is.
    pub struct AccountLink {
        pub id: Uuid,
        pub user_id: UserId,
        pub email: String,
        pub purpose: LinkPurpose,
        pub expires_at: DateTime<Utc>,
    }
}

/// A link to be mailed.
#[derive(Debug, Clone, Copy)]
pub struct NewAccountLink<'a> {
    pub user: UserId,
    pub purpose: LinkPurpose,
    pub token_hash: &'a [u8],
    pub expires_at: DateTime<Utc>,
}

/// Makes a link; older ones of the person for the same purpose end.
pub async fn create(
    conn: &mut Conn<'_>,
    new: NewAccountLink<'_>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    end_all(conn, new.user, Some(new.purpose), now).await?;
    execute!(
        conn,
        "INSERT INTO account_links (id, user_id, purpose, token_hash, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
        Uuid::now_v7(),
        new.user,
        new.purpose,
        new.token_hash,
        now,
        new.expires_at
    )?;
    Ok(())
}

/// The link of a token, if it was neither used nor ended, its time is not over, and its person's
/// account is on.
pub async fn find_open(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<AccountLink>, StoreError> {
    Ok(fetch_optional!(
        conn,
        AccountLink,
        "SELECT l.id, l.user_id, u.email, l.purpose, l.expires_at
         FROM account_links l JOIN users u ON u.id = l.user_id
         WHERE l.token_hash = $1 AND l.used_at IS NULL AND l.expires_at > $2 AND NOT u.disabled",
        token_hash,
        now
    )?)
}

/// Uses a link up; false if somebody was faster.
pub async fn use_up(conn: &mut Conn<'_>, id: Uuid, now: DateTime<Utc>) -> Result<bool, StoreError> {
    let sql = "UPDATE account_links SET used_at = $2 WHERE id = $1 AND used_at IS NULL";
    Ok(execute!(conn, sql, id, now)? > 0)
}

/// Ends the person's open links, of one purpose or of all; says how many there were.
pub async fn end_all(
    conn: &mut Conn<'_>,
    user: UserId,
    purpose: Option<LinkPurpose>,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let sql = "UPDATE account_links SET used_at = $3
               WHERE user_id = $1 AND ($2 IS NULL OR purpose = $2) AND used_at IS NULL";
    Ok(execute!(conn, sql, user, purpose, now)?)
}

/// Forgets links whose time was over before.
pub async fn prune(conn: &mut Conn<'_>, before: DateTime<Utc>) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM account_links WHERE expires_at < $1", before)?)
}
