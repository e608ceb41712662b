//! The paths of the data path.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::{HeaderValue, StatusCode, header};
use sluice_domain::CallId;

use crate::headers::REQUEST_ID;
use crate::respond::request_id;
use crate::state::ProxyState;
use crate::{post, streams};

/// `POST`, `GET` and `DELETE` on `/mcp/{server}`, with and without a slash at the end: a redirect is no
/// legal answer to an MCP request.
pub fn router(state: ProxyState) -> Router {
    Router::new()
        .route("/mcp/{server}", endpoint())
        .route("/mcp/{server}/", endpoint())
        .with_state(state)
}

fn endpoint() -> MethodRouter<ProxyState> {
    on(MethodFilter::HEAD, not_allowed)
        .on(MethodFilter::POST, post::post)
        .on(MethodFilter::GET, streams::get)
        .on(MethodFilter::DELETE, streams::delete)
        .fallback(not_allowed)
}

async fn not_allowed() -> Response {
    let allow = HeaderValue::from_static("POST, GET, DELETE");
    let headers = [(header::ALLOW, allow), (REQUEST_ID, request_id(CallId::new()))];
    (StatusCode::METHOD_NOT_ALLOWED, headers).into_response()
}
