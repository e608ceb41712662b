//! Passkeys of people, and the questions that they are to answer. An account belongs to no workspace, so
//! nothing here does.

use chrono::{DateTime, Utc};
use sluice_domain::{PasskeyId, UserId};

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// A person's passkey.
    pub struct Passkey {
        pub id: PasskeyId,
        pub user_id: UserId,
        pub credential: Vec<u8>,
        pub algorithm: i64,
        pub public_key: Vec<u8>,
        /// The newest that its authenticator told.
        pub counter: i64,
        pub name: String,
        /// Kept by a provider of passkeys as well.
        pub backed_up: bool,
        pub created_at: DateTime<Utc>,
        pub last_used_at: Option<DateTime<Utc>>,
    }
}

/// What a new passkey is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewPasskeyRow<'a> {
    pub user: UserId,
    pub credential: &'a [u8],
    pub algorithm: i64,
    pub public_key: &'a [u8],
    pub counter: i64,
    pub name: &'a str,
    pub backed_up: bool,
}

/// Keeps a passkey; `None` if somebody has it already.
pub async fn create(
    conn: &mut Conn<'_>,
    new: NewPasskeyRow<'_>,
    now: DateTime<Utc>,
) -> Result<Option<PasskeyId>, StoreError> {
    let id = PasskeyId::new();
    let made = execute!(
        conn,
        "INSERT INTO passkeys
             (id, user_id, credential, algorithm, public_key, counter, name, backed_up, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (credential) DO NOTHING",
        id,
        new.user,
        new.credential,
        new.algorithm,
        new.public_key,
        new.counter,
        new.name,
        new.backed_up,
        now
    )?;
    Ok((made > 0).then_some(id))
}

/// The person's passkeys, oldest first.
pub async fn list(conn: &mut Conn<'_>, user: UserId) -> Result<Vec<Passkey>, StoreError> {
    Ok(fetch_all!(
        conn,
        Passkey,
        "SELECT id, user_id, credential, algorithm, public_key, counter, name, backed_up, created_at,
                last_used_at
         FROM passkeys WHERE user_id = $1 ORDER BY id LIMIT 100",
        user
    )?)
}

/// How many the person has.
pub async fn count(conn: &mut Conn<'_>, user: UserId) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM passkeys WHERE user_id = $1";
    Ok(fetch_one!(conn, Value<i64>, sql, user)?.0)
}

/// The passkey of a credential's id.
pub async fn find(conn: &mut Conn<'_>, credential: &[u8]) -> Result<Option<Passkey>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Passkey,
        "SELECT id, user_id, credential, algorithm, public_key, counter, name, backed_up, created_at,
                last_used_at
         FROM passkeys WHERE credential = $1",
        credential
    )?)
}

/// Notes a use; false if another use was faster.
pub async fn used(
    conn: &mut Conn<'_>,
    id: PasskeyId,
    (was, counter): (i64, i64),
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE passkeys SET counter = $3, last_used_at = $4 WHERE id = $1 AND counter = $2";
    Ok(execute!(conn, sql, id, was, counter, now)? > 0)
}

/// Takes one of the person's passkeys away; says whether it was there.
pub async fn remove(conn: &mut Conn<'_>, user: UserId, id: PasskeyId) -> Result<bool, StoreError> {
    let sql = "DELETE FROM passkeys WHERE user_id = $1 AND id = $2";
    Ok(execute!(conn, sql, user, id)? > 0)
}

/// Takes all of the person's passkeys away.
pub async fn remove_all(conn: &mut Conn<'_>, user: UserId) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM passkeys WHERE user_id = $1", user)?)
}

/// What a question is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Register,
    Second,
    Alone,
}

impl Purpose {
    const fn word(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Second => "second",
            Self::Alone => "alone",
        }
    }
}

/// Keeps a question that is asked of a person, or of whoever answers.
pub async fn ask(
    conn: &mut Conn<'_>,
    hash: &[u8],
    purpose: Purpose,
    user: Option<UserId>,
    expires_at: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO passkey_challenges (hash, user_id, purpose, expires_at) VALUES ($1, $2, $3, $4)",
        hash,
        user,
        purpose.word(),
        expires_at
    )?;
    Ok(())
}

/// Uses a question up; false if it was not asked of them for that, was answered, or its time is over.
pub async fn answer(
    conn: &mut Conn<'_>,
    hash: &[u8],
    purpose: Purpose,
    user: Option<UserId>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM passkey_challenges WHERE hash = $1 AND purpose = $2 AND expires_at > $4
               AND (user_id = $3 OR ($3 IS NULL AND user_id IS NULL))";
    Ok(execute!(conn, sql, hash, purpose.word(), user, now)? > 0)
}

/// Forgets questions whose time is over.
pub async fn prune(conn: &mut Conn<'_>, now: DateTime<Utc>) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM passkey_challenges WHERE expires_at <= $1", now)?)
}
