//! Turns templates into answers.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY};

/// A page that anyone may see: it may be kept, but is asked for again, since it shows who is signed in.
pub(crate) fn public(template: &impl Template) -> Response {
    respond(StatusCode::OK, "private, no-cache", template)
}

/// A page of a signed-in member, or a form: never kept.
pub(crate) fn private(status: StatusCode, template: &impl Template) -> Response {
    respond(status, "no-store", template)
}

fn respond(status: StatusCode, cache: &'static str, template: &impl Template) -> Response {
    match template.render() {
        Ok(body) => {
            let headers = [
                (CONTENT_TYPE, "text/html; charset=utf-8"),
                (CACHE_CONTROL, cache),
                (VARY, "Cookie"),
            ];
            (status, headers, body).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "A page could not be rendered");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "The page could not be rendered. Its cause is in the log.",
            )
                .into_response()
        }
    }
}

/// Text of another kind, such as Markdown, for programs.
pub(crate) fn text(content_type: &'static str, body: String) -> Response {
    let headers = [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "public, max-age=300")];
    (headers, body).into_response()
}

/// JSON, printed for people as well.
pub(crate) fn json(value: &serde_json::Value) -> Response {
    let mut body = serde_json::to_string_pretty(value).unwrap_or_default();
    body.push('\n');
    text("application/json; charset=utf-8", body)
}

/// 404 without a page, for files.
pub(crate) fn not_found_plain() -> Response {
    (StatusCode::NOT_FOUND, "There is no such file.\n").into_response()
}
