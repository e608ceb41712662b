//! `/w/{ws}/members`: who is in the workspace, in which role, and who is invited.

use askama::Template;
use axum::extract::Path;
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret;
use serde::Deserialize;
use sluice_control::{Admin, InviteView, MemberView, Page, Viewer};
use sluice_domain::{InviteId, Role, UserId};
use sluice_web::Form;

use super::Nothing;
use crate::desk::{Answer, AsViewer, Desk, WsFrame, absent, refuse, status};
use crate::faults::Faults;
use crate::filters;
use crate::flash;
use crate::page;
use crate::ui::{Field, Select, TokenBox};

/// Bounds of a workspace are below this.
const ALL: u32 = 1_000;

#[derive(Debug, Template)]
#[template(path = "ws/members.html")]
struct MembersPage {
    frame: WsFrame,
    now: DateTime<Utc>,
    rows: Vec<MemberView>,
    invites: Vec<InviteView>,
    problem: Option<String>,
    email: Field,
    role: Select,
    /// The link of an invitation that was just made.
    link: Option<TokenBox>,
    me: UserId,
}

#[expect(clippy::unused_self, reason = "the template calls it")]
impl MembersPage {
    fn options(&self, chosen: Role) -> Vec<(&'static str, &'static str, bool)> {
        ROLES.iter().map(|(role, word)| (role.as_str(), *word, *role == chosen)).collect()
    }
}

const ROLES: [(Role, &str); 3] = [
    (Role::Viewer, "Viewer: reads"),
    (Role::PolicyManager, "Policy manager: also writes policies and decides approvals"),
    (Role::Admin, "Admin: everything"),
];

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Invitation {
    #[serde(default)]
    email: String,
    #[serde(default)]
    role: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NewRole {
    #[serde(default)]
    role: String,
}

async fn show<P: AsViewer>(
    desk: Desk<P>,
    input: &Invitation,
    faults: &Faults,
    link: Option<TokenBox>,
) -> Answer {
    let control = &desk.control;
    let rows = control.members(desk.viewer(), Page::first(ALL)).await.map_err(refuse)?.items;
    let admin = desk.access().require::<Admin>().ok();
    let invites = match &admin {
        Some(admin) => control.invites(admin, Page::first(ALL)).await.map_err(refuse)?.items,
        None => Vec::new(),
    };
    let chosen = if input.role.is_empty() { Role::Viewer.as_str() } else { &input.role };
    let words = ROLES.map(|(role, word)| (role.as_str(), word));
    let mut role = Select::new("role", "Role", words, chosen);
    role.error = faults.at("/role");
    let page = MembersPage {
        frame: desk.frame("members").await?,
        now: desk.now,
        rows,
        invites,
        problem: faults.rest(&["/email", "/role"]),
        email: Field::new("email", "email", "E-mail address")
            .value(input.email.clone())
            .hint("The link works once, for this address, for 7 days.")
            .required()
            .max(254)
            .error(faults.at("/email")),
        role,
        link,
        me: desk.access().actor.user,
    };
    Ok(page::private(status(faults), &page))
}

pub(crate) async fn list(desk: Desk<Viewer>) -> Answer {
    show(desk, &Invitation::default(), &Faults::none(), None).await
}

pub(crate) async fn invite(desk: Desk<Admin>, Form(input): Form<Invitation>) -> Answer {
    let Ok(role) = input.role.parse::<Role>() else {
        return show(desk, &input, &Faults::one("/role", "Choose a role."), None).await;
    };
    match desk.control.invite(&desk.who, &input.email, role).await {
        Ok(invited) => {
            let link = TokenBox {
                title: format!("Send this link to {}", invited.invite.email),
                token: format!("{}/join/{}", desk.base, invited.token.expose_secret()),
                done: desk.path("/members"),
            };
            show(desk, &Invitation::default(), &Faults::none(), Some(link)).await
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            show(desk, &input, &faults, None).await
        }
    }
}

pub(crate) async fn role(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(input): Form<NewRole>,
) -> Answer {
    let user: UserId = id.parse().map_err(|_| absent("member"))?;
    let Ok(role) = input.role.parse::<Role>() else {
        let faults = Faults::one("/role", "Choose a role.");
        return show(desk, &Invitation::default(), &faults, None).await;
    };
    match desk.control.set_role(&desk.who, user, role).await {
        Ok(()) => Ok(flash::done(&desk.path("/members"), "Saved the role.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            show(desk, &Invitation::default(), &faults, None).await
        }
    }
}

pub(crate) async fn remove(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let user: UserId = id.parse().map_err(|_| absent("member"))?;
    match desk.control.remove_member(&desk.who, user).await {
        Ok(()) => {
            let said = "Removed the member. Their API tokens have stopped; what they made stays.";
            Ok(flash::done(&desk.path("/members"), said))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            show(desk, &Invitation::default(), &faults, None).await
        }
    }
}

pub(crate) async fn leave(desk: Desk<Viewer>, Form(Nothing {}): Form<Nothing>) -> Answer {
    match desk.control.leave(&desk.who).await {
        Ok(()) => Ok(flash::done("/account", "You left the workspace.")),
        Err(error) => {
            let faults = Faults::of(error)?;
            show(desk, &Invitation::default(), &faults, None).await
        }
    }
}

pub(crate) async fn revoke_invite(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: InviteId = id.parse().map_err(|_| absent("open invitation"))?;
    desk.control.revoke_invite(&desk.who, id).await.map_err(refuse)?;
    Ok(flash::done(&desk.path("/members"), "Took the invitation back; its link no longer works."))
}
