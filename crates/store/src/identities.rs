//! Who people are to identity providers. An account belongs to no workspace, so nothing here does.

use chrono::{DateTime, Utc};
use sluice_domain::UserId;
use uuid::Uuid;

use crate::column::record;
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// A person, as a provider knows them.
    pub struct Identity {
        pub id: Uuid,
        pub user_id: UserId,
        /// The provider's address.
        pub issuer: String,
        /// The provider's own name for the person.
        pub subject: String,
        /// What the provider said when it was last used.
        pub email: String,
        pub created_at: DateTime<Utc>,
        pub last_used_at: DateTime<Utc>,
    }
}

/// What a provider says of a person.
#[derive(Debug, Clone, Copy)]
pub struct NewIdentity<'a> {
    pub user: UserId,
    pub issuer: &'a str,
    pub subject: &'a str,
    pub email: &'a str,
}

/// Links an identity; false if it is somebody's already, or the person has another one there.
pub async fn create(
    conn: &mut Conn<'_>,
    new: NewIdentity<'_>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql =
        "INSERT INTO identities (id, user_id, issuer, subject, email, created_at, last_used_at)
               VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING";
    let id = Uuid::now_v7();
    Ok(execute!(conn, sql, id, new.user, new.issuer, new.subject, new.email, now)? > 0)
}

/// The identity of a provider's person.
pub async fn find(
    conn: &mut Conn<'_>,
    issuer: &str,
    subject: &str,
) -> Result<Option<Identity>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Identity,
        "SELECT id, user_id, issuer, subject, email, created_at, last_used_at
         FROM identities WHERE issuer = $1 AND subject = $2",
        issuer,
        subject
    )?)
}

/// Notes that it was used, and with which address.
pub async fn touch(
    conn: &mut Conn<'_>,
    id: Uuid,
    email: &str,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "UPDATE identities SET email = $2, last_used_at = $3 WHERE id = $1",
        id,
        email,
        now
    )?;
    Ok(())
}

/// The person's identities, oldest first.
pub async fn list(conn: &mut Conn<'_>, user: UserId) -> Result<Vec<Identity>, StoreError> {
    Ok(fetch_all!(
        conn,
        Identity,
        "SELECT id, user_id, issuer, subject, email, created_at, last_used_at
         FROM identities WHERE user_id = $1 ORDER BY id LIMIT 100",
        user
    )?)
}

/// Takes all of the person's identities away.
pub async fn remove_all(conn: &mut Conn<'_>, user: UserId) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM identities WHERE user_id = $1", user)?)
}

/// Takes one of the person's identities away; says whether it was there.
pub async fn remove(conn: &mut Conn<'_>, user: UserId, id: Uuid) -> Result<bool, StoreError> {
    let sql = "DELETE FROM identities WHERE user_id = $1 AND id = $2";
    Ok(execute!(conn, sql, user, id)? > 0)
}
