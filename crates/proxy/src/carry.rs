//! Carries a message to its upstream over the transport that the upstream
//! speaks. What comes back always looks like Streamable HTTP.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use sluice_domain::Transport;
use sluice_mcp::{Envelope, Era, Kind, codes, error_answer, member_text, sse_event};
use sluice_upstream::Target;
use tokio::sync::mpsc;
use tokio::time::timeout_at;
use uuid::Uuid;

use crate::bridge::{Bridge, Item, Ticket};
use crate::cache::Entry;
use crate::failure::Failure;
use crate::forward::{self, Patience, UpstreamBody};
use crate::headers::{self, SESSION};
use crate::remote::{Reply, Sent, What};
use crate::session::Session;
use crate::state::Inner;

/// How the names of bridges begin, which stand in for upstream session ids. The address of the replica
/// that reads the stream follows.
const PREFIX: &str = "sluice-sse-";
/// What the SDKs answer when a request cannot be used as it stands.
const BAD_REQUEST: i64 = -32_000;
/// Of an error in JSON, so much is looked at to see whether it is JSON-RPC.
const LOOKED_AT: usize = 64 * 1024;

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

/// The replica that reads a bridge's stream, if it is another one.
fn elsewhere<'a>(inner: &Inner, name: &'a str) -> Option<&'a str> {
    let (home, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    (home != inner.remote.address()).then_some(home)
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

impl Source for Sent {
    async fn next(&mut self) -> Option<Item> {
        Self::next(self).await
    }
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
            return Box::pin(self.over_bridge()).await;
        }
        let response = self.plainly().await?;
        let first = self.envelope.method == "initialize" && self.era == Era::Legacy;
        if transport != Transport::Auto || !first || self.session.is_some() {
            return Ok(response);
        }
        // What a client of both transports does: the old one is tried where the new one is not there.
        let (response, absent) = may_be_sse(response, self.patience).await?;
        if absent && let Ok(bridge) = Bridge::open(self.inner, self.entry).await {
            self.inner.bridges.remember(record.id, record.revision);
            return Box::pin(self.initialize(bridge)).await;
        }
        Ok(response)
    }

    async fn plainly(&self) -> Carried {
        let target = self.entry.route.target.as_ref().ok_or(Failure::UNUSABLE)?;
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
        if let Some(home) = elsewhere(self.inner, name) {
            return Box::pin(self.by_way_of(home, name)).await;
        }
        if let Some(bridge) = self.inner.bridges.get(name, self.entry.route.record.server.id) {
            return self.post(&bridge).await;
        }
        Ok(self.no_session())
    }

    fn no_session(&self) -> Response<Body> {
        let (status, code) = (StatusCode::NOT_FOUND, codes::SESSION_NOT_FOUND);
        refused(status, code, self.envelope, "Session not found")
    }

    fn id_in_use(&self) -> Response<Body> {
        let (status, code) = (StatusCode::BAD_REQUEST, codes::INVALID_REQUEST);
        refused(status, code, self.envelope, "a request with this id is open in this session")
    }

    /// Posts a message whose answer comes over a stream that another replica reads.
    async fn by_way_of(self, home: &str, name: &str) -> Carried {
        let target = self.entry.route.target.as_ref().ok_or(Failure::UNUSABLE)?;
        let what = match (self.envelope.kind, self.envelope.id) {
            (Kind::Request, Some(id)) => What::Answer {
                id: id.as_str().to_owned(),
                token: self.envelope.progress_token.map(str::to_owned),
            },
            // What it is told then matters less than whether it is there.
            _ => What::Answer { id: format!("\"{}\"", Uuid::new_v4()), token: None },
        };
        let server = self.entry.route.record.server.id;
        let (reply, sent) = self.inner.remote.ask(home, name, server, what).await?;
        let endpoint = match reply {
            Reply::Here { endpoint } => target.with_path(&endpoint).map_err(|_| Failure::NotMcp)?,
            Reply::Gone => return Ok(self.no_session()),
            Reply::Taken => return Ok(self.id_in_use()),
        };
        let waits = self.envelope.kind == Kind::Request;
        let patience = self.patience;
        let response = self.post_to(&endpoint).await?;
        if waits && response.status().is_success() {
            answer(sent, patience).await
        } else {
            Ok(response)
        }
    }

    /// Begins a session on a new bridge, which gets a name that stands in for a session id.
    async fn initialize(self, bridge: Arc<Bridge>) -> Carried {
        let (bridges, address) =
            (self.inner.bridges.clone(), self.inner.remote.address().to_owned());
        let mut response = self.post(&bridge).await?;
        let name = format!("{PREFIX}{address}-{}", Uuid::new_v4().simple());
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
        let ticket = match (self.envelope.kind, self.envelope.id) {
            (Kind::Request, Some(id)) => match bridge.wait_for(id, self.envelope.progress_token) {
                Some(ticket) => Some(ticket),
                None => return Ok(self.id_in_use()),
            },
            _ => None,
        };
        let patience = self.patience;
        let response = self.post_to(&bridge.endpoint).await?;
        match ticket {
            Some(ticket) if response.status().is_success() => answer(ticket, patience).await,
            _ => Ok(response),
        }
    }

    async fn post_to(self, endpoint: &Target) -> Carried {
        let headers = headers::up(self.headers, Era::Legacy, None);
        let deadline = self.patience.deadline;
        forward::send(self.inner, endpoint, Method::POST, headers, self.body, deadline).await
    }
}

/// Whether a server of the older transport may have answered this to a POST (2025-11-25, "Backwards
/// Compatibility"): an error, and not one in JSON-RPC.
async fn may_be_sse(
    response: Response<Body>,
    patience: Patience,
) -> Result<(Response<Body>, bool), Failure> {
    let absent = [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
    if !absent.contains(&response.status()) {
        return Ok((response, false));
    }
    if headers::media_type(response.headers()).as_deref() != Some("application/json") {
        return Ok((response, true));
    }
    let (parts, mut body) = response.into_parts();
    let (held, whole) = forward::beginning(&mut body, patience, LOOKED_AT).await?;
    let text = std::str::from_utf8(&held).ok().filter(|_| whole);
    let rpc = text.is_some_and(|text| member_text(text, "jsonrpc").is_some());
    let body = forward::put_back(held, body);
    Ok((Response::from_parts(parts, body), whole && !rpc))
}

/// JSON if nothing comes before the answer, else a stream.
async fn answer(mut ticket: impl Source, patience: Patience) -> Carried {
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
pub(crate) async fn listen(inner: &Inner, session: &Arc<Session>) -> Option<Carried> {
    let name = bridge_name(Some(session))?;
    let plain = |status, message: &str| {
        stands_in(status, "application/json", error_answer(None, BAD_REQUEST, message, None))
    };
    let gone = || plain(StatusCode::NOT_FOUND, "Session not found");
    let taken = || plain(StatusCode::CONFLICT, "Conflict: only one stream per session");
    if let Some(home) = elsewhere(inner, name) {
        let asked = inner.remote.ask(home, name, session.server, What::Listen).await;
        return Some(asked.map(|(reply, sent)| match reply {
            Reply::Here { .. } => events(VecDeque::new(), sent),
            Reply::Gone => gone(),
            Reply::Taken => taken(),
        }));
    }
    let Some(bridge) = inner.bridges.get(name, session.server) else { return Some(Ok(gone())) };
    Some(Ok(match bridge.listen() {
        Some((backlog, items)) => events(backlog, Listening(items, bridge)),
        None => taken(),
    }))
}

/// DELETE on a bridged session. None if the session is not bridged.
pub(crate) async fn end(inner: &Inner, session: &Arc<Session>) -> Option<Carried> {
    let name = bridge_name(Some(session))?;
    match elsewhere(inner, name) {
        // Gone already is as good; what cannot be told ends when it is idle.
        Some(home) => {
            let _ = inner.remote.ask(home, name, session.server, What::End).await;
        }
        None => inner.bridges.remove(name),
    }
    Some(Ok(Response::new(Body::empty())))
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
