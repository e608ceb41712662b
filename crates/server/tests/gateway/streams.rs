//! Open streams of every kind, at every replica, learn of revocations, expiries and edits from the real
//! change feed, on both databases.

use std::time::{Duration, Instant, SystemTime};

use ::http::{Method, StatusCode};
use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::http::{self, Answer, Opened};
use sluice_testkit::{RedisServer, Sluice};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::endless::{HELLO, Upstream};
use crate::spread::shared;
use crate::world::{Agent, Connected, World, id, setup};

/// Without the feed a stream looks by itself, every 30 s: what is told sooner came by the feed.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// What is promised of revocations, expiries and edits.
const PROMISE: Duration = Duration::from_secs(1);
/// How often a busy machine may fail the promise in a row. What looks by itself, or once a few seconds,
/// fails it every time.
const ROUNDS: usize = 5;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

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

    /// Every stream and call is open still.
    fn are_open(&mut self) {
        for Open { what, stream, .. } in &mut self.streams {
            let piece = stream.piece().now_or_never();
            assert!(piece.is_none(), "{what}: {piece:?}");
        }
        let open = self.calls.iter().find(|(_, call)| call.is_finished());
        assert!(open.is_none(), "{open:?}");
    }

    /// Every stream and call ends.
    async fn end(&mut self) {
        for Open { what, mut stream, .. } in self.streams.drain(..) {
            let rest = timeout(SOON, async { while stream.piece().await.is_some() {} }).await;
            assert!(rest.is_ok(), "{what} goes on");
        }
        for (what, call) in self.calls.drain(..) {
            let answer = timeout(SOON, call).await.unwrap_or_else(|_| panic!("{what} goes on"));
            assert_eq!(answer.expect("it is asked").status, StatusCode::UNAUTHORIZED, "{what}");
        }
    }
}

/// Another grant of the same server and policy.
async fn another(world: &World, of: &Connected, policy: &str, label: String) -> Connected {
    let grant = json!({"label": label, "policy_id": policy});
    let grant = world.create(&format!("/servers/{}/grants", of.server), grant).await;
    let token = grant["token"].as_str().expect("a token").to_owned();
    Connected { grant: id(&grant), token, ..of.clone() }
}

async fn policy_of(world: &World, connected: &Connected) -> String {
    let policies = format!("/servers/{}/policies", connected.server);
    id(&world.must(Method::GET, &policies, Value::Null, 200).await["items"][0])
}

/// Ends the grants a moment from now; when.
async fn expire(world: &World, grants: &[Connected]) -> SystemTime {
    let mut last = SystemTime::now();
    for grant in grants {
        let path = format!("/workspaces/{}/grants/{}", world.workspace, grant.grant);
        last = loop {
            let soon = SystemTime::now() + Duration::from_secs(2);
            let edit = json!({"expires_at": DateTime::<Utc>::from(soon).to_rfc3339()});
            let edited = world.rest(Method::PATCH, &path, edit).await;
            // On a busy machine the moment may be past when it arrives.
            if edited.status == StatusCode::OK {
                break soon;
            }
            assert_eq!(edited.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", edited.text());
        };
    }
    last
}

/// What the streams of one server of each transport, at every replica, are held to.
struct Play<'a> {
    world: &'a World,
    upstream: Upstream,
    replicas: Vec<&'a Sluice>,
    /// The server of the newer transport, and the one of the older, with their policies.
    servers: [(Connected, String); 2],
}

impl<'a> Play<'a> {
    async fn new(world: &'a World, more: &'a [Sluice]) -> Self {
        let upstream = Upstream::start().await;
        let allow = || json!({"version": "1", "default": "allow"});
        let new = world.connect("new", &upstream.url("/mcp"), allow()).await;
        let old = world.connect("old", &upstream.url("/old"), allow()).await;
        let (of_new, of_old) = (policy_of(world, &new).await, policy_of(world, &old).await);
        let replicas = std::iter::once(&world.sluice).chain(more).collect();
        Self { world, upstream, replicas, servers: [(new, of_new), (old, of_old)] }
    }

    /// New grants, one of each server, with all that stays open.
    async fn open(&self) -> (Vec<Connected>, Held) {
        let mut grants = Vec::new();
        for (server, policy) in &self.servers {
            let label = format!("after {} calls", *self.upstream.calls.borrow());
            grants.push(another(self.world, server, policy, label).await);
        }
        let agents = [("new", grants[0].agent()), ("old", grants[1].agent())];
        let mut open = Held::default();
        held(&self.upstream, &agents, &self.replicas, &mut open).await;
        (grants, open)
    }

    /// Edits both policies, and edits them back; how long an edit took to be told everywhere.
    async fn edit(&self, open: &mut Held) -> Duration {
        let mut longest = Duration::ZERO;
        for default in ["deny", "allow"] {
            for (_, policy) in &self.servers {
                let edit = json!({"document": {"version": "1", "default": default}});
                self.world.must(Method::PUT, &format!("/policies/{policy}"), edit, 200).await;
            }
            let edited = Instant::now();
            open.are_told().await;
            longest = longest.max(edited.elapsed());
        }
        longest
    }

    /// Revokes the grants; how long it took until all that was open had ended.
    async fn revoke(&self, (grants, mut open): (Vec<Connected>, Held)) -> Duration {
        open.are_open();
        for grant in &grants {
            let path = format!("/grants/{}", grant.grant);
            self.world.must(Method::DELETE, &path, Value::Null, 204).await;
        }
        let revoked = Instant::now();
        open.end().await;
        revoked.elapsed()
    }

    /// Lets new grants expire; how long after that all that was open had ended.
    async fn expiry(&self) -> Duration {
        let (grants, mut open) = self.open().await;
        let expired = expire(self.world, &grants).await;
        open.end().await;
        expired.elapsed().expect("none ends before its time")
    }
}

/// Of some rounds one, at least, keeps the promise; all of them do what they must.
async fn kept(what: &str, mut round: impl AsyncFnMut() -> Duration) {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        best = best.min(round().await);
        if best < PROMISE {
            return;
        }
    }
    panic!("{what} took {best:?} at best to reach every open stream and call");
}

async fn streams_learn(world: World, more: Vec<Sluice>) {
    let play = Play::new(&world, &more).await;
    let (grants, mut open) = play.open().await;
    kept("an edit", async || play.edit(&mut open).await).await;
    play.revoke((grants, open)).await;
    kept("a revocation", async || play.revoke(play.open().await).await).await;
    kept("an expiry", async || play.expiry().await).await;
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
