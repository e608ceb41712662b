//! One session with an upstream that speaks only HTTP+SSE (2024-11-05): its
//! stream, read by one task, and the requests that wait for their part of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt as _;
use moka::sync::Cache;
use parking_lot::Mutex;
use sluice_domain::ServerId;
use sluice_mcp::{Event, EventStream, Message, MessageKind, RawId, event_data, event_name};
use sluice_upstream::Target;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::budget::{Budget, FREE};
use crate::cache::Entry;
use crate::failure::Failure;
use crate::forward;
use crate::headers;
use crate::state::Inner;

/// How long an upstream may take to name its endpoint.
pub(crate) const ENDPOINT_WAIT: Duration = Duration::from_secs(10);
/// Messages that wait for a slow client; what they take is counted over all calls together.
pub(crate) const QUEUE: usize = 256;
/// Messages of the upstream that nobody listens to yet.
pub(crate) const BACKLOG: usize = 64;
const BRIDGES: u64 = 10_000;

/// A message of the upstream.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) data: Bytes,
    /// It answers the request that waits.
    pub(crate) last: bool,
}

#[derive(Debug)]
struct Waiting {
    out: mpsc::Sender<Item>,
    /// Raw text of the request's progress token.
    token: Option<String>,
}

#[derive(Debug, Default)]
struct Routing {
    waiting: HashMap<String, Waiting>,
    listener: Option<mpsc::Sender<Item>>,
    backlog: VecDeque<Item>,
    over: bool,
}

impl Routing {
    /// Hands a message to whom it is for. Who is behind by so much that it cannot be held loses the rest.
    fn message(&mut self, message: &Message, data: Option<Bytes>) {
        let answers = matches!(message.kind, MessageKind::Result | MessageKind::Error);
        if answers {
            let key = message.id.as_deref().and_then(RawId::parse).map(RawId::key);
            if let (Some(waiting), Some(data)) =
                (key.and_then(|key| self.waiting.remove(&key)), data)
            {
                // Full: the receiver sees that nothing more comes.
                let _ = waiting.out.try_send(Item { data, last: true });
            }
            return;
        }
        let Some(data) = data else { return self.lost() };
        let item = Item { data, last: false };
        let progress = message.method.as_deref() == Some("notifications/progress");
        let token = progress.then(|| progress_token(&item.data)).flatten();
        let asked = token.and_then(|token| {
            let key = RawId::parse(&token)?.key();
            let same = |own: &str| RawId::parse(own).is_some_and(|own| own.key() == key);
            let asked = self.waiting.iter().find(|(_, w)| w.token.as_deref().is_some_and(same));
            asked.map(|(key, _)| key.clone())
        });
        if let Some(listener) =
            self.listener.as_ref().filter(|out| asked.is_none() && !out.is_closed())
        {
            if listener.try_send(item).is_err() {
                self.listener = None;
            }
            return;
        }
        // Without a listener: most likely about the one request that is open.
        let only = || self.waiting.keys().next().filter(|_| self.waiting.len() == 1).cloned();
        if let Some(key) = asked.or_else(only) {
            let fits = self.waiting.get(&key).is_none_or(|w| w.out.try_send(item).is_ok());
            if !fits {
                self.waiting.remove(&key);
            }
        } else if self.backlog.len() < BACKLOG {
            self.backlog.push_back(item);
        }
    }

    /// A message came that cannot be held, and nobody knows whom it was for.
    fn lost(&mut self) {
        self.listener = None;
        self.waiting.clear();
    }
}

fn progress_token(message: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(message).ok()?;
    let params = sluice_mcp::member_text(text, "params")?;
    sluice_mcp::member_text(params, "progressToken").map(str::to_owned)
}

/// See the module's head. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) server: ServerId,
    /// Where messages are posted.
    pub(crate) endpoint: Target,
    routing: Arc<Mutex<Routing>>,
    reader: AbortHandle,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// A request that waits; forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    bridge: Arc<Bridge>,
    key: String,
    items: mpsc::Receiver<Item>,
}

impl Ticket {
    /// The next message for it; none once the upstream's stream is over.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        self.items.recv().await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.bridge.routing.lock().waiting.remove(&self.key);
    }
}

impl Bridge {
    /// Opens the upstream's stream and learns where to post.
    pub(crate) async fn open(inner: &Inner, entry: &Entry) -> Result<Arc<Self>, Failure> {
        let target = entry.route.target.as_ref().ok_or(Failure::UNUSABLE)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let opening = forward::send(inner, target, Method::GET, headers, Bytes::new(), None);
        let response = opening.await?;
        let media = headers::media_type(response.headers());
        if response.status() != StatusCode::OK || media.as_deref() != Some("text/event-stream") {
            return Err(Failure::NotMcp);
        }
        let mut body = response.into_body();
        let mut events = EventStream::new(inner.options.max_message_bytes);
        let first = timeout(ENDPOINT_WAIT, endpoint(&mut body, &mut events));
        let (reference, rest) = first.await.map_err(|_| Failure::TimedOut)??;
        let endpoint = target.with_path(&reference).map_err(|_| Failure::NotMcp)?;
        let routing = Arc::new(Mutex::new(Routing::default()));
        let reading = read(body, events, rest, Arc::clone(&routing), inner.budget.clone());
        let reader = tokio::spawn(reading).abort_handle();
        Ok(Arc::new(Self { server: entry.route.record.server.id, endpoint, routing, reader }))
    }

    /// The upstream ended the stream, and with it the session.
    pub(crate) fn is_over(&self) -> bool {
        self.routing.lock().over
    }

    /// Waits for what answers a request; none if somebody waits for the answer to this id already.
    pub(crate) fn wait_for(self: &Arc<Self>, id: RawId<'_>, token: Option<&str>) -> Option<Ticket> {
        let (out, items) = mpsc::channel(QUEUE);
        let key = id.key();
        let waiting = Waiting { out, token: token.map(str::to_owned) };
        let mut routing = self.routing.lock();
        if routing.waiting.contains_key(&key) {
            return None;
        }
        if !routing.over {
            routing.waiting.insert(key.clone(), waiting);
        }
        drop(routing);
        Some(Ticket { bridge: Arc::clone(self), key, items })
    }

    /// Listens to what answers nothing; none if somebody listens already.
    pub(crate) fn listen(&self) -> Option<(VecDeque<Item>, mpsc::Receiver<Item>)> {
        let mut routing = self.routing.lock();
        if routing.listener.as_ref().is_some_and(|out| !out.is_closed()) {
            return None;
        }
        let (out, items) = mpsc::channel(QUEUE);
        if !routing.over {
            routing.listener = Some(out);
        }
        Some((std::mem::take(&mut routing.backlog), items))
    }
}

/// Reads up to the event that names the endpoint; also what came after it in the same piece.
async fn endpoint(
    body: &mut Body,
    events: &mut EventStream,
) -> Result<(String, Vec<Event>), Failure> {
    loop {
        let frame = body.frame().await.ok_or(Failure::NotMcp)?.map_err(|_| Failure::Cut)?;
        let Ok(data) = frame.into_data() else { continue };
        let mut out = Vec::new();
        events.feed(&data, &mut out).map_err(|_| Failure::TooLarge)?;
        let named = |event: &Event| event_name(&event.concat()) == b"endpoint";
        if let Some(at) = out.iter().position(named) {
            let rest = out.split_off(at + 1);
            let data = event_data(&out[at].concat());
            return String::from_utf8(data).map(|text| (text, rest)).map_err(|_| Failure::NotMcp);
        }
    }
}

async fn read(
    mut body: Body,
    mut events: EventStream,
    rest: Vec<Event>,
    routing: Arc<Mutex<Routing>>,
    budget: Budget,
) {
    let route = |event: &Event| {
        if let Some(message) = &event.message {
            let data = event_data(&event.concat());
            // Others wait for the same stream, so it cannot be held up for one: what waits is counted.
            let mut share = budget.share();
            let fits = share.fit(FREE + data.len());
            routing.lock().message(message, fits.then(|| share.keep(data.into())));
        }
    };
    rest.iter().for_each(route);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let mut out = Vec::new();
        let fed = events.feed(&data, &mut out);
        out.iter().for_each(route);
        if fed.is_err() {
            break;
        }
    }
    let mut routing = routing.lock();
    routing.over = true;
    routing.waiting.clear();
    routing.listener = None;
}

/// The bridges of this process, by the name that stands in for an upstream session id.
#[derive(Debug, Clone)]
pub(crate) struct Bridges {
    open: Cache<String, Arc<Bridge>>,
    /// Servers that turned out to speak HTTP+SSE only.
    known: Cache<(ServerId, i64), ()>,
}

impl Bridges {
    pub(crate) fn new(idle: Duration) -> Self {
        let open = Cache::builder().max_capacity(BRIDGES).time_to_idle(idle).build();
        let known =
            Cache::builder().max_capacity(BRIDGES).time_to_live(Duration::from_mins(10)).build();
        Self { open, known }
    }

    pub(crate) fn put(&self, name: &str, bridge: Arc<Bridge>) {
        self.open.insert(name.to_owned(), bridge);
    }

    /// A session's bridge, unless it is over.
    pub(crate) fn get(&self, name: &str, server: ServerId) -> Option<Arc<Bridge>> {
        let bridge = self.open.get(name).filter(|bridge| bridge.server == server)?;
        if bridge.is_over() {
            self.open.invalidate(name);
            return None;
        }
        Some(bridge)
    }

    pub(crate) fn remove(&self, name: &str) {
        self.open.invalidate(name);
    }

    pub(crate) fn remember(&self, server: ServerId, revision: i64) {
        self.known.insert((server, revision), ());
    }

    pub(crate) fn knows(&self, server: ServerId, revision: i64) -> bool {
        self.known.contains_key(&(server, revision))
    }

    /// Lets idle bridges go.
    pub(crate) fn tidy(&self) {
        self.open.run_pending_tasks();
    }
}
