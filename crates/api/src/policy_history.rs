//! A policy's past and what hangs on it: one version with what it changed, the grants that have the policy, and taking
//! back a press of the recommended rule's button.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_control::{
    Control, ControlError, GrantsOf, PolicyManager, PolicyView, Undone, VersionView, Viewer,
};
use sluice_domain::PolicyId;
use sluice_web::{As, JsonBody, PathId, Problem, Queried};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::grants::GrantBody;
use crate::openapi::Refusals;
use crate::page::{List, PageQuery, list};
use crate::policies::{PolicyBody, VersionBody};

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(version)).routes(routes!(grants)).routes(routes!(undo))
}

/// The path's `{version}`; what is no number names nothing.
#[derive(Debug, Deserialize)]
struct Number {
    version: String,
}

/// Against which version the changes are told.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Against {
    /// The version before it when left out.
    #[param(minimum = 1)]
    against: Option<i64>,
}

/// One version, and what it changed.
#[derive(Debug, Serialize, ToSchema)]
struct VersionWithChanges {
    #[serde(flatten)]
    version: VersionBody,
    /// The version that it is compared with; `null`: it is the first.
    against: Option<i64>,
    /// Part by part, each with a JSON Pointer, `added`, `removed` or `changed`, and what stood before and after. The
    /// order of keys and ways to write a number do not count.
    #[schema(value_type = Vec<Object>)]
    changes: Vec<Value>,
}

fn changes(before: &VersionView, after: &VersionView) -> Vec<Value> {
    let found = sluice_policy::diff(&before.document, &after.document).unwrap_or_default();
    found.iter().filter_map(|change| serde_json::to_value(change).ok()).collect()
}

/// One version of a policy, with what it changed.
#[utoipa::path(
    get, path = "/workspaces/{ws}/policies/{id}/versions/{version}", operation_id = "show_policy_version",
    tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("version" = i64, Path), Against),
    responses((status = 200, body = VersionWithChanges), Refusals),
)]
async fn version(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
    Path(Number { version }): Path<Number>,
    Queried(query): Queried<Against>,
) -> Result<Json<VersionWithChanges>, Problem> {
    let number = version.parse().map_err(|_| ControlError::NotFound("version"))?;
    let version = control.policy_version(&viewer, id, number).await?;
    let against = query.against.or((number > 1).then(|| number - 1));
    let changes = match against {
        Some(other) => changes(&control.policy_version(&viewer, id, other).await?, &version),
        None => Vec::new(),
    };
    Ok(Json(VersionWithChanges { version: version.try_into()?, against, changes }))
}

/// The live grants that have the policy, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/policies/{id}/grants", operation_id = "list_policy_grants", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path), PageQuery),
    responses((status = 200, body = List<GrantBody>), Refusals),
)]
async fn grants(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<GrantBody>>, Problem> {
    control.policy(&viewer, id).await?;
    let of = GrantsOf { policy: Some(id), ..GrantsOf::default() };
    let page = control.grants(&viewer, of, query.page()?).await?;
    Ok(Json(list(page, GrantBody::from)))
}

/// Which press is taken back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Undo {
    /// The version that the press saved.
    #[schema(minimum = 1)]
    version: i64,
}

/// What became of the policy.
#[derive(Debug, Serialize, ToSchema)]
struct UndoneBody {
    /// The press had made the policy, so it is gone.
    deleted: bool,
    /// The policy as it stands now; `null`: it is gone.
    policy: Option<PolicyBody>,
}

/// Takes back a press of the recommended rule's button, as long as nobody changed the policy since. Sent twice it takes
/// it back once.
#[utoipa::path(
    post, path = "/workspaces/{ws}/policies/{id}/undo", operation_id = "undo_recommended", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = Undo,
    responses((status = 200, body = UndoneBody), Refusals),
)]
async fn undo(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<PolicyId>,
    JsonBody(undo): JsonBody<Undo>,
) -> Result<Json<UndoneBody>, Problem> {
    let stays = |policy: PolicyView| PolicyBody::try_from(policy).map(Some);
    let policy = match control.undo_recommended(&manager, id, undo.version).await? {
        Undone::Deleted => None,
        Undone::Back(policy) | Undone::Already(policy) => stays(policy)?,
    };
    Ok(Json(UndoneBody { deleted: policy.is_none(), policy }))
}
