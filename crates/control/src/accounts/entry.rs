//! The one gate that every way of signing in goes through: whoever has a second factor is asked for it,
//! however the first one was proven.

use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use sluice_store::users::{self, User};
use sluice_store::{Conn, login_sessions, second_factor};
use sluice_vault::{Issued, TokenHash, TokenKind, parse_token};

use super::passkeys::has_factor;
use super::second_factor::Proven;
use super::{LOGIN_IDLE, LoggedIn, Origin, note_failure};
use crate::codes;
use crate::throttle::after;
use crate::{Actor, Control, ControlError, Proof};

/// How long the second factor is waited for.
const HALF_LIFE: TimeDelta = TimeDelta::minutes(10);
const MAX_USER_AGENT_CHARS: usize = 200;

/// What the first factor opens.
#[derive(Debug)]
pub enum Entry {
    /// The account has no second factor.
    In(LoggedIn),
    /// The second factor is asked for.
    Half(HalfIn),
}

/// A login that waits for its second factor. The token goes into a cookie and opens nothing by itself.
#[derive(Debug)]
pub struct HalfIn {
    pub token: SecretString,
    pub expires_at: DateTime<Utc>,
}

impl Entry {
    /// The login, if it is complete.
    pub fn complete(self) -> Option<LoggedIn> {
        match self {
            Self::In(login) => Some(login),
            Self::Half(_) => None,
        }
    }
}

pub(super) fn over() -> ControlError {
    ControlError::Unauthenticated {
        code: codes::LOGIN_OVER,
        detail: "this took too long, or the login was ended; sign in again",
    }
}

impl Control {
    /// Completes a login by a code from the app, or by a recovery code.
    pub async fn finish_login(
        &self,
        token: &SecretString,
        code: &SecretString,
        from: &Origin,
    ) -> Result<LoggedIn, ControlError> {
        let Some((TokenKind::Half, hash)) = parse_token(token.expose_secret()) else {
            return Err(over());
        };
        let now = self.now();
        let mut tx = self.read().await?;
        let half = second_factor::find_half(&mut tx.conn(), hash.as_bytes(), now).await?;
        tx.commit().await?;
        let half = half.ok_or_else(over)?;
        let attempt = self.inner.throttle.code(half.user_id).await?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let user = users::find(conn, half.user_id).await?.ok_or_else(over)?;
        let Some(proven) = self.prove(conn, user.id, code).await? else {
            note_failure(conn, from, "second factor", now).await?;
            tx.commit().await?;
            return Err(ControlError::invalid("/code", codes::BAD_CODE, WRONG_CODE));
        };
        if !second_factor::end_half(conn, half.id).await? {
            return Err(over());
        }
        let login = open(conn, &user, from, half.issuer.as_deref(), now).await?;
        if proven == Proven::RecoveryCode {
            let actor = Actor {
                user: user.id,
                email: user.email.clone(),
                name: user.name.clone(),
                proof: Proof::Login(login.session),
                address: from.address.clone(),
            };
            self.tell_of_used_code(conn, &user, &actor).await?;
        }
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(login)
    }
}

pub(super) const WRONG_CODE: &str =
    "this code is wrong, was used already, or its time is over; wait for the next one";

/// Opens a login for somebody who proved the first factor, or asks for the second. The issuer is the
/// identity provider that vouched for them.
pub(crate) async fn admit(
    conn: &mut Conn<'_>,
    user: &User,
    from: &Origin,
    issuer: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Entry, ControlError> {
    if !has_factor(conn, user.id).await? {
        return Ok(Entry::In(open(conn, user, from, issuer, now).await?));
    }
    let (half, expires_at) = (Issued::new(TokenKind::Half), after(now, HALF_LIFE));
    let hash = TokenHash::as_bytes(&half.hash);
    second_factor::create_half(conn, user.id, hash, issuer, expires_at, now).await?;
    Ok(Entry::Half(HalfIn { token: half.token, expires_at }))
}

/// Opens a login. Only for an account that was just made, and for whoever passed [`admit`].
pub(super) async fn open(
    conn: &mut Conn<'_>,
    user: &User,
    from: &Origin,
    issuer: Option<&str>,
    now: DateTime<Utc>,
) -> Result<LoggedIn, ControlError> {
    let made = Issued::new(TokenKind::Session);
    let expires_at = after(now, LOGIN_IDLE);
    let agent: String = from.user_agent.chars().take(MAX_USER_AGENT_CHARS).collect();
    let new = login_sessions::NewLoginSession {
        user: user.id,
        token_hash: TokenHash::as_bytes(&made.hash),
        expires_at,
        user_agent: &agent,
        address: &from.address,
        issuer,
    };
    let session = login_sessions::create(conn, new, now).await?;
    Ok(LoggedIn {
        token: made.token,
        session: session.id,
        expires_at,
        user: user.id,
        email: user.email.clone(),
    })
}
