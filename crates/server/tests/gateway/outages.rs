//! Redis or the database fails under a running Sluice: each limit's own word decides, `/readyz`,
//! metrics and REST say what is wrong, and everything comes back by itself.

use std::time::{Duration, Instant};

use ::http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, Plug, RedisCluster, RedisMonitor, RedisServer, Sluice};

use crate::spread::shared;
use crate::world::{Agent, World, decision, passed, setup};

const STRICT: &str = "strict";
const LENIENT: &str = "lenient";
const FREE: &str = "free";

/// An upstream with a tool of each kind, and the policy for them.
async fn upstream() -> FakeServer {
    let upstream = FakeServer::start().await;
    upstream.tools([STRICT, LENIENT, FREE].map(|name| tool(name, "Read a note")).to_vec());
    upstream
}

fn policy(max: u32) -> Value {
    json!({"version": "1", "default": "deny", "tools": {
        STRICT: {"limits": [{"counter": "s", "window": "hour", "max": max}]},
        LENIENT: {"limits": [{"counter": "l", "window": "hour", "max": 1000, "on_unavailable": "allow"}]},
        FREE: {}}})
}

async fn call(agent: &Agent, at: &Sluice, tool: &str) -> Value {
    agent.call(at, tool, json!({})).await
}

async fn readiness(at: &Sluice) -> (u16, Value) {
    let answer = at.send(Method::GET, "/readyz", &[], "").await;
    (answer.status.as_u16(), answer.json())
}

/// The value of a metric's line that begins so.
async fn metric(at: &Sluice, begins: &str) -> String {
    let text = at.send(Method::GET, "/metrics", &[], "").await.text();
    let line =
        text.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("{text}"));
    line.rsplit(' ').next().expect("a value").to_owned()
}

/// Waits for what has no event of its own.
async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(40), waiting)
        .await
        .unwrap_or_else(|_| panic!("in vain: {what}"));
}

/// While the counters are away.
async fn is_without_counters(world: &World, agent: &Agent, words: &str) {
    let at = &world.sluice;
    for _ in 0..3 {
        let refused = call(agent, at, STRICT).await;
        assert_eq!(decision(&refused)["code"], "limits_unavailable", "{words}: {refused}");
        assert!(passed(&call(agent, at, LENIENT).await), "{words}");
        assert!(passed(&call(agent, at, FREE).await), "{words}");
    }
    let (status, ready) = readiness(at).await;
    assert_eq!((status, &ready["status"]), (200, &json!("degraded")), "{ready}");
    let says = |ready: &Value| {
        let counters = &ready["checks"]["counters"];
        assert_eq!(counters["status"], "degraded", "{words}");
        counters["detail"].as_str().is_some_and(|detail| detail.contains(words))
    };
    // A connection that broke is told first, and what is behind it at the next try.
    eventually(words, async || says(&readiness(at).await.1)).await;
    assert_eq!(metric(at, "sluice_limits_up{").await, "0", "{words}");
    let path = format!("/workspaces/{}/limits", world.workspace);
    let told = world.rest(Method::GET, &path, Value::Null).await;
    assert_eq!((told.status.as_u16(), &told.json()["code"]), (503, &json!("unavailable")));
}

async fn comes_back(at: &Sluice, words: &str) {
    eventually(words, async || readiness(at).await.1["status"] == "ready").await;
    assert_eq!(metric(at, "sluice_limits_up{").await, "1", "{words}");
}

#[tokio::test]
async fn whatever_happens_to_redis_each_limits_word_decides_and_it_comes_back_by_itself() {
    let (database, mut redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let upstream = upstream().await;
    let world = World::start(shared(database.url(), &redis.url())).await;
    let at = &world.sluice;
    let agent = world.connect("notes", &upstream.url(), policy(1_000)).await.agent();
    assert!(passed(&call(&agent, at, STRICT).await));

    redis.freeze();
    is_without_counters(&world, &agent, "did not answer in time").await;
    redis.thaw();
    comes_back(at, "thawed").await;
    assert!(passed(&call(&agent, at, STRICT).await));

    redis.ask(&["CLIENT", "PAUSE", "5000", "ALL"]).await;
    is_without_counters(&world, &agent, "did not answer in time").await;
    comes_back(at, "fast again").await;

    redis.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    redis.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
    is_without_counters(&world, &agent, "out of memory").await;
    redis.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
    comes_back(at, "roomy again").await;

    redis.ask(&["SCRIPT", "FLUSH"]).await;
    assert!(passed(&call(&agent, at, STRICT).await), "the script is sent again");

    let used = async || {
        let told = world.must(Method::GET, "/limits", Value::Null, 200).await;
        let items = told["items"].as_array().expect("items").clone();
        items.into_iter().find(|one| one["counter"] == "s").expect("it is in use")["used"].clone()
    };
    eventually("what was refused counts nothing", async || used().await == 3).await;

    redis.restart_as(&["--requirepass", "another"]);
    is_without_counters(&world, &agent, "refused the user name or password").await;
    redis.kill();
    is_without_counters(&world, &agent, "redis").await;
    redis.restart();
    comes_back(at, "restarted empty").await;
    assert!(passed(&call(&agent, at, STRICT).await));
    assert_eq!(used().await, 1, "the window starts anew with the data");
    assert!(metric(at, "sluice_limits_faults_total{").await.parse::<u32>().expect("a number") >= 4);
    assert!(
        metric(at, "sluice_limits_unavailable_total").await.parse::<u32>().expect("a number") >= 20
    );
    assert_eq!(metric(at, "sluice_limits_refunds_waiting").await, "0");
    assert_eq!(metric(at, "sluice_limits_refunds_lost_total").await, "0");
    world.sluice.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn when_a_master_dies_its_replica_is_found_through_the_sentinel() {
    let database = FreshDatabase::postgres().await;
    let (mut master, replica) = (RedisServer::start(), RedisServer::start());
    let port = master.address().port().to_string();
    replica.ask(&["REPLICAOF", "127.0.0.1", &port]).await;
    let sentinel = RedisServer::start_sentinel(&master);
    let known = async || sentinel.ask(&["INFO", "sentinel"]).await.contains("slaves=1");
    eventually("the Sentinel knows the replica", known).await;
    let upstream = upstream().await;
    let url = format!("redis-sentinel://{}/mymaster", sentinel.address());
    let world = World::start(shared(database.url(), &url)).await;
    let at = &world.sluice;
    let agent = world.connect("notes", &upstream.url(), policy(3)).await.agent();
    for _ in 0..2 {
        assert!(passed(&call(&agent, at, STRICT).await));
    }
    // What has not reached the replica is lost, as is said.
    let in_step = async || master.ask(&["WAIT", "1", "100"]).await == "1";
    eventually("the replica is in step", in_step).await;
    master.kill();
    assert_eq!(decision(&call(&agent, at, STRICT).await)["code"], "limits_unavailable");
    assert!(passed(&call(&agent, at, LENIENT).await));
    comes_back(at, "the replica was promoted").await;
    assert!(passed(&call(&agent, at, STRICT).await), "the third of three");
    assert_eq!(decision(&call(&agent, at, STRICT).await)["code"], "rate_limited");
    world.sluice.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_slot_that_moves_in_a_cluster_is_followed() {
    let (database, cluster) = (FreshDatabase::postgres().await, RedisCluster::start());
    let upstream = upstream().await;
    let world = World::start(shared(database.url(), &cluster.url())).await;
    let at = &world.sluice;
    let agent = world.connect("notes", &upstream.url(), policy(3)).await.agent();
    assert!(passed(&call(&agent, at, STRICT).await));
    let me = world.rest(Method::GET, "/me", Value::Null).await.json();
    let workspace = me["workspaces"][0]["id"].as_str().unwrap_or_else(|| panic!("{me}"));
    cluster.move_slot_of(&format!("{{{workspace}}}"));
    for tool in [STRICT, LENIENT, STRICT] {
        let answer = call(&agent, at, tool).await;
        assert!(passed(&answer), "{tool}: {answer}");
    }
    assert_eq!(decision(&call(&agent, at, STRICT).await)["code"], "rate_limited");
    assert_eq!(metric(at, "sluice_limits_faults_total{").await, "0");
    world.sluice.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_call_with_limits_costs_redis_one_command_and_one_without_none() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let upstream = upstream().await;
    let world = World::start(shared(database.url(), &redis.url())).await;
    let at = &world.sluice;
    let agent = world.connect("notes", &upstream.url(), policy(1_000)).await.agent();
    for tool in [STRICT, LENIENT, FREE] {
        assert!(passed(&call(&agent, at, tool).await), "{tool}");
    }
    let mut monitor = RedisMonitor::on(&redis).await;
    for _ in 0..10 {
        assert!(passed(&call(&agent, at, FREE).await));
    }
    assert_eq!(monitor.seen().await, [""; 0], "no limits, no Redis");
    for _ in 0..10 {
        assert!(passed(&call(&agent, at, STRICT).await));
    }
    let seen = monitor.seen().await;
    assert_eq!(seen.len(), 10, "{seen:?}");
    assert!(seen.iter().all(|command| command.starts_with("\"EVALSHA\"")), "{seen:?}");
    world.sluice.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_proxy_whose_database_is_away_serves_what_it_knows_for_the_documented_time() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let upstream = upstream().await;
    let installed = shared(database.url(), &redis.url());
    let world = World::start(installed.clone().with("SLUICE_ROLE", "control")).await;
    let (plug, url) = Plug::before_url(database.url()).await;
    let proxy = installed.replica().with("SLUICE_ROLE", "proxy").with("SLUICE_DATABASE_URL", url);
    let proxy = proxy.with("SLUICE_STALE_ROUTES", "12s").serve().await;
    let known = world.connect("notes", &upstream.url(), policy(3)).await;
    let unknown = world.connect("others", &upstream.url(), policy(3)).await;
    let (known, unknown) = (known.agent(), unknown.agent());
    assert!(passed(&call(&known, &proxy, STRICT).await));
    let call_of = |tool: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
            .to_string()
    };

    plug.pull();
    // Known grants go on, and limits with them; who is not known is not let in.
    for expected in [None, None, Some("rate_limited")] {
        let answer = call(&known, &proxy, STRICT).await;
        assert_eq!(decision(&answer)["code"].as_str(), expected, "{answer}");
    }
    assert!(passed(&call(&known, &proxy, FREE).await));
    let refused = unknown.post(&proxy, call_of(FREE)).await;
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text());
    assert!(refused.text().contains("store_unavailable"), "{}", refused.text());
    let (status, ready) = readiness(&proxy).await;
    assert_eq!((status, &ready["status"]), (200, &json!("degraded")), "{ready}");
    let detail = ready["checks"]["database"]["detail"].as_str().expect("words");
    assert!(detail.contains("cached grants go on"), "{detail}");
    let stale = async || readiness(&proxy).await.1["checks"]["change_feed"]["status"] != "ready";
    eventually("the feed's silence is told", stale).await;
    // Pages and REST of the other role are not hurt, and the lag is told to Prometheus.
    world.must(Method::GET, "/servers", Value::Null, 200).await;
    assert!(
        metric(&proxy, "sluice_change_feed_lag_seconds").await.parse::<f64>().expect("a number")
            > 0.0
    );

    // After that time, nothing is served that might have been revoked.
    let over = async || known.post(&proxy, call_of(FREE)).await.status.as_u16() == 503;
    eventually("the documented time is over", over).await;
    assert_eq!(readiness(&proxy).await.0, 503);

    plug.put_back();
    let again = async || known.post(&proxy, call_of(FREE)).await.status.as_u16() == 200;
    eventually("it goes on by itself", again).await;
    comes_back(&proxy, "the database is back").await;
    assert_eq!(decision(&call(&known, &proxy, STRICT).await)["code"], "rate_limited");
    let rows = world.calls("tool=strict", 5).await;
    assert_eq!(rows.len(), 5, "what was logged meanwhile arrived once");
    proxy.stop().await;
    world.sluice.stop().await;
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
