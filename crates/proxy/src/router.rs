//! The paths of the data path.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http::{HeaderValue, Method, StatusCode, header};
use sluice_domain::CallId;

use crate::headers::REQUEST_ID;
use crate::respond::request_id;
use crate::state::ProxyState;
use crate::{post, streams};

/// The server that a path names: `/mcp/{server}`, with and without a slash at the end, since a
/// redirect is no legal answer to an MCP request. None: the path is not the data path's.
pub fn server_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/mcp/")?;
    let server = rest.strip_suffix('/').unwrap_or(rest);
    (!server.is_empty() && !server.contains('/')).then_some(server)
}

impl ProxyState {
    /// Answers `POST`, `GET` and `DELETE` for a server, which is written as in the request's path.
    pub async fn serve(&self, server: &str, request: Request) -> Response {
        match *request.method() {
            Method::POST => post::post(self, server, request).await,
            Method::GET => streams::get(self, server, request).await,
            Method::DELETE => streams::delete(self, server, request).await,
            _ => not_allowed(),
        }
    }
}

/// The data path as a router of its own, for those who have no shorter way to [`ProxyState::serve`].
pub fn router(state: ProxyState) -> Router {
    Router::new().route("/mcp/{*rest}", any(by_path)).with_state(state)
}

async fn by_path(State(state): State<ProxyState>, request: Request) -> Response {
    let uri = request.uri().clone();
    match server_of(uri.path()) {
        Some(server) => Box::pin(state.serve(server, request)).await,
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn not_allowed() -> Response {
    let allow = HeaderValue::from_static("POST, GET, DELETE");
    let headers = [(header::ALLOW, allow), (REQUEST_ID, request_id(CallId::new()))];
    (StatusCode::METHOD_NOT_ALLOWED, headers).into_response()
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;

    use super::{ProxyState, server_of};

    fn size<'a, F>(_: impl FnOnce(&'a ProxyState, &'a str, Request) -> F) -> usize {
        size_of::<F>()
    }

    /// Each of the futures that a call consists of is copied into the one around it, so a large one costs a call
    /// several times its size: it was 16,048 bytes once, and copying it a fifteenth of the whole call.
    #[test]
    fn the_future_of_a_call_is_small() {
        let size = size(ProxyState::serve);
        assert!(size <= 6_500, "{size} bytes: box what a call seldom needs");
    }

    #[test]
    fn one_segment_names_a_server() {
        let table = [
            ("/mcp/abc", Some("abc")),
            ("/mcp/abc/", Some("abc")),
            ("/mcp/abc//", None),
            ("/mcp/a/b", None),
            ("/mcp/", None),
            ("/mcp", None),
            ("/mcpx/a", None),
            ("//mcp/a", None),
        ];
        for (path, server) in table {
            assert_eq!(server_of(path), server, "{path}");
        }
    }
}
