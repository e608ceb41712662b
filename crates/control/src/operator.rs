//! What the operator does from the machine, without a login: who has the machine has the database.
//! Works beside a running server.

mod audit;
mod keys;
mod leaked;
mod rewrap;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde_json::json;
use sluice_domain::{Role, UserId, WorkspaceLimits};
use sluice_limits::Clock;
use sluice_store::api_tokens::{self, NewApiToken};
use sluice_store::members;
use sluice_store::security_events::{self, Attempts};
use sluice_store::users::{self, User};
use sluice_store::workspaces::{self, Workspace};
use sluice_store::{Conn, Db, login_sessions, passkeys, second_factor};
use sluice_vault::{Issued, Passwords, TokenHash, TokenKind, Vault};

use crate::access::{Access, Actor, Admin, Permission};
use crate::codes;
pub use audit::{ChainReport, ChainState};
pub use keys::Rewrapped;
pub use leaked::Leaked;

use crate::accounts::new_password;
use crate::audit::{Event, record_operator};
use crate::catalogue::share;
use crate::providers::required::with_issuer;
use crate::workspaces::make_workspace;
use crate::{ControlError, text};

/// A REST token made by the operator.
#[derive(Debug)]
pub struct ApiTokenMade {
    /// The workspace's slug.
    pub workspace: String,
    pub token: SecretString,
}

fn one(fault: crate::Fault) -> ControlError {
    ControlError::Invalid(vec![fault])
}

/// The operator's hands.
pub struct Operator {
    db: Db,
    vault: Arc<Vault>,
    clock: Clock,
    passwords: Arc<Passwords>,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Operator")
    }
}

impl Operator {
    /// Needs no upstream, no counters and no running server.
    pub fn new(db: Db, vault: Arc<Vault>, clock: Clock) -> Self {
        Self { db, vault, clock, passwords: Arc::new(Passwords::new()) }
    }

    fn now(&self) -> DateTime<Utc> {
        (self.clock)()
    }

    async fn hash(&self, password: SecretString) -> Result<String, ControlError> {
        let passwords = Arc::clone(&self.passwords);
        tokio::task::spawn_blocking(move || passwords.hash(&password))
            .await
            .map_err(ControlError::internal)
    }

    /// Lets the operator into a workspace, suspended or not. The admin log names the operator.
    pub async fn enter(&self, slug: &str) -> Result<Admin, ControlError> {
        let mut tx = self.db.read().await?;
        let found = workspaces::find_by_slug(&mut tx.conn(), slug).await?;
        tx.commit().await?;
        let workspace = found.ok_or(ControlError::NotFound("workspace"))?;
        Ok(Admin::of(Access {
            workspace: workspace.id,
            slug: workspace.slug,
            workspace_name: workspace.name,
            suspended: false,
            role: Role::Admin,
            actor: Actor::operator(),
        }))
    }

    /// Makes what is missing of account, workspace and membership; gives the workspace's slug.
    pub async fn create_workspace(
        &self,
        email: &str,
        workspace: &str,
    ) -> Result<String, ControlError> {
        let email = text::email("/email", email).map_err(one)?;
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let user = match users::find_by_email(conn, &email).await? {
            Some(user) => user,
            None => self.make_user(conn, &email, None).await?,
        };
        let place = self.workspace(conn, workspace, &user, true).await?;
        self.membership(conn, &place, &user, Role::Admin, true).await?;
        tx.commit().await?;
        Ok(place.slug)
    }

    /// Makes an account, whatever the sign-up setting is.
    pub async fn create_user(
        &self,
        email: &str,
        password: SecretString,
    ) -> Result<UserId, ControlError> {
        let email = text::email("/email", email).map_err(one)?;
        new_password("/password", &password, &email).map_err(one)?;
        let hash = self.hash(password).await?;
        let mut tx = self.db.begin().await?;
        let user = self.make_user(&mut tx.conn(), &email, Some(&hash)).await?;
        tx.commit().await?;
        Ok(user.id)
    }

    async fn make_user(
        &self,
        conn: &mut Conn<'_>,
        email: &str,
        password_hash: Option<&str>,
    ) -> Result<User, ControlError> {
        let now = self.now();
        let user = users::create(conn, email, "", password_hash, now).await?;
        let id = user.id.to_string();
        let event = Event::new("user.create", ("user", &id, email));
        record_operator(conn, None, event, now).await?;
        Ok(user)
    }

    /// Makes a REST token; with `create` also what is missing of user, workspace and membership.
    pub async fn api_token(
        &self,
        email: &str,
        workspace: &str,
        role: Role,
        create: bool,
    ) -> Result<ApiTokenMade, ControlError> {
        let email = text::email("/email", email).map_err(one)?;
        let now = self.now();
        let issued = Issued::new(TokenKind::Api);
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let user = match users::find_by_email(conn, &email).await? {
            Some(user) => user,
            None if create => self.make_user(conn, &email, None).await?,
            None => {
                return Err(ControlError::NotFound("user; add --create to make what is missing"));
            }
        };
        let place = self.workspace(conn, workspace, &user, create).await?;
        self.membership(conn, &place, &user, role, create).await?;
        let new = NewApiToken {
            label: "operator",
            role,
            token_hash: TokenHash::as_bytes(&issued.hash),
            last4: &issued.last4,
            created_by: user.id,
            expires_at: None,
        };
        let token = api_tokens::create(conn, place.id, new, now).await?;
        let (id, what) = (token.id.to_string(), json!({"role": role, "user": user.email}));
        let event = Event::new("api_token.create", ("api_token", &id, "operator")).after(&what);
        record_operator(conn, Some(place.id), event, now).await?;
        tx.commit().await?;
        Ok(ApiTokenMade { workspace: place.slug, token: issued.token })
    }

    /// A workspace is named by its slug; one that is to be made may also be named by its name.
    async fn workspace(
        &self,
        conn: &mut Conn<'_>,
        wanted: &str,
        user: &User,
        create: bool,
    ) -> Result<Workspace, ControlError> {
        let wanted = text::name("/workspace", wanted).map_err(one)?;
        if let Some(found) = workspaces::find_by_slug(conn, &wanted).await? {
            return Ok(found);
        }
        if !create {
            return Err(ControlError::NotFound("workspace; add --create to make what is missing"));
        }
        if let Some(found) = self.same_workspace(conn, &wanted, user).await? {
            return Ok(found);
        }
        let made = make_workspace(conn, &wanted, None, Some(user.id), self.now()).await?;
        members::add(conn, made.id, user.id, Role::Admin, self.now()).await?;
        let id = made.id.to_string();
        let event = Event::new("workspace.create", ("workspace", &id, &wanted));
        record_operator(conn, Some(made.id), event, self.now()).await?;
        Ok(made)
    }

    /// The one that was made for this name before, however it is spelt now.
    async fn same_workspace(
        &self,
        conn: &mut Conn<'_>,
        wanted: &str,
        user: &User,
    ) -> Result<Option<Workspace>, ControlError> {
        let key = |name: &str| name.to_lowercase();
        let found = workspaces::find_by_slug(conn, &text::slug(wanted)).await?;
        let same = |found: &Workspace| key(&found.name) == key(wanted) || found.slug == key(wanted);
        if let Some(found) = found.filter(same) {
            return Ok(Some(found));
        }
        let own = workspaces::list_for_user(conn, user.id).await?;
        match own.into_iter().find(|own| key(&own.name) == key(wanted)) {
            Some(own) => Ok(workspaces::find(conn, own.id).await?),
            None => Ok(None),
        }
    }

    /// A token does no more than its maker, so the maker needs the role.
    async fn membership(
        &self,
        conn: &mut Conn<'_>,
        place: &Workspace,
        user: &User,
        role: Role,
        create: bool,
    ) -> Result<(), ControlError> {
        match members::role(conn, place.id, user.id).await? {
            Some(has) if has.at_least(role) => Ok(()),
            Some(_) if create => {
                members::set_role(conn, place.id, user.id, role, self.now()).await?;
                self.note_member(conn, "member.set_role", place, user).await
            }
            Some(has) => Err(ControlError::Conflict {
                code: codes::ROLE_TOO_LOW,
                pointer: None,
                detail: format!(
                    "{} is a {has} of this workspace, so a token of theirs cannot be {role}",
                    user.email
                ),
            }),
            None if create => {
                members::add(conn, place.id, user.id, role, self.now()).await?;
                self.note_member(conn, "member.add", place, user).await
            }
            None => Err(ControlError::NotFound("member; add --create to make what is missing")),
        }
    }

    async fn note_member(
        &self,
        conn: &mut Conn<'_>,
        action: &str,
        place: &Workspace,
        user: &User,
    ) -> Result<(), ControlError> {
        let id = user.id.to_string();
        let event = Event::new(action, ("member", &id, &user.email));
        Ok(record_operator(conn, Some(place.id), event, self.now()).await?)
    }

    /// Sets a password and ends every login of the account.
    pub async fn reset_password(
        &self,
        email: &str,
        password: SecretString,
    ) -> Result<(), ControlError> {
        new_password("/password", &password, email.trim()).map_err(one)?;
        let hash = self.hash(password).await?;
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let user =
            users::find_by_email(conn, email).await?.ok_or(ControlError::NotFound("user"))?;
        users::set_password(conn, user.id, Some(&hash)).await?;
        users::set_settled(conn, user.id).await?;
        login_sessions::revoke_all(conn, user.id, None).await?;
        let id = user.id.to_string();
        let event = Event::new("user.reset_password", ("user", &id, &user.email));
        record_operator(conn, None, event, self.now()).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Takes somebody's second factor, passkeys and recovery codes away, for whom they are
    /// gone, and ends every login of the account.
    pub async fn reset_second_factor(&self, email: &str) -> Result<(), ControlError> {
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let user =
            users::find_by_email(conn, email).await?.ok_or(ControlError::NotFound("user"))?;
        let passkeys = passkeys::remove_all(conn, user.id).await?;
        if !second_factor::remove(conn, user.id).await? && passkeys == 0 {
            return Err(ControlError::NotFound("second factor: this account has none"));
        }
        login_sessions::revoke_all(conn, user.id, None).await?;
        let id = user.id.to_string();
        let event = Event::new("user.reset_second_factor", ("user", &id, &user.email));
        record_operator(conn, None, event, self.now()).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Sets what the workspace may have: `change` gets what was allowed before.
    pub async fn set_limits(
        &self,
        slug: &str,
        change: impl FnOnce(WorkspaceLimits) -> WorkspaceLimits,
    ) -> Result<WorkspaceLimits, ControlError> {
        let now = self.now();
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let found = workspaces::find_by_slug(conn, slug).await?;
        let workspace = found.ok_or(ControlError::NotFound("workspace"))?;
        let limits = change(workspace.limits);
        if limits != workspace.limits {
            workspaces::set_limits(conn, workspace.id, limits, now).await?;
            let (before, after) = (json!(workspace.limits), json!(limits));
            let id = workspace.id.to_string();
            let event = Event::new("workspace.set_limits", ("workspace", &id, &workspace.name));
            let event = event.before(&before).after(&after);
            record_operator(conn, Some(workspace.id), event, now).await?;
            tx.commit().await?;
        }
        Ok(limits)
    }

    /// Lets members of a workspace come in any way again, where it asked for an identity provider.
    pub async fn lift_provider(&self, slug: &str) -> Result<(), ControlError> {
        let now = self.now();
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let found = workspaces::find_by_slug(conn, slug).await?;
        let workspace = found.ok_or(ControlError::NotFound("workspace"))?;
        let settings = with_issuer(&workspace.settings, None);
        workspaces::set_settings(conn, workspace.id, &settings, now).await?;
        let (id, before) = (workspace.id.to_string(), json!(workspace.settings));
        let event = Event::new("workspace.lift_provider", ("workspace", &id, &workspace.name));
        record_operator(conn, Some(workspace.id), event.before(&before), now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Who was refused at the door since then, whatever the workspace, the most frequent first.
    pub async fn refused_attempts(
        &self,
        since: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<Attempts>, ControlError> {
        let mut tx = self.db.read().await?;
        let found = security_events::frequent(&mut tx.conn(), since, i64::from(limit)).await?;
        tx.commit().await?;
        Ok(found)
    }

    /// Switches a workspace off (its grants are refused, nothing can be changed) or on again.
    pub async fn suspend(&self, slug: &str, suspended: bool) -> Result<(), ControlError> {
        let now = self.now();
        let mut tx = self.db.begin().await?;
        let conn = &mut tx.conn();
        let found = workspaces::find_by_slug(conn, slug).await?;
        let workspace = found.ok_or(ControlError::NotFound("workspace"))?;
        workspaces::set_suspended(conn, workspace.id, suspended, now).await?;
        if suspended {
            share::take_back_all(conn, workspace.id, now).await?;
        }
        let action = if suspended { "workspace.suspend" } else { "workspace.resume" };
        let id = workspace.id.to_string();
        let event = Event::new(action, ("workspace", &id, &workspace.name));
        record_operator(conn, Some(workspace.id), event, now).await?;
        tx.commit().await?;
        Ok(())
    }
}
