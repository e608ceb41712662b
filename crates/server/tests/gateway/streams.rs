//! Open streams of every kind, at every replica, learn of revocations, expiries and edits from the real
//! change feed, on both databases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::http::{Method, StatusCode};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::http::{self, Answer, Opened};
use sluice_testkit::{RedisServer, Sluice};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::spread::shared;
use crate::world::{Agent, Connected, World, id, setup};

/// Without the feed a stream looks by itself, every 30 s: what is told sooner came by the feed, which is
/// read twice a second (a test of the store) and, by itself, within a second (`cargo xtask streams`).
const SOON: Duration = Duration::from_secs(20);
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const HELLO: &str = ": hello\n\n";

/// A server of both transports whose streams and calls stay open.
#[derive(Clone)]
struct Upstream {
    /// The streams of the older transport.
    older: Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>>,
    /// How many calls have arrived.
    calls: watch::Sender<usize>,
    address: std::net::SocketAddr,
}

impl Upstream {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (older, calls) = (Arc::default(), watch::channel(0).0);
        let upstream = Self { older, calls, address };
        let app = Router::new().fallback(answer).with_state(upstream.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        upstream
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until so many calls have arrived.
    async fn called(&self, count: usize) {
        let mut calls = self.calls.subscribe();
        let there = timeout(SOON, calls.wait_for(|calls| *calls >= count)).await;
        there.expect("the call arrives").expect("the server stands");
    }

    /// The older transport: what is posted is answered over the stream.
    fn older(&self, method: &Method, number: Option<&str>, answer: Option<String>) -> Response {
        if *method == Method::GET {
            let (sender, receiver) = mpsc::unbounded_channel::<String>();
            let number = {
                let mut older = self.older.lock();
                older.push(sender);
                older.len() - 1
            };
            let hello = format!("event: endpoint\ndata: /old/messages?{number}\n\n");
            let events = stream::unfold(receiver, |mut receiver| async {
                let message = receiver.recv().await?;
                Some((format!("data: {message}\n\n"), receiver))
            });
            let events = stream::iter([hello]).chain(events).map(Ok::<_, std::io::Error>);
            return events_of(Body::from_stream(events));
        }
        let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        };
        if let Some(answer) = answer {
            self.older.lock()[number].send(answer).ok();
        }
        StatusCode::ACCEPTED.into_response()
    }
}

fn events_of(body: Body) -> Response {
    ([("content-type", "text/event-stream")], body).into_response()
}

/// A stream that greets and goes on for ever.
fn endless() -> Response {
    let hello = stream::iter([Ok::<_, std::io::Error>(Bytes::from(HELLO))]);
    events_of(Body::from_stream(hello.chain(stream::pending())))
}

/// The answer to a request that has one.
fn result(asked: &Value) -> Option<String> {
    let result = match asked["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "s", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "wait", "inputSchema": {"type": "object"}},
            {"name": "stream", "inputSchema": {"type": "object"}}]}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string())
}

async fn answer(State(upstream): State<Upstream>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let call = asked["method"] == "tools/call";
    upstream.calls.send_modify(|calls| *calls += usize::from(call));
    if parts.uri.path().starts_with("/old") {
        return upstream.older(&parts.method, parts.uri.query(), result(&asked));
    }
    match (asked["method"].as_str(), asked["params"]["name"].as_str()) {
        (Some("subscriptions/listen"), _) | (_, Some("stream")) => return endless(),
        (_, Some("wait")) => std::future::pending().await,
        _ if parts.method == Method::GET => return endless(),
        _ => {}
    }
    let Some(message) = result(&asked) else { return StatusCode::ACCEPTED.into_response() };
    ([("mcp-session-id", "s-1"), ("content-type", "application/json")], message).into_response()
}

/// A stream that must end with its grant; `told`: and is told of edits before.
struct Open {
    what: String,
    stream: Opened,
    told: bool,
}

/// A grant's streams and calls, open.
#[derive(Default)]
struct Held {
    streams: Vec<Open>,
    calls: Vec<(String, JoinHandle<Answer>)>,
}

/// One client, at one replica, in the handshake era with its session, or in the stateless one.
struct Client<'a> {
    agent: &'a Agent,
    at: &'a Sluice,
    session: &'a str,
}

impl Client<'_> {
    fn headers<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut headers = vec![
            ("authorization", self.agent.bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", self.session));
        }
        headers.extend_from_slice(more);
        headers
    }

    async fn open(&self, method: Method, more: &[(&str, &str)], body: String) -> Opened {
        let (at, path) = (self.at.address(), &self.agent.path);
        let opened = http::open(at, method, path, &self.headers(more), body).await;
        let opened = opened.expect("it answers");
        assert_eq!(opened.status, StatusCode::OK);
        opened
    }

    /// A call that is not answered; the server has it when this returns.
    async fn wait(&self, upstream: &Upstream, id: usize) -> JoinHandle<Answer> {
        let (at, path, before) =
            (self.at.address(), self.agent.path.clone(), *upstream.calls.borrow());
        let headers: Vec<(String, String)> =
            self.headers(&[]).iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let waiting = tokio::spawn(async move {
            let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            http::send(at, Method::POST, &path, &headers, call("wait", id))
                .await
                .expect("an answer")
        });
        upstream.called(before + 1).await;
        waiting
    }
}

fn call(tool: &str, id: usize) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
        .to_string()
}

async fn session(agent: &Agent, at: &Sluice) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    agent.post(at, hello.to_string()).await.header("mcp-session-id").to_owned()
}

async fn greeted(stream: &mut Opened) {
    let piece = timeout(SOON, stream.piece()).await.expect("soon").expect("open").expect("whole");
    assert_eq!(piece, HELLO);
}

/// Opens all that stays open: the session's stream, a call that streams and one that waits, and what the
/// stateless era has in place of the session's stream. Sessions are opened at the first replica.
async fn held(
    upstream: &Upstream,
    agents: &[(&str, Agent)],
    replicas: &[&Sluice],
    held: &mut Held,
) {
    for (name, agent) in agents {
        for (number, at) in replicas.iter().enumerate() {
            let session = session(agent, replicas[0]).await;
            let client = Client { agent, at, session: &session };
            let what = |kind: &str| format!("{kind} of {name} at replica {number}");
            let mut stream = client.open(Method::GET, &[], String::new()).await;
            if *name == "new" {
                greeted(&mut stream).await;
            }
            held.streams.push(Open { what: what("the session's stream"), stream, told: true });
            held.calls.push((what("a call"), client.wait(upstream, 7).await));
            if *name == "old" {
                continue;
            }
            let mut stream = client.open(Method::POST, &[], call("stream", 8)).await;
            greeted(&mut stream).await;
            held.streams.push(Open { what: what("a call's stream"), stream, told: false });
            let listen = format!(
                r#"{{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
            );
            let modern =
                [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];
            let client = Client { session: "", ..client };
            let mut stream = client.open(Method::POST, &modern, listen).await;
            greeted(&mut stream).await;
            held.streams.push(Open { what: what("a subscription"), stream, told: true });
        }
    }
}

impl Held {
    /// Every stream that is told of edits is told of one.
    async fn are_told(&mut self) {
        for Open { what, stream, .. } in self.streams.iter_mut().filter(|open| open.told) {
            let piece = timeout(SOON, stream.piece()).await;
            let piece = piece.unwrap_or_else(|_| panic!("{what} is told nothing"));
            let piece = piece.unwrap_or_else(|| panic!("{what} ended")).expect("whole");
            let news = String::from_utf8_lossy(&piece).into_owned();
            assert!(news.contains("notifications/tools/list_changed"), "{what}: {news}");
        }
    }

    /// Every stream and call ends.
    async fn end(self) {
        for Open { what, mut stream, .. } in self.streams {
            let rest = timeout(SOON, async { while stream.piece().await.is_some() {} }).await;
            assert!(rest.is_ok(), "{what} goes on");
        }
        for (what, call) in self.calls {
            let answer = timeout(SOON, call).await.unwrap_or_else(|_| panic!("{what} goes on"));
            assert_eq!(answer.expect("it is asked").status, StatusCode::UNAUTHORIZED, "{what}");
        }
    }
}

/// Another grant of the same server and policy.
async fn another(world: &World, of: &Connected, policy: &str) -> Connected {
    let grant = json!({"label": "another", "policy_id": policy});
    let grant = world.create(&format!("/servers/{}/grants", of.server), grant).await;
    let token = grant["token"].as_str().expect("a token").to_owned();
    Connected { grant: id(&grant), token, ..of.clone() }
}

async fn policy_of(world: &World, connected: &Connected) -> String {
    let policies = format!("/servers/{}/policies", connected.server);
    id(&world.must(Method::GET, &policies, Value::Null, 200).await["items"][0])
}

/// Ends the grants a moment from now.
async fn expire(world: &World, grants: &[&str]) {
    for grant in grants {
        let path = format!("/workspaces/{}/grants/{grant}", world.workspace);
        loop {
            let soon = DateTime::<Utc>::from(std::time::SystemTime::now()) + TimeDelta::seconds(2);
            let edit = json!({"expires_at": soon.to_rfc3339()});
            let edited = world.rest(Method::PATCH, &path, edit).await;
            // On a busy machine the moment may be past when it arrives.
            if edited.status == StatusCode::OK {
                break;
            }
            assert_eq!(edited.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", edited.text());
        }
    }
}

async fn streams_learn(world: World, more: Vec<Sluice>) {
    let upstream = Upstream::start().await;
    let allow = || json!({"version": "1", "default": "allow"});
    let new = world.connect("new", &upstream.url("/mcp"), allow()).await;
    let old = world.connect("old", &upstream.url("/old"), allow()).await;
    let replicas: Vec<&Sluice> = std::iter::once(&world.sluice).chain(&more).collect();

    let mut open = Held::default();
    held(&upstream, &[("new", new.agent()), ("old", old.agent())], &replicas, &mut open).await;
    for connected in [&new, &old] {
        let edit = json!({"document": {"version": "1", "default": "deny"}});
        let path = format!("/policies/{}", policy_of(&world, connected).await);
        world.must(Method::PUT, &path, edit, 200).await;
    }
    open.are_told().await;
    for connected in [&new, &old] {
        world.must(Method::DELETE, &format!("/grants/{}", connected.grant), Value::Null, 204).await;
    }
    open.end().await;

    let mut expiring = Vec::new();
    for connected in [&new, &old] {
        let policy = policy_of(&world, connected).await;
        world
            .must(Method::PUT, &format!("/policies/{policy}"), json!({"document": allow()}), 200)
            .await;
        expiring.push(another(&world, connected, &policy).await);
    }
    let (new, old) = (&expiring[0], &expiring[1]);
    let mut open = Held::default();
    held(&upstream, &[("new", new.agent()), ("old", old.agent())], &replicas, &mut open).await;
    expire(&world, &[&new.grant, &old.grant]).await;
    open.end().await;
    for replica in more {
        replica.stop().await;
    }
    world.sluice.stop().await;
}

#[tokio::test]
async fn every_kind_of_stream_learns_on_sqlite() {
    streams_learn(World::start(setup()).await, Vec::new()).await;
}

#[tokio::test]
async fn every_kind_of_stream_learns_at_both_replicas_on_postgresql() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let world = World::start(shared(database.url(), &redis.url())).await;
    let other = world.sluice.setup().replica().serve().await;
    streams_learn(world, vec![other]).await;
    database.remove().await;
}

/// `/readyz` with the counters' store away: degraded, and answering.
#[tokio::test]
async fn readiness_tells_of_a_store_that_is_down() {
    let (database, mut redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let shared =
        setup().with("SLUICE_DATABASE_URL", database.url()).with("SLUICE_REDIS_URL", redis.url());
    let sluice = shared.serve().await;
    let ready = async || sluice.send(Method::GET, "/readyz", &[], "").await;
    assert_eq!(ready().await.json()["status"], "ready");
    redis.kill();
    let until = Instant::now() + Duration::from_secs(10);
    let degraded = loop {
        let answer = ready().await;
        if answer.json()["status"] != "ready" || Instant::now() > until {
            break answer;
        }
    };
    assert_eq!(degraded.status, StatusCode::OK, "limits refuse, the rest goes on");
    let told = degraded.json();
    assert_eq!(told["status"], "degraded", "{told}");
    assert_eq!(told["checks"]["counters"]["status"], "degraded", "{told}");
    assert_eq!(told["checks"]["database"]["status"], "ready", "{told}");
    redis.restart();
    while ready().await.json()["status"] != "ready" {
        assert!(Instant::now() < until + Duration::from_secs(20), "it does not come back");
    }
    sluice.stop().await;
    database.remove().await;
}
