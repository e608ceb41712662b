//! People with an account. An account belongs to no workspace; memberships do.

use chrono::{DateTime, Utc};
use sluice_domain::UserId;

use crate::column::{micros, record};
use crate::conn::{execute, fetch_optional};
use crate::text::key;
use crate::{Conn, StoreError};

record! {
    /// A person with an account.
    pub struct User {
        pub id: UserId,
        /// As typed; compared without case.
        pub email: String,
        pub name: String,
        /// Argon2id; `None` until a password is set.
        pub password_hash: Option<String>,
        pub created_at: DateTime<Utc>,
        pub verified_at: Option<DateTime<Utc>>,
        pub disabled: bool,
        /// Asked for by mail, and not proven by it yet.
        pub pending: bool,
    }
}

/// Makes an account; an address that has one is the conflict `users_email`.
pub async fn create(
    conn: &mut Conn<'_>,
    email: &str,
    name: &str,
    password_hash: Option<&str>,
    now: DateTime<Utc>,
) -> Result<User, StoreError> {
    let user = User {
        id: UserId::new(),
        email: email.trim().to_owned(),
        name: name.to_owned(),
        password_hash: password_hash.map(str::to_owned),
        created_at: micros(now),
        verified_at: None,
        disabled: false,
        pending: false,
    };
    let made = execute!(
        conn,
        "INSERT INTO users (id, email, email_key, name, password_hash, created_at, disabled)
         VALUES ($1, $2, $3, $4, $5, $6, FALSE) ON CONFLICT (email_key) DO NOTHING",
        user.id,
        &user.email,
        key(email),
        name,
        password_hash,
        now
    )?;
    if made == 0 { Err(StoreError::conflict("users_email")) } else { Ok(user) }
}

/// Makes an account that waits for its owner to prove the address; one that waits already is asked for anew.
/// `None` where the address has an account that waits for nothing.
pub async fn create_pending(
    conn: &mut Conn<'_>,
    email: &str,
    name: &str,
    password_hash: &str,
    now: DateTime<Utc>,
) -> Result<Option<User>, StoreError> {
    let sql = "INSERT INTO users (id, email, email_key, name, password_hash, created_at, disabled, pending)
         VALUES ($1, $2, $3, $4, $5, $6, FALSE, TRUE) ON CONFLICT (email_key) DO UPDATE
         SET name = excluded.name, password_hash = excluded.password_hash, created_at = excluded.created_at
         WHERE users.pending";
    let (id, email) = (UserId::new(), email.trim());
    if execute!(conn, sql, id, email, key(email), name, password_hash, now)? == 0 {
        return Ok(None);
    }
    find_by_email(conn, email).await
}

/// Forgets accounts that were asked for before and that nobody proved.
pub async fn prune_pending(conn: &mut Conn<'_>, before: DateTime<Utc>) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM users WHERE pending AND created_at < $1", before)?)
}

/// Forgets the account of an address if it waits for its owner.
pub async fn forget_pending(conn: &mut Conn<'_>, email: &str) -> Result<bool, StoreError> {
    let sql = "DELETE FROM users WHERE email_key = $1 AND pending";
    Ok(execute!(conn, sql, key(email))? > 0)
}

/// The account waits for nothing more, although nobody proved its address.
pub async fn set_settled(conn: &mut Conn<'_>, id: UserId) -> Result<bool, StoreError> {
    Ok(execute!(conn, "UPDATE users SET pending = FALSE WHERE id = $1", id)? > 0)
}

/// The account of an address, in any case of its letters.
pub async fn find_by_email(conn: &mut Conn<'_>, email: &str) -> Result<Option<User>, StoreError> {
    Ok(fetch_optional!(
        conn,
        User,
        "SELECT id, email, name, password_hash, created_at, verified_at, disabled, pending
         FROM users WHERE email_key = $1",
        key(email)
    )?)
}

/// The account, if there is one.
pub async fn find(conn: &mut Conn<'_>, id: UserId) -> Result<Option<User>, StoreError> {
    Ok(fetch_optional!(
        conn,
        User,
        "SELECT id, email, name, password_hash, created_at, verified_at, disabled, pending
         FROM users WHERE id = $1",
        id
    )?)
}

/// Sets or removes the password; says whether the account exists.
pub async fn set_password(
    conn: &mut Conn<'_>,
    id: UserId,
    password_hash: Option<&str>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE users SET password_hash = $2 WHERE id = $1";
    Ok(execute!(conn, sql, id, password_hash)? > 0)
}

/// Changes the shown name; says whether the account exists.
pub async fn rename(conn: &mut Conn<'_>, id: UserId, name: &str) -> Result<bool, StoreError> {
    Ok(execute!(conn, "UPDATE users SET name = $2 WHERE id = $1", id, name)? > 0)
}

/// Notes that the address is its owner's; the first time stays.
pub async fn set_verified(
    conn: &mut Conn<'_>,
    id: UserId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql =
        "UPDATE users SET verified_at = COALESCE(verified_at, $2), pending = FALSE WHERE id = $1";
    Ok(execute!(conn, sql, id, now)? > 0)
}

/// Switches the account off or on; says whether it exists. Ending its sessions is the caller's.
pub async fn set_disabled(
    conn: &mut Conn<'_>,
    id: UserId,
    disabled: bool,
) -> Result<bool, StoreError> {
    Ok(execute!(conn, "UPDATE users SET disabled = $2 WHERE id = $1", id, disabled)? > 0)
}
