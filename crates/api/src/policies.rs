//! Policies and their versions. A document is kept and given back as the text that was sent.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sluice_control::{
    Control, ControlError, PolicyForm, PolicyManager, PolicyView, SavedPolicy, VersionView, Viewer,
};
use sluice_domain::{PolicyId, ServerId};
use sluice_policy::Problem as DocumentProblem;
use sluice_web::{As, IfMatch, JsonBody, MaybeIfMatch, PathId, Problem, Queried, etag};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;
use crate::page::{List, PageQuery, list};
use crate::stale::with_current;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(all))
        .routes(routes!(show, save, remove))
        .routes(routes!(versions))
        .routes(routes!(roll_back))
}

/// A stored document as the JSON it is.
fn raw(text: String) -> Result<Box<RawValue>, Problem> {
    RawValue::from_string(text).map_err(|error| Problem::from(ControlError::internal(error)))
}

/// A policy with its newest document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyBody {
    #[schema(format = Uuid)]
    id: String,
    #[schema(format = Uuid)]
    server_id: String,
    name: String,
    /// `custom`, or `button`: the one that the recommended rules' button writes.
    kind: String,
    /// The newest version's number; the `ETag`.
    version: i64,
    #[schema(value_type = Object)]
    document: Box<RawValue>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<PolicyView> for PolicyBody {
    type Error = Problem;

    fn try_from(policy: PolicyView) -> Result<Self, Problem> {
        Ok(Self {
            id: policy.id.to_string(),
            server_id: policy.server_id.to_string(),
            name: policy.name,
            kind: policy.kind.to_string(),
            version: policy.version,
            document: raw(policy.document)?,
            created_at: policy.created_at,
            updated_at: policy.updated_at,
        })
    }
}

/// A saved policy, and what is odd about its document.
#[derive(Debug, Serialize, ToSchema)]
struct SavedBody {
    #[serde(flatten)]
    policy: PolicyBody,
    #[schema(value_type = Vec<Object>)]
    warnings: Vec<DocumentProblem>,
}

/// A policy to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewPolicy {
    #[schema(example = "python-sandbox")]
    name: String,
    #[schema(value_type = Object, example = json!({"version": "1", "default": "deny", "tools": {}}))]
    document: Box<RawValue>,
    /// Why, for the list of versions.
    #[serde(default)]
    note: String,
}

/// A new version.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SavePolicy {
    /// Left out: the name stays.
    name: Option<String>,
    #[schema(value_type = Object)]
    document: Box<RawValue>,
    #[serde(default)]
    note: String,
}

/// One version of a policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionBody {
    version: i64,
    #[schema(value_type = Object)]
    document: Box<RawValue>,
    #[schema(format = Uuid)]
    author: Option<String>,
    note: String,
    created_at: DateTime<Utc>,
}

impl TryFrom<VersionView> for VersionBody {
    type Error = Problem;

    fn try_from(version: VersionView) -> Result<Self, Problem> {
        Ok(Self {
            version: version.version,
            document: raw(version.document)?,
            author: version.author.map(|id| id.to_string()),
            note: version.note,
            created_at: version.created_at,
        })
    }
}

fn tagged(saved: SavedPolicy) -> Result<impl IntoResponse, Problem> {
    let tag = etag(saved.policy.version);
    let body = SavedBody { policy: saved.policy.try_into()?, warnings: saved.warnings };
    Ok(([(header::ETAG, tag)], Json(body)))
}

async fn newest(control: &Control, viewer: &Viewer, id: PolicyId) -> Result<PolicyBody, Problem> {
    control.policy(viewer, id).await?.try_into()
}

fn bodies(
    page: sluice_control::PageOf<PolicyView, PolicyId>,
) -> Result<Json<List<PolicyBody>>, Problem> {
    let List { items, next_cursor } = list(page, PolicyBody::try_from);
    Ok(Json(List { items: items.into_iter().collect::<Result<_, _>>()?, next_cursor }))
}

/// The server's policies, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/servers/{id}/policies", operation_id = "list_server_policies", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path), PageQuery),
    responses((status = 200, body = List<PolicyBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<PolicyBody>>, Problem> {
    bodies(control.policies(&viewer, Some(server), query.page()?).await?)
}

/// The policies of all servers, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/policies", operation_id = "list_policies", tag = "Policies",
    params(("ws" = String, Path), PageQuery),
    responses((status = 200, body = List<PolicyBody>), Refusals),
)]
async fn all(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<PolicyBody>>, Problem> {
    bodies(control.policies(&viewer, None, query.page()?).await?)
}

/// Makes a policy. Everything that is wrong with the document is told at once.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/policies", operation_id = "create_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)), request_body = NewPolicy,
    responses((status = 201, body = SavedBody), Refusals),
)]
async fn create(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(server): PathId<ServerId>,
    JsonBody(new): JsonBody<NewPolicy>,
) -> Result<impl IntoResponse, Problem> {
    let document = new.document.get().to_owned();
    let form = PolicyForm { name: Some(new.name), document, note: new.note };
    let saved = control.create_policy(&manager, server, form).await?;
    let place = format!("/api/v1/workspaces/{}/policies/{}", manager.slug, saved.policy.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], tagged(saved)?))
}

/// One policy with its newest document.
#[utoipa::path(
    get, path = "/workspaces/{ws}/policies/{id}", operation_id = "show_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = PolicyBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
) -> Result<impl IntoResponse, Problem> {
    let policy = control.policy(&viewer, id).await?;
    Ok(([(header::ETAG, etag(policy.version))], Json(PolicyBody::try_from(policy)?)))
}

/// Saves a new version. It decides from the next call on.
#[utoipa::path(
    put, path = "/workspaces/{ws}/policies/{id}", operation_id = "save_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("If-Match" = String, Header)),
    request_body = SavePolicy,
    responses((status = 200, body = SavedBody), Refusals),
)]
async fn save(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<PolicyId>,
    expected: Result<IfMatch, Problem>,
    body: Result<JsonBody<SavePolicy>, Problem>,
) -> Result<impl IntoResponse, Problem> {
    // What is not there is 404, whatever else is wrong with the request.
    let current = control.policy(&manager, id).await?.version;
    let (expected, JsonBody(save)) = (expected?, body?);
    let document = save.document.get().to_owned();
    let form = PolicyForm { name: save.name, document, note: save.note };
    match control.save_policy(&manager, id, expected.version(current), form).await {
        Ok(saved) => tagged(saved),
        Err(error) => Err(with_current(error, newest(&control, &manager, id)).await),
    }
}

/// Deletes a policy that no live grant has.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/policies/{id}", operation_id = "remove_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("If-Match" = Option<String>, Header)),
    responses((status = 204), Refusals),
)]
async fn remove(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<PolicyId>,
    MaybeIfMatch(expected): MaybeIfMatch,
) -> Result<StatusCode, Problem> {
    let current = control.policy(&manager, id).await?.version;
    let expected = expected.and_then(|tags| tags.version(current));
    match control.delete_policy(&manager, id, expected).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(with_current(error, newest(&control, &manager, id)).await),
    }
}

/// The versions, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/policies/{id}/versions", operation_id = "list_policy_versions", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path), PageQuery),
    responses((status = 200, body = List<VersionBody>), Refusals),
)]
async fn versions(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<PolicyId>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<VersionBody>>, Problem> {
    let page = control.policy_versions(&viewer, id, query.page()?).await?;
    let List { items, next_cursor } = list(page, VersionBody::try_from);
    Ok(Json(List { items: items.into_iter().collect::<Result<_, _>>()?, next_cursor }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RollBack {
    version: i64,
}

/// Makes an earlier version the newest again, as a version of its own.
#[utoipa::path(
    post, path = "/workspaces/{ws}/policies/{id}/rollback", operation_id = "roll_back_policy", tag = "Policies",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("If-Match" = Option<String>, Header)), request_body = RollBack,
    responses((status = 200, body = SavedBody), Refusals),
)]
async fn roll_back(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<PolicyId>,
    MaybeIfMatch(expected): MaybeIfMatch,
    JsonBody(to): JsonBody<RollBack>,
) -> Result<impl IntoResponse, Problem> {
    let current = control.policy(&manager, id).await?.version;
    let expected = expected.and_then(|tags| tags.version(current));
    match control.roll_back(&manager, id, expected, to.version).await {
        Ok(saved) => tagged(saved),
        Err(error) => Err(with_current(error, newest(&control, &manager, id)).await),
    }
}
