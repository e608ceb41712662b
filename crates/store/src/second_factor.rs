//! Second factors of people, and logins that wait for one. An account belongs to no workspace, so
//! nothing here does.

use chrono::{DateTime, Utc};
use sluice_domain::UserId;
use uuid::Uuid;

use crate::column::{Value, record};
use crate::conn::{execute, fetch_all, fetch_one, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// A person's authenticator app.
    pub struct TotpFactor {
        pub user_id: UserId,
        pub sealed_secret: Vec<u8>,
        pub created_at: DateTime<Utc>,
        /// Absent until a code proved that the app has the secret: asks for nothing until then.
        pub confirmed_at: Option<DateTime<Utc>>,
        /// The newest time step whose code was used.
        pub last_step: i64,
    }
}

record! {
    /// A login that waits for its second factor.
    pub struct HalfLogin {
        pub id: Uuid,
        pub user_id: UserId,
        pub created_at: DateTime<Utc>,
        pub expires_at: DateTime<Utc>,
        /// The identity provider that the first factor came by.
        pub issuer: Option<String>,
    }
}

/// Begins a factor; one that was begun before and not confirmed is replaced. False if there is a
/// confirmed one, which stays.
pub async fn begin(
    conn: &mut Conn<'_>,
    user: UserId,
    sealed_secret: &[u8],
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO totp_factors (user_id, sealed_secret, created_at, confirmed_at, last_step)
               VALUES ($1, $2, $3, NULL, 0)
               ON CONFLICT (user_id) DO UPDATE
               SET sealed_secret = excluded.sealed_secret, created_at = excluded.created_at, last_step = 0
               WHERE totp_factors.confirmed_at IS NULL";
    Ok(execute!(conn, sql, user, sealed_secret, now)? > 0)
}

/// The person's factor, confirmed or not.
pub async fn find(conn: &mut Conn<'_>, user: UserId) -> Result<Option<TotpFactor>, StoreError> {
    Ok(fetch_optional!(
        conn,
        TotpFactor,
        "SELECT user_id, sealed_secret, created_at, confirmed_at, last_step
         FROM totp_factors WHERE user_id = $1",
        user
    )?)
}

/// Confirms a factor that was begun; false if it is not there or confirmed already.
pub async fn confirm(
    conn: &mut Conn<'_>,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql =
        "UPDATE totp_factors SET confirmed_at = $2 WHERE user_id = $1 AND confirmed_at IS NULL";
    Ok(execute!(conn, sql, user, now)? > 0)
}

/// Uses a time step's code up; false if this step or a later one was used.
pub async fn use_step(conn: &mut Conn<'_>, user: UserId, step: i64) -> Result<bool, StoreError> {
    let sql = "UPDATE totp_factors SET last_step = $2 WHERE user_id = $1 AND last_step < $2";
    Ok(execute!(conn, sql, user, step)? > 0)
}

/// Takes the app away, and the recovery codes unless they stand in for a passkey; says whether there was one.
pub async fn remove(conn: &mut Conn<'_>, user: UserId) -> Result<bool, StoreError> {
    let sql = "DELETE FROM recovery_codes WHERE user_id = $1
               AND NOT EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = $1)";
    execute!(conn, sql, user)?;
    Ok(execute!(conn, "DELETE FROM totp_factors WHERE user_id = $1", user)? > 0)
}

/// Puts new recovery codes in the place of all older ones.
pub async fn set_codes(
    conn: &mut Conn<'_>,
    user: UserId,
    hashes: &[[u8; 32]],
) -> Result<(), StoreError> {
    execute!(conn, "DELETE FROM recovery_codes WHERE user_id = $1", user)?;
    for hash in hashes {
        let sql = "INSERT INTO recovery_codes (user_id, code_hash, used_at) VALUES ($1, $2, NULL)";
        execute!(conn, sql, user, hash.as_slice())?;
    }
    Ok(())
}

/// Uses a recovery code up; false if it is none, or was used.
pub async fn use_code(
    conn: &mut Conn<'_>,
    user: UserId,
    hash: &[u8],
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE recovery_codes SET used_at = $3
               WHERE user_id = $1 AND code_hash = $2 AND used_at IS NULL";
    Ok(execute!(conn, sql, user, hash, now)? > 0)
}

/// How many recovery codes were not used.
pub async fn codes_left(conn: &mut Conn<'_>, user: UserId) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) AS value FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL";
    Ok(fetch_one!(conn, Value<i64>, sql, user)?.0)
}

/// Some factors in order of their people, for key rotation.
pub async fn list_all(
    conn: &mut Conn<'_>,
    after: Option<UserId>,
    limit: i64,
) -> Result<Vec<TotpFactor>, StoreError> {
    Ok(fetch_all!(
        conn,
        TotpFactor,
        "SELECT user_id, sealed_secret, created_at, confirmed_at, last_step
         FROM totp_factors WHERE ($1 IS NULL OR user_id > $1) ORDER BY user_id LIMIT $2",
        after,
        limit
    )?)
}

/// Replaces a sealed secret that is still `was`.
pub async fn reseal(
    conn: &mut Conn<'_>,
    user: UserId,
    was: &[u8],
    sealed: &[u8],
) -> Result<bool, StoreError> {
    let sql =
        "UPDATE totp_factors SET sealed_secret = $3 WHERE user_id = $1 AND sealed_secret = $2";
    Ok(execute!(conn, sql, user, was, sealed)? > 0)
}

/// Begins a login that waits for the second factor.
pub async fn create_half(
    conn: &mut Conn<'_>,
    user: UserId,
    token_hash: &[u8],
    issuer: Option<&str>,
    expires_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "INSERT INTO half_logins (id, user_id, token_hash, created_at, expires_at, issuer)
         VALUES ($1, $2, $3, $4, $5, $6)",
        Uuid::now_v7(),
        user,
        token_hash,
        now,
        expires_at,
        issuer
    )?;
    Ok(())
}

/// The waiting login of a token, unless its time is over or the account is disabled.
pub async fn find_half(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<HalfLogin>, StoreError> {
    Ok(fetch_optional!(
        conn,
        HalfLogin,
        "SELECT h.id, h.user_id, h.created_at, h.expires_at, h.issuer
         FROM half_logins h JOIN users u ON u.id = h.user_id
         WHERE h.token_hash = $1 AND h.expires_at > $2 AND NOT u.disabled",
        token_hash,
        now
    )?)
}

/// Ends a waiting login; false if somebody was faster.
pub async fn end_half(conn: &mut Conn<'_>, id: Uuid) -> Result<bool, StoreError> {
    Ok(execute!(conn, "DELETE FROM half_logins WHERE id = $1", id)? > 0)
}

/// Forgets waiting logins whose time is over.
pub async fn prune_half(conn: &mut Conn<'_>, now: DateTime<Utc>) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM half_logins WHERE expires_at <= $1", now)?)
}
