//! A server's tools, their risk, and the button that applies the recommended rule.

use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_control::{
    Admin, Apply, Control, PolicyManager, Preview, RestOf, Standing, ToolView, Viewer,
};
use sluice_domain::{PolicyId, ServerId};
use sluice_web::{As, JsonBody, MaybeJson, PathId, Problem, Queried};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, PageQuery};
use crate::policies::PolicyBody;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(index))
        .routes(routes!(show))
        .routes(routes!(accept))
        .routes(routes!(accept_all))
        .routes(routes!(preview))
        .routes(routes!(apply))
}

/// A tool as the server describes it, and what Sluice makes of it.
#[derive(Debug, Serialize, ToSchema)]
struct ToolBody {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
    category: &'static str,
    severity: &'static str,
    /// The words that decided, quoted with where they stand.
    reasons: Value,
    signals: Value,
    modifiers: Value,
    confidence: Value,
    /// Signs of a poisoned definition.
    findings: Value,
    /// `current`, `changed` (not accepted yet), `held` (waits for review) or `gone`.
    status: &'static str,
    /// What each of the server's policies does to it.
    standing: Vec<StandingBody>,
    /// What is sent back to accept a definition.
    definition_hash: String,
    /// A piece of a policy document.
    recommended: Value,
    /// What that piece does.
    recommended_sentence: String,
    first_seen_at: DateTime<Utc>,
    changed_at: DateTime<Utc>,
}

/// A policy and what it does to the tool.
#[derive(Debug, Serialize, ToSchema)]
struct StandingBody {
    #[schema(format = Uuid)]
    policy_id: String,
    policy_name: String,
    /// `allowed`, `limited`, `conditional`, `approval`, `denied` or `hidden`.
    effect: Value,
}

impl From<Standing> for StandingBody {
    fn from(standing: Standing) -> Self {
        Self {
            policy_id: standing.policy.to_string(),
            policy_name: standing.policy_name,
            effect: json(&standing.effect),
        }
    }
}

fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

impl ToolBody {
    fn new(tool: ToolView, standing: Vec<Standing>) -> Self {
        Self {
            category: tool.rating.category.as_str(),
            severity: tool.rating.severity.as_str(),
            reasons: json(&tool.rating.reasons),
            signals: json(&tool.rating.signals),
            modifiers: json(&tool.rating.modifiers),
            confidence: json(&tool.rating.confidence),
            findings: json(&tool.findings),
            name: tool.name,
            title: tool.definition.title,
            description: tool.definition.description,
            input_schema: tool.definition.input_schema,
            status: tool.state.as_str(),
            standing: standing.into_iter().map(StandingBody::from).collect(),
            definition_hash: tool.hash,
            recommended: tool.recommended.fragment,
            recommended_sentence: tool.recommended.sentence,
            first_seen_at: tool.first_seen_at,
            changed_at: tool.changed_at,
        }
    }
}

/// The server's tools by name, those that are gone too. All on one page.
#[utoipa::path(
    get, path = "/workspaces/{ws}/servers/{id}/tools", operation_id = "list_tools", tag = "Tools",
    params(("ws" = String, Path), ("id" = Uuid, Path), PageQuery),
    responses((status = 200, body = List<ToolBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<ToolBody>>, Problem> {
    let page = query.page::<String>()?;
    let tools = control.tools(&viewer, server).await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let standings = control.standings(&viewer, server, &names).await?;
    let rest = tools.into_iter().zip(standings).map(|(tool, of)| ToolBody::new(tool, of));
    let rest = rest.filter(|tool| page.after.as_ref().is_none_or(|after| tool.name > *after));
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    if query.limit.is_none() && query.cursor.is_none() {
        return Ok(Json(List::whole(rest.collect())));
    }
    let mut items: Vec<ToolBody> = rest.take(limit.saturating_add(1)).collect();
    let more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().map(|tool| sluice_web::Cursor::write(&tool.name));
    Ok(Json(List { items, next_cursor: last.filter(|_| more) }))
}

/// The path's tool name; it may hold any character.
#[derive(Debug, Deserialize)]
struct ToolPath {
    tool: String,
}

/// One tool.
#[utoipa::path(
    get, path = "/workspaces/{ws}/servers/{id}/tools/{tool}", operation_id = "show_tool", tag = "Tools",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("tool" = String, Path)),
    responses((status = 200, body = ToolBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    Path(ToolPath { tool }): Path<ToolPath>,
) -> Result<Json<ToolBody>, Problem> {
    Ok(Json(whole(&control, &viewer, server, control.tool(&viewer, server, &tool).await?).await?))
}

/// A tool with what each policy does to it.
async fn whole(
    control: &Control,
    viewer: &Viewer,
    server: ServerId,
    tool: ToolView,
) -> Result<ToolBody, Problem> {
    let standings = control.standings(viewer, server, &[&tool.name]).await?;
    Ok(ToolBody::new(tool, standings.into_iter().flatten().collect()))
}

/// The definition that was looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Accept {
    definition_hash: String,
}

/// Accepts a changed or held definition.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/tools/{tool}/accept", operation_id = "accept_tool", tag = "Tools",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("tool" = String, Path)),
    request_body = Accept,
    responses((status = 200, body = ToolBody), Refusals),
)]
async fn accept(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(server): PathId<ServerId>,
    Path(ToolPath { tool }): Path<ToolPath>,
    JsonBody(accept): JsonBody<Accept>,
) -> Result<Json<ToolBody>, Problem> {
    let hash = accept.definition_hash;
    let tool = control.accept_tool(&manager, server, &tool, &hash).await?;
    Ok(Json(whole(&control, &manager, server, tool).await?))
}

/// How many definitions were accepted.
#[derive(Debug, Serialize, ToSchema)]
struct AcceptedAll {
    accepted: usize,
}

/// Accepts every definition that changed and shows no sign of poison.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/accept-all", operation_id = "accept_all_tools", tag = "Tools",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = AcceptedAll), Refusals),
)]
async fn accept_all(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(server): PathId<ServerId>,
) -> Result<Json<AcceptedAll>, Problem> {
    Ok(Json(AcceptedAll { accepted: control.accept_all_tools(&admin, server).await? }))
}

/// Where the rule goes, and what becomes of the other tools.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct ApplyBody {
    /// Left out: the server's policy of this button, made if missing.
    #[schema(value_type = Option<String>, format = Uuid)]
    policy_id: Option<PolicyId>,
    /// `deny` (only what the policy names) or `recommended` (each gets its recommended rule).
    #[schema(value_type = String, example = "deny")]
    rest: RestOf,
}

impl ApplyBody {
    fn into_apply(self) -> Apply {
        Apply { policy: self.policy_id, rest: self.rest }
    }
}

/// What the button changes.
#[derive(Debug, Serialize, ToSchema)]
struct ChangeBody {
    changed: bool,
    /// The tool's rule in one sentence.
    sentence: String,
    /// The whole document in sentences.
    sentences: Value,
    #[schema(value_type = Option<Object>)]
    before: Option<Value>,
    #[schema(value_type = Object)]
    after: Value,
    /// Part by part; empty for a new policy.
    changes: Value,
}

impl From<Preview> for ChangeBody {
    fn from(preview: Preview) -> Self {
        let document = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Self {
            changed: preview.changed,
            sentences: json(&preview.sentences),
            sentence: preview.sentence,
            before: preview.before.as_deref().map(document),
            after: document(&preview.after),
            changes: json(&preview.changes),
        }
    }
}

/// What applying the recommended rule would change. Saves nothing.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/tools/{tool}/preview-recommended", operation_id = "preview_recommended", tag = "Tools",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("tool" = String, Path)),
    request_body = Option<ApplyBody>,
    responses((status = 200, body = ChangeBody), Refusals),
)]
async fn preview(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    Path(ToolPath { tool }): Path<ToolPath>,
    MaybeJson(body): MaybeJson<ApplyBody>,
) -> Result<Json<ChangeBody>, Problem> {
    let apply = body.unwrap_or_default().into_apply();
    Ok(Json(control.preview_recommended(&viewer, server, &tool, apply).await?.into()))
}

/// The policy with the rule in it.
#[derive(Debug, Serialize, ToSchema)]
struct AppliedBody {
    policy: PolicyBody,
    change: ChangeBody,
}

/// Applies the tool's recommended rule. Pressed twice it changes nothing more.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/tools/{tool}/apply-recommended", operation_id = "apply_recommended", tag = "Tools",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("tool" = String, Path)),
    request_body = Option<ApplyBody>,
    responses((status = 200, body = AppliedBody), Refusals),
)]
async fn apply(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(server): PathId<ServerId>,
    Path(ToolPath { tool }): Path<ToolPath>,
    MaybeJson(body): MaybeJson<ApplyBody>,
) -> Result<Json<AppliedBody>, Problem> {
    let apply = body.unwrap_or_default().into_apply();
    let applied = control.apply_recommended(&manager, server, &tool, apply).await?;
    let policy = PolicyBody::try_from(applied.policy)?;
    Ok(Json(AppliedBody { policy, change: applied.preview.into() }))
}
