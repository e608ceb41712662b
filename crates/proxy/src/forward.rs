//! Sends a request's own bytes to the upstream and sorts out what comes back.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use sluice_domain::metrics::{self, Answered};
use sluice_mcp::{Message, MessageKind, Peek, RawId};
use sluice_upstream::{SendError, Target};
use tokio::time::{Instant, timeout_at};

use crate::budget::Share;
use crate::cache::Entry;
use crate::failure::Failure;
use crate::headers;
use crate::open_count::OpenPlace;
use crate::session::OpenRequest;
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
    let sent = inner.upstream.send_until(target, request, deadline).await;
    let response = sent.map_err(|error| {
        let late = matches!(error, SendError::TimedOutBeforeSend | SendError::TimedOutAfterSend);
        // Connecting has a bound of its own, and idle time does not count before it: what is late here was sent.
        if late && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            count(Answered::TimedOut);
            return Failure::TimedOut;
        }
        tracing::info!(server = %target.server, %error, "A request to an upstream failed");
        failed(&error);
        Failure::from(&error)
    })?;
    answered(response.status());
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

fn count(answered: Answered) {
    metrics::UPSTREAM_ANSWERS.add([answered as usize], 1);
}

fn answered(status: StatusCode) {
    count(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Answered::Unauthorized,
        status if status.is_redirection() => Answered::Redirect,
        status if status.is_client_error() => Answered::ClientError,
        status if status.is_server_error() => Answered::ServerError,
        _ => Answered::Success,
    });
}

fn failed(error: &SendError) {
    count(match error {
        SendError::Refused(_)
        | SendError::Unsendable(_)
        | SendError::Dns
        | SendError::Connect
        | SendError::ClosedBeforeSend => Answered::Unreachable,
        SendError::Tls(_) => Answered::Tls,
        SendError::TimedOutBeforeSend => Answered::ConnectTimedOut,
        SendError::TimedOutAfterSend => Answered::TimedOut,
        SendError::NotHttp { .. } => Answered::NotHttp,
        SendError::Cut(_) => Answered::Cut,
    });
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
    while let Some(data) = more(&mut body, patience).await? {
        length += data.len();
        if length > limit {
            return Err(Failure::TooLarge);
        }
        held.push_back(data);
        if !share.fit(length) {
            return Ok(Collected::Part(held, body));
        }
    }
    Ok(Collected::Whole(held, length))
}

/// The first `limit` bytes of a body, and whether that is all of it.
pub(crate) async fn beginning(
    body: &mut UpstreamBody,
    patience: Patience,
    limit: usize,
) -> Result<(Bytes, bool), Failure> {
    let mut held = BytesMut::new();
    while let Some(data) = more(body, patience).await? {
        held.extend_from_slice(&data);
        if held.len() > limit {
            return Ok((held.freeze(), false));
        }
    }
    Ok((held.freeze(), true))
}

/// A body with what was read of it at its beginning again.
pub(crate) fn put_back(held: Bytes, rest: UpstreamBody) -> Body {
    let held = stream::iter((!held.is_empty()).then_some(Ok(held)));
    Body::from_stream(held.chain(rest.into_data_stream()))
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

/// What is looked for in an answer that streams by because it cannot be held.
pub(crate) struct Passing {
    peek: Peek,
    /// Raw text of the id that it must answer; none: any text may pass.
    id: Option<String>,
    limit: usize,
    sent: usize,
    /// Held for as long as the answer is under way.
    _open: (OpenPlace, Option<OpenRequest>),
}

impl Passing {
    pub(crate) fn new(
        id: Option<&str>,
        limit: usize,
        open: (OpenPlace, Option<OpenRequest>),
    ) -> Self {
        Self { peek: Peek::default(), id: id.map(str::to_owned), limit, sent: 0, _open: open }
    }

    /// Whether a piece may pass. A list of tools may not: nothing could be taken out of it.
    fn takes(&mut self, piece: &[u8]) -> bool {
        self.sent += piece.len();
        self.peek.feed(piece);
        self.sent <= self.limit && !self.peek.lists_tools()
    }

    /// Whether all of it was the answer.
    fn ends_well(&mut self) -> bool {
        let Some(id) = &self.id else { return true };
        let message = self.peek.finish();
        message.is_some_and(|message| answers(&message, id))
    }
}

/// Whether a message answers the request with this raw id: its result or error, or an error of a server
/// that could not read the id.
pub(crate) fn answers(message: &Message, id: &str) -> bool {
    let unnamed = message.kind == MessageKind::Error && message.id.is_none();
    unnamed || RawId::parse(id).is_some_and(|id| message.answers(id))
}

/// A body that begins with `held` and goes on as the upstream does; a failure breaks the connection.
pub(crate) fn passed_on(
    held: VecDeque<Bytes>,
    rest: UpstreamBody,
    patience: Patience,
    passing: Passing,
) -> Body {
    let state = (held, rest, passing);
    Body::from_stream(stream::unfold(state, move |(mut held, mut rest, mut passing)| async move {
        let next = match held.pop_front() {
            Some(piece) => Ok(Some(piece)),
            None => more(&mut rest, patience).await,
        };
        let next = match next {
            Ok(None) if passing.ends_well() => None,
            Ok(Some(piece)) if passing.takes(&piece) => Some(Ok(piece)),
            _ => Some(Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted))),
        };
        next.map(|next| (next, (held, rest, passing)))
    }))
}

/// The next piece of a body; none at its end.
async fn more(body: &mut UpstreamBody, patience: Patience) -> Result<Option<Bytes>, Failure> {
    loop {
        let frame = match patience.until() {
            Some(until) => timeout_at(until, body.frame()).await.map_err(|_| Failure::TimedOut)?,
            None => body.frame().await,
        };
        let Some(frame) = frame else { return Ok(None) };
        if let Ok(data) = frame.map_err(|_| Failure::Cut)?.into_data() {
            return Ok(Some(data));
        }
    }
}
