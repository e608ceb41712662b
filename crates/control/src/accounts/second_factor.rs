//! A second factor by an authenticator app (TOTP): begun, confirmed by a code, asked for at every
//! sign-in, taken away with a code. Recovery codes stand in for the app, each once.

use chrono::{DateTime, TimeDelta, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sluice_domain::UserId;
use sluice_store::second_factor::{self, TotpFactor};
use sluice_store::users::{self, User};
use sluice_store::{Conn, login_sessions, passkeys};
use sluice_vault::{Place, RecoveryCode, TotpSecret};

use super::entry::WRONG_CODE;
use super::login_only;
use crate::audit::{Event, record_account};
use crate::codes;
use crate::throttle::Try;
use crate::{Actor, Control, ControlError};

/// How long a factor that was begun can be confirmed.
const CONFIRM_WITHIN: TimeDelta = TimeDelta::hours(1);
/// Without a password, a login must be this young to begin a factor.
const FRESH: TimeDelta = TimeDelta::minutes(15);
const RECOVERY_CODES: usize = 10;

/// How an account stands with its second factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondFactorView {
    /// Since when it is asked for; absent where it is not.
    pub since: Option<DateTime<Utc>>,
    /// Each is a second factor as well.
    pub passkeys: i64,
    /// Recovery codes that were not used.
    pub codes_left: i64,
    /// Whether the account has a password, which is asked for before a factor is begun.
    pub has_password: bool,
}

/// What the app is to be given, until a code confirms it.
#[derive(Debug)]
pub struct Enrolment {
    /// In base 32, for apps that cannot read the picture.
    pub secret: SecretString,
    /// `otpauth://totp/…`, for the picture.
    pub uri: SecretString,
}

/// What a code turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proven {
    App,
    RecoveryCode,
}

fn wrong_code() -> ControlError {
    ControlError::invalid("/code", codes::BAD_CODE, WRONG_CODE)
}

fn already_on() -> ControlError {
    ControlError::Conflict {
        code: codes::SECOND_FACTOR_ON,
        pointer: None,
        detail: "this account has a second factor; turn it off before setting up another app"
            .to_owned(),
    }
}

fn not_on() -> ControlError {
    ControlError::Conflict {
        code: codes::SECOND_FACTOR_OFF,
        pointer: None,
        detail: "this account has no second factor; set one up first".to_owned(),
    }
}

impl Control {
    /// How the caller's account stands with its second factor.
    pub async fn second_factor(&self, actor: &Actor) -> Result<SecondFactorView, ControlError> {
        login_only(actor)?;
        let mut tx = self.read().await?;
        let conn = &mut tx.conn();
        let factor = second_factor::find(conn, actor.user).await?;
        let user = users::find(conn, actor.user).await?;
        let codes_left = second_factor::codes_left(conn, actor.user).await?;
        let passkeys = passkeys::count(conn, actor.user).await?;
        tx.commit().await?;
        let since = factor.and_then(|factor| factor.confirmed_at);
        let has_password = user.is_some_and(|user| user.password_hash.is_some());
        Ok(SecondFactorView { since, passkeys, codes_left, has_password })
    }

    /// Begins a factor for somebody who knows the password (or, where there is none, has just signed
    /// in). Nothing is asked for until [`Self::confirm_second_factor`].
    pub async fn begin_second_factor(
        &self,
        actor: &Actor,
        password: SecretString,
    ) -> Result<Enrolment, ControlError> {
        login_only(actor)?;
        self.step_up(actor, password).await?;
        let secret = TotpSecret::random();
        let sealed = self.inner.vault.seal(Place::totp_secret(actor.user), secret.as_bytes());
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        if !second_factor::begin(conn, actor.user, &sealed, self.now()).await? {
            return Err(already_on());
        }
        tx.commit().await?;
        Ok(self.enrolment(actor, &secret))
    }

    /// The factor that the caller has begun, to be shown again after a wrong code.
    pub async fn begun_second_factor(&self, actor: &Actor) -> Result<Enrolment, ControlError> {
        login_only(actor)?;
        let mut tx = self.read().await?;
        let factor = second_factor::find(&mut tx.conn(), actor.user).await?;
        tx.commit().await?;
        let factor = self.begun(factor)?;
        Ok(self.enrolment(actor, &self.secret_of(&factor)?))
    }

    /// Turns the factor on for somebody whose app shows the right code; gives the recovery codes, which
    /// are never shown again. Every other login, made without it, ends.
    pub async fn confirm_second_factor(
        &self,
        actor: &Actor,
        code: &SecretString,
    ) -> Result<Vec<SecretString>, ControlError> {
        login_only(actor)?;
        let attempt = self.inner.throttle.code(actor.user).await?;
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let factor = self.begun(second_factor::find(conn, actor.user).await?)?;
        if !self.is_code(conn, &factor, &digits(code)).await? {
            return Err(wrong_code());
        }
        second_factor::confirm(conn, actor.user, now).await?;
        let codes = self.new_codes(conn, actor.user).await?;
        login_sessions::revoke_all(conn, actor.user, actor.login()).await?;
        let words = "Two-step sign-in was turned on";
        self.noted(conn, actor, "user.second_factor_on", words).await?;
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(codes)
    }

    /// Turns the factor off for somebody who has a code.
    pub async fn end_second_factor(
        &self,
        actor: &Actor,
        code: &SecretString,
    ) -> Result<(), ControlError> {
        if self.second_factor(actor).await?.since.is_none() {
            return Err(not_on());
        }
        let attempt = self.stepping_up(actor).await?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        self.prove(conn, actor.user, code).await?.ok_or_else(wrong_code)?;
        if !second_factor::remove(conn, actor.user).await? {
            return Err(not_on());
        }
        let words = "Two-step sign-in was turned off";
        self.noted(conn, actor, "user.second_factor_off", words).await?;
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(())
    }

    /// New recovery codes for somebody who has a code; the older ones end.
    pub async fn renew_recovery_codes(
        &self,
        actor: &Actor,
        code: &SecretString,
    ) -> Result<Vec<SecretString>, ControlError> {
        let attempt = self.stepping_up(actor).await?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        self.prove(conn, actor.user, code).await?.ok_or_else(wrong_code)?;
        let codes = self.new_codes(conn, actor.user).await?;
        let words = "New recovery codes were made, and the older ones ended,";
        self.noted(conn, actor, "user.recovery_codes", words).await?;
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(codes)
    }

    /// Counts a code of somebody who is signed in and has a factor on.
    async fn stepping_up(&self, actor: &Actor) -> Result<Try, ControlError> {
        let view = self.second_factor(actor).await?;
        if view.since.is_none() && view.passkeys == 0 {
            return Err(not_on());
        }
        self.inner.throttle.code(actor.user).await
    }

    /// The password again; of an account without one, a login that is young.
    pub(crate) async fn step_up(
        &self,
        actor: &Actor,
        password: SecretString,
    ) -> Result<(), ControlError> {
        let mut tx = self.read().await?;
        let conn = &mut tx.conn();
        let user = users::find(conn, actor.user).await?;
        let logins = login_sessions::list(conn, actor.user, self.now()).await?;
        tx.commit().await?;
        let Some(stored) = user.and_then(|user| user.password_hash) else {
            let own = logins.into_iter().find(|login| Some(login.id) == actor.login());
            if own.is_some_and(|login| self.now() - login.created_at < FRESH) {
                return Ok(());
            }
            let detail = "sign out and in again, then do this within 15 minutes".into();
            return Err(ControlError::Forbidden { code: codes::LOGIN_TOO_OLD, detail });
        };
        let attempt = self.inner.throttle.log_in(&actor.email, &actor.address).await?;
        let right = self
            .with_passwords(move |passwords| passwords.verify(&password, Some(&stored)))
            .await?;
        if !right {
            let detail = "this is not your password";
            return Err(ControlError::invalid("/password", codes::WRONG_PASSWORD, detail));
        }
        self.inner.throttle.give_back(attempt).await;
        Ok(())
    }

    /// What the code proves, which it then proves no more: a code of the app or a recovery code of a
    /// factor that is on.
    pub(super) async fn prove(
        &self,
        conn: &mut Conn<'_>,
        user: UserId,
        code: &SecretString,
    ) -> Result<Option<Proven>, ControlError> {
        let factor = second_factor::find(conn, user).await?;
        if let Some(factor) = factor.filter(|factor| factor.confirmed_at.is_some())
            && self.is_code(conn, &factor, &digits(code)).await?
        {
            return Ok(Some(Proven::App));
        }
        let Some(hash) = RecoveryCode::hash_of(user.uuid(), code.expose_secret()) else {
            return Ok(None);
        };
        let taken = second_factor::use_code(conn, user, &hash, self.now()).await?;
        Ok(taken.then_some(Proven::RecoveryCode))
    }

    /// Whether the app shows this code and it was not used; then it is.
    async fn is_code(
        &self,
        conn: &mut Conn<'_>,
        factor: &TotpFactor,
        code: &str,
    ) -> Result<bool, ControlError> {
        let secret = self.secret_of(factor)?;
        match secret.step_of(code, self.now().timestamp()) {
            Some(step) => Ok(second_factor::use_step(conn, factor.user_id, step).await?),
            None => Ok(false),
        }
    }

    fn secret_of(&self, factor: &TotpFactor) -> Result<TotpSecret, ControlError> {
        let place = Place::totp_secret(factor.user_id);
        let opened =
            self.inner.vault.open(place, &factor.sealed_secret).map_err(ControlError::internal)?;
        TotpSecret::from_slice(&opened)
            .ok_or_else(|| ControlError::internal("a second factor's secret has an odd length"))
    }

    fn begun(&self, factor: Option<TotpFactor>) -> Result<TotpFactor, ControlError> {
        let factor = factor.ok_or_else(not_on)?;
        if factor.confirmed_at.is_some() {
            return Err(already_on());
        }
        if self.now() - factor.created_at >= CONFIRM_WITHIN {
            return Err(ControlError::Conflict {
                code: codes::SET_UP_OVER,
                pointer: None,
                detail: "the hour of this set-up is over; begin anew".to_owned(),
            });
        }
        Ok(factor)
    }

    fn enrolment(&self, actor: &Actor, secret: &TotpSecret) -> Enrolment {
        let text = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let host = self.settings().public_url.host_str().unwrap_or("localhost");
        let (issuer, email) = (text(&format!("Sluice {host}")), text(&actor.email));
        let base32 = secret.base32();
        let plain = base32.expose_secret();
        let uri = format!(
            "otpauth://totp/{issuer}:{email}?secret={plain}&issuer={issuer}&algorithm=SHA1&digits=6&period=30"
        );
        Enrolment { uri: SecretString::from(uri), secret: base32 }
    }

    pub(super) async fn new_codes(
        &self,
        conn: &mut Conn<'_>,
        user: UserId,
    ) -> Result<Vec<SecretString>, ControlError> {
        let made: Vec<RecoveryCode> =
            (0..RECOVERY_CODES).map(|_| RecoveryCode::random(user.uuid())).collect();
        let hashes: Vec<[u8; 32]> = made.iter().map(|one| one.hash).collect();
        second_factor::set_codes(conn, user, &hashes).await?;
        Ok(made.into_iter().map(|one| one.code).collect())
    }

    /// Tells the owner and the audit logs.
    pub(super) async fn noted(
        &self,
        conn: &mut Conn<'_>,
        actor: &Actor,
        action: &'static str,
        words: &str,
    ) -> Result<(), ControlError> {
        let user = users::find(conn, actor.user).await?.ok_or(ControlError::NotFound("account"))?;
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let words = format!(
            "{words} for your account at {base}. If this was not you, set a new password now and look at your account."
        );
        let subject = "Two-step sign-in of your Sluice account was changed";
        let button = ("Look at the account", "/account");
        self.tell_owner(conn, &user, "account.second_factor", (subject, words), button).await?;
        let id = user.id.to_string();
        let event = Event::new(action, ("user", &id, &user.email));
        record_account(conn, actor, event, self.now()).await
    }

    pub(super) async fn tell_of_used_code(
        &self,
        conn: &mut Conn<'_>,
        user: &User,
        actor: &Actor,
    ) -> Result<(), ControlError> {
        let left = second_factor::codes_left(conn, user.id).await?;
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let words = format!(
            "A recovery code was used to sign in to your account at {base}; codes that are left: {left}. If this was not you, set a new password now."
        );
        let subject = "A recovery code of your Sluice account was used";
        let button = ("Look at the account", "/account");
        self.tell_owner(conn, user, "account.recovery_code", (subject, words), button).await?;
        let (id, after) = (user.id.to_string(), json!({"codes_left": left}));
        let event = Event::new("user.recovery_code_used", ("user", &id, &user.email)).after(&after);
        record_account(conn, actor, event, self.now()).await
    }
}

/// What was typed without the blanks that apps show.
fn digits(code: &SecretString) -> String {
    code.expose_secret().chars().filter(|c| !c.is_whitespace()).take(20).collect()
}
