//! The gateway's own answers as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sluice_domain::CallId;
use sluice_mcp::{ErrorNote, Malformed, codes, error_answer, sse_event};

use crate::headers::{self, REQUEST_ID};

/// Where and how an answer goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) id: CallId,
    /// The client takes server-sent events only.
    pub(crate) events: bool,
}

impl Form {
    pub(crate) fn of(id: CallId, headers: &HeaderMap) -> Self {
        Self { id, events: headers::wants_events_only(headers) }
    }

    /// A JSON-RPC message as the client takes it.
    pub(crate) fn message(self, status: StatusCode, message: Vec<u8>) -> Response {
        let (kind, body) = if self.events && status == StatusCode::OK {
            ("text/event-stream", sse_event(&message))
        } else {
            ("application/json", message)
        };
        self.bytes(status, kind, body.into())
    }

    fn bytes(self, status: StatusCode, kind: &'static str, body: Bytes) -> Response {
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(REQUEST_ID, request_id(self.id));
        response
    }

    /// A message that is not JSON-RPC as MCP wants it.
    pub(crate) fn malformed(self, error: &Malformed) -> Response {
        let id = self.id.to_string();
        let note = ErrorNote { code: "malformed", may_have_run: None, request_id: &id };
        let body = error_answer(error.id.as_deref(), error.code, error.message, Some(&note));
        self.message(StatusCode::BAD_REQUEST, body)
    }

    /// A JSON-RPC error without anything that a request could be matched by.
    pub(crate) fn plain_error(self, status: StatusCode, code: i64, message: &str) -> Response {
        self.message(status, error_answer(None, code, message, None))
    }

    /// The same for every token that does not open this server.
    pub(crate) fn unauthorized(self) -> Response {
        let body = br#"{"error":"invalid_token","error_description":"a grant token for this server is needed: Authorization: Bearer slg_..."}"#;
        let mut response =
            self.bytes(StatusCode::UNAUTHORIZED, "application/json", Bytes::from_static(body));
        let challenge =
            HeaderValue::from_static("Bearer realm=\"sluice\", error=\"invalid_token\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        response
    }

    /// A session that is not there, or not this grant's.
    pub(crate) fn no_session(self, id: Option<&str>) -> Response {
        let body = error_answer(id, codes::SESSION_NOT_FOUND, "Session not found", None);
        self.message(StatusCode::NOT_FOUND, body)
    }

    /// The store or the counters are away.
    pub(crate) fn unavailable(self, id: Option<&str>, code: &str, message: &str) -> Response {
        let request_id = self.id.to_string();
        let note = ErrorNote { code, may_have_run: Some(false), request_id: &request_id };
        let body = error_answer(id, codes::INTERNAL_ERROR, message, Some(&note));
        let mut response = self.message(StatusCode::SERVICE_UNAVAILABLE, body);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }
}

/// The id as a header's value.
pub(crate) fn request_id(id: CallId) -> HeaderValue {
    // A UUID is always a header value.
    HeaderValue::from_str(&id.to_string()).unwrap_or_else(|_| HeaderValue::from_static(""))
}
