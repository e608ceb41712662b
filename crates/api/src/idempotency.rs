//! `Idempotency-Key` on POST: sent again, the same request gets the same answer and acts once.

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use sluice_control::codes;
use sluice_control::{Fault, Headers, Proof, Repeat};
use sluice_web::{Bearer, Problem};

use crate::ApiState;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const MAX_BODY_BYTES: usize = crate::configuration::MAX_BYTES;
/// An answer to a POST is one object; a larger one is not kept.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

fn key(method: &Method, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(&KEY).filter(|_| method == Method::POST) else {
        return Ok(None);
    };
    let text = value.to_str().map(str::to_owned);
    text.map(Some).map_err(|_| {
        let detail = "Idempotency-Key has 1 to 255 printable ASCII characters";
        Problem::invalid(Fault::new("", codes::BAD_IDEMPOTENCY_KEY, detail))
    })
}

pub(crate) async fn replay(
    State(state): State<ApiState>,
    request: Request,
    next: Next,
) -> Response {
    match key(request.method(), request.headers()) {
        Ok(None) => next.run(request).await,
        Ok(Some(key)) => {
            once(&state, request, next, &key).await.unwrap_or_else(IntoResponse::into_response)
        }
        Err(problem) => problem.into_response(),
    }
}

async fn once(
    state: &ApiState,
    request: Request,
    next: Next,
    key: &str,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let Bearer(actor) = Bearer::from_request_parts(&mut parts, state).await?;
    let body = whole(body, MAX_BODY_BYTES).await?;
    let target = parts.uri.to_string();
    let control = &state.web.control;
    // With another role it is another request: an answer is not shown to whom it would be refused now.
    let role = match &actor.proof {
        Proof::ApiToken { role, .. } => role.as_str(),
        Proof::Login(_) | Proof::Link(_) | Proof::Operator => "",
    };
    let what = [target.as_bytes(), role.as_bytes(), &body];
    if let Repeat::Answered { status, headers, body } =
        control.idempotency_begin(&actor, None, key, &what).await?
    {
        return Ok(again(status, &headers, body));
    }
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    if !response.status().is_success() {
        control.idempotency_end(&actor, None, key, None).await?;
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = whole(body, MAX_ANSWER_BYTES).await?;
    let headers = kept(&parts.headers);
    let answer = Some((parts.status.as_u16(), &headers, &body[..]));
    control.idempotency_end(&actor, None, key, answer).await?;
    Ok(Response::from_parts(parts, Body::from(body)))
}

async fn whole(body: Body, most: usize) -> Result<Bytes, Problem> {
    to_bytes(body, most).await.map_err(|_| {
        let detail = format!("the body is larger than {most} bytes, or broke off");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, codes::TOO_LARGE, detail)
    })
}

/// The headers that say something of what was made.
const KEPT: [HeaderName; 3] = [header::LOCATION, header::ETAG, header::CACHE_CONTROL];

fn kept(headers: &HeaderMap) -> Headers {
    let text = |name: &HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.to_string(), value.to_owned()))
    };
    KEPT.iter().filter_map(text).collect()
}

fn again(status: u16, kept: &Headers, body: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    for name in &KEPT {
        let value = kept.iter().find(|(known, _)| known == name.as_str());
        if let Some(Ok(value)) = value.map(|(_, value)| HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
