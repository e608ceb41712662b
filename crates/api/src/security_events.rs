//! The security log of a workspace.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sluice_control::{Admin, Control};
use sluice_domain::{SecurityEvent, SecurityKind};
use sluice_web::{As, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, list, page};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SecurityQuery {
    /// `expired_token`, `revoked_token`, `wrong_server`, `unknown_server`, `foreign_session` or
    /// `network_not_allowed`.
    #[param(value_type = Option<String>)]
    kind: Option<SecurityKind>,
    /// 1 to 1,000; 50 when left out.
    limit: Option<u32>,
    cursor: Option<String>,
}

/// Refused attempts with a token of the workspace.
#[derive(Debug, Serialize, ToSchema)]
struct SecurityBody {
    #[schema(format = Uuid)]
    id: String,
    /// When the last of them came.
    at: DateTime<Utc>,
    kind: &'static str,
    #[schema(format = Uuid)]
    grant_id: Option<String>,
    address: String,
    /// The path, the web origin or the like.
    detail: String,
    /// How many came from there since the row before, within a minute.
    times: i64,
}

impl From<SecurityEvent> for SecurityBody {
    fn from(event: SecurityEvent) -> Self {
        Self {
            id: event.id.to_string(),
            at: event.at,
            kind: event.kind.as_str(),
            grant_id: event.grant.map(|id| id.to_string()),
            address: event.address,
            detail: event.detail,
            times: event.times,
        }
    }
}

/// Refused attempts with a token of the workspace, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/security-events", operation_id = "list_security_events", tag = "Workspace",
    params(("ws" = String, Path), SecurityQuery),
    responses((status = 200, body = List<SecurityBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(admin): As<Admin>,
    Queried(query): Queried<SecurityQuery>,
) -> Result<Json<List<SecurityBody>>, Problem> {
    let page = page(query.limit, query.cursor.as_deref())?;
    let found = control.security_events(&admin, query.kind, page).await?;
    Ok(Json(list(found, SecurityBody::from)))
}
