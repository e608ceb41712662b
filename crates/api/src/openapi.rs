//! The OpenAPI 3.1 document.

use std::sync::LazyLock;

use axum::response::IntoResponse;
use http::header;
use serde::Serialize;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, License, OpenApi, OpenApiBuilder, SecurityRequirement, Server};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use crate::state::described;

mod allowed;
mod dress;
mod examples;
mod fields;
mod headers;

/// What stands before the paths.
pub(crate) fn head() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Sluice")
        .version(env!("CARGO_PKG_VERSION"))
        .license(Some(License::new("Apache-2.0")))
        .description(Some(
            "Everything that the dashboard can do. Errors are RFC 9457 problems with a stable \
             `code`. Lists are pages: `?limit=&cursor=`. What two people may edit has an `ETag`, \
             and an edit must send it back as `If-Match`. A POST with an `Idempotency-Key` acts \
             once, however often it is sent within a day. Every answer to a token tells how many \
             requests it may still send (`RateLimit-Policy`, `RateLimit`); one too many is answered \
             429 with `Retry-After`.",
        ))
        .build();
    let mut document = OpenApiBuilder::new()
        .info(info)
        .servers(Some([Server::new("/api/v1")]))
        .security(Some([SecurityRequirement::new("token", Vec::<String>::new())]))
        .build();
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("slu_…")
        .description(Some("An API token of one workspace"))
        .build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    let mut schemas = Vec::new();
    for (name, schema) in
        [(ProblemBody::name(), ProblemBody::schema()), (FaultBody::name(), FaultBody::schema())]
    {
        schemas.push((name.into_owned(), schema));
    }
    components.schemas.extend(schemas);
    document
}

/// The operations as their handlers describe them.
pub fn document() -> OpenApi {
    described().into_openapi()
}

/// The whole document as it is served.
pub fn published() -> serde_json::Value {
    dress::dressed(serde_json::to_value(document()).unwrap_or_default())
}

static TEXT: LazyLock<String> = LazyLock::new(|| published().to_string());

pub(crate) async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str())
}

/// One field that cannot be accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FaultBody {
    /// JSON Pointer (RFC 6901) into what was sent.
    #[schema(example = "/name")]
    pointer: String,
    #[schema(example = "too_long")]
    code: String,
    detail: String,
    /// Which file, where several were sent.
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    suggestion: Option<String>,
}

/// An RFC 9457 problem.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    #[serde(rename = "type")]
    #[schema(example = "/docs/api#not_found")]
    kind: String,
    title: String,
    status: u16,
    /// Stable; what a program goes by.
    #[schema(example = "not_found")]
    code: String,
    /// For people: what happened and what to do.
    detail: String,
    /// The first faulty field.
    pointer: Option<String>,
    errors: Option<Vec<FaultBody>>,
    retry_after_seconds: Option<u64>,
}

/// What any call may answer besides its own.
#[derive(Debug, IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(crate) enum Refusals {
    /// No valid API token.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthenticated(#[to_schema] ProblemBody),
    /// The token's role is too low, or the workspace is suspended.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] ProblemBody),
    /// It does not exist, or not for this caller.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] ProblemBody),
    /// The token has sent too many requests; `Retry-After` says when to go on.
    #[response(
        status = 429,
        content_type = "application/problem+json",
        headers(
            ("Retry-After" = u64, description = "Seconds until the next request fits"),
            ("RateLimit-Policy" = String, description = "Quota and window: `\"token\";q=3000;w=60`"),
            ("RateLimit" = String, description = "What is left, and when it is whole again: `\"token\";r=0;t=60`"),
        ),
    )]
    TooMany(#[to_schema] ProblemBody),
    /// Any other problem; `code` says which.
    #[response(status = "default", content_type = "application/problem+json")]
    Other(#[to_schema] ProblemBody),
}
