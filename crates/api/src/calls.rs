//! The call log.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_control::{CallsOf, Control, Viewer};
use sluice_domain::{CallId, CallRecord, CallTiming, Code, GrantId, Outcome, PolicyId, ServerId};
use sluice_web::{As, PathId, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
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
        }
    }
}

/// Where the time went, in microseconds.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub(crate) struct Timing {
    total_us: i64,
    limits_us: i64,
    approval_us: i64,
    upstream_us: i64,
}

impl From<CallTiming> for Timing {
    fn from(timing: CallTiming) -> Self {
        let CallTiming { total_us, limits_us, approval_us, upstream_us } = timing;
        Self { total_us, limits_us, approval_us, upstream_us }
    }
}

/// A request through the proxy and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallBody {
    /// The `X-Request-Id` of the answer.
    #[schema(format = Uuid)]
    pub(crate) id: String,
    pub(crate) at: DateTime<Utc>,
    #[schema(format = Uuid)]
    pub(crate) server_id: String,
    #[schema(format = Uuid)]
    pub(crate) grant_id: String,
    pub(crate) grant_label: String,
    pub(crate) method: String,
    pub(crate) tool: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) code: &'static str,
    /// JSON Pointer into the policy, or `(hidden)` and the like; empty when allowed.
    pub(crate) rule: String,
    /// What the agent was told.
    pub(crate) message: String,
    #[schema(format = Uuid)]
    pub(crate) policy_id: Option<String>,
    pub(crate) policy_version: Option<i64>,
    /// The policy only observed: the call went through all the same.
    pub(crate) observed: bool,
    pub(crate) counter: Option<String>,
    pub(crate) retry_after_seconds: Option<i64>,
    /// Names and types, or redacted values where the server's setting says so.
    pub(crate) arguments: Option<Value>,
    pub(crate) trace: Option<Value>,
    pub(crate) client_name: Option<String>,
    pub(crate) protocol_version: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) client_address: Option<String>,
    pub(crate) request_bytes: i64,
    pub(crate) response_bytes: i64,
    pub(crate) upstream_status: Option<i32>,
    pub(crate) timing: Timing,
}

fn json(text: Option<String>) -> Option<Value> {
    text.and_then(|text| serde_json::from_str(&text).ok())
}

impl From<CallRecord> for CallBody {
    fn from(call: CallRecord) -> Self {
        Self {
            id: call.id.to_string(),
            at: call.at,
            server_id: call.server.to_string(),
            grant_id: call.grant.to_string(),
            grant_label: call.grant_label,
            method: call.method,
            tool: call.tool,
            outcome: call.outcome.as_str(),
            code: call.code.as_str(),
            rule: call.rule,
            message: call.message,
            policy_id: call.policy.map(|id| id.to_string()),
            policy_version: call.policy_version,
            observed: call.observed,
            counter: call.counter,
            retry_after_seconds: call.retry_after_s,
            arguments: json(call.arguments),
            trace: json(call.trace),
            client_name: call.client_name,
            protocol_version: call.protocol_version,
            session: call.session,
            client_address: call.client_address,
            request_bytes: call.request_bytes,
            response_bytes: call.response_bytes,
            upstream_status: call.upstream_status,
            timing: call.timing.into(),
        }
    }
}

/// The calls, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/calls", tag = "Calls",
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
    get, path = "/workspaces/{ws}/calls/{id}", tag = "Calls",
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
