//! Links that are mailed to a person: to confirm an address, to sign in without a password, to set a
//! new one. A link works once, for a short time; opening it does nothing, pressing its button does.

use chrono::{DateTime, TimeDelta, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use sluice_domain::LinkPurpose;
use sluice_store::account_links::{self, AccountLink, NewAccountLink};
use sluice_store::users::{self, User};
use sluice_store::{Conn, identities, login_sessions, passkeys};
use sluice_vault::{Issued, TokenHash, TokenKind, parse_token};

use super::entry::{Entry, admit};
use super::{Origin, login_only, new_password};
use crate::codes;
use crate::error::ControlError;
use crate::notices::Letter;
use crate::throttle::after;
use crate::{Actor, Control, text};

/// How long each kind of link works.
const fn life(purpose: LinkPurpose) -> TimeDelta {
    match purpose {
        LinkPurpose::Verify => TimeDelta::days(3),
        LinkPurpose::SignIn => TimeDelta::minutes(15),
        LinkPurpose::Reset => TimeDelta::hours(1),
    }
}

const fn topic(purpose: LinkPurpose) -> &'static str {
    match purpose {
        LinkPurpose::Verify => "account.verify",
        LinkPurpose::SignIn => "account.sign_in",
        LinkPurpose::Reset => "account.reset",
    }
}

/// What a mailed link is for, before its button is pressed. Having the link is the right to see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkCard {
    pub purpose: LinkPurpose,
    pub email: String,
    pub expires_at: DateTime<Utc>,
}

/// An address that was confirmed, and the login of who was not signed in.
#[derive(Debug)]
pub struct Confirmed {
    pub email: String,
    pub entry: Option<Entry>,
}

fn unusable() -> ControlError {
    ControlError::NotFound("link: it was used, or its time is over. Ask for a new one")
}

impl Control {
    /// Mails a link to an address, if there is an account that has it. Whether there is shows in
    /// neither the answer nor its time: the work is done after it.
    pub async fn ask_link(
        &self,
        email: &str,
        purpose: LinkPurpose,
        from: &Origin,
    ) -> Result<(), ControlError> {
        let email =
            text::email("/email", email).map_err(|fault| ControlError::Invalid(vec![fault]))?;
        self.needs_mail()?;
        self.inner.throttle.mail(&email, &from.address).await?;
        let control = self.clone();
        tokio::spawn(async move {
            if let Err(error) = control.mail_link(&email, purpose).await {
                tracing::warn!(?error, purpose = purpose.as_str(), "A link could not be mailed");
            }
        });
        Ok(())
    }

    async fn mail_link(&self, email: &str, purpose: LinkPurpose) -> Result<(), ControlError> {
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let found = users::find_by_email(conn, email).await?;
        if let Some(user) = found.filter(|user| !user.disabled) {
            self.post_link(conn, &user, purpose).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Mails the caller a link that confirms their address, unless it is confirmed.
    pub async fn send_verification(&self, actor: &Actor) -> Result<(), ControlError> {
        login_only(actor)?;
        self.needs_mail()?;
        self.inner.throttle.mail(&actor.email, &actor.address).await?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let user = users::find(conn, actor.user).await?.ok_or(ControlError::NotFound("account"))?;
        if user.verified_at.is_none() {
            self.post_link(conn, &user, LinkPurpose::Verify).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Whether the caller's address is known to be theirs.
    pub async fn is_verified(&self, actor: &Actor) -> Result<bool, ControlError> {
        let mut tx = self.read().await?;
        let user = users::find(&mut tx.conn(), actor.user).await?;
        tx.commit().await?;
        Ok(user.is_some_and(|user| user.verified_at.is_some()))
    }

    fn needs_mail(&self) -> Result<(), ControlError> {
        if self.can_mail() {
            return Ok(());
        }
        Err(ControlError::Forbidden {
            code: codes::NO_MAIL,
            detail:
                "this Sluice sends no mail; ask its operator to run `sluice admin reset-password`"
                    .into(),
        })
    }

    /// Puts a link out to be mailed; does nothing where there is no mail.
    pub(crate) async fn post_link(
        &self,
        conn: &mut Conn<'_>,
        user: &User,
        purpose: LinkPurpose,
    ) -> Result<(), ControlError> {
        self.post_link_on(conn, user, purpose, "").await
    }

    /// The same, with a path to go on to.
    pub(super) async fn post_link_on(
        &self,
        conn: &mut Conn<'_>,
        user: &User,
        purpose: LinkPurpose,
        next: &str,
    ) -> Result<(), ControlError> {
        if !self.can_mail() {
            return Ok(());
        }
        let now = self.now();
        let (issued, expires_at) = (Issued::new(TokenKind::Link), after(now, life(purpose)));
        let new = NewAccountLink {
            user: user.id,
            purpose,
            token_hash: TokenHash::as_bytes(&issued.hash),
            expires_at,
        };
        account_links::create(conn, new, now).await?;
        let base = self.settings().public_url.as_str().trim_end_matches('/').to_owned();
        let mut address = format!("{base}/account/link/{}", issued.token.expose_secret());
        if !next.is_empty() {
            address.push_str("?next=");
            address.extend(utf8_percent_encode(next, NON_ALPHANUMERIC));
        }
        let letter = letter(user, purpose, &base, address);
        self.post_letter(conn, None, topic(purpose), None, letter, expires_at).await
    }

    async fn usable_link(
        &self,
        conn: &mut Conn<'_>,
        token: &SecretString,
        purpose: Option<LinkPurpose>,
    ) -> Result<AccountLink, ControlError> {
        let Some((TokenKind::Link, hash)) = parse_token(token.expose_secret()) else {
            return Err(unusable());
        };
        let found = account_links::find_open(conn, hash.as_bytes(), self.now()).await?;
        found
            .filter(|link| purpose.is_none_or(|purpose| link.purpose == purpose))
            .ok_or_else(unusable)
    }

    /// What a link is for; uses nothing up.
    pub async fn link_card(&self, token: &SecretString) -> Result<LinkCard, ControlError> {
        let mut tx = self.read().await?;
        let link = self.usable_link(&mut tx.conn(), token, None).await?;
        tx.commit().await?;
        Ok(LinkCard { purpose: link.purpose, email: link.email, expires_at: link.expires_at })
    }

    /// Uses a link up and notes that the address is its owner's.
    async fn used(
        &self,
        conn: &mut Conn<'_>,
        token: &SecretString,
        purpose: LinkPurpose,
    ) -> Result<User, ControlError> {
        let now = self.now();
        let link = self.usable_link(conn, token, Some(purpose)).await?;
        if !account_links::use_up(conn, link.id, now).await? {
            return Err(unusable());
        }
        let user = users::find(conn, link.user_id).await?.ok_or_else(unusable)?;
        if user.verified_at.is_none() && purpose != LinkPurpose::Verify {
            // Whoever made the account may be somebody else: what they left opens nothing from now on.
            users::set_password(conn, user.id, None).await?;
            identities::remove_all(conn, user.id).await?;
            passkeys::remove_all(conn, user.id).await?;
            login_sessions::revoke_all(conn, user.id, None).await?;
            account_links::end_all(conn, user.id, Some(LinkPurpose::Verify), now).await?;
        }
        users::set_verified(conn, user.id, now).await?;
        Ok(user)
    }

    /// Confirms an address for whoever also shows that the account is theirs: they are signed in to it, or
    /// know its password. So nobody confirms an account that somebody else made for their address.
    pub async fn verify_email(
        &self,
        token: &SecretString,
        actor: Option<&Actor>,
        password: SecretString,
        from: &Origin,
    ) -> Result<Confirmed, ControlError> {
        let mut tx = self.read().await?;
        let link = self.usable_link(&mut tx.conn(), token, Some(LinkPurpose::Verify)).await?;
        let user = users::find(&mut tx.conn(), link.user_id).await?.ok_or_else(unusable)?;
        tx.commit().await?;
        let signed_in = actor.is_some_and(|actor| actor.login().is_some() && actor.user == user.id);
        if signed_in {
            let mut tx = self.begin().await?;
            self.used(&mut tx.conn(), token, LinkPurpose::Verify).await?;
            tx.commit().await?;
            return Ok(Confirmed { email: user.email, entry: None });
        }
        let attempt = self.inner.throttle.log_in(&user.email, &from.address).await?;
        let stored = user.password_hash.clone();
        let right = self
            .with_passwords(move |passwords| passwords.verify(&password, stored.as_deref()))
            .await?;
        if !right {
            let detail = "this is not the password that the account was made with; if you did not make it, or forgot it, have a link to sign in mailed instead";
            return Err(ControlError::invalid("/password", codes::WRONG_PASSWORD, detail));
        }
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let user = self.used(conn, token, LinkPurpose::Verify).await?;
        let entry = admit(conn, &user, from, None, self.now()).await?;
        tx.commit().await?;
        self.inner.throttle.give_back(attempt).await;
        Ok(Confirmed { email: user.email, entry: Some(entry) })
    }

    /// Signs somebody in who has the link that was mailed to them.
    pub async fn log_in_by_link(
        &self,
        token: &SecretString,
        from: &Origin,
    ) -> Result<Entry, ControlError> {
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let user = self.used(conn, token, LinkPurpose::SignIn).await?;
        let entry = admit(conn, &user, from, None, self.now()).await?;
        tx.commit().await?;
        Ok(entry)
    }

    /// Sets a new password for somebody who has the link that was mailed to them, ends every login and
    /// every other link of theirs, and signs them in. A password that will not do leaves the link good.
    pub async fn reset_by_link(
        &self,
        token: &SecretString,
        password: SecretString,
        from: &Origin,
    ) -> Result<Entry, ControlError> {
        let card = self.link_card(token).await?;
        new_password("/password", &password, &card.email)
            .map_err(|fault| ControlError::Invalid(vec![fault]))?;
        let hash = self.with_passwords(move |passwords| passwords.hash(&password)).await?;
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let user = self.used(conn, token, LinkPurpose::Reset).await?;
        users::set_password(conn, user.id, Some(&hash)).await?;
        login_sessions::revoke_all(conn, user.id, None).await?;
        account_links::end_all(conn, user.id, None, now).await?;
        self.tell_of_new_password(conn, &user).await?;
        let entry = admit(conn, &user, from, None, now).await?;
        tx.commit().await?;
        tracing::info!(user = %user.id, "Set a new password by a mailed link");
        Ok(entry)
    }

    /// Tells somebody that their password was changed, in case it was not them.
    pub(crate) async fn tell_of_new_password(
        &self,
        conn: &mut Conn<'_>,
        user: &User,
    ) -> Result<(), ControlError> {
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let words = format!(
            "The password of your account at {base} was changed. If this was not you, set a new one now and look at your account's sessions."
        );
        let subject = "Your password for Sluice was changed";
        let button = ("Set a new password", "/forgot");
        self.tell_owner(conn, user, "account.password_changed", (subject, words), button).await
    }

    /// Mails somebody what happened to their account; does nothing where there is no mail.
    pub(crate) async fn tell_owner(
        &self,
        conn: &mut Conn<'_>,
        user: &User,
        topic: &str,
        (subject, words): (&str, String),
        (button, path): (&str, &str),
    ) -> Result<(), ControlError> {
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let letter = Letter {
            to: user.email.clone(),
            subject: subject.to_owned(),
            paragraphs: vec![words],
            facts: Vec::new(),
            button: Some((button.to_owned(), format!("{base}{path}"))),
            foot: foot(base),
        };
        let until = after(self.now(), TimeDelta::days(1));
        self.post_letter(conn, None, topic, None, letter, until).await
    }
}

fn foot(base: &str) -> String {
    format!("You get this because you have an account at {base}.")
}

fn letter(user: &User, purpose: LinkPurpose, base: &str, address: String) -> Letter {
    let (subject, words, button) = match purpose {
        LinkPurpose::Verify => (
            "Confirm your e-mail address for Sluice",
            format!(
                "Confirm that {} is your address at {base}. The link works once, for three days.",
                user.email
            ),
            "Confirm the address",
        ),
        LinkPurpose::SignIn => (
            "Your link to sign in to Sluice",
            format!(
                "Sign in to {base} as {}. The link works once, for 15 minutes. If you did not ask for it, ignore it.",
                user.email
            ),
            "Sign in",
        ),
        LinkPurpose::Reset => (
            "Set a new password for Sluice",
            format!(
                "Set a new password for {} at {base}. The link works once, for an hour, and ends all your sessions. If you did not ask for it, ignore it: nothing changes.",
                user.email
            ),
            "Set a new password",
        ),
    };
    Letter {
        to: user.email.clone(),
        subject: subject.to_owned(),
        paragraphs: vec![words],
        facts: Vec::new(),
        button: Some((button.to_owned(), address)),
        foot: foot(base),
    }
}
