//! Members and invitations.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sluice_control::{Admin, Control, InviteView, MemberView, Viewer};
use sluice_domain::{InviteId, Role, UserId};
use sluice_web::{As, JsonBody, PathId, Problem, Queried};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, PageQuery, list};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(index, add))
        .routes(routes!(change, remove))
        .routes(routes!(invites, invite))
        .routes(routes!(revoke))
}

#[derive(Debug, Serialize, ToSchema)]
struct MemberBody {
    /// The user's id.
    #[schema(format = Uuid)]
    id: String,
    email: String,
    name: String,
    role: &'static str,
    disabled: bool,
    since: DateTime<Utc>,
}

impl From<MemberView> for MemberBody {
    fn from(member: MemberView) -> Self {
        Self {
            id: member.user_id.to_string(),
            email: member.email,
            name: member.name,
            role: member.role.as_str(),
            disabled: member.disabled,
            since: member.created_at,
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangeMember {
    /// `viewer`, `policy_manager` or `admin`.
    #[schema(value_type = String)]
    role: Role,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewInvite {
    email: String,
    /// `viewer`, `policy_manager` or `admin`.
    #[schema(value_type = String)]
    role: Role,
}

#[derive(Debug, Serialize, ToSchema)]
struct InviteBody {
    #[schema(format = Uuid)]
    id: String,
    email: String,
    role: &'static str,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

impl From<InviteView> for InviteBody {
    fn from(invite: InviteView) -> Self {
        Self {
            id: invite.id.to_string(),
            email: invite.email,
            role: invite.role.as_str(),
            created_at: invite.created_at,
            expires_at: invite.expires_at,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct InvitedBody {
    #[serde(flatten)]
    invite: InviteBody,
    /// The link to send; shown this once.
    link: String,
}

/// The members, by the time they joined.
#[utoipa::path(
    get, path = "/workspaces/{ws}/members", operation_id = "list_members", tag = "Members",
    params(("ws" = String, Path), PageQuery),
    responses((status = 200, body = List<MemberBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<MemberBody>>, Problem> {
    let page = control.members(&viewer, query.page()?).await?;
    Ok(Json(list(page, MemberBody::from)))
}

/// Adds somebody to the workspace: they join by the link that is given back, which works once, for
/// that address, whether they have an account or make one. The same as an invitation.
#[utoipa::path(
    post, path = "/workspaces/{ws}/members", operation_id = "add_member", tag = "Members",
    params(("ws" = String, Path)), request_body = NewInvite,
    responses((status = 201, body = InvitedBody), Refusals),
)]
async fn add(
    state: State<Control>,
    admin: As<Admin>,
    new: JsonBody<NewInvite>,
) -> Result<(StatusCode, Json<InvitedBody>), Problem> {
    invite(state, admin, new).await
}

/// Changes a member's role. The last admin stays one.
#[utoipa::path(
    patch, path = "/workspaces/{ws}/members/{id}", operation_id = "change_member", tag = "Members",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = ChangeMember,
    responses((status = 204), Refusals),
)]
async fn change(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(user): PathId<UserId>,
    JsonBody(body): JsonBody<ChangeMember>,
) -> Result<StatusCode, Problem> {
    control.set_role(&admin, user, body.role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a member; what they made stays.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/members/{id}", operation_id = "remove_member", tag = "Members",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn remove(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(user): PathId<UserId>,
) -> Result<StatusCode, Problem> {
    control.remove_member(&admin, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The open invitations, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/invites", operation_id = "list_invites", tag = "Members",
    params(("ws" = String, Path), PageQuery),
    responses((status = 200, body = List<InviteBody>), Refusals),
)]
async fn invites(
    State(control): State<Control>,
    As(admin): As<Admin>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<InviteBody>>, Problem> {
    let page = control.invites(&admin, query.page()?).await?;
    Ok(Json(list(page, InviteBody::from)))
}

/// Invites an e-mail address. The link works once, for that address.
#[utoipa::path(
    post, path = "/workspaces/{ws}/invites", operation_id = "create_invite", tag = "Members",
    params(("ws" = String, Path)), request_body = NewInvite,
    responses((status = 201, body = InvitedBody), Refusals),
)]
async fn invite(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(new): JsonBody<NewInvite>,
) -> Result<(StatusCode, Json<InvitedBody>), Problem> {
    let invited = control.invite(&admin, &new.email, new.role).await?;
    let base = control.settings().public_url.as_str().trim_end_matches('/');
    let link = format!("{base}/join/{}", invited.token.expose_secret());
    Ok((StatusCode::CREATED, Json(InvitedBody { invite: invited.invite.into(), link })))
}

/// Takes an invitation back.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/invites/{id}", operation_id = "revoke_invite", tag = "Members",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn revoke(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<InviteId>,
) -> Result<StatusCode, Problem> {
    control.revoke_invite(&admin, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
