//! One control replica and several proxies on PostgreSQL and Redis: exact limits, and edits that
//! reach every proxy within a second, by the feed's notifications or by its net alone.

use std::time::{Duration, Instant};

use ::http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_testkit::db::{FreshDatabase, silence_feed};
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{Behaviour, FakeServer, RedisServer, Setup, Sluice};

use crate::world::{Agent, Connected, World, decision, id, passed, setup};

/// Any 32 bytes do; all replicas are given the same.
pub(crate) const KEYS: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

pub(crate) fn shared(database: &str, redis: &str) -> Setup {
    setup()
        .with("SLUICE_DATABASE_URL", database)
        .with("SLUICE_REDIS_URL", redis)
        .with("SLUICE_MASTER_KEYS", KEYS)
}

/// A control replica, and proxies beside it.
struct Spread {
    world: World,
    proxies: Vec<Sluice>,
    database: FreshDatabase,
    _redis: RedisServer,
}

impl Spread {
    async fn of(proxies: usize) -> Self {
        let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
        let shared = shared(database.url(), &redis.url());
        let world = World::start(shared.clone().with("SLUICE_ROLE", "control")).await;
        let role = || shared.replica().with("SLUICE_ROLE", "proxy");
        let starting = (0..proxies).map(|_| async { role().serve().await });
        let proxies = futures_util::future::join_all(starting).await;
        Self { world, proxies, database, _redis: redis }
    }

    async fn stop(self) {
        for replica in self.proxies {
            replica.stop().await;
        }
        self.world.sluice.stop().await;
        self.database.remove().await;
    }

    /// Until every proxy answers as expected; how long it took.
    async fn until(
        &self,
        agent: &Agent,
        tool: &str,
        expected: impl Fn(&Value) -> bool,
    ) -> Duration {
        let edited = Instant::now();
        for proxy in &self.proxies {
            while !expected(&agent.call(proxy, tool, json!({})).await) {
                assert!(edited.elapsed() < Duration::from_secs(20), "an edit never arrives");
            }
        }
        edited.elapsed()
    }
}

/// An upstream whose tools answer with its name.
async fn upstream(name: &str) -> FakeServer {
    let upstream = FakeServer::start().await;
    upstream.tools(["echo", "other"].map(|name| tool(name, "Read a note")).to_vec());
    upstream.on_call("other", Behaviour::Text(name.to_owned()));
    upstream
}

fn limited(max: u32) -> Value {
    let limit = json!({"counter": "c", "window": "hour", "max": max});
    json!({"version": "1", "default": "deny", "tools": {"echo": {"limits": [limit]}, "other": {}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_through_three_proxies_let_exactly_a_hundred_through() {
    let spread = Spread::of(3).await;
    let upstream = FakeServer::start().await;
    let first = spread.world.connect("notes", &upstream.url(), limited(100)).await;
    let policy = {
        let grants = format!("/grants/{}", first.grant);
        spread.world.must(Method::GET, &grants, Value::Null, 200).await["policy_id"].clone()
    };
    for run in 1..=3 {
        let body = json!({"label": format!("run {run}"), "policy_id": policy});
        let grant = spread.world.create(&format!("/servers/{}/grants", first.server), body).await;
        let token = grant["token"].as_str().expect("a token").to_owned();
        let agent = Connected { grant: id(&grant), token, ..first.clone() }.agent();
        let calls = (0..1_000).map(|number: usize| {
            let (agent, at) = (&agent, &spread.proxies[number % 3]);
            async move { passed(&agent.call(at, "echo", json!({"n": number})).await) }
        });
        let passed = futures_util::future::join_all(calls).await;
        assert_eq!(passed.iter().filter(|passed| **passed).count(), 100, "run {run}");
        assert_eq!(upstream.calls_of("echo"), run * 100, "run {run}");
        let path = format!("/limits?grant={}", id(&grant));
        let told = spread.world.must(Method::GET, &path, Value::Null, 200).await;
        assert_eq!(
            (&told["items"][0]["used"], &told["items"][0]["left"]),
            (&json!(100), &json!(0))
        );
    }
    spread.stop().await;
}

/// Edits a policy, a grant and a server, each a few times: every edit arrives everywhere, and of
/// each kind one at least within the second that is promised, however busy this machine is.
async fn edits_arrive(spread: &Spread) {
    let (one, two) = (upstream("one").await, upstream("two").await);
    let connected = spread.world.connect("notes", &one.url(), limited(1_000_000)).await;
    let (agent, grant) = (connected.agent(), format!("/grants/{}", connected.grant));
    let policy_id = {
        let grant = spread.world.must(Method::GET, &grant, Value::Null, 200).await;
        grant["policy_id"].as_str().expect("it has one").to_owned()
    };
    let change = async |method, path: &str, body| spread.world.must(method, path, body, 200).await;
    let code = |wanted: &'static str| move |answer: &Value| decision(answer)["code"] == wanted;
    spread.until(&agent, "other", passed).await;
    let [mut policy, mut of_grant, mut server] = [Duration::MAX; 3];
    let path = format!("/policies/{policy_id}");
    let server_path = format!("/servers/{}", connected.server);
    for (word, upstream) in [("two", &two), ("one", &one), ("two", &two)] {
        let narrow = json!({"version": "1", "default": "deny", "tools": {"echo": {}}});
        change(Method::PUT, &path, json!({"document": narrow})).await;
        policy = policy.min(spread.until(&agent, "other", code("default_deny")).await);
        change(Method::PUT, &path, json!({"document": limited(1_000_000)})).await;
        policy = policy.min(spread.until(&agent, "other", passed).await);

        change(Method::PATCH, &grant, json!({"policy_id": null})).await;
        of_grant = of_grant.min(spread.until(&agent, "other", code("no_policy")).await);
        change(Method::PATCH, &grant, json!({"policy_id": policy_id})).await;
        of_grant = of_grant.min(spread.until(&agent, "other", passed).await);

        change(Method::PATCH, &server_path, json!({"upstream_url": upstream.url()})).await;
        let arrives = |answer: &Value| answer["result"]["content"][0]["text"] == word;
        server = server.min(spread.until(&agent, "other", arrives).await);
    }
    for (what, took) in [("policy", policy), ("grant", of_grant), ("server", server)] {
        assert!(took < Duration::from_secs(1), "no edit of a {what} arrived within {took:?}");
    }
    spread.world.must(Method::DELETE, &grant, Value::Null, 204).await;
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let revoked = Instant::now();
    for proxy in &spread.proxies {
        while agent.post(proxy, ask.clone()).await.status != StatusCode::UNAUTHORIZED {
            assert!(revoked.elapsed() < Duration::from_secs(20), "a revoked grant still works");
        }
    }
}

#[tokio::test]
async fn edits_reach_every_proxy_within_a_second() {
    let spread = Spread::of(2).await;
    edits_arrive(&spread).await;
    spread.stop().await;
}

#[tokio::test]
async fn edits_reach_every_proxy_within_a_second_without_a_notification() {
    let spread = Spread::of(2).await;
    silence_feed(spread.database.url()).await;
    edits_arrive(&spread).await;
    spread.stop().await;
}
