//! Signing in by a passkey: as the second step, or alone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use sluice_domain::UserId;
use sluice_store::passkeys::{self, Passkey, Purpose};
use sluice_store::second_factor::{self, HalfLogin};
use sluice_store::{Conn, users};
use sluice_vault::{Assertion, PasskeyError, PasskeyKey, TokenKind, asserted, parse_token};

use super::PasskeyQuestion;
use crate::accounts::entry::{open, over};
use crate::accounts::{LoggedIn, Origin, note_failure};
use crate::codes;
use crate::{Control, ControlError};

/// What came back of a sign-in, in base64url.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub struct PasskeyAnswer {
    #[serde(default)]
    pub credential: String,
    #[serde(default)]
    pub client_data: String,
    #[serde(default)]
    pub authenticator_data: String,
    #[serde(default)]
    pub signature: String,
    /// The person, as the authenticator has them; needed where nobody is signing in yet.
    #[serde(default)]
    pub user: String,
}

/// The same for a passkey that nobody has, one that is another's, and a wrong answer.
fn refused() -> ControlError {
    ControlError::Unauthenticated {
        code: codes::BAD_PASSKEY,
        detail: "this passkey was not accepted; try again, or sign in another way",
    }
}

impl Control {
    /// What a passkey is to answer: that of somebody whose first factor is proven, or, with no such half of
    /// a login, of anybody.
    pub async fn begin_passkey_login(
        &self,
        half: Option<&SecretString>,
        from: &Origin,
    ) -> Result<PasskeyQuestion, ControlError> {
        self.inner.throttle.provider(&from.address).await?;
        let half = self.half(half).await?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let (purpose, user) = asked_of(half.as_ref());
        let question = self.question(conn, purpose, user).await?;
        tx.commit().await?;
        Ok(question)
    }

    async fn half(&self, token: Option<&SecretString>) -> Result<Option<HalfLogin>, ControlError> {
        let Some(token) = token else { return Ok(None) };
        let Some((TokenKind::Half, hash)) = parse_token(token.expose_secret()) else {
            return Err(over());
        };
        let mut tx = self.read().await?;
        let half = second_factor::find_half(&mut tx.conn(), hash.as_bytes(), self.now()).await?;
        tx.commit().await?;
        half.map(Some).ok_or_else(over)
    }

    /// Signs somebody in whose passkey answers [`Self::begin_passkey_login`].
    pub async fn finish_passkey_login(
        &self,
        half: Option<&SecretString>,
        answer: &PasskeyAnswer,
        from: &Origin,
    ) -> Result<LoggedIn, ControlError> {
        let half = self.half(half).await?;
        let attempt = match &half {
            Some(half) => self.inner.throttle.code(half.user_id).await?,
            None => self.inner.throttle.passkey(&from.address).await?,
        };
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let proven = match self.proven_by_passkey(conn, half.as_ref(), answer).await? {
            Ok(proven) => proven,
            Err(error) => {
                note_failure(conn, from, &format!("passkey: {error}"), now).await?;
                tx.commit().await?;
                return Err(refused());
            }
        };
        let user = users::find(conn, proven).await?;
        let user = user.filter(|user| !user.disabled && !user.pending).ok_or_else(refused)?;
        if let Some(half) = &half
            && !second_factor::end_half(conn, half.id).await?
        {
            return Err(over());
        }
        let issuer = half.as_ref().and_then(|half| half.issuer.as_deref());
        let login = open(conn, &user, from, issuer, now).await?;
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(login)
    }

    /// Whose passkey it is, once it answered what was asked of them. The question is used up in any case.
    async fn proven_by_passkey(
        &self,
        conn: &mut Conn<'_>,
        half: Option<&HalfLogin>,
        answer: &PasskeyAnswer,
    ) -> Result<Result<UserId, PasskeyError>, ControlError> {
        let site = self.site()?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        let client_data = decode(&answer.client_data);
        let (purpose, user) = asked_of(half);
        let Some(challenge) = self.asked(conn, &client_data, purpose, user).await? else {
            return Ok(Err(PasskeyError::Challenge));
        };
        let found = passkeys::find(conn, &decode(&answer.credential)).await?;
        // Whoever signs in alone is who the authenticator says (section 7.2, step 6).
        let own = |one: &Passkey| match user {
            Some(user) => one.user_id == user,
            None => decode(&answer.user) == one.user_id.uuid().as_bytes(),
        };
        let Some(passkey) = found.filter(own) else { return Ok(Err(PasskeyError::Signature)) };
        let key = PasskeyKey { algorithm: passkey.algorithm, key: passkey.public_key };
        let counter = u32::try_from(passkey.counter).unwrap_or(u32::MAX);
        let (authenticator_data, signature) =
            (decode(&answer.authenticator_data), decode(&answer.signature));
        let assertion = Assertion {
            client_data: &client_data,
            authenticator_data: &authenticator_data,
            signature: &signature,
        };
        let alone = purpose == Purpose::Alone;
        let told = match asserted(&site, &challenge, (&key, counter), assertion, alone) {
            Ok(told) => told,
            Err(error) => return Ok(Err(error)),
        };
        let counters = (passkey.counter, i64::from(told.counter));
        if !passkeys::used(conn, passkey.id, counters, self.now()).await? {
            return Ok(Err(PasskeyError::Counter));
        }
        Ok(Ok(passkey.user_id))
    }
}

fn asked_of(half: Option<&HalfLogin>) -> (Purpose, Option<UserId>) {
    match half {
        Some(half) => (Purpose::Second, Some(half.user_id)),
        None => (Purpose::Alone, None),
    }
}
