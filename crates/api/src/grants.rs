//! Grants: agent tokens.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, TimeDelta, Utc};
use http::{StatusCode, header};
use secrecy::ExposeSecret;
use serde::{Deserialize, Deserializer, Serialize};
use sluice_control::{
    Admin, Control, GrantForm, GrantPatch, GrantView, Granted, GrantsOf, PolicyManager, Viewer,
};
use sluice_domain::{GrantId, PolicyId, ServerId};
use sluice_web::{As, IfMatch, JsonBody, PathId, Problem, Queried, etag};
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
        .routes(routes!(show, edit, revoke))
        .routes(routes!(rotate))
}

/// A grant. Its token is never shown again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantBody {
    #[schema(format = Uuid)]
    id: String,
    #[schema(format = Uuid)]
    server_id: String,
    label: String,
    /// The token's last four characters.
    last4: String,
    /// Without a policy every call is refused.
    #[schema(format = Uuid)]
    policy_id: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    /// Decide and log, but let through.
    observe: bool,
    /// Networks that may use it; empty: any.
    networks: Vec<String>,
    /// Until when the token before the last rotation still works.
    previous_token_until: Option<DateTime<Utc>>,
    /// Rises with every edit; the `ETag`.
    revision: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    last_used_client: Option<String>,
}

impl From<GrantView> for GrantBody {
    fn from(grant: GrantView) -> Self {
        Self {
            id: grant.id.to_string(),
            server_id: grant.server_id.to_string(),
            label: grant.label,
            last4: grant.last4,
            policy_id: grant.policy_id.map(|id| id.to_string()),
            expires_at: grant.expires_at,
            revoked_at: grant.revoked_at,
            observe: grant.observe,
            networks: grant.networks,
            previous_token_until: grant.previous_until,
            revision: grant.revision,
            created_at: grant.created_at,
            updated_at: grant.updated_at,
            last_used_at: grant.last_used_at,
            last_used_client: grant.last_used_client,
        }
    }
}

/// A new grant, or an old one with a new token.
#[derive(Debug, Serialize, ToSchema)]
struct GrantedBody {
    /// Shown this once.
    #[schema(example = "slg_…")]
    token: String,
    #[serde(flatten)]
    grant: GrantBody,
}

impl From<Granted> for GrantedBody {
    fn from(granted: Granted) -> Self {
        let token = granted.token.expose_secret().to_owned();
        Self { token, grant: granted.grant.into() }
    }
}

/// A grant to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewGrant {
    #[schema(example = "ci-agent")]
    label: String,
    #[schema(value_type = Option<String>, format = Uuid)]
    policy_id: Option<PolicyId>,
    expires_at: Option<DateTime<Utc>>,
    #[serde(default)]
    observe: bool,
    #[serde(default)]
    networks: Vec<String>,
}

/// What changes; what is left out stays, `null` takes away.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
struct EditGrant {
    label: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, format = Uuid)]
    policy_id: Option<Option<PolicyId>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<DateTime<Utc>>)]
    expires_at: Option<Option<DateTime<Utc>>>,
    observe: Option<bool>,
    networks: Option<Vec<String>>,
}

/// Tells `null` from absent.
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

fn tagged(grant: GrantView) -> impl IntoResponse {
    ([(header::ETAG, etag(grant.revision))], Json(GrantBody::from(grant)))
}

/// The server's grants, newest first, revoked ones too.
#[utoipa::path(
    get, path = "/workspaces/{ws}/servers/{id}/grants", operation_id = "list_server_grants", tag = "Grants",
    params(("ws" = String, Path), ("id" = Uuid, Path), PageQuery),
    responses((status = 200, body = List<GrantBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(server): PathId<ServerId>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<GrantBody>>, Problem> {
    let of = GrantsOf { server: Some(server), include_revoked: true, ..GrantsOf::default() };
    let page = control.grants(&viewer, of, query.page()?).await?;
    Ok(Json(list(page, GrantBody::from)))
}

/// Makes a grant. The answer holds the token, this once.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/grants", operation_id = "create_grant", tag = "Grants",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    request_body = NewGrant,
    responses((status = 201, body = GrantedBody), Refusals),
)]
async fn create(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(server): PathId<ServerId>,
    JsonBody(new): JsonBody<NewGrant>,
) -> Result<impl IntoResponse, Problem> {
    let form = GrantForm {
        label: new.label,
        policy: new.policy_id,
        expires_at: new.expires_at,
        observe: new.observe,
        networks: new.networks,
    };
    let granted = control.create_grant(&admin, server, form).await?;
    let tag = etag(granted.grant.revision);
    let place = format!("/api/v1/workspaces/{}/grants/{}", admin.slug, granted.grant.id);
    let body = Json(GrantedBody::from(granted));
    let headers = [(header::ETAG, tag), (header::CACHE_CONTROL, no_store())];
    Ok((StatusCode::CREATED, headers, [(header::LOCATION, place)], body))
}

fn no_store() -> http::HeaderValue {
    http::HeaderValue::from_static("no-store")
}

/// One grant.
#[utoipa::path(
    get, path = "/workspaces/{ws}/grants/{id}", operation_id = "show_grant", tag = "Grants",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = GrantBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<GrantId>,
) -> Result<impl IntoResponse, Problem> {
    Ok(tagged(control.grant(&viewer, id).await?))
}

/// Edits a grant. A policy manager may attach a policy; the rest is an admin's.
#[utoipa::path(
    patch, path = "/workspaces/{ws}/grants/{id}", operation_id = "edit_grant", tag = "Grants",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("If-Match" = String, Header)),
    request_body = EditGrant,
    responses((status = 200, body = GrantBody), Refusals),
)]
async fn edit(
    State(control): State<Control>,
    As(manager): As<PolicyManager>,
    PathId(id): PathId<GrantId>,
    expected: Result<IfMatch, Problem>,
    body: Result<JsonBody<EditGrant>, Problem>,
) -> Result<impl IntoResponse, Problem> {
    // What is not there is 404, whatever else is wrong with the request.
    let current = control.grant(&manager, id).await?.revision;
    let (expected, JsonBody(edit)) = (expected?, body?);
    let EditGrant { label, policy_id, expires_at, observe, networks } = edit;
    let patch = GrantPatch { label, policy: policy_id, expires_at, observe, networks };
    match control.edit_grant(&manager, id, expected.version(current), patch).await {
        Ok(grant) => Ok(tagged(grant)),
        Err(error) => {
            let current = async { Ok(GrantBody::from(control.grant(&manager, id).await?)) };
            Err(with_current(error, current).await)
        }
    }
}

/// Ends a grant for good; its open streams end too.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/grants/{id}", operation_id = "revoke_grant", tag = "Grants",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 204), Refusals),
)]
async fn revoke(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<GrantId>,
) -> Result<StatusCode, Problem> {
    control.revoke_grant(&admin, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How a token is replaced.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Rotate {
    /// For how long the old token works beside the new one; at most 30 days.
    #[schema(minimum = 0, maximum = 2_592_000)]
    overlap_seconds: u32,
}

/// Gives the grant a new token. The body may be left out: then the old token ends now.
#[utoipa::path(
    post, path = "/workspaces/{ws}/grants/{id}/rotate", operation_id = "rotate_grant", tag = "Grants",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    request_body = Option<Rotate>,
    responses((status = 200, body = GrantedBody), Refusals),
)]
async fn rotate(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<GrantId>,
    rotate: sluice_web::MaybeJson<Rotate>,
) -> Result<impl IntoResponse, Problem> {
    let overlap = TimeDelta::seconds(i64::from(rotate.0.unwrap_or_default().overlap_seconds));
    let granted = control.rotate_grant(&admin, id, overlap).await?;
    Ok(([(header::CACHE_CONTROL, no_store())], Json(GrantedBody::from(granted))))
}
