//! Passkeys (WebAuthn): registered by whoever signed in just now or knows the password, and then either the
//! second factor or, where the authenticator checks who touches it, both factors at once.
//!
//! A question is asked once: it is used up whether the answer is right or not.

mod sign_in;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use sluice_domain::{PasskeyId, UserId};
use sluice_store::passkeys::{self, NewPasskeyRow, Passkey, Purpose};
use sluice_store::{Conn, identities, login_sessions, second_factor, users};
use sluice_vault::{
    PASSKEY_ALGORITHMS, PasskeyError, RelyingParty, challenge_of, random_word, registered,
};

use super::login_only;
use crate::codes;
use crate::throttle::after;
use crate::{Actor, Control, ControlError, text};
pub use sign_in::PasskeyAnswer;

/// How long an answer is waited for.
const ANSWER_WITHIN: TimeDelta = TimeDelta::minutes(5);
/// Passkeys of one person.
pub const MAX_PASSKEYS: usize = 20;

/// One of the caller's passkeys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeyView {
    pub id: PasskeyId,
    pub name: String,
    pub created_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
    /// Kept by a provider of passkeys as well, not on one device alone.
    pub backed_up: bool,
}

/// What the browser is to ask an authenticator. Bytes are in base64url.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PasskeyQuestion {
    pub challenge: String,
    /// The site that passkeys are for.
    pub site: String,
    /// Of a registration: the person, by the id that the authenticator gives back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Passkeys that are there already, or one of which is to answer; empty: any of the site.
    pub credentials: Vec<String>,
    pub algorithms: [i64; 3],
    /// Whether the authenticator must check who touches it.
    pub verify: bool,
}

/// What came back of a registration, in base64url.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub struct PasskeyRegistration {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub client_data: String,
    #[serde(default)]
    pub attestation: String,
}

fn unusable(error: PasskeyError) -> ControlError {
    ControlError::invalid(
        "/passkey",
        codes::BAD_PASSKEY,
        format!("the passkey was not kept: {error}"),
    )
}

fn bytes(text: &str) -> Result<Vec<u8>, ControlError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| unusable(PasskeyError::Malformed))
}

impl Control {
    /// The site that passkeys are made for; `None` where browsers make none (no https, or no name).
    pub fn passkey_site(&self) -> Option<RelyingParty> {
        RelyingParty::of(&self.settings().public_url)
    }

    fn site(&self) -> Result<RelyingParty, ControlError> {
        self.passkey_site().ok_or_else(|| ControlError::Conflict {
            code: codes::NO_PASSKEYS,
            pointer: None,
            detail: format!(
                "browsers make no passkeys for {}: it takes https and a host name (or localhost); the operator sets it as `--public-url`",
                self.settings().public_url
            ),
        })
    }

    /// The caller's passkeys, oldest first.
    pub async fn passkeys(&self, actor: &Actor) -> Result<Vec<PasskeyView>, ControlError> {
        login_only(actor)?;
        let mut tx = self.read().await?;
        let found = passkeys::list(&mut tx.conn(), actor.user).await?;
        tx.commit().await?;
        let view = |one: Passkey| PasskeyView {
            id: one.id,
            name: one.name,
            created_at: one.created_at,
            last_used_at: one.last_used_at,
            backed_up: one.backed_up,
        };
        Ok(found.into_iter().map(view).collect())
    }

    async fn question(
        &self,
        conn: &mut Conn<'_>,
        purpose: Purpose,
        user: Option<UserId>,
    ) -> Result<PasskeyQuestion, ControlError> {
        let site = self.site()?.id;
        let challenge = URL_SAFE_NO_PAD.encode(random_word().expose_secret());
        let until = after(self.now(), ANSWER_WITHIN);
        passkeys::ask(conn, &Sha256::digest(&challenge), purpose, user, until).await?;
        let known = match user {
            Some(user) => passkeys::list(conn, user).await?,
            None => Vec::new(),
        };
        let credentials = known.iter().map(|one| URL_SAFE_NO_PAD.encode(&one.credential)).collect();
        let (algorithms, verify) = (PASSKEY_ALGORITHMS, purpose == Purpose::Alone);
        Ok(PasskeyQuestion {
            challenge,
            site,
            user: None,
            email: None,
            credentials,
            algorithms,
            verify,
        })
    }

    /// The question that is answered, if it was asked of them and not answered before.
    async fn asked(
        &self,
        conn: &mut Conn<'_>,
        client_data: &[u8],
        purpose: Purpose,
        user: Option<UserId>,
    ) -> Result<Option<String>, ControlError> {
        let Some(challenge) = challenge_of(client_data) else { return Ok(None) };
        let hash = Sha256::digest(&challenge);
        let open = passkeys::answer(conn, &hash, purpose, user, self.now()).await?;
        Ok(open.then_some(challenge))
    }

    /// Begins a passkey for somebody who knows the password (or, where there is none, has just signed in).
    pub async fn begin_passkey(
        &self,
        actor: &Actor,
        password: SecretString,
    ) -> Result<PasskeyQuestion, ControlError> {
        login_only(actor)?;
        self.site()?;
        self.step_up(actor, password).await?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let mut question = self.question(conn, Purpose::Register, Some(actor.user)).await?;
        if question.credentials.len() >= MAX_PASSKEYS {
            let detail = format!("there are {MAX_PASSKEYS} passkeys already; take one away first");
            return Err(ControlError::TooMany {
                code: codes::TOO_MANY,
                retry_after_s: None,
                detail,
            });
        }
        tx.commit().await?;
        question.user = Some(URL_SAFE_NO_PAD.encode(actor.user.uuid().as_bytes()));
        question.email = Some(actor.email.clone());
        Ok(question)
    }

    /// Keeps the passkey that answers [`Self::begin_passkey`]. The first factor of an account comes with
    /// recovery codes, which are never shown again, and ends every other login.
    pub async fn finish_passkey(
        &self,
        actor: &Actor,
        registration: &PasskeyRegistration,
    ) -> Result<Vec<SecretString>, ControlError> {
        login_only(actor)?;
        let site = self.site()?;
        let name = match text::name("/name", &registration.name) {
            Ok(name) => name,
            Err(_) => "Passkey".to_owned(),
        };
        let client_data = bytes(&registration.client_data)?;
        let attestation = bytes(&registration.attestation)?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let asked = self.asked(conn, &client_data, Purpose::Register, Some(actor.user)).await?;
        let checked = match &asked {
            Some(challenge) => registered(&site, challenge, &client_data, &attestation),
            None => Err(PasskeyError::Challenge),
        };
        let made = match checked {
            Ok(made) => made,
            Err(error) => {
                tx.commit().await?;
                return Err(unusable(error));
            }
        };
        let first = !has_factor(conn, actor.user).await?;
        let new = NewPasskeyRow {
            user: actor.user,
            credential: &made.credential,
            algorithm: made.key.algorithm,
            public_key: &made.key.key,
            counter: i64::from(made.counter),
            name: &name,
            backed_up: made.backed_up,
        };
        if passkeys::create(conn, new, self.now()).await?.is_none() {
            return Err(ControlError::Conflict {
                code: codes::PASSKEY_TAKEN,
                pointer: None,
                detail: "this passkey is registered already".to_owned(),
            });
        }
        let codes = if first { self.new_codes(conn, actor.user).await? } else { Vec::new() };
        if first {
            login_sessions::revoke_all(conn, actor.user, actor.login()).await?;
        }
        let words = format!("The passkey \"{name}\" was added");
        self.noted(conn, actor, "user.passkey_add", &words).await?;
        tx.commit().await?;
        Ok(codes)
    }

    /// Takes a passkey away, for somebody who knows the password (or has just signed in). With the last
    /// factor its recovery codes go as well.
    pub async fn remove_passkey(
        &self,
        actor: &Actor,
        id: PasskeyId,
        password: SecretString,
    ) -> Result<(), ControlError> {
        let all = self.passkeys(actor).await?;
        let one = all.iter().find(|one| one.id == id).ok_or(ControlError::NotFound("passkey"))?;
        self.step_up(actor, password).await?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let user = users::find(conn, actor.user).await?.ok_or(ControlError::NotFound("account"))?;
        let other_way = user.password_hash.is_some()
            || self.can_mail()
            || !identities::list(conn, actor.user).await?.is_empty();
        if all.len() == 1 && !other_way {
            return Err(ControlError::Conflict {
                code: codes::LAST_WAY_IN,
                pointer: None,
                detail:
                    "this is the only way into your account; ask the operator for a password first"
                        .to_owned(),
            });
        }
        passkeys::remove(conn, actor.user, id).await?;
        if !has_factor(conn, actor.user).await? {
            second_factor::set_codes(conn, actor.user, &[]).await?;
        }
        let words = format!("The passkey \"{}\" was taken away", one.name);
        self.noted(conn, actor, "user.passkey_remove", &words).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// Whether signing in asks for more than the first factor.
pub(super) async fn has_factor(conn: &mut Conn<'_>, user: UserId) -> Result<bool, ControlError> {
    let app = second_factor::find(conn, user).await?;
    let confirmed = app.is_some_and(|app| app.confirmed_at.is_some());
    Ok(confirmed || passkeys::count(conn, user).await? > 0)
}
