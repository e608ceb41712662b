//! The call log.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use sluice_control::{CallsOf, Control, Viewer};
use sluice_domain::{CallId, Code, GrantId, Outcome, PolicyId, ServerId};
use sluice_web::export::CallBody;
use sluice_web::{As, PathId, Problem, Queried};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, list, page};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(index)).routes(routes!(show))
}

/// Which calls are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallsQuery {
    #[param(value_type = Option<String>, format = Uuid)]
    server: Option<ServerId>,
    #[param(value_type = Option<String>, format = Uuid)]
    grant: Option<GrantId>,
    #[param(value_type = Option<String>, format = Uuid)]
    policy: Option<PolicyId>,
    /// A tool's exact name.
    tool: Option<String>,
    /// `allowed`, `denied`, `limited`, `hidden`, `waiting`, `failed` or `rejected`.
    #[param(value_type = Option<String>)]
    outcome: Option<Outcome>,
    /// A decision's code, such as `rate_limited`.
    #[param(value_type = Option<String>)]
    code: Option<Code>,
    /// A rule's JSON Pointer.
    rule: Option<String>,
    /// From this time on (RFC 3339).
    from: Option<DateTime<Utc>>,
    /// Before this time (RFC 3339).
    to: Option<DateTime<Utc>>,
    /// Free text, or a call's id.
    q: Option<String>,
    /// 1 to 1,000; 50 when left out. An export has no such bound.
    pub(crate) limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub(crate) cursor: Option<String>,
}

impl CallsQuery {
    pub(crate) fn filter(&self) -> CallsOf {
        CallsOf {
            server: self.server,
            grant: self.grant,
            policy: self.policy,
            tool: self.tool.clone(),
            outcome: self.outcome,
            code: self.code,
            rule: self.rule.clone(),
            from: self.from,
            to: self.to,
            q: self.q.clone(),
            newer: None,
            tool_calls: false,
        }
    }
}

/// The calls, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/calls", operation_id = "list_calls", tag = "Calls",
    params(("ws" = String, Path), CallsQuery),
    responses((status = 200, body = List<CallBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<CallsQuery>,
) -> Result<Json<List<CallBody>>, Problem> {
    let page = page(query.limit, query.cursor.as_deref())?;
    let found = control.calls(&viewer, &query.filter(), page).await?;
    Ok(Json(list(found, CallBody::from)))
}

/// One call with its trace.
#[utoipa::path(
    get, path = "/workspaces/{ws}/calls/{id}", operation_id = "show_call", tag = "Calls",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = CallBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<CallId>,
) -> Result<Json<CallBody>, Problem> {
    Ok(Json(control.call(&viewer, id).await?.into()))
}
