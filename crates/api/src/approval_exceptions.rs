//! Calls that a person lets pass for a while without asking.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use sluice_control::{Control, ExceptionView, PolicyManager, Viewer};
use sluice_domain::{ExceptionId, GrantId};
use sluice_web::{As, PathId, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, list, page};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(revoke))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExceptionsQuery {
    #[param(value_type = Option<String>, format = Uuid)]
    grant: Option<GrantId>,
    /// Those that are over as well.
    #[serde(default)]
    all: bool,
    /// 1 to 1,000; 50 when left out.
    limit: Option<u32>,
    cursor: Option<String>,
}

/// The same call as one that was approved passes without asking, for a while.
#[derive(Debug, Serialize, ToSchema)]
struct ExceptionBody {
    #[schema(format = Uuid)]
    id: String,
    /// `in_force`, `revoked`, `expired`, `used_up`, `rules_changed`, `tool_changed` or `grant_revoked`.
    state: &'static str,
    #[schema(format = Uuid)]
    server_id: String,
    #[schema(format = Uuid)]
    grant_id: String,
    grant_label: String,
    /// The approval that it was made with; it shows the arguments.
    #[schema(format = Uuid)]
    approval_id: String,
    #[schema(format = Uuid)]
    policy_id: String,
    rule: String,
    tool: String,
    /// The address of who made it.
    created_by: String,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    uses: i64,
    max_uses: i64,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

impl From<ExceptionView> for ExceptionBody {
    fn from(exception: ExceptionView) -> Self {
        Self {
            id: exception.id.to_string(),
            state: exception.state.as_str(),
            server_id: exception.server.to_string(),
            grant_id: exception.grant.to_string(),
            grant_label: exception.grant_label,
            approval_id: exception.approval.to_string(),
            policy_id: exception.policy.to_string(),
            rule: exception.rule,
            tool: exception.tool,
            created_by: exception.created_by,
            created_at: exception.created_at,
            expires_at: exception.expires_at,
            uses: exception.uses,
            max_uses: exception.max_uses,
            last_used_at: exception.last_used_at,
            revoked_at: exception.revoked_at,
        }
    }
}

/// The exceptions, newest first; made by approving with `allow_for`.
#[utoipa::path(
    get, path = "/workspaces/{ws}/approval-exceptions", operation_id = "list_exceptions", tag = "Approvals",
    params(("ws" = String, Path), ExceptionsQuery),
    responses((status = 200, body = List<ExceptionBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<ExceptionsQuery>,
) -> Result<Json<List<ExceptionBody>>, Problem> {
    let page = page(query.limit, query.cursor.as_deref())?;
    let found = control.exceptions(&viewer, query.grant, query.all, page).await?;
    Ok(Json(list(found, ExceptionBody::from)))
}

/// Takes an exception back: the next such call asks again.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/approval-exceptions/{id}", operation_id = "revoke_exception", tag = "Approvals",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn revoke(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<ExceptionId>,
) -> Result<StatusCode, Problem> {
    control.revoke_exception(&manager, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
