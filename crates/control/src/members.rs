//! Who is in a workspace: roles, removal, invitations by link.

use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sluice_domain::{ActorKind, InviteId, Role, UserId};
use sluice_store::admin_events::{self, ActorOf, NewAdminEvent};
use sluice_store::invites::{self, Invite, NewInvite};
use sluice_store::members::{self, Member, MemberChange};
use sluice_store::users::{self, User};
use sluice_store::{Conn, workspaces};
use sluice_vault::{Issued, TokenHash, TokenKind, parse_token};

use crate::accounts::login_only;
use crate::audit::{self, Event};
use crate::codes::{self, ProblemCode};
use crate::page::{Page, PageOf};
use crate::throttle::after;
use crate::{Actor, Admin, Control, ControlError, Viewer, text};

/// A user in a workspace.
pub type MemberView = Member;
/// An open invitation.
pub type InviteView = Invite;

/// How long an invitation can be accepted.
pub const INVITE_DAYS: i64 = 7;

/// A new invitation. Its link is shown once.
#[derive(Debug)]
pub struct Invited {
    pub invite: InviteView,
    pub token: SecretString,
}

/// What an invitation's link tells the person who opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteCard {
    pub workspace_name: String,
    pub workspace_slug: String,
    pub email: String,
    pub role: Role,
    pub expires_at: DateTime<Utc>,
}

fn unusable_invite() -> ControlError {
    ControlError::NotFound("invitation; it may have been used, taken back or be too old")
}

impl Control {
    /// The members, oldest account first. Viewers may see with whom they work.
    pub async fn members(
        &self,
        viewer: &Viewer,
        page: Page<UserId>,
    ) -> Result<PageOf<MemberView, UserId>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let found =
            members::list(&mut tx.conn(), viewer.workspace, page.after, page.one_more()).await?;
        tx.commit().await?;
        Ok(page.cut(found, |member| member.user_id))
    }

    /// Gives a member another role.
    pub async fn set_role(
        &self,
        admin: &Admin,
        user: UserId,
        role: Role,
    ) -> Result<(), ControlError> {
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let before = members::role(conn, admin.workspace, user).await?;
        changed(members::set_role(conn, admin.workspace, user, role, now).await?)?;
        let (before, after) = (json!({"role": before}), json!({"role": role}));
        self.record_member(conn, admin, "member.set_role", user, Some(&before), Some(&after))
            .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Takes somebody out of the workspace; their API tokens stop with it.
    pub async fn remove_member(&self, admin: &Admin, user: UserId) -> Result<(), ControlError> {
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let before = json!({"role": members::role(conn, admin.workspace, user).await?});
        changed(members::remove(conn, admin.workspace, user, now).await?)?;
        self.record_member(conn, admin, "member.remove", user, Some(&before), None).await?;
        tx.commit().await?;
        Ok(())
    }

    /// The caller leaves the workspace.
    pub async fn leave(&self, viewer: &Viewer) -> Result<(), ControlError> {
        login_only(&viewer.actor)?;
        let (now, user) = (self.now(), viewer.actor.user);
        let mut tx = self.begin_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        changed(members::remove(conn, viewer.workspace, user, now).await?)?;
        let id = user.to_string();
        let event = Event::new("member.leave", ("member", &id, &viewer.actor.email));
        audit::record(conn, viewer.workspace, &viewer.actor, event, now).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn record_member(
        &self,
        conn: &mut Conn<'_>,
        admin: &Admin,
        action: &str,
        user: UserId,
        before: Option<&serde_json::Value>,
        after: Option<&serde_json::Value>,
    ) -> Result<(), ControlError> {
        let email = users::find(conn, user).await?.map(|user| user.email).unwrap_or_default();
        let id = user.to_string();
        let event = Event { action, object: ("member", &id, &email), before, after };
        Ok(audit::record(conn, admin.workspace, &admin.actor, event, self.now()).await?)
    }

    /// Invites an address; an open invitation of the same address is replaced.
    pub async fn invite(
        &self,
        admin: &Admin,
        email: &str,
        role: Role,
    ) -> Result<Invited, ControlError> {
        let email =
            text::email("/email", email).map_err(|fault| ControlError::Invalid(vec![fault]))?;
        let bounds = self.settings().bounds.clone();
        let now = self.now();
        let issued = Issued::new(TokenKind::Invite);
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if let Some(user) = users::find_by_email(conn, &email).await?
            && members::role(conn, admin.workspace, user.id).await?.is_some()
        {
            let detail = format!("{email} is already a member of this workspace");
            return Err(conflict(codes::ALREADY_MEMBER, detail));
        }
        let open = invites::list(conn, admin.workspace, now, None, bounds.open_invites + 1).await?;
        if reached(open.len(), bounds.open_invites) {
            return Err(ControlError::full("open invitations", bounds.open_invites));
        }
        if workspaces::counts(conn, admin.workspace).await?.members >= bounds.members {
            return Err(ControlError::full("members", bounds.members));
        }
        let new = NewInvite {
            email: &email,
            role,
            token_hash: TokenHash::as_bytes(&issued.hash),
            created_by: admin.actor.maker(),
            expires_at: after(now, TimeDelta::days(INVITE_DAYS)),
        };
        let invite = invites::create(conn, admin.workspace, new, now).await?;
        let (id, what) = (invite.id.to_string(), json!({"email": email, "role": role}));
        let event = Event::new("invite.create", ("invite", &id, &email)).after(&what);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(Invited { invite, token: issued.token })
    }

    /// The open invitations, newest first.
    pub async fn invites(
        &self,
        admin: &Admin,
        page: Page<InviteId>,
    ) -> Result<PageOf<InviteView, InviteId>, ControlError> {
        let now = self.now();
        let mut tx = self.read_in(admin.workspace).await?;
        let found =
            invites::list(&mut tx.conn(), admin.workspace, now, page.after, page.one_more())
                .await?;
        tx.commit().await?;
        Ok(page.cut(found, |invite| invite.id))
    }

    /// Takes an invitation back.
    pub async fn revoke_invite(&self, admin: &Admin, id: InviteId) -> Result<(), ControlError> {
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if !invites::revoke(conn, admin.workspace, id, now).await? {
            return Err(ControlError::NotFound("open invitation"));
        }
        let text = id.to_string();
        let event = Event::new("invite.revoke", ("invite", &text, ""));
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// What an invitation's link leads to; having the link is the right to see it.
    pub async fn invite_card(&self, token: &SecretString) -> Result<InviteCard, ControlError> {
        let mut tx = self.read().await?;
        let invite = find_open(&mut tx.conn(), token, self.now()).await?;
        let workspace = workspaces::find(&mut tx.conn(), invite.workspace_id).await?;
        tx.commit().await?;
        let workspace = workspace.ok_or_else(unusable_invite)?;
        Ok(InviteCard {
            workspace_name: workspace.name,
            workspace_slug: workspace.slug,
            email: invite.email,
            role: invite.role,
            expires_at: invite.expires_at,
        })
    }

    /// The caller joins the workspace of the invitation; gives its slug.
    pub async fn accept_invite(
        &self,
        actor: &Actor,
        token: &SecretString,
    ) -> Result<String, ControlError> {
        login_only(actor)?;
        let invite = self.invite_for(&actor.email, token).await?;
        let now = self.now();
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let user = users::find(conn, actor.user).await?.ok_or(ControlError::NotFound("account"))?;
        self.join(conn, &invite, &user, &actor.address, now).await?;
        let workspace = workspaces::find(conn, invite.workspace_id).await?;
        tx.commit().await?;
        workspace.map(|workspace| workspace.slug).ok_or_else(unusable_invite)
    }

    /// The open invitation of a token, if it is for this address.
    pub(crate) async fn invite_for(
        &self,
        email: &str,
        token: &SecretString,
    ) -> Result<Invite, ControlError> {
        let mut tx = self.read().await?;
        let invite = find_open(&mut tx.conn(), token, self.now()).await?;
        tx.commit().await?;
        if invite.email.to_lowercase() == email.trim().to_lowercase() {
            return Ok(invite);
        }
        Err(ControlError::Forbidden {
            code: codes::INVITE_FOR_ANOTHER,
            detail: "this invitation is for another e-mail address".into(),
        })
    }

    /// Uses the invitation up and makes the person a member.
    pub(crate) async fn join(
        &self,
        conn: &mut Conn<'_>,
        invite: &Invite,
        user: &User,
        address: &str,
        now: DateTime<Utc>,
    ) -> Result<(), ControlError> {
        let bound = self.settings().bounds.members;
        if workspaces::counts(conn, invite.workspace_id).await?.members >= bound {
            return Err(ControlError::full("members", bound));
        }
        if !invites::accept(conn, invite.workspace_id, invite.id, now).await? {
            return Err(unusable_invite());
        }
        if !members::add(conn, invite.workspace_id, user.id, invite.role, now).await? {
            return Err(conflict(codes::ALREADY_MEMBER, "you are already a member".to_owned()));
        }
        let (id, what) = (user.id.to_string(), json!({"role": invite.role}));
        let id_of = user.id.uuid();
        let event = NewAdminEvent {
            actor: ActorOf { kind: ActorKind::User, id: Some(id_of), name: &user.email, address },
            action: "invite.accept",
            object_kind: "member",
            object_id: &id,
            object_name: &user.email,
            before: None,
            after: Some(&what),
        };
        admin_events::append(conn, Some(invite.workspace_id), event, now).await?;
        Ok(())
    }
}

async fn find_open(
    conn: &mut Conn<'_>,
    token: &SecretString,
    now: DateTime<Utc>,
) -> Result<Invite, ControlError> {
    let Some((TokenKind::Invite, hash)) = parse_token(token.expose_secret()) else {
        return Err(unusable_invite());
    };
    invites::find_open(conn, hash.as_bytes(), now).await?.ok_or_else(unusable_invite)
}

pub(crate) fn changed(change: MemberChange) -> Result<(), ControlError> {
    match change {
        MemberChange::Done => Ok(()),
        MemberChange::Absent => Err(ControlError::NotFound("member")),
        MemberChange::LastAdmin => Err(conflict(
            codes::LAST_ADMIN,
            "a workspace keeps at least one admin; make somebody else an admin first".to_owned(),
        )),
    }
}

fn conflict(code: ProblemCode, detail: String) -> ControlError {
    ControlError::Conflict { code, pointer: None, detail }
}

/// Whether a list is as long as it may be.
pub(crate) fn reached(have: usize, bound: i64) -> bool {
    i64::try_from(have).is_ok_and(|have| have >= bound)
}
