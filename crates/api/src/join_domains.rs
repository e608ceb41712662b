//! E-mail domains whose people may join the workspace.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use sluice_control::{Admin, Control, JoinDomainView};
use sluice_domain::{JoinDomainId, Role};
use sluice_web::{As, JsonBody, PathId, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index, add)).routes(routes!(remove))
}

/// An e-mail domain whose people may join.
#[derive(Debug, Serialize, ToSchema)]
struct JoinDomainBody {
    #[schema(format = Uuid)]
    id: String,
    /// In lower case; of its subdomains nobody may join.
    #[schema(example = "acme.example")]
    domain: String,
    /// What people of the domain are after joining.
    role: &'static str,
    created_at: DateTime<Utc>,
}

impl From<JoinDomainView> for JoinDomainBody {
    fn from(one: JoinDomainView) -> Self {
        Self {
            id: one.id.to_string(),
            domain: one.domain,
            role: one.role.as_str(),
            created_at: one.created_at,
        }
    }
}

/// All of them, by name.
#[derive(Debug, Serialize, ToSchema)]
struct JoinDomains {
    items: Vec<JoinDomainBody>,
}

/// A domain to let people join from.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewJoinDomain {
    /// That of the confirmed e-mail address of the token's maker.
    #[schema(example = "acme.example")]
    domain: String,
    /// `viewer` or `policy_manager`.
    #[serde(default = "viewer")]
    #[schema(value_type = String, default = "viewer")]
    role: Role,
}

fn viewer() -> Role {
    Role::Viewer
}

/// E-mail domains whose people may join without an invitation, by name. There are at most 20.
#[utoipa::path(
    get, path = "/workspaces/{ws}/join-domains", operation_id = "list_join_domains", tag = "Members",
    params(("ws" = String, Path)),
    responses((status = 200, body = JoinDomains), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(admin): As<Admin>,
) -> Result<Json<JoinDomains>, Problem> {
    let all = control.join_domains(&admin).await?;
    Ok(Json(JoinDomains { items: all.into_iter().map(JoinDomainBody::from).collect() }))
}

/// Lets people whose confirmed address is of a domain join. Domains at which anybody gets an address are
/// refused.
#[utoipa::path(
    post, path = "/workspaces/{ws}/join-domains", operation_id = "add_join_domain", tag = "Members",
    params(("ws" = String, Path)), request_body = NewJoinDomain,
    responses((status = 201, body = JoinDomainBody), Refusals),
)]
async fn add(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(new): JsonBody<NewJoinDomain>,
) -> Result<(StatusCode, Json<JoinDomainBody>), Problem> {
    let made = control.add_join_domain(&admin, &new.domain, new.role).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Takes a domain away. Who joined by it stays a member.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/join-domains/{id}", operation_id = "remove_join_domain", tag = "Members",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn remove(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<JoinDomainId>,
) -> Result<StatusCode, Problem> {
    control.remove_join_domain(&admin, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
