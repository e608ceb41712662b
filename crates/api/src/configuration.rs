//! The workspace's configuration as files, for pipelines. `sluice apply` shows the same bodies,
//! whether it works on the database or through this.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sluice_control::configuration::{
    Done, FieldChange, Halted, NewGrantToken, Options, Plan, PlannedChange, Summary,
};
use sluice_control::{Admin, Control, ControlError};
use sluice_web::{As, JsonBody, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;

/// The largest body: a main file and a few dozen large policies.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(export)).routes(routes!(plan)).routes(routes!(apply))
}

/// Files of configuration by their paths: `workspace.yaml` and the policies that it names.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationFiles)]
pub struct FilesBody {
    #[schema(example = json!({"workspace.yaml": "sluice: 1\nworkspace:\n  name: Acme\n"}))]
    pub files: BTreeMap<String, String>,
}

/// What to apply, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ConfigurationRequest)]
pub struct ApplyRequest {
    /// `workspace.yaml` and the policies that it names, by path.
    #[schema(example = json!({"workspace.yaml": "sluice: 1\nworkspace:\n  name: Acme\n"}))]
    files: BTreeMap<String, String>,
    /// The values of references: `{"env:GITHUB_TOKEN": "…"}`. One that is left out keeps what is
    /// stored.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>, write_only)]
    secrets: BTreeMap<String, SecretString>,
    /// Delete what was applied earlier and no file names now.
    #[serde(default)]
    prune: bool,
    /// Change what somebody changed by hand, or made without applying it.
    #[serde(default)]
    overwrite_drift: bool,
    /// The answer's `tokens` are taken: without it a plan that makes grants is refused.
    #[serde(default)]
    take_tokens: bool,
    /// Why, for the policies' versions.
    #[serde(default)]
    note: String,
}

/// A field that differs; secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationField)]
pub struct FieldBody {
    pub field: String,
    pub before: Option<serde_json::Value>,
    pub after: Option<serde_json::Value>,
}

/// What is done to one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationChange)]
pub struct ChangeBody {
    /// `create`, `update`, `delete`, `unchanged`, or `orphan`: applied earlier, in no file now.
    pub action: String,
    /// `workspace`, `server`, `policy` or `grant`.
    pub kind: String,
    /// The server that it belongs to.
    pub server: Option<String>,
    pub name: String,
    pub fields: Vec<FieldBody>,
    /// What changes in a policy's document, part by part.
    #[schema(value_type = Vec<Object>)]
    pub document: Vec<serde_json::Value>,
    /// `changed_by_hand`, `deleted_by_hand` or `never_applied`: refused unless `overwrite_drift`.
    pub drift: Option<String>,
    pub notes: Vec<String>,
}

/// How many objects there are of each action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationSummary)]
pub struct SummaryBody {
    pub create: usize,
    pub update: usize,
    pub delete: usize,
    pub unchanged: usize,
    pub orphan: usize,
}

/// Why a plan is not applied as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationRefusal)]
pub struct RefusalBody {
    /// `drift` or `tokens_wanted`.
    pub code: String,
    pub detail: String,
}

/// What applying would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationPlan)]
pub struct PlanBody {
    /// Object by object, in the order in which they are made.
    pub changes: Vec<ChangeBody>,
    pub summary: SummaryBody,
    /// Objects that no file names and that were never applied; they stay as they are.
    pub unmanaged: usize,
    pub refusal: Option<RefusalBody>,
}

/// The token of a grant that was made, shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationToken)]
pub struct TokenBody {
    pub server: String,
    #[schema(format = Uuid)]
    pub server_id: String,
    pub grant: String,
    #[schema(format = Uuid)]
    pub grant_id: String,
    pub proxy_url: String,
    #[schema(example = "slg_…")]
    pub token: String,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationApplied)]
pub struct AppliedBody {
    pub plan: PlanBody,
    pub tokens: Vec<TokenBody>,
    /// What did not go well and stands in nobody's way, such as a server that does not answer.
    pub warnings: Vec<String>,
}

impl From<&FieldChange> for FieldBody {
    fn from(change: &FieldChange) -> Self {
        let FieldChange { field, before, after } = change.clone();
        Self { field, before, after }
    }
}

impl From<&PlannedChange> for ChangeBody {
    fn from(change: &PlannedChange) -> Self {
        let json = |change| serde_json::to_value(change).unwrap_or_default();
        Self {
            action: word(&change.action),
            kind: change.kind.to_string(),
            server: change.server.clone(),
            name: change.name.clone(),
            fields: change.fields.iter().map(FieldBody::from).collect(),
            document: change.document.iter().map(json).collect(),
            drift: change.drift.as_ref().map(word),
            notes: change.notes.clone(),
        }
    }
}

/// A word as it stands in JSON.
fn word<T: Serialize>(value: &T) -> String {
    json(value).as_str().unwrap_or_default().to_owned()
}

impl From<&Plan> for PlanBody {
    fn from(plan: &Plan) -> Self {
        let Summary { create, update, delete, unchanged, orphan } = plan.summary();
        Self {
            changes: plan.changes().map(ChangeBody::from).collect(),
            summary: SummaryBody { create, update, delete, unchanged, orphan },
            unmanaged: plan.unmanaged,
            refusal: plan.refusal().map(|refusal| RefusalBody {
                code: refusal.code().to_string(),
                detail: refusal.to_string(),
            }),
        }
    }
}

impl From<&NewGrantToken> for TokenBody {
    fn from(made: &NewGrantToken) -> Self {
        Self {
            server: made.server.clone(),
            server_id: made.server_id.to_string(),
            grant: made.label.clone(),
            grant_id: made.grant_id.to_string(),
            proxy_url: made.proxy_url.clone(),
            token: made.token.expose_secret().to_owned(),
        }
    }
}

impl ApplyRequest {
    fn options(&self) -> Options {
        Options {
            prune: self.prune,
            overwrite: self.overwrite_drift,
            take_tokens: self.take_tokens,
            remember: true,
            note: self.note.clone(),
        }
    }
}

/// The workspace's configuration as files. Secrets are references, tokens are left out.
#[utoipa::path(
    get, path = "/workspaces/{ws}/configuration", operation_id = "export_configuration", tag = "Configuration",
    params(("ws" = String, Path)),
    responses((status = 200, body = FilesBody), Refusals),
)]
async fn export(
    State(control): State<Control>,
    As(admin): As<Admin>,
) -> Result<Json<FilesBody>, Problem> {
    Ok(Json(FilesBody { files: control.export_configuration(&admin).await? }))
}

/// Says what applying the files would do, and what stands in its way. Changes nothing.
#[utoipa::path(
    post, path = "/workspaces/{ws}/configuration/plan", operation_id = "plan_configuration", tag = "Configuration",
    params(("ws" = String, Path)), request_body = ApplyRequest,
    responses((status = 200, body = PlanBody), Refusals),
)]
async fn plan(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(asked): JsonBody<ApplyRequest, MAX_BYTES>,
) -> Result<Json<PlanBody>, Problem> {
    let options = asked.options();
    let plan = control.plan_configuration(&admin, &asked.files, &asked.secrets, &options).await?;
    Ok(Json(PlanBody::from(&plan)))
}

/// Applies the files. Everything is checked before the first change; applied twice, the second time
/// changes nothing. What somebody changed by hand since is refused with 409 and the plan.
#[utoipa::path(
    post, path = "/workspaces/{ws}/configuration/apply", operation_id = "apply_configuration", tag = "Configuration",
    params(("ws" = String, Path)), request_body = ApplyRequest,
    responses((status = 200, body = AppliedBody), Refusals),
)]
async fn apply(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(asked): JsonBody<ApplyRequest, MAX_BYTES>,
) -> Result<Response, Problem> {
    // A client that goes away must not stop it between a grant and its token's record.
    let run = tokio::spawn(async move { run(&control, &admin, asked).await });
    let applied = run.await.map_err(ControlError::internal)??;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(applied)).into_response())
}

async fn run(
    control: &Control,
    admin: &Admin,
    asked: ApplyRequest,
) -> Result<AppliedBody, Problem> {
    let options = asked.options();
    let plan = control.plan_configuration(admin, &asked.files, &asked.secrets, &options).await?;
    let body = PlanBody::from(&plan);
    if let Some(refusal) = plan.refusal() {
        return Err(Problem::from(refusal).with("plan", json(&body)));
    }
    let mut tokens = Vec::new();
    let mut keep = |made: &NewGrantToken| {
        tokens.push(TokenBody::from(made));
        Ok(())
    };
    let done = control.apply_configuration(admin, plan, &mut keep).await;
    match done {
        Ok(Done { warnings, .. }) => Ok(AppliedBody { plan: body, tokens, warnings }),
        Err(Halted { at, done, error }) => Err(Problem::from(error)
            .with("at", at.into())
            .with("done", done.into())
            .with("tokens", json(&tokens))),
    }
}

fn json<T: Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

impl ChangeBody {
    /// `policy sandbox / read only`.
    pub fn title(&self) -> String {
        match &self.server {
            Some(server) => format!("{} {server} / {}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }
}
