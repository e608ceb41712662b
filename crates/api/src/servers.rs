//! Upstream servers.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use http::{StatusCode, header};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sluice_control::{
    Admin, AuthForm, Control, ReadFailure, ReadReport, ServerForm, ServerPatch, ServerView,
    SettingsPatch, Viewer,
};
use sluice_domain::{
    Access, Methods, OnDrift, ServerId, Transport, UnknownTools, ValidateArguments,
};
use sluice_web::{As, IfMatch, JsonBody, MaybeIfMatch, PathId, Problem, Queried, etag};
use std::collections::BTreeMap;
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
        .routes(routes!(show, edit, remove))
        .routes(routes!(refresh))
}

/// How Sluice shows itself to the upstream.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Auth {
    #[default]
    None,
    /// Headers sent with every request. They are never shown again; `********` keeps a stored one.
    Headers {
        #[schema(value_type = BTreeMap<String, String>, write_only)]
        headers: BTreeMap<String, SecretString>,
    },
}

impl From<Auth> for AuthForm {
    fn from(auth: Auth) -> Self {
        match auth {
            Auth::None => Self::None,
            Auth::Headers { headers } => Self::Headers(headers.into_iter().collect()),
        }
    }
}

/// A request body with a server's settings among its fields.
macro_rules! with_settings {
    ($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        struct $name {
            $($(#[$fmeta])* $field: $type,)+
            /// `auto`, `streamable_http` or `sse`.
            #[schema(value_type = Option<String>)]
            transport: Option<Transport>,
            /// A tool that the server does not list: `deny` or `by_policy`.
            #[schema(value_type = Option<String>)]
            unknown_tools: Option<UnknownTools>,
            /// A tool whose definition changed: `allow_and_flag` or `deny`.
            #[schema(value_type = Option<String>)]
            on_drift: Option<OnDrift>,
            /// Arguments that do not fit the input schema: `off`, `log` or `deny`.
            #[schema(value_type = Option<String>)]
            validate_arguments: Option<ValidateArguments>,
            /// `spec` (the specification's methods) or `any`.
            #[schema(value_type = Option<String>)]
            methods: Option<Methods>,
            /// `allow` or `deny`.
            #[schema(value_type = Option<String>)]
            resources: Option<Access>,
            /// `allow` or `deny`.
            #[schema(value_type = Option<String>)]
            prompts: Option<Access>,
            /// A tool with signs of a poisoned definition waits for review.
            hold_poisoned: Option<bool>,
            /// What its `tools/list` says, and its public address, may stand in the public catalogue;
            /// `false` takes it back.
            publish_tools: Option<bool>,
            /// Keep redacted argument values in the log, not only names.
            log_argument_values: Option<bool>,
            #[schema(minimum = 1, maximum = 60)]
            connect_timeout_s: Option<u32>,
            #[schema(minimum = 1, maximum = 3600)]
            idle_timeout_s: Option<u32>,
            #[schema(minimum = 0, maximum = 86400)]
            total_timeout_s: Option<u32>,
        }

        impl $name {
            fn settings(&self) -> SettingsPatch {
                SettingsPatch {
                    transport: self.transport,
                    unknown_tools: self.unknown_tools,
                    on_drift: self.on_drift,
                    validate_arguments: self.validate_arguments,
                    methods: self.methods,
                    resources: self.resources,
                    prompts: self.prompts,
                    hold_poisoned: self.hold_poisoned,
                    publish_tools: self.publish_tools,
                    log_argument_values: self.log_argument_values,
                    connect_timeout_s: self.connect_timeout_s,
                    idle_timeout_s: self.idle_timeout_s,
                    total_timeout_s: self.total_timeout_s,
                }
            }
        }
    };
}

with_settings!(
    /// A server to connect.
    NewServer {
        #[schema(example = "sandbox")]
        name: String,
        #[schema(example = "https://mcp.example.com/mcp")]
        upstream_url: String,
        #[serde(default)]
        auth: Auth,
    }
);

with_settings!(
    /// What changes; what is left out stays.
    EditServer {
        name: Option<String>,
        upstream_url: Option<String>,
        auth: Option<Auth>,
    }
);

/// Why the tools could not be read.
#[derive(Debug, Serialize, ToSchema)]
struct Failure {
    code: String,
    /// What happened and what to do.
    detail: String,
}

impl From<ReadFailure> for Failure {
    fn from(failure: ReadFailure) -> Self {
        Self { code: failure.code.to_string(), detail: failure.words }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct ShownAuth {
    /// `none` or `headers`.
    r#type: &'static str,
    /// Names, each with a mask for its value.
    headers: BTreeMap<String, &'static str>,
}

/// A server.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "settings that are on or off")]
pub(crate) struct ServerBody {
    #[schema(format = Uuid)]
    id: String,
    name: String,
    upstream_url: String,
    /// What an agent's MCP client is pointed at.
    proxy_url: String,
    auth: ShownAuth,
    transport: &'static str,
    unknown_tools: &'static str,
    on_drift: &'static str,
    validate_arguments: &'static str,
    methods: &'static str,
    resources: &'static str,
    prompts: &'static str,
    hold_poisoned: bool,
    publish_tools: bool,
    log_argument_values: bool,
    connect_timeout_s: u32,
    idle_timeout_s: u32,
    total_timeout_s: u32,
    /// The built-in example server.
    is_example: bool,
    /// Rises with every edit; the `ETag`.
    revision: i64,
    tools_read: bool,
    last_read_at: Option<DateTime<Utc>>,
    /// What went wrong at the last contact.
    tools_error: Option<Failure>,
    protocol_version: Option<String>,
    server_name: Option<String>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<ServerView> for ServerBody {
    fn from(server: ServerView) -> Self {
        let headers: BTreeMap<_, _> =
            server.header_names.into_iter().map(|name| (name, sluice_control::MASK)).collect();
        let r#type = if headers.is_empty() { "none" } else { "headers" };
        let settings = server.settings;
        Self {
            id: server.id.to_string(),
            name: server.name,
            upstream_url: server.upstream_url,
            proxy_url: server.proxy_url,
            auth: ShownAuth { r#type, headers },
            transport: settings.transport.as_str(),
            unknown_tools: settings.unknown_tools.as_str(),
            on_drift: settings.on_drift.as_str(),
            validate_arguments: settings.validate_arguments.as_str(),
            methods: settings.methods.as_str(),
            resources: settings.resources.as_str(),
            prompts: settings.prompts.as_str(),
            hold_poisoned: settings.hold_poisoned,
            publish_tools: settings.publish_tools,
            log_argument_values: settings.log_argument_values,
            connect_timeout_s: settings.connect_timeout_s,
            idle_timeout_s: settings.idle_timeout_s,
            total_timeout_s: settings.total_timeout_s,
            is_example: server.is_example,
            revision: server.revision,
            tools_read: server.tools_read,
            last_read_at: server.last_read_at,
            tools_error: server.last_error.map(Failure::from),
            protocol_version: server.protocol_version,
            server_name: server.server_name,
            created_at: server.created_at,
            updated_at: server.updated_at,
        }
    }
}

fn tagged(server: ServerView) -> impl IntoResponse {
    ([(header::ETAG, etag(server.revision))], Json(ServerBody::from(server)))
}

/// The workspace's servers, newest first.
#[utoipa::path(
    get, path = "/workspaces/{ws}/servers", operation_id = "list_servers", tag = "Servers",
    params(("ws" = String, Path, description = "Workspace slug"), PageQuery),
    responses((status = 200, body = List<ServerBody>), Refusals),
)]
async fn index(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    Queried(query): Queried<PageQuery>,
) -> Result<Json<List<ServerBody>>, Problem> {
    let page = control.servers(&viewer, query.page()?).await?;
    Ok(Json(list(page, ServerBody::from)))
}

/// Connects a server and reads its tools. It is kept even where the read fails; `tools_error` says why.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers", operation_id = "create_server", tag = "Servers",
    params(("ws" = String, Path, description = "Workspace slug")),
    request_body = NewServer,
    responses((status = 201, body = ServerBody), Refusals),
)]
async fn create(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(new): JsonBody<NewServer>,
) -> Result<impl IntoResponse, Problem> {
    let settings = new.settings();
    let NewServer { name, upstream_url, auth, .. } = new;
    let form = ServerForm { name, upstream_url, auth: auth.into(), settings };
    let connected = control.connect(&admin, form).await?;
    let place = format!("/api/v1/workspaces/{}/servers/{}", admin.slug, connected.server.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], tagged(connected.server)))
}

/// One server.
#[utoipa::path(
    get, path = "/workspaces/{ws}/servers/{id}", operation_id = "show_server", tag = "Servers",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = ServerBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    PathId(id): PathId<ServerId>,
) -> Result<impl IntoResponse, Problem> {
    Ok(tagged(control.server(&viewer, id).await?))
}

/// Edits a server. A stored header whose mask is sent back stays as it is.
#[utoipa::path(
    patch, path = "/workspaces/{ws}/servers/{id}", operation_id = "edit_server", tag = "Servers",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("If-Match" = String, Header)),
    request_body = EditServer,
    responses((status = 200, body = ServerBody), Refusals),
)]
async fn edit(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<ServerId>,
    expected: Result<IfMatch, Problem>,
    body: Result<JsonBody<EditServer>, Problem>,
) -> Result<impl IntoResponse, Problem> {
    // What is not there is 404, whatever else is wrong with the request.
    let current = control.server(&admin, id).await?.revision;
    let (expected, JsonBody(patch)) = (expected?, body?);
    let settings = patch.settings();
    let EditServer { name, upstream_url, auth, .. } = patch;
    let patch = ServerPatch { name, upstream_url, auth: auth.map(Into::into), settings };
    match control.edit_server(&admin, id, expected.version(current), patch).await {
        Ok(server) => Ok(tagged(server)),
        Err(error) => Err(with_current(error, shown(&control, &admin, id)).await),
    }
}

async fn shown(control: &Control, viewer: &Viewer, id: ServerId) -> Result<ServerBody, Problem> {
    Ok(control.server(viewer, id).await?.into())
}

/// Deletes a server; its credentials are wiped and its grants stop.
#[utoipa::path(
    delete, path = "/workspaces/{ws}/servers/{id}", operation_id = "remove_server", tag = "Servers",
    params(("ws" = String, Path), ("id" = Uuid, Path), ("If-Match" = Option<String>, Header)),
    responses((status = 204), Refusals),
)]
async fn remove(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<ServerId>,
    MaybeIfMatch(expected): MaybeIfMatch,
) -> Result<StatusCode, Problem> {
    let current = control.server(&admin, id).await?.revision;
    match control.delete_server(&admin, id, expected.and_then(|tags| tags.version(current))).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(with_current(error, shown(&control, &admin, id)).await),
    }
}

/// What a read of the tools changed, by name.
#[derive(Debug, Serialize, ToSchema)]
struct Refreshed {
    /// The first read of this server: everything counts as reviewed.
    first: bool,
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    unchanged: usize,
    /// Waiting for a person's review.
    held: Vec<String>,
    /// Left out, because their names cannot be kept; they count as unknown.
    ignored: usize,
}

impl From<ReadReport> for Refreshed {
    fn from(read: ReadReport) -> Self {
        let ReadReport { first, added, changed, removed, unchanged, held, ignored } = read;
        Self { first, added, changed, removed, unchanged, held, ignored }
    }
}

/// Reads the tools from the upstream before it answers.
#[utoipa::path(
    post, path = "/workspaces/{ws}/servers/{id}/refresh", operation_id = "refresh_server", tag = "Servers",
    params(("ws" = String, Path), ("id" = Uuid, Path)),
    responses((status = 200, body = Refreshed), Refusals),
)]
async fn refresh(
    State(control): State<Control>,
    As(admin): As<Admin>,
    PathId(id): PathId<ServerId>,
) -> Result<Json<Refreshed>, Problem> {
    Ok(Json(control.refresh(&admin, id).await?.into()))
}
