//! Who the token is.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use sluice_control::{Control, Proof};
use sluice_web::{Bearer, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(me))
}

/// Who is calling.
#[derive(Debug, Serialize, ToSchema)]
struct Me {
    user: User,
    token: Option<Token>,
    workspaces: Vec<Workspace>,
}

#[derive(Debug, Serialize, ToSchema)]
struct User {
    #[schema(format = Uuid)]
    id: String,
    email: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct Token {
    #[schema(format = Uuid)]
    id: String,
    label: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct Workspace {
    #[schema(format = Uuid)]
    id: String,
    /// What stands for `{ws}` in paths.
    #[schema(example = "acme")]
    slug: String,
    name: String,
    /// What the caller may do: `viewer`, `policy_manager` or `admin`.
    role: &'static str,
    suspended: bool,
}

/// Who is calling, which workspaces they reach, and in which role.
#[utoipa::path(get, path = "/me", operation_id = "me", tag = "Account", responses((status = 200, body = Me), Refusals))]
async fn me(State(control): State<Control>, Bearer(actor): Bearer) -> Result<Json<Me>, Problem> {
    let workspaces = control.workspaces(&actor).await?;
    let token = match &actor.proof {
        Proof::ApiToken { id, label, .. } => {
            Some(Token { id: id.to_string(), label: label.clone() })
        }
        Proof::Login(_) | Proof::Link(_) | Proof::Operator => None,
    };
    let workspaces = workspaces
        .into_iter()
        .map(|one| Workspace {
            id: one.id.to_string(),
            slug: one.slug,
            name: one.name,
            role: one.role.as_str(),
            suspended: one.suspended,
        })
        .collect();
    let user = User { id: actor.user.to_string(), email: actor.email };
    Ok(Json(Me { user, token, workspaces }))
}
