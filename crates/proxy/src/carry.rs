//! Carries a message to its upstream over the transport that the upstream
//! speaks. What comes back always looks like Streamable HTTP.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use sluice_domain::Transport;
use sluice_mcp::{Envelope, Era, Kind, codes, error_answer, sse_event};
use tokio::sync::mpsc;
use tokio::time::timeout_at;
use uuid::Uuid;

use crate::bridge::{Bridge, Item, Ticket};
use crate::cache::Entry;
use crate::failure::Failure;
use crate::forward::{self, Patience, UpstreamBody};
use crate::headers::{self, SESSION};
use crate::session::Session;
use crate::state::Inner;

/// How the names of bridges begin, which stand in for upstream session ids.
const PREFIX: &str = "sluice-sse-";
/// What the SDKs answer when a request cannot be used as it stands.
const BAD_REQUEST: i64 = -32_000;

type Carried = Result<Response<UpstreamBody>, Failure>;

/// One message and where it goes.
pub(crate) struct Cargo<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) entry: &'a Arc<Entry>,
    pub(crate) envelope: &'a Envelope<'a>,
    pub(crate) era: Era,
    pub(crate) session: Option<&'a Arc<Session>>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) patience: Patience,
}

/// The bridge's name that a session is bound to.
fn bridge_name(session: Option<&Arc<Session>>) -> Option<&str> {
    session?.upstream.to_str().ok().filter(|name| name.starts_with(PREFIX))
}

/// An answer in the upstream's stead.
fn stands_in(status: StatusCode, media: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn refused(
    status: StatusCode,
    code: i64,
    envelope: &Envelope<'_>,
    message: &str,
) -> Response<Body> {
    let id = envelope.id.map(sluice_mcp::RawId::as_str);
    stands_in(status, "application/json", error_answer(id, code, message, None))
}

fn events(first: VecDeque<Item>, rest: impl Source) -> Response<Body> {
    let body = stream::unfold((first, Some(rest)), |(mut first, rest)| async move {
        let mut rest = rest?;
        let item = match first.pop_front() {
            Some(item) => item,
            None => rest.next().await?,
        };
        let event = Bytes::from(sse_event(&item.data));
        let rest = (!item.last).then_some(rest);
        Some((Ok::<_, std::convert::Infallible>(event), (first, rest)))
    });
    stands_in(StatusCode::OK, "text/event-stream", Body::from_stream(body))
}

/// Where a stream's messages come from.
trait Source: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Option<Item>> + Send;
}

impl Source for Ticket {
    async fn next(&mut self) -> Option<Item> {
        Self::next(self).await
    }
}

/// A listener, which keeps its bridge open.
struct Listening(mpsc::Receiver<Item>, #[expect(dead_code, reason = "kept open")] Arc<Bridge>);

impl Source for Listening {
    async fn next(&mut self) -> Option<Item> {
        self.0.recv().await
    }
}

impl Cargo<'_> {
    /// Sends the message.
    pub(crate) async fn send(self) -> Carried {
        let record = &self.entry.route.record.server;
        let transport = record.settings.transport;
        let bridged = transport == Transport::Sse
            || bridge_name(self.session).is_some()
            || (transport == Transport::Auto
                && self.inner.bridges.knows(record.id, record.revision));
        if bridged {
            return self.over_bridge().await;
        }
        let response = self.plainly().await?;
        // What a client of both transports does: the old one is tried where the new one is not there.
        let absent =
            matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        let first = self.envelope.method == "initialize" && self.era == Era::Legacy;
        if transport == Transport::Auto && absent && first && self.session.is_none() {
            let (id, revision) = (record.id, record.revision);
            if let Ok(bridge) = Bridge::open(self.inner, self.entry).await {
                self.inner.bridges.remember(id, revision);
                return self.initialize(bridge).await;
            }
        }
        Ok(response)
    }

    async fn plainly(&self) -> Carried {
        let target = self.entry.route.target.as_ref().ok_or(Failure::Unreachable)?;
        let upstream = self.session.map(|session| &session.upstream);
        let headers = headers::up(self.headers, self.era, upstream);
        let (inner, body, deadline) = (self.inner, self.body.clone(), self.patience.deadline);
        forward::send(inner, target, Method::POST, headers, body, deadline).await
    }

    async fn over_bridge(self) -> Carried {
        if self.era == Era::Modern {
            let message = "Bad Request: this server speaks an older version; send initialize";
            return Ok(refused(StatusCode::BAD_REQUEST, BAD_REQUEST, self.envelope, message));
        }
        if self.envelope.method == "initialize" {
            let bridge = Bridge::open(self.inner, self.entry).await?;
            return self.initialize(bridge).await;
        }
        let Some(name) = bridge_name(self.session) else {
            let message = "Bad Request: Mcp-Session-Id is required";
            return Ok(refused(StatusCode::BAD_REQUEST, BAD_REQUEST, self.envelope, message));
        };
        if let Some(bridge) = self.inner.bridges.get(name, self.entry.route.record.server.id) {
            return self.post(&bridge).await;
        }
        let (status, code) = (StatusCode::NOT_FOUND, codes::SESSION_NOT_FOUND);
        Ok(refused(status, code, self.envelope, "Session not found"))
    }

    /// Begins a session on a new bridge, which gets a name that stands in for a session id.
    async fn initialize(self, bridge: Arc<Bridge>) -> Carried {
        let bridges = self.inner.bridges.clone();
        let mut response = self.post(&bridge).await?;
        let name = format!("{PREFIX}{}", Uuid::new_v4().simple());
        if response.status().is_success()
            && let Ok(value) = HeaderValue::from_str(&name)
        {
            bridges.put(&name, bridge);
            response.headers_mut().insert(SESSION, value);
        }
        Ok(response)
    }

    /// Posts to the endpoint; the answer comes over the stream.
    async fn post(self, bridge: &Arc<Bridge>) -> Carried {
        let headers = headers::up(self.headers, Era::Legacy, None);
        let ticket = match (self.envelope.kind, self.envelope.id) {
            (Kind::Request, Some(id)) => Some(bridge.wait_for(id, self.envelope.progress_token)),
            _ => None,
        };
        let (inner, deadline) = (self.inner, self.patience.deadline);
        let endpoint = &bridge.endpoint;
        let posted = forward::send(inner, endpoint, Method::POST, headers, self.body, deadline);
        let response = posted.await?;
        match ticket {
            Some(ticket) if response.status().is_success() => answer(ticket, self.patience).await,
            _ => Ok(response),
        }
    }
}

/// JSON if nothing comes before the answer, else a stream.
async fn answer(mut ticket: Ticket, patience: Patience) -> Carried {
    let first = match patience.until() {
        Some(until) => timeout_at(until, ticket.next()).await.map_err(|_| Failure::TimedOut)?,
        None => ticket.next().await,
    };
    let first = first.ok_or(Failure::Cut)?;
    if first.last {
        return Ok(stands_in(StatusCode::OK, "application/json", first.data));
    }
    Ok(events(VecDeque::from([first]), ticket))
}

/// GET on a bridged session: what answers nothing. None if the session is not bridged.
pub(crate) fn listen(inner: &Inner, session: &Arc<Session>) -> Option<Response<Body>> {
    let name = bridge_name(Some(session))?;
    let plain = |status, message: &str| {
        stands_in(status, "application/json", error_answer(None, BAD_REQUEST, message, None))
    };
    let Some(bridge) = inner.bridges.get(name, session.server) else {
        return Some(plain(StatusCode::NOT_FOUND, "Session not found"));
    };
    Some(match bridge.listen() {
        Some((backlog, items)) => events(backlog, Listening(items, bridge)),
        None => plain(StatusCode::CONFLICT, "Conflict: only one stream per session"),
    })
}

/// DELETE on a bridged session. None if the session is not bridged.
pub(crate) fn end(inner: &Inner, session: &Arc<Session>) -> Option<Response<Body>> {
    let name = bridge_name(Some(session))?;
    inner.bridges.remove(name);
    Some(Response::new(Body::empty()))
}

/// Whether GET and DELETE without a session make no sense for the upstream.
pub(crate) fn only_bridged(inner: &Inner, entry: &Entry) -> bool {
    let server = &entry.route.record.server;
    match server.settings.transport {
        Transport::Sse => true,
        Transport::Auto => inner.bridges.knows(server.id, server.revision),
        Transport::StreamableHttp => false,
    }
}

/// Keeps a session's bridge from being let go as idle, for as long as a stream of it is open.
pub(crate) fn keep(inner: &Inner, session: &Arc<Session>) {
    if let Some(name) = bridge_name(Some(session)) {
        let _ = inner.bridges.get(name, session.server);
    }
}
