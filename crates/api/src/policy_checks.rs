//! What a document would say and do, before it is saved.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sluice_control::codes;
use sluice_control::{
    CallsOf, Control, Fault, MAX_TRIALS, Trial, TrialCall, Trials, TrialsOf, Viewer,
};
use sluice_domain::{GrantId, PolicyId, ServerId};
use sluice_policy::{Checked, Problem as DocumentProblem, Tally};
use sluice_web::{As, JsonBody, MaybeJson, PathId, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(check))
        .routes(routes!(check_new))
        .routes(routes!(simulate))
        .routes(routes!(simulate_new))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Document {
    #[schema(value_type = Value)]
    document: Box<RawValue>,
}

/// Everything that is wrong or odd about a document.
#[derive(Debug, Serialize, ToSchema)]
struct CheckedBody {
    /// It could be saved.
    ok: bool,
    #[schema(value_type = Vec<Object>)]
    problems: Vec<DocumentProblem>,
    /// The long form; absent if there is an error.
    #[schema(value_type = Option<Object>)]
    normalised: Option<Value>,
}

impl From<Checked> for CheckedBody {
    fn from(checked: Checked) -> Self {
        Self { ok: checked.ok, problems: checked.problems, normalised: checked.normalised }
    }
}

/// Checks a document against the policy's server: without a body, the stored one.
#[utoipa::path(
    post, path = "/workspaces/{ws}/policies/{id}/check", operation_id = "check_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Option<Document>,
    responses((status = 200, body = CheckedBody), Refusals),
)]
async fn check(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
    MaybeJson(body): MaybeJson<Document>,
) -> Result<Json<CheckedBody>, Problem> {
    let policy = control.policy(&viewer, id).await?;
    let text = body.as_ref().map_or(policy.document.as_str(), |body| body.document.get());
    Ok(Json(control.check_document(&viewer, policy.server_id, text).await?.into()))
}

/// Checks a document that is not saved yet against a server.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/policies/check", operation_id = "check_new_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Document,
    responses((status = 200, body = CheckedBody), Refusals),
)]
async fn check_new(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    JsonBody(body): JsonBody<Document>,
) -> Result<Json<CheckedBody>, Problem> {
    let text = body.document.get();
    Ok(Json(control.check_document(&viewer, server, text).await?.into()))
}

/// A call that is made up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MadeUp {
    tool: String,
    #[schema(value_type = Option<Object>)]
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    grant_label: String,
    client_name: Option<String>,
    /// Now when left out.
    at: Option<DateTime<Utc>>,
}

/// Which logged calls a document is tried on.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Logged {
    #[schema(value_type = Option<String>, format = Uuid)]
    grant: Option<GrantId>,
    tool: Option<String>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    /// 1 to 1,000, the newest first; 1,000 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// What to try. Without `calls`, the newest calls of the log.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Simulate {
    /// Left out: the stored document.
    #[schema(value_type = Option<Object>)]
    document: Option<Box<RawValue>>,
    calls: Option<Vec<MadeUp>>,
    #[serde(default)]
    log: Option<Logged>,
}

impl Simulate {
    fn of(self) -> Result<TrialsOf, Problem> {
        let Some(calls) = self.calls else {
            let (filter, limit) = self.log.unwrap_or_default().of()?;
            return Ok(TrialsOf::Log { filter: Box::new(filter), limit });
        };
        if self.log.is_some() {
            let detail = "give `calls` or `log`, not both";
            return Err(Problem::invalid(Fault::new("/log", codes::AMBIGUOUS, detail)));
        }
        Ok(TrialsOf::These(calls.into_iter().map(TrialCall::from).collect()))
    }
}

impl Logged {
    /// Which calls, and how many at most.
    pub(crate) fn of(self) -> Result<(CallsOf, u32), Problem> {
        let Self { grant, tool, from, to, limit } = self;
        let limit = limit.unwrap_or(MAX_TRIALS);
        if !(1..=MAX_TRIALS).contains(&limit) {
            let detail = format!("1 to {MAX_TRIALS} calls are looked at");
            return Err(Problem::invalid(Fault::new("/log/limit", codes::OUT_OF_RANGE, detail)));
        }
        Ok((CallsOf { grant, tool, from, to, ..CallsOf::default() }, limit))
    }
}

impl From<MadeUp> for TrialCall {
    fn from(call: MadeUp) -> Self {
        Self {
            tool: call.tool,
            arguments: call.arguments.map(|arguments| arguments.get().to_owned()),
            grant_label: call.grant_label,
            client_name: call.client_name,
            at: call.at,
        }
    }
}

/// What would become of one call. Counters count as empty.
#[derive(Debug, Serialize, ToSchema)]
struct TrialBody {
    tool: String,
    at: DateTime<Utc>,
    /// `allow`, `deny`, `approve` or `cannot_tell`.
    outcome: &'static str,
    code: &'static str,
    rule: String,
    message: String,
    trace: Value,
    /// The log row.
    #[schema(format = Uuid)]
    call_id: Option<String>,
    logged_outcome: Option<&'static str>,
    logged_code: Option<&'static str>,
    /// It would go on now and did not then, or the other way round.
    changed: bool,
}

impl From<Trial> for TrialBody {
    fn from(trial: Trial) -> Self {
        use sluice_policy::Verdict;
        let decision = trial.decision;
        let outcome = match decision.verdict {
            _ if decision.cannot_tell => "cannot_tell",
            Verdict::Forward => "allow",
            Verdict::Approve => "approve",
            Verdict::Deny | Verdict::Hide => "deny",
        };
        let logged = trial.logged;
        Self {
            tool: trial.tool,
            at: trial.at,
            outcome,
            code: decision.code.as_str(),
            rule: decision.rule,
            message: decision.message,
            trace: serde_json::to_value(&decision.trace).unwrap_or_default(),
            call_id: logged.map(|(id, _, _)| id.to_string()),
            logged_outcome: logged.map(|(_, outcome, _)| outcome.as_str()),
            logged_code: logged.map(|(_, _, code)| code.as_str()),
            changed: trial.changed,
        }
    }
}

/// How many calls something concerns.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TallyBody {
    /// A rule's pointer, or a grant's label.
    name: String,
    calls: usize,
}

pub(crate) fn tallies(of: Vec<Tally>) -> Vec<TallyBody> {
    of.into_iter().map(|Tally { name, calls }| TallyBody { name, calls }).collect()
}

/// What would become of all of them. A document that only observes is looked through.
#[derive(Debug, Serialize, ToSchema)]
struct SimulatedBody {
    total: usize,
    allowed: usize,
    refused: usize,
    parked: usize,
    changed: usize,
    /// The log does not keep what the rules ask for; never guessed, and counted as nothing else.
    cannot_tell: usize,
    /// Rules that would refuse or park, the most frequent first.
    rules: Vec<TallyBody>,
    /// Grants whose calls would be refused or parked.
    grants: Vec<TallyBody>,
    items: Vec<TrialBody>,
}

impl From<Trials> for SimulatedBody {
    fn from(trials: Trials) -> Self {
        Self {
            total: trials.trials.len(),
            rules: tallies(trials.rules),
            grants: tallies(trials.grants),
            allowed: trials.allowed,
            refused: trials.refused,
            parked: trials.parked,
            changed: trials.changed,
            cannot_tell: trials.cannot_tell,
            items: trials.trials.into_iter().map(TrialBody::from).collect(),
        }
    }
}

/// Says what a document would do to calls: those given, or the newest of the log.
#[utoipa::path(
    post, path = "/workspaces/{ws}/policies/{id}/simulate", operation_id = "simulate_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Option<Simulate>,
    responses((status = 200, body = SimulatedBody), Refusals),
)]
async fn simulate(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
    MaybeJson(body): MaybeJson<Simulate>,
) -> Result<Json<SimulatedBody>, Problem> {
    let policy = control.policy(&viewer, id).await?;
    let mut body = body.unwrap_or_default();
    let document = body.document.take();
    let text = document.as_ref().map_or(policy.document.as_str(), |document| document.get());
    let trials = control.simulate(&viewer, policy.server_id, text, body.of()?).await?;
    Ok(Json(trials.into()))
}

/// The same for a document that is not saved yet.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/policies/simulate", operation_id = "simulate_new_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Simulate,
    responses((status = 200, body = SimulatedBody), Refusals),
)]
async fn simulate_new(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    JsonBody(mut body): JsonBody<Simulate>,
) -> Result<Json<SimulatedBody>, Problem> {
    let Some(document) = body.document.take() else {
        let fault = Fault::new("/document", codes::MISSING_FIELD, "give a document");
        return Err(Problem::invalid(fault));
    };
    let trials = control.simulate(&viewer, server, document.get(), body.of()?).await?;
    Ok(Json(trials.into()))
}
