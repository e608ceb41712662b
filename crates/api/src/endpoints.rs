//! Endpoints: where a workspace is told of things.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use http::{StatusCode, header};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sluice_control::{Admin, Control, EndpointForm, EndpointPatch, EndpointView, MadeEndpoint};
use sluice_domain::{EndpointId, EndpointKind, Notice};
use sluice_web::{As, IfMatch, JsonBody, PathId, Problem, Queried, etag};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::deliveries::DeliveryBody;
use crate::openapi::Refusals;
use crate::page::{List, PageQuery, list};
use crate::stale::with_current;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(show, edit, delete))
        .routes(routes!(test))
        .routes(routes!(rotate))
}

/// A webhook or a channel.
#[derive(Debug, Serialize, ToSchema)]
struct EndpointBody {
    #[schema(format = Uuid)]
    id: String,
    name: String,
    /// `webhook`, `slack` or `teams`.
    kind: &'static str,
    /// The host alone; the rest is a secret with some services and is never shown.
    url: String,
    events: Vec<&'static str>,
    enabled: bool,
    /// Until when the secret before the last rotation signs too.
    previous_secret_until: Option<DateTime<Utc>>,
    /// Rises with every edit; the `ETag`.
    revision: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<EndpointView> for EndpointBody {
    fn from(endpoint: EndpointView) -> Self {
        Self {
            id: endpoint.id.to_string(),
            name: endpoint.name,
            kind: endpoint.kind.as_str(),
            url: endpoint.shown_url,
            events: endpoint.notices.iter().map(|notice| notice.as_str()).collect(),
            enabled: endpoint.enabled,
            previous_secret_until: endpoint.previous_until,
            revision: endpoint.revision,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
        }
    }
}

/// A new endpoint, or an old one with a new secret.
#[derive(Debug, Serialize, ToSchema)]
struct MadeEndpointBody {
    /// What a webhook's messages are signed with; shown this once.
    #[schema(example = "whsec_…")]
    secret: Option<String>,
    #[serde(flatten)]
    endpoint: EndpointBody,
}

impl From<MadeEndpoint> for MadeEndpointBody {
    fn from(made: MadeEndpoint) -> Self {
        let secret = made.secret.map(|secret| secret.expose_secret().to_owned());
        Self { secret, endpoint: made.view.into() }
    }
}

/// An endpoint to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewEndpoint {
    #[schema(example = "ops channel")]
    name: String,
    /// `webhook`, `slack` or `teams`.
    #[schema(value_type = String)]
    kind: EndpointKind,
    #[schema(example = "https://example.com/hooks/sluice")]
    url: String,
    /// `approval.asked`, `approval.escalated`, `approval.decided`, `approval.expired`,
    /// `approval.ran`, `approval.outcome_unknown`; left out: what is usual for the kind.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    events: Vec<Notice>,
}

/// What changes; what is left out stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct EditEndpoint {
    name: Option<String>,
    url: Option<String>,
    #[schema(value_type = Option<Vec<String>>)]
    events: Option<Vec<Notice>>,
    enabled: Option<bool>,
}

fn tagged(view: EndpointView) -> impl IntoResponse {
    ([(header::ETAG, etag(view.revision))], Json(EndpointBody::from(view)))
}

/// The endpoints, oldest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/notification-endpoints", operation_id = "list_endpoints", tag = "Notifications",
    params(("ws" = String, Path), PageQuery),
    responses((status = 200, body = List<EndpointBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(admin): As<Admin>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<EndpointBody>>, Problem> {
    let page = control.endpoints(&admin, query.page()?).await?;
    Ok(Json(list(page, EndpointBody::from)))
}

/// Makes an endpoint. The answer holds a webhook's secret, this once.
#[utoipa::path(
    post, path = "/workspaces/{ws}/notification-endpoints", operation_id = "create_endpoint", tag = "Notifications",
    params(("ws" = String, Path)), request_body = NewEndpoint,
    responses((status = 201, body = MadeEndpointBody), Refusals),
)]
async fn create(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(new): JsonBody<NewEndpoint>,
) -> Result<(StatusCode, Json<MadeEndpointBody>), Problem> {
    let NewEndpoint { name, kind, url, events } = new;
    let form = EndpointForm { name, kind, url, notices: events };
    let made = control.create_endpoint(&admin, form).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// One endpoint.
#[utoipa::path(
    get, path = "/workspaces/{ws}/notification-endpoints/{id}", operation_id = "show_endpoint", tag = "Notifications",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = EndpointBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<EndpointId>,
) -> Result<impl IntoResponse, Problem> {
    Ok(tagged(control.endpoint(&admin, id).await?))
}

/// Changes an endpoint, or switches it off and on.
#[utoipa::path(
    patch, path = "/workspaces/{ws}/notification-endpoints/{id}", operation_id = "edit_endpoint", tag = "Notifications",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("If-Match" = String, Header)),
    request_body = EditEndpoint,
    responses((status = 200, body = EndpointBody), Refusals),
)]
async fn edit(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<EndpointId>,
    expected: Result<IfMatch, Problem>,
    body: Result<JsonBody<EditEndpoint>, Problem>,
) -> Result<impl IntoResponse, Problem> {
    // What is not there is 404, whatever else is wrong with the request.
    let current = control.endpoint(&admin, id).await?.revision;
    let (expected, JsonBody(edit)) = (expected?, body?);
    let EditEndpoint { name, url, events, enabled } = edit;
    let patch = EndpointPatch { name, url, notices: events, enabled };
    let expected = expected.version(current);
    match control.edit_endpoint(&admin, id, expected, patch).await {
        Ok(endpoint) => Ok(tagged(endpoint)),
        Err(error) => {
            let current = async { Ok(EndpointBody::from(control.endpoint(&admin, id).await?)) };
            Err(with_current(error, current).await)
        }
    }
}

/// Removes an endpoint with all that is on its way to it.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/notification-endpoints/{id}", operation_id = "delete_endpoint", tag = "Notifications",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn delete(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<EndpointId>,
) -> Result<StatusCode, Problem> {
    control.delete_endpoint(&admin, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a test message, once and now; the answer says how that went.
#[utoipa::path(
    post, path = "/workspaces/{ws}/notification-endpoints/{id}/test", operation_id = "test_endpoint", tag = "Notifications",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = DeliveryBody), Refusals),
)]
async fn test(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<EndpointId>,
) -> Result<Json<DeliveryBody>, Problem> {
    Ok(Json(control.test_endpoint(&admin, id).await?.into()))
}

/// Gives a webhook a new secret; the old one signs too for a day.
#[utoipa::path(
    post, path = "/workspaces/{ws}/notification-endpoints/{id}/rotate-secret", operation_id = "rotate_endpoint_secret", tag = "Notifications",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = MadeEndpointBody), Refusals),
)]
async fn rotate(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<EndpointId>,
) -> Result<Json<MadeEndpointBody>, Problem> {
    Ok(Json(control.rotate_endpoint(&admin, id).await?.into()))
}
