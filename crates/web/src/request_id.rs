//! Every answer carries `X-Request-Id`; the data path sets its own, which is the log row's id.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderName, HeaderValue};
use sluice_domain::CallId;

const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// The id of the request at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(pub CallId);

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Never the client's: an id in our log is ours.
pub(crate) async fn add(mut request: Request, next: Next) -> Response {
    let id = CallId::new();
    request.extensions_mut().insert(RequestId(id));
    let mut response = next.run(request).await;
    if !response.headers().contains_key(&NAME)
        && let Ok(value) = HeaderValue::from_str(&id.to_string())
    {
        response.headers_mut().insert(NAME, value);
    }
    response
}
