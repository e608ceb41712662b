//! REST tokens.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sluice_control::{Admin, ApiTokenForm, ApiTokenView, Control};
use sluice_domain::{ApiTokenId, Role};
use sluice_web::{As, JsonBody, PathId, Problem, Queried};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, PageQuery, list};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index, create)).routes(routes!(revoke))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewApiToken {
    label: String,
    /// `viewer`, `policy_manager` or `admin`; never more than its maker.
    #[schema(value_type = String)]
    role: Role,
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ApiTokenBody {
    #[schema(format = Uuid)]
    id: String,
    label: String,
    role: &'static str,
    last4: String,
    #[schema(format = Uuid)]
    created_by: String,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

impl From<ApiTokenView> for ApiTokenBody {
    fn from(token: ApiTokenView) -> Self {
        Self {
            id: token.id.to_string(),
            label: token.label,
            role: token.role.as_str(),
            last4: token.last4,
            created_by: token.created_by.to_string(),
            created_at: token.created_at,
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            revoked_at: token.revoked_at,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct MadeBody {
    /// Shown this once.
    #[schema(example = "slu_…")]
    token: String,
    #[serde(flatten)]
    shown: ApiTokenBody,
}

/// The workspace's API tokens, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/api-tokens", operation_id = "list_api_tokens", tag = "API tokens",
    params(("ws" = String, Path), PageQuery),
    responses((status = 200, body = List<ApiTokenBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(admin): As<Admin>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<ApiTokenBody>>, Problem> {
    let page = control.api_tokens(&admin, query.page()?).await?;
    Ok(Json(list(page, ApiTokenBody::from)))
}

/// Makes an API token. The answer holds it, this once.
#[utoipa::path(
    post, path = "/workspaces/{ws}/api-tokens", operation_id = "create_api_token", tag = "API tokens",
    params(("ws" = String, Path)), request_body = NewApiToken,
    responses((status = 201, body = MadeBody), Refusals),
)]
async fn create(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(new): JsonBody<NewApiToken>,
) -> Result<(StatusCode, Json<MadeBody>), Problem> {
    let NewApiToken { label, role, expires_at } = new;
    let made = control.create_api_token(&admin, ApiTokenForm { label, role, expires_at }).await?;
    let token = made.token.expose_secret().to_owned();
    Ok((StatusCode::CREATED, Json(MadeBody { token, shown: made.view.into() })))
}

/// Ends an API token for good.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/api-tokens/{id}", operation_id = "revoke_api_token", tag = "API tokens",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn revoke(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<ApiTokenId>,
) -> Result<StatusCode, Problem> {
    control.revoke_api_token(&admin, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
