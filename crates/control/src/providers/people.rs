//! Which account a vouched-for person has: the one that the identity is linked to, or a new one. An
//! account that exists is linked only by its owner, who is signed in to it.

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use sluice_domain::UserId;
use sluice_store::Conn;
use sluice_store::identities::{self, Identity, NewIdentity};
use sluice_store::users::{self, User};
use uuid::Uuid;

use super::{Provider, Vouched, refuse};
use crate::accounts::{Entry, Origin, admit, login_only};
use crate::audit::{Event, record_account};
use crate::codes;
use crate::{Actor, Control, ControlError, Signup, text};

/// An identity of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityView {
    pub id: Uuid,
    /// The provider, as its button says; its address, where it is set up no more.
    pub label: String,
    pub issuer: String,
    pub email: String,
    pub last_used_at: DateTime<Utc>,
}

fn taken(provider: &Provider) -> ControlError {
    let label = &provider.label;
    ControlError::Conflict {
        code: codes::IDENTITY_TAKEN,
        pointer: None,
        detail: format!(
            "this {label} account is linked to another account here, or yours has another one of {label}"
        ),
    }
}

impl Control {
    pub(super) async fn enter_as(
        &self,
        provider: &Provider,
        vouched: &Vouched,
        next: &str,
        from: &Origin,
    ) -> Result<Entry, ControlError> {
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let known = identities::find(conn, &provider.issuer, &vouched.subject).await?;
        let user = if let Some(identity) = known {
            let email = vouched.email.as_deref().unwrap_or(&identity.email);
            identities::touch(conn, identity.id, email, now).await?;
            users::find(conn, identity.user_id).await?
        } else {
            drop(tx);
            let email = own_email(provider, vouched)?;
            self.may_come(&email, next, from).await?;
            tx = self.begin().await?;
            let conn = &mut tx.conn();
            Some(self.newcomer(conn, provider, vouched, &email).await?)
        };
        let user = user.filter(|user| !user.disabled);
        let user =
            user.ok_or_else(|| refuse(codes::ACCOUNT_DISABLED, "this account is switched off"))?;
        let entry = admit(&mut tx.conn(), &user, from, Some(&provider.issuer), now).await?;
        tx.commit().await?;
        Ok(entry)
    }

    /// Whether a newcomer may have an account: as at the form for signing up.
    async fn may_come(&self, email: &str, next: &str, from: &Origin) -> Result<(), ControlError> {
        self.inner.throttle.sign_up(&from.address).await?;
        if self.settings().signup == Signup::Open {
            return Ok(());
        }
        let invite = next.strip_prefix("/join/").map(SecretString::from);
        self.may_sign_up(email, invite.as_ref()).await.map(drop)
    }

    async fn newcomer(
        &self,
        conn: &mut Conn<'_>,
        provider: &Provider,
        vouched: &Vouched,
        email: &str,
    ) -> Result<User, ControlError> {
        let now = self.now();
        let name = text::line("/name", &vouched.name, text::MAX_NAME_CHARS).unwrap_or_default();
        // Somebody asked for an account with this address, and nobody proved it: the provider does.
        users::forget_pending(conn, email).await?;
        if users::find_by_email(conn, email).await?.is_some() {
            let label = &provider.label;
            let detail = format!(
                "there is an account for {email}; sign in to it, then link {label} on the account's page"
            );
            return Err(refuse(codes::LINK_FIRST, detail));
        }
        let user = users::create(conn, email, &name, None, now).await?;
        users::set_verified(conn, user.id, now).await?;
        if !identities::create(conn, of(provider, vouched, user.id), now).await? {
            return Err(taken(provider));
        }
        tracing::info!(user = %user.id, provider = provider.name, "Made an account");
        Ok(user)
    }

    pub(super) async fn link(
        &self,
        provider: &Provider,
        actor: &Actor,
        vouched: &Vouched,
    ) -> Result<(), ControlError> {
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let new = of(provider, vouched, actor.user);
        if !identities::create(conn, new, self.now()).await? {
            return Err(taken(provider));
        }
        let words = format!("An account of {} was linked", provider.label);
        self.identity_noted(conn, actor, "user.identity_link", &provider.issuer, &words).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The caller's identities, oldest first.
    pub async fn identities(&self, actor: &Actor) -> Result<Vec<IdentityView>, ControlError> {
        login_only(actor)?;
        let mut tx = self.read().await?;
        let found = identities::list(&mut tx.conn(), actor.user).await?;
        tx.commit().await?;
        Ok(found.into_iter().map(|one| self.identity_view(one)).collect())
    }

    fn identity_view(&self, identity: Identity) -> IdentityView {
        let provider = self.providers().iter().find(|one| one.issuer == identity.issuer);
        IdentityView {
            id: identity.id,
            label: provider.map_or_else(|| identity.issuer.clone(), |one| one.label.clone()),
            issuer: identity.issuer,
            email: identity.email,
            last_used_at: identity.last_used_at,
        }
    }

    /// Takes one of the caller's identities away, unless nothing else would sign them in.
    pub async fn unlink_identity(&self, actor: &Actor, id: Uuid) -> Result<(), ControlError> {
        login_only(actor)?;
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let all = identities::list(conn, actor.user).await?;
        let one = all.iter().find(|one| one.id == id).ok_or(ControlError::NotFound("identity"))?;
        let user = users::find(conn, actor.user).await?.ok_or(ControlError::NotFound("account"))?;
        if all.len() == 1 && user.password_hash.is_none() && !self.can_mail() {
            return Err(ControlError::Conflict {
                code: codes::LAST_WAY_IN,
                pointer: None,
                detail:
                    "this is the only way into your account; ask the operator for a password first"
                        .to_owned(),
            });
        }
        identities::remove(conn, actor.user, id).await?;
        let words = format!("An account of {} was unlinked", one.issuer);
        self.identity_noted(conn, actor, "user.identity_unlink", &one.issuer, &words).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Tells the owner and the audit logs.
    async fn identity_noted(
        &self,
        conn: &mut Conn<'_>,
        actor: &Actor,
        action: &'static str,
        issuer: &str,
        words: &str,
    ) -> Result<(), ControlError> {
        let user = users::find(conn, actor.user).await?.ok_or(ControlError::NotFound("account"))?;
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let words = format!("{words} at {base}. If this was not you, look at your account now.");
        let subject = "How you sign in to Sluice was changed";
        let button = ("Look at the account", "/account");
        self.tell_owner(conn, &user, "account.identity", (subject, words), button).await?;
        let (id, what) = (user.id.to_string(), serde_json::json!({"issuer": issuer}));
        let event = Event::new(action, ("user", &id, &user.email)).after(&what);
        record_account(conn, actor, event, self.now()).await
    }
}

fn of<'a>(provider: &'a Provider, vouched: &'a Vouched, user: UserId) -> NewIdentity<'a> {
    NewIdentity {
        user,
        issuer: &provider.issuer,
        subject: &vouched.subject,
        email: vouched.email.as_deref().unwrap_or_default(),
    }
}

/// The address that the provider says is the person's own.
fn own_email(provider: &Provider, vouched: &Vouched) -> Result<String, ControlError> {
    let label = &provider.label;
    let email = vouched.email.as_deref().ok_or_else(|| {
        let detail = format!(
            "{label} does not say that your e-mail address is verified; verify it there first"
        );
        refuse(codes::EMAIL_UNVERIFIED, detail)
    })?;
    text::email("/email", email).map_err(|fault| ControlError::Invalid(vec![fault]))
}
