//! Policy tests: calls, and what a document is expected to say to each.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sluice_control::codes::{self, ProblemCode};
use sluice_control::{Control, ControlError, Fault, MAX_TRIALS, Viewer};
use sluice_domain::{PolicyId, ServerId};
use sluice_policy::{
    Case, CaseResult, CasesFile, CasesReport, Problem as DocumentProblem, compile, run_tests,
};
use sluice_web::{As, JsonBody, PathId, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(test)).routes(routes!(test_new))
}

/// Policy tests: calls, and what is expected of each.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Tests {
    /// Left out: the stored document.
    #[schema(value_type = Option<Object>)]
    document: Option<Box<RawValue>>,
    /// The time of calls that name none (RFC 3339); now when left out.
    now: Option<String>,
    /// As in a file of `sluice policy test`; at most 1,000.
    #[schema(value_type = Vec<Object>)]
    cases: Vec<Case>,
}

/// How one test came out.
#[derive(Debug, Serialize, ToSchema)]
struct TestedCase {
    name: String,
    passed: bool,
    /// What was found instead.
    differences: Vec<String>,
}

/// How the tests came out.
#[derive(Debug, Serialize, ToSchema)]
struct TestedBody {
    passed: usize,
    failed: usize,
    results: Vec<TestedCase>,
}

impl From<CasesReport> for TestedBody {
    fn from(report: CasesReport) -> Self {
        let case = |result: CaseResult| TestedCase {
            name: result.name,
            passed: result.passed,
            differences: result.differences,
        };
        let results = report.results.into_iter().map(case).collect();
        Self { passed: report.passed, failed: report.failed, results }
    }
}

/// Runs policy tests: calls with the outcome that is expected of each. They are of the document alone, as
/// for `sluice policy test`: counters count as empty, tools as known and unchanged.
#[utoipa::path(
    post, path = "/workspaces/{ws}/policies/{id}/test", operation_id = "test_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Tests,
    responses((status = 200, body = TestedBody), Refusals),
)]
async fn test(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
    JsonBody(body): JsonBody<Tests>,
) -> Result<Json<TestedBody>, Problem> {
    let policy = control.policy(&viewer, id).await?;
    tested(&policy.document, body, &control)
}

/// The same for a document that is not saved yet.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/policies/test", operation_id = "test_new_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Tests,
    responses((status = 200, body = TestedBody), Refusals),
)]
async fn test_new(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    JsonBody(body): JsonBody<Tests>,
) -> Result<Json<TestedBody>, Problem> {
    control.server(&viewer, server).await?;
    if body.document.is_none() {
        let fault = Fault::new("/document", codes::MISSING_FIELD, "give a document");
        return Err(Problem::invalid(fault));
    }
    tested("", body, &control)
}

/// Runs tests on the document that they bring, else on `stored`.
fn tested(stored: &str, body: Tests, control: &Control) -> Result<Json<TestedBody>, Problem> {
    let most = usize::try_from(MAX_TRIALS).unwrap_or(usize::MAX);
    if body.cases.len() > most {
        let detail = format!("at most {most} tests run at once");
        return Err(Problem::invalid(Fault::new("/cases", codes::TOO_MANY, detail)));
    }
    let text = body.document.as_ref().map_or(stored, |document| document.get());
    let compiled = compile(text).map_err(|problems| {
        let fault = |problem: &DocumentProblem| {
            let place = format!("/document{}", problem.pointer);
            Fault::new(place, ProblemCode::of(problem.code), problem.message.clone())
        };
        Problem::from(ControlError::Invalid(problems.iter().map(fault).collect()))
    })?;
    let file = CasesFile { policy: None, now: body.now, cases: body.cases };
    Ok(Json(run_tests(&compiled, &file, control.now()).into()))
}
