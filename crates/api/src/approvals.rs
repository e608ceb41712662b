//! Approvals: calls that wait for a person.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_control::{
    ApprovalEventView, ApprovalView, ApprovalsOf, Choice, Control, ControlError, PolicyManager,
    Viewer, span,
};
use sluice_domain::{ApprovalId, ApprovalStatus, GrantId, ServerId};
use sluice_web::{As, MaybeJson, PathId, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, list, page};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(index))
        .routes(routes!(show))
        .routes(routes!(approve))
        .routes(routes!(deny))
        .routes(routes!(reveal))
        .routes(routes!(events))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ApprovalsQuery {
    /// `pending`, `approved`, `denied`, `expired`, `running`, `used` or `unknown`.
    #[param(value_type = Option<String>)]
    status: Option<ApprovalStatus>,
    #[param(value_type = Option<String>, format = Uuid)]
    server: Option<ServerId>,
    #[param(value_type = Option<String>, format = Uuid)]
    grant: Option<GrantId>,
    tool: Option<String>,
    /// 1 to 1,000; 50 when left out.
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct GrantRef {
    #[schema(format = Uuid)]
    id: String,
    label: String,
}

/// A call that waits, or waited, for a person.
#[derive(Debug, Serialize, ToSchema)]
struct ApprovalBody {
    #[schema(format = Uuid)]
    id: String,
    status: &'static str,
    #[schema(format = Uuid)]
    server_id: String,
    tool: String,
    category: Option<&'static str>,
    severity: Option<&'static str>,
    /// Secrets masked; gone some days after the decision.
    arguments: Option<Value>,
    grant: GrantRef,
    /// The call's log row.
    #[schema(format = Uuid)]
    call_id: String,
    #[schema(format = Uuid)]
    policy_id: String,
    policy_version: i64,
    /// The rule that asked, as a JSON Pointer.
    rule: String,
    client_name: Option<String>,
    /// The first characters of the session that asked.
    session: Option<String>,
    approvers: Vec<String>,
    quorum: i64,
    /// Whether the caller is one of those who may decide.
    may_decide: bool,
    created_at: DateTime<Utc>,
    hold_until: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    /// When others were told, because nobody had decided.
    escalated_at: Option<DateTime<Utc>>,
    decided_at: Option<DateTime<Utc>>,
    #[schema(format = Uuid)]
    decided_by: Option<String>,
    note: Option<String>,
    /// The log row of the call that ran.
    #[schema(format = Uuid)]
    run_call_id: Option<String>,
}

impl From<ApprovalView> for ApprovalBody {
    fn from(approval: ApprovalView) -> Self {
        Self {
            id: approval.id.to_string(),
            status: approval.status.as_str(),
            server_id: approval.server.to_string(),
            tool: approval.tool,
            category: approval.category.map(sluice_domain::Category::as_str),
            severity: approval.severity.map(sluice_domain::Severity::as_str),
            arguments: approval.arguments,
            grant: GrantRef { id: approval.grant.to_string(), label: approval.grant_label },
            call_id: approval.call.to_string(),
            policy_id: approval.policy.to_string(),
            policy_version: approval.policy_version,
            rule: approval.rule,
            client_name: approval.client_name,
            session: approval.session,
            approvers: approval.approvers,
            quorum: approval.quorum,
            may_decide: approval.may_decide,
            created_at: approval.created_at,
            hold_until: approval.hold_until,
            expires_at: approval.expires_at,
            escalated_at: approval.escalated_at,
            decided_at: approval.decided_at,
            decided_by: approval.decided_by.map(|id| id.to_string()),
            note: approval.note,
            run_call_id: approval.run_call.map(|id| id.to_string()),
        }
    }
}

/// Why, and whether only this once.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Approving {
    /// Stands in the log.
    note: String,
    /// Lets the same call (grant, tool, arguments, rules) pass without asking for so long: `1m` to
    /// `24h`. Where several people must approve, all must say so, and the shortest holds.
    #[schema(example = "1h")]
    allow_for: Option<String>,
}

/// Why.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Note {
    /// Told to the agent.
    note: String,
}

/// Arguments with their secrets.
#[derive(Debug, Serialize, ToSchema)]
struct Revealed {
    arguments: Value,
}

/// One thing that happened to a parked call.
#[derive(Debug, Serialize, ToSchema)]
struct ApprovalEventBody {
    at: DateTime<Utc>,
    /// `asked`, `notified`, `shown`, `revealed`, `approved`, `denied`, `escalated`, `excepted`,
    /// `expired`, `released`, `ran`, `not_run` or `unknown`.
    kind: &'static str,
    /// The person's address; `null` where it happened by itself.
    who: Option<String>,
    /// More about it, by kind: `note` and `missing` of a decision, `call` of a release, `endpoints`
    /// and `mail` of a message.
    detail: Value,
}

impl From<ApprovalEventView> for ApprovalEventBody {
    fn from(event: ApprovalEventView) -> Self {
        Self {
            at: event.at,
            kind: event.kind.as_str(),
            who: (!event.who.is_empty()).then_some(event.who),
            detail: event.detail,
        }
    }
}

/// The approvals, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/approvals", operation_id = "list_approvals", tag = "Approvals",
    params(("ws" = String, Path), ApprovalsQuery),
    responses((status = 200, body = List<ApprovalBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<ApprovalsQuery>,
) -> Result<Json<List<ApprovalBody>>, Problem> {
    let page = page(query.limit, query.cursor.as_deref())?;
    let ApprovalsQuery { status, server, grant, tool, .. } = query;
    let of = ApprovalsOf { status, server, grant, tool };
    let found = control.approvals(&viewer, &of, page).await?;
    Ok(Json(list(found, ApprovalBody::from)))
}

/// One approval.
#[utoipa::path(
    get, path = "/workspaces/{ws}/approvals/{id}", operation_id = "show_approval", tag = "Approvals",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = ApprovalBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<ApprovalId>,
) -> Result<Json<ApprovalBody>, Problem> {
    let approval = control.approval(&viewer, id).await?;
    control.approval_shown(&viewer, id).await?;
    Ok(Json(approval.into()))
}

/// What happened to a parked call, oldest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/approvals/{id}/events", operation_id = "list_approval_events", tag = "Approvals",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = List<ApprovalEventBody>), Refusals),
)]
async fn events(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<ApprovalId>,
) -> Result<Json<List<ApprovalEventBody>>, Problem> {
    control.approval(&viewer, id).await?;
    let events = control.approval_history(&viewer, id).await?;
    Ok(Json(List::whole(events.into_iter().map(ApprovalEventBody::from).collect())))
}

/// The arguments with their secrets, for those who may decide. That somebody looked is logged.
#[utoipa::path(
    post, path = "/workspaces/{ws}/approvals/{id}/reveal", operation_id = "reveal_approval", tag = "Approvals",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = Revealed), Refusals),
)]
async fn reveal(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<ApprovalId>,
) -> Result<Json<Revealed>, Problem> {
    Ok(Json(Revealed { arguments: control.reveal(&manager, id).await? }))
}

async fn decide(
    control: &Control,
    manager: &PolicyManager,
    id: ApprovalId,
    choice: &Choice,
) -> Result<Json<ApprovalBody>, Problem> {
    match control.decide(manager, id, choice).await {
        Ok(decided) => Ok(Json(decided.approval.into())),
        Err(error) => {
            let conflict = matches!(error, ControlError::Conflict { .. });
            let problem = Problem::from(error);
            let current = control.approval(manager, id).await;
            Err(match current {
                Ok(current) if conflict => problem.with(
                    "current",
                    serde_json::to_value(ApprovalBody::from(current)).unwrap_or_default(),
                ),
                _ => problem,
            })
        }
    }
}

/// Lets the call run, once. A decided approval answers 409 with who decided it.
#[utoipa::path(
    post, path = "/workspaces/{ws}/approvals/{id}/approve", operation_id = "approve_approval", tag = "Approvals",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Option<Approving>,
    responses((status = 200, body = ApprovalBody), Refusals),
)]
async fn approve(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<ApprovalId>,
    MaybeJson(input): MaybeJson<Approving>,
) -> Result<Json<ApprovalBody>, Problem> {
    let Approving { note, allow_for } = input.unwrap_or_default();
    let allow = allow_for.map(|text| span("/allow_for", &text)).transpose();
    let allow = allow.map_err(Problem::invalid)?;
    decide(&control, &manager, id, &Choice { allow, ..Choice::approve(&note) }).await
}

/// Refuses the call. A decided approval answers 409 with who decided it.
#[utoipa::path(
    post, path = "/workspaces/{ws}/approvals/{id}/deny", operation_id = "deny_approval", tag = "Approvals",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Option<Note>,
    responses((status = 200, body = ApprovalBody), Refusals),
)]
async fn deny(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<ApprovalId>,
    MaybeJson(note): MaybeJson<Note>,
) -> Result<Json<ApprovalBody>, Problem> {
    decide(&control, &manager, id, &Choice::deny(&note.unwrap_or_default().note)).await
}
