//! Making an account. Where mail is sent, what happens next is in the mail alone: whoever types an address
//! does not learn whether it has an account, and what they typed opens nothing until the address is proven.

use secrecy::{ExposeSecret, SecretString};
use sluice_domain::LinkPurpose;
use sluice_store::users::{self, User};
use sluice_store::{Conn, StoreError};

use super::entry::{Entry, open};
use super::{Origin, SignUp, SignedUp, new_password};
use crate::codes;
use crate::error::Faults;
use crate::{Control, ControlError, text};

/// Bytes of a path that a mail carries.
const MAX_NEXT_BYTES: usize = 2_000;

/// What was typed, once it is known to do.
struct Typed {
    email: String,
    name: String,
    password: SecretString,
    invite: Option<SecretString>,
    next: String,
}

impl Control {
    /// Makes an account. With mail, its owner goes on by the mailed link. Without, they are signed in at
    /// once, also where they have the account and typed its password into the wrong form.
    pub async fn sign_up(&self, form: SignUp, from: &Origin) -> Result<SignedUp, ControlError> {
        let typed = read(form)?;
        self.inner.throttle.sign_up(&from.address).await?;
        if self.can_mail() {
            self.sign_up_by_mail(typed, from).await?;
            return Ok(SignedUp::Mailed);
        }
        let invite = self.may_sign_up(&typed.email, typed.invite.as_ref()).await?;
        let hash = self.hashed(&typed.password).await?;
        let now = self.now();
        let mut tx = self.begin().await?;
        let made = users::create(&mut tx.conn(), &typed.email, &typed.name, Some(&hash), now).await;
        let user = match made {
            Ok(user) => user,
            Err(StoreError::Conflict { .. }) => {
                drop(tx);
                return self.has_account(&typed.email, typed.password, from).await;
            }
            Err(other) => return Err(other.into()),
        };
        if let Some(invite) = invite {
            self.join(&mut tx.conn(), &invite, &user, &from.address, now).await?;
        }
        let login = open(&mut tx.conn(), &user, from, None, now).await?;
        tx.commit().await?;
        tracing::info!(user = %user.id, "Made an account");
        Ok(SignedUp::In(Entry::In(login)))
    }

    async fn has_account(
        &self,
        email: &str,
        password: SecretString,
        from: &Origin,
    ) -> Result<SignedUp, ControlError> {
        match self.log_in(email, password, from).await {
            Err(ControlError::Unauthenticated { .. }) => Err(ControlError::invalid(
                "/email",
                codes::EMAIL_TAKEN,
                "this address cannot be used to sign up; if it is yours, sign in instead",
            )),
            done => done.map(SignedUp::In),
        }
    }

    /// The same work and the same answer for every address; what differs is the mail.
    async fn sign_up_by_mail(&self, typed: Typed, from: &Origin) -> Result<(), ControlError> {
        let Typed { email, name, password, invite, next } = typed;
        self.may_sign_up(&email, invite.as_ref()).await?;
        self.inner.throttle.mail(&email, &from.address).await?;
        let hash = self.hashed(&password).await?;
        let next = match &invite {
            Some(invite) if next.is_empty() => format!("/join/{}", invite.expose_secret()),
            _ => next,
        };
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        match users::create_pending(conn, &email, &name, &hash, self.now()).await? {
            Some(user) => self.post_link_on(conn, &user, LinkPurpose::Verify, &next).await?,
            None => self.tell_of_sign_up(conn, &email).await?,
        }
        tx.commit().await?;
        Ok(())
    }

    async fn hashed(&self, password: &SecretString) -> Result<String, ControlError> {
        let password = password.clone();
        self.with_passwords(move |passwords| passwords.hash(&password)).await
    }

    /// Tells the owner of an account that somebody typed its address.
    async fn tell_of_sign_up(&self, conn: &mut Conn<'_>, email: &str) -> Result<(), ControlError> {
        let user: Option<User> = users::find_by_email(conn, email).await?;
        let Some(user) = user.filter(|user| !user.disabled) else { return Ok(()) };
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let words = format!(
            "Somebody signed up at {base} with your address, which has an account already. If this was you, sign in; the password that you typed now was not kept. If not, there is nothing to do."
        );
        let subject = "You have an account at Sluice already";
        let button = ("Sign in, or set a new password", "/forgot");
        self.tell_owner(conn, &user, "account.sign_up", (subject, words), button).await
    }
}

fn read(form: SignUp) -> Result<Typed, ControlError> {
    let mut faults = Faults::default();
    let email = faults.take(text::email("/email", &form.email));
    let name = faults.take(text::line("/name", &form.name, text::MAX_NAME_CHARS));
    faults.take(new_password("/password", &form.password, form.email.trim()));
    faults.check()?;
    let next = if form.next.len() <= MAX_NEXT_BYTES { form.next } else { String::new() };
    Ok(Typed {
        email: email.unwrap_or_default(),
        name: name.unwrap_or_default(),
        password: form.password,
        invite: form.invite,
        next,
    })
}
