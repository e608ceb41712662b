//! How many requests a token may send: counted before anything else, told in every answer
//! (`RateLimit`, `RateLimit-Policy`), and refused with 429 and `Retry-After`.

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue};
use sluice_control::{Allowance, REQUEST_WINDOW_S};
use sluice_web::{Bearer, Problem};

use crate::ApiState;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Whoever has no valid token is told so by the handler, and has nothing to be counted.
pub(crate) async fn count(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let bearer = Bearer::from_request_parts(&mut parts, &state).await;
    let allowance = match bearer {
        Ok(Bearer(actor)) => state.web.control.count_request(&actor).await,
        Err(_) => None,
    };
    let Some(allowance) = allowance else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    let mut response = match allowance.refusal() {
        Some(refusal) => Problem::from(refusal).into_response(),
        None => next.run(Request::from_parts(parts, body)).await,
    };
    tell(&mut response, &allowance);
    response
}

/// The fields of draft-ietf-httpapi-ratelimit-headers: a policy's quota and window, what remains of
/// it and the seconds until it is whole again.
fn tell(response: &mut Response, allowance: &Allowance) {
    let Allowance { limit, remaining, resets_s, .. } = allowance;
    let policy = format!("\"token\";q={limit};w={REQUEST_WINDOW_S}");
    let now = format!("\"token\";r={remaining};t={resets_s}");
    for (name, text) in [(POLICY, policy), (LIMIT, now)] {
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(name, value);
        }
    }
}
