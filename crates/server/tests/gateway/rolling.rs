//! Replicas that are replaced under load, and one that is killed in the midst of a call.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::json;
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::http::Answer;
use sluice_testkit::{Behaviour, RedisServer, Setup, http};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::chaos::Ward;
use crate::spread::shared;
use crate::world::{Agent, World, decision, passed, request_id};

/// Sends requests to replicas that say they are ready, as a balancer does.
#[derive(Clone)]
struct Balancer {
    ready: Arc<Mutex<Vec<SocketAddr>>>,
    stop: CancellationToken,
}

impl Balancer {
    fn before(replicas: Vec<SocketAddr>) -> Self {
        let (ready, stop) = (Arc::new(Mutex::new(replicas.clone())), CancellationToken::new());
        let (list, ended) = (Arc::clone(&ready), stop.clone());
        tokio::spawn(async move {
            while !ended.is_cancelled() {
                let mut found = Vec::new();
                for at in &replicas {
                    let answer = http::send(*at, Method::GET, "/readyz", &[], "").await;
                    if answer.is_ok_and(|answer| answer.status == StatusCode::OK) {
                        found.push(*at);
                    }
                }
                *list.lock() = found;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Self { ready, stop }
    }

    /// One of those that are ready, in turn; waits while there is none.
    async fn one(&self, turn: usize) -> SocketAddr {
        loop {
            let ready = self.ready.lock().clone();
            if let Some(at) = ready.get(turn % ready.len().max(1)) {
                return *at;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn post(agent: &Agent, at: SocketAddr) -> Result<Answer, String> {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {}}});
    let headers = [
        ("authorization", agent.bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let sent = http::send(at, Method::POST, &agent.path, &headers, request.to_string()).await;
    sent.map_err(|error| error.to_string())
}

/// Calls through the balancer until it stops; the ids of all, each of which must pass.
async fn load(agent: Agent, balancer: Balancer) -> BTreeSet<String> {
    let (mut ids, mut turn) = (BTreeSet::new(), 0);
    while !balancer.stop.is_cancelled() {
        turn += 1;
        let at = balancer.one(turn).await;
        let answer = post(&agent, at).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(answer.status == StatusCode::OK && passed(&answer.json()), "{}", answer.text());
        ids.insert(request_id(&answer.headers).to_owned());
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_replaced_one_by_one_under_load_and_no_call_fails() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let setup = shared(database.url(), &redis.url()).with("SLUICE_STOP_NOTICE", "5s");
    let mut ward = Ward::start(setup).await;
    let second: Setup = ward.world.sluice.setup().replica();
    let mut other = second.serve().await;
    let balancer = Balancer::before(vec![ward.world.sluice.address(), other.address()]);
    let mut agents = JoinSet::new();
    for _ in 0..4 {
        agents.spawn(load(ward.agent.clone(), balancer.clone()));
    }
    let first = ward.world.sluice.setup().clone();
    ward.world.sluice.stop().await;
    ward.world.sluice = first.serve().await;
    other.stop().await;
    other = second.serve().await;
    balancer.stop.cancel();
    let mut all = BTreeSet::new();
    while let Some(ids) = agents.join_next().await {
        all.extend(ids.expect("no call fails"));
    }
    assert!(all.len() > 20, "{}", all.len());
    ward.has_all(&all).await;
    other.stop().await;
    ward.world.sluice.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_replica_killed_in_the_midst_of_a_call_takes_nothing_else_with_it() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let upstream = sluice_testkit::FakeServer::start().await;
    upstream.on_call("echo", Behaviour::Held("done".to_owned()));
    let world = World::start(shared(database.url(), &redis.url())).await;
    let other = world.sluice.setup().replica().serve().await;
    let limit = json!({"counter": "c", "window": "hour", "max": 2});
    let document =
        json!({"version": "1", "default": "deny", "tools": {"echo": {"limits": [limit]}}});
    let agent = world.connect("notes", &upstream.url(), document).await.agent();
    let (caller, at) = (agent.clone(), other.address());
    let before = upstream.seen().len();
    let in_flight = tokio::spawn(async move { post(&caller, at).await });
    upstream.arrived(before + 1).await;
    other.crash().await;
    let answer = in_flight.await.expect("no panic");
    assert!(answer.is_err(), "its agent learns that it was cut off: {answer:?}");
    upstream.on_call("echo", Behaviour::Text("done".to_owned()));
    // It ran, perhaps: it stays counted, and nobody runs it again.
    assert!(passed(&agent.call(&world.sluice, "echo", json!({})).await));
    let refused = agent.call(&world.sluice, "echo", json!({})).await;
    assert_eq!(decision(&refused)["code"], "rate_limited", "{refused}");
    assert_eq!(upstream.calls_of("echo"), 2);
    world.sluice.stop().await;
    database.remove().await;
}
