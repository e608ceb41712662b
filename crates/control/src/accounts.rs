//! Accounts and logins: sign up, log in, sessions, passwords. A login is a random token in a
//! cookie, known to the store only by its hash, ended on the server.

mod entry;
mod links;
mod passkeys;
mod second_factor;
mod sign_up;

use chrono::{DateTime, TimeDelta, Utc};
use secrecy::SecretString;
use sluice_domain::{CallId, LoginSessionId, SecurityEvent, SecurityKind, UserId};
use sluice_store::{Conn, login_sessions, security_events, users};
use sluice_vault::{PasswordError, Passwords, TokenKind, parse_token};

use crate::access::Proof;
use crate::codes;
use crate::error::Fault;
use crate::throttle::after;
use crate::{Actor, Control, ControlError, Signup, text};
pub use entry::{Entry, HalfIn};
pub use links::{Confirmed, LinkCard};
pub use passkeys::{
    MAX_PASSKEYS, PasskeyAnswer, PasskeyQuestion, PasskeyRegistration, PasskeyView,
};
pub use second_factor::{Enrolment, SecondFactorView};

pub(crate) use entry::admit;

/// A login ends when it was not used for this long.
pub const LOGIN_IDLE: TimeDelta = TimeDelta::days(14);
/// A login ends this long after it began, used or not.
pub const LOGIN_AT_MOST: TimeDelta = TimeDelta::days(60);
/// How often the use of a login is noted.
const TOUCH_EVERY: TimeDelta = TimeDelta::minutes(5);

/// Where a request comes from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub address: String,
    pub user_agent: String,
}

/// What a person typed to make an account.
#[derive(Debug)]
pub struct SignUp {
    pub email: String,
    pub password: SecretString,
    pub name: String,
    /// The token of an invitation's link.
    pub invite: Option<SecretString>,
    /// Where the person was going; without it, an invitation leads to its own page.
    pub next: String,
}

/// What comes of signing up.
#[derive(Debug)]
pub enum SignedUp {
    /// The account is there, and its owner is signed in.
    In(Entry),
    /// What is to be done next is in the mail, whether the address had an account or not.
    Mailed,
}

/// A new login: the token goes into the cookie.
#[derive(Debug)]
pub struct LoggedIn {
    pub token: SecretString,
    pub session: LoginSessionId,
    pub expires_at: DateTime<Utc>,
    pub user: UserId,
    pub email: String,
}

/// One of a person's logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginView {
    pub id: LoginSessionId,
    pub created_at: DateTime<Utc>,
    pub last_seen_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub user_agent: String,
    pub address: String,
    /// The one that asks.
    pub current: bool,
}

fn bad_login() -> ControlError {
    ControlError::Unauthenticated {
        code: codes::BAD_CREDENTIALS,
        detail: "e-mail address or password is wrong",
    }
}

/// A new password's fault, if it has one.
pub(crate) fn new_password(
    pointer: &str,
    password: &SecretString,
    email: &str,
) -> Result<(), Fault> {
    Passwords::check(password, email).map_err(|error| {
        let code = match error {
            PasswordError::TooShort => codes::TOO_SHORT,
            PasswordError::TooLong => codes::TOO_LONG,
            PasswordError::OneCharacter | PasswordError::IsEmail => codes::TOO_WEAK,
        };
        Fault::new(pointer, code, error.to_string())
    })
}

impl Control {
    /// The invitation that lets the address in, if one is needed or given.
    pub(crate) async fn may_sign_up(
        &self,
        email: &str,
        invite: Option<&SecretString>,
    ) -> Result<Option<sluice_store::invites::Invite>, ControlError> {
        if let Some(token) = invite {
            return self.invite_for(email, token).await.map(Some);
        }
        let refused = |detail: &'static str| {
            Err(ControlError::Forbidden { code: codes::SIGNUP_CLOSED, detail: detail.into() })
        };
        match self.settings().signup {
            Signup::Open => Ok(None),
            Signup::Invite => refused("signing up needs an invitation; ask an admin for its link"),
            Signup::Closed => refused("the operator of this Sluice makes the accounts; ask them"),
        }
    }

    /// Checks a password and opens a login, or asks for the second factor where the account has one. A
    /// wrong password and an unknown address take the same time and get the same answer.
    pub async fn log_in(
        &self,
        email: &str,
        password: SecretString,
        from: &Origin,
    ) -> Result<Entry, ControlError> {
        let attempt = self.inner.throttle.log_in(email, &from.address).await?;
        let mut tx = self.read().await?;
        let user = users::find_by_email(&mut tx.conn(), email).await?;
        tx.commit().await?;
        let stored = user.as_ref().and_then(|user| user.password_hash.clone());
        let (right, renewed) = self
            .with_passwords(move |passwords| {
                let right = passwords.verify(&password, stored.as_deref());
                let outdated = right && stored.is_some_and(|hash| passwords.is_outdated(&hash));
                (right, outdated.then(|| passwords.hash(&password)))
            })
            .await?;
        let now = self.now();
        let mut tx = self.begin().await?;
        let Some(user) = user.filter(|user| right && !user.disabled && !user.pending) else {
            note_failure(&mut tx.conn(), from, "", now).await?;
            tx.commit().await?;
            return Err(bad_login());
        };
        if let Some(hash) = renewed {
            users::set_password(&mut tx.conn(), user.id, Some(&hash)).await?;
        }
        let entry = admit(&mut tx.conn(), &user, from, None, now).await?;
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(entry)
    }

    /// Who a login cookie's token belongs to; `None` if it is none, or ended.
    pub async fn who(&self, token: &str, address: &str) -> Result<Option<Actor>, ControlError> {
        let Some((TokenKind::Session, hash)) = parse_token(token) else { return Ok(None) };
        let now = self.now();
        let mut tx = self.read().await?;
        let session = login_sessions::find_live(&mut tx.conn(), hash.as_bytes(), now).await?;
        let user = match &session {
            Some(session) => users::find(&mut tx.conn(), session.user_id).await?,
            None => None,
        };
        tx.commit().await?;
        let (Some(session), Some(user)) = (session, user) else { return Ok(None) };
        if now - session.last_seen_at >= TOUCH_EVERY {
            let until = after(now, LOGIN_IDLE).min(after(session.created_at, LOGIN_AT_MOST));
            let mut tx = self.begin().await?;
            login_sessions::touch(&mut tx.conn(), session.id, until, address, now).await?;
            tx.commit().await?;
        }
        Ok(Some(Actor {
            user: user.id,
            email: user.email,
            name: user.name,
            proof: Proof::Login(session.id),
            address: address.to_owned(),
        }))
    }

    /// Ends the caller's own login.
    pub async fn log_out(&self, actor: &Actor) -> Result<(), ControlError> {
        let Some(session) = actor.login() else { return Ok(()) };
        self.end_login(actor, session).await.map(drop)
    }

    /// The caller's logins, newest first.
    pub async fn logins(&self, actor: &Actor) -> Result<Vec<LoginView>, ControlError> {
        let mut tx = self.read().await?;
        let logins = login_sessions::list(&mut tx.conn(), actor.user, self.now()).await?;
        tx.commit().await?;
        let view = |login: login_sessions::LoginSession| LoginView {
            current: actor.login() == Some(login.id),
            id: login.id,
            created_at: login.created_at,
            last_seen_at: login.last_seen_at,
            expires_at: login.expires_at,
            user_agent: login.user_agent,
            address: login.address,
        };
        Ok(logins.into_iter().map(view).collect())
    }

    /// Ends one of the caller's logins.
    pub async fn end_login(&self, actor: &Actor, id: LoginSessionId) -> Result<(), ControlError> {
        let mut tx = self.begin().await?;
        let there = login_sessions::revoke(&mut tx.conn(), actor.user, id).await?;
        tx.commit().await?;
        if there { Ok(()) } else { Err(ControlError::NotFound("login")) }
    }

    /// Ends all of the caller's logins but the one that asks; says how many.
    pub async fn end_other_logins(&self, actor: &Actor) -> Result<u64, ControlError> {
        let mut tx = self.begin().await?;
        let ended = login_sessions::revoke_all(&mut tx.conn(), actor.user, actor.login()).await?;
        tx.commit().await?;
        Ok(ended)
    }

    /// Sets a new password for somebody who knows the old one, and ends every other login.
    pub async fn change_password(
        &self,
        actor: &Actor,
        old: SecretString,
        new: SecretString,
    ) -> Result<(), ControlError> {
        login_only(actor)?;
        new_password("/new_password", &new, &actor.email)
            .map_err(|fault| ControlError::Invalid(vec![fault]))?;
        let attempt = self.inner.throttle.log_in(&actor.email, &actor.address).await?;
        let mut tx = self.read().await?;
        let user = users::find(&mut tx.conn(), actor.user).await?;
        tx.commit().await?;
        let stored = user.as_ref().and_then(|user| user.password_hash.clone());
        let hash = self
            .with_passwords(move |passwords| {
                passwords.verify(&old, stored.as_deref()).then(|| passwords.hash(&new))
            })
            .await?;
        let Some(hash) = hash else {
            let detail = "this is not your present password";
            return Err(ControlError::invalid("/old_password", codes::WRONG_PASSWORD, detail));
        };
        let mut tx = self.begin().await?;
        users::set_password(&mut tx.conn(), actor.user, Some(&hash)).await?;
        login_sessions::revoke_all(&mut tx.conn(), actor.user, actor.login()).await?;
        if let Some(user) = &user {
            self.tell_of_new_password(&mut tx.conn(), user).await?;
        }
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(())
    }

    /// Changes the caller's shown name.
    pub async fn rename_account(&self, actor: &Actor, name: &str) -> Result<(), ControlError> {
        login_only(actor)?;
        let name = text::line("/name", name, text::MAX_NAME_CHARS)
            .map_err(|fault| ControlError::Invalid(vec![fault]))?;
        let mut tx = self.begin().await?;
        users::rename(&mut tx.conn(), actor.user, &name).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// An account's own affairs are not for REST tokens.
pub(crate) fn login_only(actor: &Actor) -> Result<(), ControlError> {
    match actor.proof {
        Proof::Login(_) => Ok(()),
        Proof::ApiToken { .. } | Proof::Link(_) | Proof::Operator => Err(ControlError::Forbidden {
            code: codes::LOGIN_NEEDED,
            detail: "this needs a person who is logged in, not an API token or a link".into(),
        }),
    }
}

/// A failed try to sign in, for the security log.
async fn note_failure(
    conn: &mut Conn<'_>,
    from: &Origin,
    detail: &str,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    let failed = SecurityEvent {
        id: CallId::new(),
        at: now,
        kind: SecurityKind::LoginFailed,
        workspace: None,
        grant: None,
        address: from.address.clone(),
        detail: detail.to_owned(),
        times: 1,
    };
    security_events::insert_batch(conn, &[failed]).await?;
    Ok(())
}
