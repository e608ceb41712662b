//! What one document would do otherwise than another to calls of the log.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sluice_control::codes;
use sluice_control::{ChangedTrial, Compared, Control, Fault, Sums, Viewer};
use sluice_domain::{Code, PolicyId};
use sluice_policy::{SimulatedCall, SimulatedOutcome};
use sluice_web::{As, JsonBody, PathId, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::policy_checks::{Logged, TallyBody, tallies};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(compare))
}

/// Two documents to compare: versions of the policy, or a version and a document that is not saved.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Compare {
    /// A version; the one in force when left out.
    before: Option<i64>,
    /// A version; give this or `document`.
    after: Option<i64>,
    #[schema(value_type = Option<Object>)]
    document: Option<Box<RawValue>>,
    #[serde(default)]
    log: Option<Logged>,
}

/// How many calls a document lets through, refuses and parks.
#[derive(Debug, Serialize, ToSchema)]
struct SumsBody {
    allowed: usize,
    refused: usize,
    parked: usize,
    cannot_tell: usize,
}

impl From<Sums> for SumsBody {
    fn from(sums: Sums) -> Self {
        let Sums { allowed, refused, parked, cannot_tell } = sums;
        Self { allowed, refused, parked, cannot_tell }
    }
}

/// What one document does to a call.
#[derive(Debug, Serialize, ToSchema)]
struct SideBody {
    /// `allow`, `deny` or `approve`.
    outcome: &'static str,
    code: Option<&'static str>,
    rule: String,
}

impl From<SimulatedCall> for SideBody {
    fn from(call: SimulatedCall) -> Self {
        let outcome = match call.outcome {
            SimulatedOutcome::Allow => "allow",
            SimulatedOutcome::Deny => "deny",
            SimulatedOutcome::Approve => "approve",
            SimulatedOutcome::CannotTell => "cannot_tell",
        };
        Self { outcome, code: call.code.map(Code::as_str), rule: call.rule }
    }
}

/// A call that the two treat differently.
#[derive(Debug, Serialize, ToSchema)]
struct ChangedBody {
    #[schema(format = Uuid)]
    call_id: String,
    at: DateTime<Utc>,
    tool: String,
    grant_label: String,
    before: SideBody,
    after: SideBody,
}

/// What the second document would do otherwise than the first.
#[derive(Debug, Serialize, ToSchema)]
struct ComparedBody {
    total: usize,
    before: SumsBody,
    after: SumsBody,
    /// Refused or parked by the second alone.
    stricter: usize,
    /// Let through by the second alone.
    looser: usize,
    /// At least one of the two cannot be told; never guessed, and counted as nothing else.
    cannot_tell: usize,
    /// The rules of the changed calls.
    rules: Vec<TallyBody>,
    /// The grants of the changed calls.
    grants: Vec<TallyBody>,
    items: Vec<ChangedBody>,
}

impl From<Compared> for ComparedBody {
    fn from(compared: Compared) -> Self {
        let changed = |one: ChangedTrial| ChangedBody {
            call_id: one.call.to_string(),
            at: one.at,
            tool: one.tool,
            grant_label: one.grant,
            before: one.before.into(),
            after: one.after.into(),
        };
        Self {
            total: compared.total,
            before: compared.before.into(),
            after: compared.after.into(),
            stricter: compared.stricter,
            looser: compared.looser,
            cannot_tell: compared.cannot_tell,
            rules: tallies(compared.rules),
            grants: tallies(compared.grants),
            items: compared.changed.into_iter().map(changed).collect(),
        }
    }
}

/// Compares what two versions of a policy, or a version and a new document, would do to the newest
/// calls of the server's log.
#[utoipa::path(
    post, path = "/workspaces/{ws}/policies/{id}/compare", operation_id = "compare_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Compare,
    responses((status = 200, body = ComparedBody), Refusals),
)]
async fn compare(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
    JsonBody(body): JsonBody<Compare>,
) -> Result<Json<ComparedBody>, Problem> {
    let policy = control.policy(&viewer, id).await?;
    let before = match body.before {
        Some(version) => control.policy_version(&viewer, id, version).await?.document,
        None => policy.document,
    };
    let after = match (body.after, body.document) {
        (Some(version), None) => control.policy_version(&viewer, id, version).await?.document,
        (None, Some(document)) => document.get().to_owned(),
        (Some(_), Some(_)) => {
            let detail = "give `after` or `document`, not both";
            return Err(Problem::invalid(Fault::new("/document", codes::AMBIGUOUS, detail)));
        }
        (None, None) => {
            let detail = "give `after`, the number of a version, or a `document`";
            return Err(Problem::invalid(Fault::new("/after", codes::MISSING_FIELD, detail)));
        }
    };
    let (filter, limit) = body.log.unwrap_or_default().of()?;
    let sides = (before.as_str(), after.as_str());
    let compared = control.compare(&viewer, policy.server_id, sides, filter, limit).await?;
    Ok(Json(compared.into()))
}
