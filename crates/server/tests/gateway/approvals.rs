//! Parked calls through the binary: decided at another replica, by the command line, and across crashes.

use std::time::{Duration, Instant};

use ::http::Method;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::{Behaviour, FakeServer, Plug, RedisServer, Sluice, http};

use crate::spread::shared;
use crate::world::{Agent, World, decision, passed, setup};

/// Every call of `pay` is asked about; its three an hour are charged when it is parked.
pub(crate) fn policy(hold: &str) -> Value {
    json!({
        "version": "1", "default": "deny",
        "tools": { "echo": {
            "approve_if": [{ "conditions": [] }],
            "approval": { "hold": hold, "expires": "30m" },
            "limits": [{ "counter": "c", "window": "hour", "max": 3 }],
        } },
    })
}

/// Looks until it finds; what happens in other processes tells nobody here that it has.
async fn until<T>(what: &str, found: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(3);
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn approvals(world: &World, at: &Sluice, status: &str) -> Vec<Value> {
    let path = format!("/workspaces/{}/approvals?status={status}", world.workspace);
    let page = world.rest_at(at, Method::GET, &path, Value::Null).await.json();
    page["items"].as_array().expect("items").clone()
}

/// The only approval in this state, waited for; its id.
async fn one(world: &World, at: &Sluice, status: &str) -> String {
    until(status, async || {
        let items = approvals(world, at, status).await;
        items.first().map(|item| item["id"].as_str().expect("an id").to_owned())
    })
    .await
}

async fn approve(world: &World, at: &Sluice, id: &str) -> u16 {
    let path = format!("/workspaces/{}/approvals/{id}/approve", world.workspace);
    world.rest_at(at, Method::POST, &path, json!({})).await.status.as_u16()
}

async fn state(world: &World, at: &Sluice, id: &str) -> String {
    let path = format!("/workspaces/{}/approvals/{id}", world.workspace);
    let approval = world.rest_at(at, Method::GET, &path, Value::Null).await.json();
    approval["status"].as_str().expect("a status").to_owned()
}

async fn events(world: &World, at: &Sluice, id: &str) -> Vec<Value> {
    let path = format!("/workspaces/{}/approvals/{id}/events", world.workspace);
    let events = world.rest_at(at, Method::GET, &path, Value::Null).await.json();
    events["items"].as_array().expect("items").clone()
}

/// When the event of this kind happened.
fn at(events: &[Value], kind: &str) -> DateTime<Utc> {
    let event = events.iter().find(|event| event["kind"] == kind);
    let at = event.unwrap_or_else(|| panic!("no {kind} in {events:?}"))["at"].as_str();
    at.expect("a time").parse().expect("RFC 3339")
}

fn request(id: i64, arguments: &Value) -> String {
    let params = json!({"name": "echo", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// Sends a call whose gateway dies before it answers.
async fn cut_off(agent: &Agent, at: &Sluice, arguments: &Value) {
    let headers = [
        ("authorization", agent.bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let body = request(7, arguments);
    let sent = http::send(at.address(), Method::POST, &agent.path, &headers, body).await;
    if let Ok(answer) = sent {
        panic!("the gateway was to be killed: {}", answer.text());
    }
}

struct Two {
    world: World,
    other: Sluice,
    upstream: FakeServer,
    agent: Agent,
    database: FreshDatabase,
    _redis: RedisServer,
}

impl Two {
    async fn start(hold: &str) -> Self {
        let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
        let upstream = FakeServer::start().await;
        let world = World::start(shared(database.url(), &redis.url())).await;
        let other = world.sluice.setup().replica().serve().await;
        let agent = world.connect("notes", &upstream.url(), policy(hold)).await.agent();
        Self { world, other, upstream, agent, database, _redis: redis }
    }
}

#[tokio::test]
async fn a_decision_at_one_replica_releases_a_call_held_at_another_within_a_second() {
    let two = Two::start("60s").await;
    let Two { world, other, upstream, agent, .. } = &two;
    for round in 1..=3 {
        let arguments = json!({ "n": round });
        let held = agent.call(other, "echo", arguments.clone());
        let deciding = async {
            let id = one(world, &world.sluice, "pending").await;
            assert_eq!(approve(world, &world.sluice, &id).await, 200);
            // Whoever comes second hears of the first.
            assert_eq!(approve(world, other, &id).await, 409);
            id
        };
        let (answer, id) = tokio::join!(held, deciding);
        assert!(passed(&answer), "{answer}");
        // By the replicas' own clocks: from the decision at the one to the release at the other.
        let events = events(world, other, &id).await;
        let took = at(&events, "released") - at(&events, "approved");
        assert!(took < TimeDelta::seconds(1), "{took}");
        assert_eq!(upstream.calls_of("echo"), round);
    }
    two.other.stop().await;
    two.world.sluice.stop().await;
    two.database.remove().await;
}

/// Sends a call that is to wait; once it is told that it waits, it is held.
async fn held(agent: &Agent, at: &Sluice, arguments: &Value) -> http::Opened {
    let meta = json!({ "progressToken": "p" });
    let params = json!({"name": "echo", "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": params});
    let headers = [
        ("authorization", agent.bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let path = &agent.path;
    let opened = http::open(at.address(), Method::POST, path, &headers, call.to_string()).await;
    let mut opened = opened.expect("it answers");
    let waits = opened.piece().await.expect("open").expect("whole");
    assert!(String::from_utf8_lossy(&waits).contains("Waiting for approval"));
    opened
}

#[tokio::test]
async fn identical_calls_at_two_replicas_run_once_and_each_gets_the_result() {
    let two = Two::start("60s").await;
    let Two { world, other, upstream, agent, .. } = &two;
    let text = "x".repeat(200_000);
    upstream.on_call("echo", Behaviour::Text(text.clone()));
    let arguments = json!({ "same": true });
    let first =
        agent.rpc(&world.sluice, 1, "tools/call", json!({"name": "echo", "arguments": arguments}));
    let second = async {
        let id = one(world, &world.sluice, "pending").await;
        let opened = held(agent, other, &arguments).await;
        assert_eq!(approve(world, &world.sluice, &id).await, 200);
        opened.whole().await.expect("whole").text()
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first["result"]["content"][0]["text"].as_str(), Some(text.as_str()));
    assert!(second.contains(&text) && second.contains(r#""id":"two""#), "it is not that result");
    assert_eq!(upstream.calls_of("echo"), 1);
    two.other.stop().await;
    two.world.sluice.stop().await;
    two.database.remove().await;
}

/// As in a failover: the replica that holds the call cannot read the decision when it is taken.
#[tokio::test]
async fn a_database_that_is_away_for_a_while_does_not_end_the_wait() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let upstream = FakeServer::start().await;
    let world = World::start(shared(database.url(), &redis.url())).await;
    let (plug, url) = Plug::before_url(database.url()).await;
    let behind = world.sluice.setup().replica().with("SLUICE_DATABASE_URL", url);
    let other = behind.serve().await;
    let agent = world.connect("notes", &upstream.url(), policy("10m")).await.agent();
    let opened = held(&agent, &other, &json!({ "n": 1 })).await;
    let id = one(&world, &world.sluice, "pending").await;
    plug.pull();
    until("the replica notices", async || {
        let ready = other.send(Method::GET, "/readyz", &[], "").await.json();
        (ready["checks"]["database"]["status"] != "ready").then_some(())
    })
    .await;
    assert_eq!(approve(&world, &world.sluice, &id).await, 200);
    assert_eq!(upstream.calls_of("echo"), 0);
    plug.put_back();
    let answer = opened.whole().await.expect("whole").text();
    assert!(answer.contains("\"result\"") && !answer.contains("isError\":true"), "{answer}");
    assert_eq!(upstream.calls_of("echo"), 1);
    until("it is written down", async || {
        (state(&world, &world.sluice, &id).await == "used").then_some(())
    })
    .await;
    other.stop().await;
    world.sluice.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_replica_killed_while_a_call_waits_loses_nothing() {
    let two = Two::start("60s").await;
    let Two { world, other, upstream, agent, database, .. } = two;
    let arguments = json!({ "n": 1 });
    let killing = async {
        let id = one(&world, &world.sluice, "pending").await;
        other.crash_now();
        id
    };
    let ((), id) = tokio::join!(cut_off(&agent, &other, &arguments), killing);
    // Decided while nobody holds it, it waits, and nothing runs.
    assert_eq!(approve(&world, &world.sluice, &id).await, 200);
    assert_eq!(upstream.calls_of("echo"), 0);
    let answer = agent.call(&world.sluice, "echo", arguments).await;
    assert!(passed(&answer), "{answer}");
    assert_eq!(upstream.calls_of("echo"), 1);
    assert_eq!(state(&world, &world.sluice, &id).await, "used");
    drop(other);
    world.sluice.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_replica_killed_while_an_approved_call_runs_leaves_its_outcome_unknown() {
    let two = Two::start("60s").await;
    let Two { world, other, upstream, agent, database, .. } = two;
    upstream.on_call("echo", Behaviour::Held("late".to_owned()));
    let arguments = json!({ "n": 1 });
    let killing = async {
        let id = one(&world, &world.sluice, "pending").await;
        assert_eq!(approve(&world, &world.sluice, &id).await, 200);
        until("it runs", async || (upstream.calls_of("echo") == 1).then_some(())).await;
        other.crash_now();
        id
    };
    let ((), id) = tokio::join!(cut_off(&agent, &other, &arguments), killing);
    assert_eq!(state(&world, &world.sluice, &id).await, "running");
    // The other replica notices that nobody says any more that it runs.
    until("unknown", async || (state(&world, &world.sluice, &id).await == "unknown").then_some(()))
        .await;
    let answer = agent.call(&world.sluice, "echo", arguments).await;
    let told = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(told.contains("outcome is unknown") && told.contains("not run again"), "{told}");
    assert_eq!(approve(&world, &world.sluice, &id).await, 409);
    assert_eq!(upstream.calls_of("echo"), 1);
    let events = events(&world, &world.sluice, &id).await;
    assert_eq!(events.last().expect("some")["kind"], "unknown", "{events:?}");
    drop(other);
    world.sluice.stop().await;
    database.remove().await;
}

/// On SQLite nobody else can be running it: it is known as soon as the next process starts.
#[tokio::test]
async fn a_single_sluice_killed_in_the_middle_says_so_when_it_starts_again() {
    let upstream = FakeServer::start().await;
    let mut world = World::start(setup()).await;
    let agent = world.connect("notes", &upstream.url(), policy("60s")).await.agent();
    // One that waits, and one that runs.
    upstream.on_call("echo", Behaviour::Held("late".to_owned()));
    let (waits, runs) = (json!({ "n": 1 }), json!({ "n": 2 }));
    let killing = async {
        let first = one(&world, &world.sluice, "pending").await;
        let running = async {
            until("two wait", async || {
                let items = approvals(&world, &world.sluice, "pending").await;
                let newest = items.first()?["id"].as_str()?.to_owned();
                (items.len() == 2).then_some(newest)
            })
            .await
        };
        let (id, ()) = tokio::join!(
            async {
                let id = running.await;
                assert_eq!(approve(&world, &world.sluice, &id).await, 200);
                until("it runs", async || (upstream.calls_of("echo") == 1).then_some(())).await;
                world.sluice.crash_now();
                id
            },
            cut_off(&agent, &world.sluice, &runs)
        );
        (first, id)
    };
    let ((), (waiting, running)) = tokio::join!(cut_off(&agent, &world.sluice, &waits), killing);
    let setup = world.sluice.setup().clone();
    world.sluice = setup.serve().await;
    assert_eq!(state(&world, &world.sluice, &running).await, "unknown");
    assert_eq!(state(&world, &world.sluice, &waiting).await, "pending");
    let told = agent.call(&world.sluice, "echo", runs).await;
    assert!(told.to_string().contains("outcome is unknown"), "{told}");
    assert_eq!(upstream.calls_of("echo"), 1);
    upstream.on_call("echo", Behaviour::Text("done".to_owned()));
    assert_eq!(approve(&world, &world.sluice, &waiting).await, 200);
    assert!(passed(&agent.call(&world.sluice, "echo", waits).await));
    assert_eq!(upstream.calls_of("echo"), 2);
    world.sluice.stop().await;
}

/// One approval is good for exactly the call that was asked about, once, whoever presses when.
#[tokio::test]
async fn an_approval_is_for_one_call_and_one_decision() {
    let upstream = FakeServer::start().await;
    let world = World::start(setup()).await;
    let agent = world.connect("notes", &upstream.url(), policy("0s")).await.agent();
    let at = &world.sluice;
    let park = async |arguments: Value| {
        let answer = agent.call(at, "echo", arguments).await;
        decision(&answer)["approval"]["id"].as_str().expect("parked").to_owned()
    };
    // Another amount is another call.
    let (first, second) = (json!({ "to": "a", "n": 1 }), json!({ "to": "a", "n": 2 }));
    let id = park(first.clone()).await;
    assert_eq!(approve(&world, at, &id).await, 200);
    assert_ne!(park(second.clone()).await, id);
    assert_eq!(upstream.calls_of("echo"), 0);
    // The approved call three times at once: it runs once, and whoever waited for it has its result.
    let thrice = (1..=3).map(|n| {
        let params = json!({"name": "echo", "arguments": {"n": 1, "to": "a"}});
        agent.rpc(at, n, "tools/call", params)
    });
    let answers = futures_util::future::join_all(thrice).await;
    assert!(answers.iter().any(passed), "{answers:?}");
    assert_eq!(upstream.calls_of("echo"), 1);

    // Two tabs at once; then one for it and one against.
    let id = park(second).await;
    let (one, two) = tokio::join!(approve(&world, at, &id), approve(&world, at, &id));
    assert_eq!([one.min(two), one.max(two)], [200, 409]);
    let id = park(json!({ "n": 3 })).await;
    let path = format!("/workspaces/{}/approvals/{id}/deny", world.workspace);
    let deny = world.rest(Method::POST, &path, json!({}));
    let (for_it, against) = tokio::join!(approve(&world, at, &id), deny);
    let against = against.status.as_u16();
    assert_eq!([for_it.min(against), for_it.max(against)], [200, 409]);
    let expected = if against == 200 { "denied" } else { "approved" };
    assert_eq!(state(&world, at, &id).await, expected);
    world.sluice.stop().await;
}
