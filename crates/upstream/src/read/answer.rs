//! Tells apart what an HTTP answer is, before anything of it is believed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::ReadError;
use crate::idle::{IdleBody, IdleError};
use crate::target::Target;

/// The bound on one answer, and on one event.
pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Error answers are only looked at, not kept.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The bound on silence within an answer, where the server's own is longer.
const SILENCE: Duration = Duration::from_secs(15);

/// What kind of body an answer has.
pub(super) enum Kind {
    Json,
    Events,
    /// Nothing, or nothing that matters.
    Empty,
}

/// Refuses what is not an answer of MCP by status and type. An error with a JSON body is handed on,
/// since JSON-RPC errors of the newer era travel with HTTP errors.
pub(super) fn kind(
    target: &Target,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Kind, ReadError> {
    let plain = by_status(target, status, headers);
    let media = media_type(headers);
    if let Some(error) = plain {
        return match (status, media.as_str()) {
            (StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND, "application/json") => Ok(Kind::Json),
            _ => Err(error),
        };
    }
    if let Some(coding) = headers.get(CONTENT_ENCODING)
        && coding != "identity"
    {
        return Err(ReadError::Coded(short(&String::from_utf8_lossy(coding.as_bytes()))));
    }
    match media.as_str() {
        "application/json" => Ok(Kind::Json),
        "text/event-stream" => Ok(Kind::Events),
        "text/html" | "application/xhtml+xml" => Err(ReadError::WebPage),
        _ if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => Ok(Kind::Empty),
        _ => Err(ReadError::NotMcp),
    }
}

/// The error that a status means, if it is one.
pub(super) fn by_status(
    target: &Target,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<ReadError> {
    Some(match status.as_u16() {
        200..=299 => return None,
        300..=399 => {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| target.url.join(to).ok());
            ReadError::Redirect(to.map_or_else(|| "nowhere".to_owned(), |to| short(to.as_str())))
        }
        401 | 407 => ReadError::Unauthorized,
        403 => ReadError::Forbidden,
        404 | 410 => ReadError::NotFound,
        405 => ReadError::MethodNotAllowed,
        429 => ReadError::TooManyRequests,
        code @ 500..=599 => ReadError::ServerFault(code),
        code => ReadError::Status(code),
    })
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Another's words, short and on one line.
pub(super) fn short(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    if text.chars().count() > 200 {
        short.push('…');
    }
    short
}

/// The whole body, if it is not too large and does not take too long.
pub(super) async fn whole(
    target: &Target,
    response: Response<Incoming>,
) -> Result<Bytes, ReadError> {
    let bound = if response.status().is_success() { MAX_BYTES } else { MAX_ERROR_BYTES };
    let mut body = IdleBody::new(response.into_body(), silence(target));
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| idle(&error))?.into_data() else { continue };
        if bytes.len() + data.len() > bound {
            return Err(ReadError::TooLarge(bound.div_ceil(1024 * 1024)));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// How long an answer of a target may be silent.
pub(super) fn silence(target: &Target) -> Duration {
    target.idle_timeout.min(SILENCE)
}

pub(super) const fn idle(error: &IdleError) -> ReadError {
    match error {
        IdleError::Silent => ReadError::Slow,
        IdleError::Cut(_) => ReadError::Cut,
    }
}
