//! A person's logins, one a browser. The cookie's token is stored only as a hash.

use chrono::{DateTime, Utc};
use sluice_domain::{LoginSessionId, UserId};

use crate::column::{Value, micros, record};
use crate::conn::{execute, fetch_all, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// A login in one browser.
    pub struct LoginSession {
        pub id: LoginSessionId,
        pub user_id: UserId,
        pub created_at: DateTime<Utc>,
        pub last_seen_at: DateTime<Utc>,
        pub expires_at: DateTime<Utc>,
        pub user_agent: String,
        pub address: String,
        /// The identity provider that it came in by; absent where it was a password or a mailed link.
        pub issuer: Option<String>,
    }
}

/// What a new login is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewLoginSession<'a> {
    pub user: UserId,
    pub token_hash: &'a [u8],
    pub expires_at: DateTime<Utc>,
    pub user_agent: &'a str,
    pub address: &'a str,
    /// The identity provider that it came in by.
    pub issuer: Option<&'a str>,
}

/// Opens a session.
pub async fn create(
    conn: &mut Conn<'_>,
    new: NewLoginSession<'_>,
    now: DateTime<Utc>,
) -> Result<LoginSession, StoreError> {
    let id = LoginSessionId::new();
    execute!(
        conn,
        "INSERT INTO login_sessions
             (id, user_id, token_hash, created_at, last_seen_at, expires_at, user_agent, address, issuer)
         VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8)",
        id,
        new.user,
        new.token_hash,
        now,
        new.expires_at,
        new.user_agent,
        new.address,
        new.issuer
    )?;
    Ok(LoginSession {
        id,
        user_id: new.user,
        created_at: micros(now),
        last_seen_at: micros(now),
        expires_at: micros(new.expires_at),
        user_agent: new.user_agent.to_owned(),
        address: new.address.to_owned(),
        issuer: new.issuer.map(str::to_owned),
    })
}

/// The session of a token, unless it expired or its account is disabled.
pub async fn find_live(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<LoginSession>, StoreError> {
    Ok(fetch_optional!(
        conn,
        LoginSession,
        "SELECT s.id, s.user_id, s.created_at, s.last_seen_at, s.expires_at, s.user_agent, s.address,
                s.issuer
         FROM login_sessions s JOIN users u ON u.id = s.user_id
         WHERE s.token_hash = $1 AND s.expires_at > $2 AND NOT u.disabled",
        token_hash,
        now
    )?)
}

/// The identity provider that one of the person's sessions came in by.
pub async fn issuer(
    conn: &mut Conn<'_>,
    user: UserId,
    id: LoginSessionId,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT issuer AS value FROM login_sessions WHERE user_id = $1 AND id = $2";
    Ok(fetch_optional!(conn, Value<Option<String>>, sql, user, id)?.and_then(|found| found.0))
}

/// Notes that the session was used, and from where; moves its end to `expires_at`.
pub async fn touch(
    conn: &mut Conn<'_>,
    id: LoginSessionId,
    expires_at: DateTime<Utc>,
    address: &str,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    execute!(
        conn,
        "UPDATE login_sessions SET last_seen_at = $2, expires_at = $3, address = $4 WHERE id = $1",
        id,
        now,
        expires_at,
        address
    )?;
    Ok(())
}

/// Ends one of the person's sessions; says whether it was there.
pub async fn revoke(
    conn: &mut Conn<'_>,
    user: UserId,
    id: LoginSessionId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM login_sessions WHERE user_id = $1 AND id = $2";
    Ok(execute!(conn, sql, user, id)? > 0)
}

/// Ends all of the person's sessions but `keep`, and every login that waits for a second factor; says
/// how many sessions.
pub async fn revoke_all(
    conn: &mut Conn<'_>,
    user: UserId,
    keep: Option<LoginSessionId>,
) -> Result<u64, StoreError> {
    execute!(conn, "DELETE FROM half_logins WHERE user_id = $1", user)?;
    let sql = "DELETE FROM login_sessions WHERE user_id = $1 AND ($2 IS NULL OR id <> $2)";
    Ok(execute!(conn, sql, user, keep)?)
}

/// The person's sessions, newest first.
pub async fn list(
    conn: &mut Conn<'_>,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<Vec<LoginSession>, StoreError> {
    Ok(fetch_all!(
        conn,
        LoginSession,
        "SELECT id, user_id, created_at, last_seen_at, expires_at, user_agent, address, issuer
         FROM login_sessions WHERE user_id = $1 AND expires_at > $2 ORDER BY id DESC LIMIT 200",
        user,
        now
    )?)
}

/// Forgets expired sessions; says how many.
pub async fn prune(conn: &mut Conn<'_>, now: DateTime<Utc>) -> Result<u64, StoreError> {
    Ok(execute!(conn, "DELETE FROM login_sessions WHERE expires_at <= $1", now)?)
}
