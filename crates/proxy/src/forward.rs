//! Sends a request's own bytes to the upstream and sorts out what comes back.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use sluice_upstream::{SendError, Target};
use tokio::time::{Instant, timeout_at};

use crate::budget::Share;
use crate::cache::Entry;
use crate::failure::Failure;
use crate::headers;
use crate::state::Inner;

/// An upstream's answer as it arrives.
pub(crate) type UpstreamBody = Body;

/// Until when an upstream may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) idle: Option<Duration>,
    pub(crate) deadline: Option<Instant>,
}

impl Patience {
    /// As the server's settings say, from now.
    pub(crate) fn of(entry: &Entry) -> Self {
        let settings = &entry.route.record.server.settings;
        let seconds = |s: u32| (s > 0).then(|| Duration::from_secs(u64::from(s)));
        Self {
            idle: seconds(settings.idle_timeout_s),
            deadline: seconds(settings.total_timeout_s).map(|total| Instant::now() + total),
        }
    }

    /// For streams that may be silent for ever.
    pub(crate) const ENDLESS: Self = Self { idle: None, deadline: None };

    /// When to give up, counted from now.
    pub(crate) fn until(self) -> Option<Instant> {
        let silence = self.idle.map(|idle| Instant::now() + idle);
        [silence, self.deadline].into_iter().flatten().min()
    }
}

/// Sends a request. What comes back is neither a redirect, nor coded, nor about our credentials.
pub(crate) async fn send(
    inner: &Inner,
    target: &Target,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    deadline: Option<Instant>,
) -> Result<Response<UpstreamBody>, Failure> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.headers_mut() = headers;
    let sending = inner.upstream.send(target, request);
    let sent = match deadline {
        Some(deadline) => timeout_at(deadline, sending).await.map_err(|_| Failure::TimedOut)?,
        None => sending.await,
    };
    let response = sent.map_err(|error| {
        tracing::info!(server = %target.server, %error, "A request to an upstream failed");
        sorted(&error)
    })?;
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Failure::Unauthorized),
        status if status.is_redirection() => return Err(Failure::Redirect),
        _ => {}
    }
    // A coded body would slip past the filter of lists and the bounds.
    if !headers::is_identity(response.headers()) {
        return Err(Failure::NotMcp);
    }
    Ok(response.map(Body::new))
}

const fn sorted(error: &SendError) -> Failure {
    match error {
        SendError::TimedOutAfterSend => Failure::TimedOut,
        SendError::NotHttp { .. } if error.may_have_run() => Failure::NotMcp,
        error if error.may_have_run() => Failure::Cut,
        _ => Failure::Unreachable,
    }
}

/// A body that was read to its end, or the part of it that could be held and the rest.
pub(crate) enum Collected {
    Whole(VecDeque<Bytes>, usize),
    Part(VecDeque<Bytes>, UpstreamBody),
}

/// Reads a whole body, within the bounds of one message.
pub(crate) async fn collect(
    inner: &Inner,
    response: Response<UpstreamBody>,
    patience: Patience,
    share: &mut Share,
) -> Result<Collected, Failure> {
    let limit = inner.options.max_message_bytes;
    let told = response.headers().get(header::CONTENT_LENGTH);
    let told: Option<usize> = told.and_then(|value| value.to_str().ok()?.parse().ok());
    if told.is_some_and(|length| length > limit) {
        return Err(Failure::TooLarge);
    }
    let mut body = response.into_body();
    let mut held = VecDeque::new();
    let mut length = 0;
    loop {
        let frame = match patience.until() {
            Some(until) => timeout_at(until, body.frame()).await.map_err(|_| Failure::TimedOut)?,
            None => body.frame().await,
        };
        let Some(frame) = frame else { return Ok(Collected::Whole(held, length)) };
        let Ok(data) = frame.map_err(|_| Failure::Cut)?.into_data() else { continue };
        length += data.len();
        if length > limit {
            return Err(Failure::TooLarge);
        }
        held.push_back(data);
        if !share.fit(length) {
            return Ok(Collected::Part(held, body));
        }
    }
}

/// Pieces in one.
pub(crate) fn joined(mut pieces: VecDeque<Bytes>, length: usize) -> Bytes {
    if pieces.len() == 1 {
        return pieces.pop_front().unwrap_or_default();
    }
    let mut out = BytesMut::with_capacity(length);
    for piece in pieces {
        out.extend_from_slice(&piece);
    }
    out.freeze()
}

/// A body that begins with `held` and goes on as the upstream does; a failure breaks the connection.
pub(crate) fn passed_on(
    held: VecDeque<Bytes>,
    rest: UpstreamBody,
    patience: Patience,
    limit: usize,
) -> Body {
    let state = (held, rest, 0_usize);
    Body::from_stream(stream::unfold(state, move |(mut held, mut rest, mut sent)| async move {
        let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionAborted);
        let next = match held.pop_front() {
            Some(piece) => Ok(piece),
            None => loop {
                let until =
                    patience.until().unwrap_or_else(|| Instant::now() + Duration::from_hours(1));
                match timeout_at(until, rest.frame()).await {
                    Ok(None) => return None,
                    Ok(Some(Ok(frame))) => {
                        if let Ok(data) = frame.into_data() {
                            break Ok(data);
                        }
                    }
                    Ok(Some(Err(_))) | Err(_) => break Err(broken()),
                }
            },
        };
        sent += next.as_ref().map_or(0, Bytes::len);
        let next = if sent > limit { Err(broken()) } else { next };
        Some((next, (held, rest, sent)))
    }))
}
