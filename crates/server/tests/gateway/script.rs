//! The whole path as a script walks it: from an empty database to a capped tool, over REST and MCP,
//! on each pair of stores.

use std::time::{Duration, Instant};

use ::http::Method;
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, RawUpstream, Setup};

use crate::world::{Agent, World, decision, id, passed, setup};

async fn upstream() -> FakeServer {
    let upstream = FakeServer::start().await;
    upstream.tools(vec![
        tool("executePython", "Execute Python code in a sandbox"),
        tool("read_note", "Read a note"),
        tool("delete_note", "Delete a note permanently"),
    ]);
    upstream
}

/// Ten calls of the recommended rule pass, the eleventh is refused in words that an agent can use.
async fn ten_pass_and_the_eleventh_is_refused(setup: Setup) {
    let (world, upstream) = (World::start(setup).await, upstream().await);
    let body = json!({"name": "sandbox", "upstream_url": upstream.url()});
    let server = world.create("/servers", body).await;
    let server_id = id(&server);
    let proxy_url = server["proxy_url"].as_str().expect("an address");
    assert!(proxy_url.ends_with(&format!("/mcp/{server_id}")), "{proxy_url}");
    world.must(Method::POST, &format!("/servers/{server_id}/refresh"), json!({}), 200).await;

    let tools =
        world.must(Method::GET, &format!("/servers/{server_id}/tools"), Value::Null, 200).await;
    let python = tools["items"]
        .as_array()
        .and_then(|items| items.iter().find(|item| item["name"] == "executePython"))
        .expect("the tool was read")
        .clone();
    assert_eq!((&python["category"], &python["severity"]), (&json!("Execute"), &json!("High")));

    let apply = format!("/servers/{server_id}/tools/executePython/apply-recommended");
    let applied = world.must(Method::POST, &apply, json!({"rest": "deny"}), 200).await;
    let policy = &applied["policy"];
    let grant = world
        .create(
            &format!("/servers/{server_id}/grants"),
            json!({"label": "agent", "policy_id": policy["id"]}),
        )
        .await;
    let token = grant["token"].as_str().expect("shown once").to_owned();
    assert!(token.starts_with("slg_"));
    let agent = Agent { path: format!("/mcp/{server_id}"), bearer: format!("Bearer {token}") };

    runs_into_its_limit(&world, &agent, &policy["version"]).await;
    for tool in ["read_note", "delete_note", "no_such_tool"] {
        let refused = agent.call(&world.sluice, tool, json!({})).await;
        assert_eq!(refused["result"]["isError"], true, "{tool}: {refused}");
    }
    assert_eq!(upstream.calls_of("executePython"), 10);
    assert_eq!(upstream.calls_of("read_note") + upstream.calls_of("delete_note"), 0);
    world.sluice.stop().await;
}

/// An agent's day: it greets, lists, calls ten times, and is told when to come back.
async fn runs_into_its_limit(world: &World, agent: &Agent, version: &Value) {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "script", "version": "1"}});
    let hello = agent.rpc(&world.sluice, 0, "initialize", hello).await;
    assert_eq!(hello["result"]["serverInfo"]["name"], "fake");
    assert_eq!(agent.tools(&world.sluice).await, ["executePython"]);

    for number in 0..10 {
        let answer = agent.call(&world.sluice, "executePython", json!({"code": number})).await;
        assert!(passed(&answer), "call {number}: {answer}");
    }
    let refused = agent.call(&world.sluice, "executePython", json!({"code": 10})).await;
    let told = decision(&refused);
    let wait = told["retry_after_seconds"].as_u64().expect("a wait that helps");
    assert!((1..=63).contains(&wait), "{wait}");
    let sentence = format!(
        "[POLICY DENIED] executePython is limited to 10 calls a minute. Retry after {wait} s."
    );
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(refused["result"]["content"][0]["text"], json!(sentence));
    assert_eq!(told["code"], "rate_limited");
    assert_eq!(told["rule"], "/tools/executePython/limits/0");
    assert_eq!(told["counter"], "executepython_rate");
    assert_eq!(&told["policy_version"], version);

    let rows = world.calls("tool=executePython", 11).await;
    assert_eq!(rows.len(), 11);
    let grants = agent.path.replace("/mcp/", "/servers/") + "/grants";
    let grants = world.must(Method::GET, &grants, Value::Null, 200).await;
    assert!(grants["items"][0]["last_used_at"].is_string(), "{grants}");
    assert_eq!(rows[0]["code"], "rate_limited");
    assert_eq!(rows[0]["id"], told["request_id"]);
}

#[tokio::test]
async fn the_path_on_sqlite_with_counters_in_process() {
    ten_pass_and_the_eleventh_is_refused(setup()).await;
}

#[tokio::test]
async fn the_path_on_postgresql_with_counters_in_redis() {
    let database = FreshDatabase::postgres().await;
    let redis = sluice_testkit::RedisServer::start();
    let installed =
        setup().with("SLUICE_DATABASE_URL", database.url()).with("SLUICE_REDIS_URL", redis.url());
    ten_pass_and_the_eleventh_is_refused(installed).await;
    database.remove().await;
}

/// `retry_after_seconds` is neither too early nor more than its rounding too late.
#[tokio::test]
async fn the_wait_that_an_agent_is_told_is_true() {
    let (world, upstream) = (World::start(setup()).await, upstream().await);
    let limit = json!({"counter": "c", "window": "2s", "max": 1});
    let document =
        json!({"version": "1", "default": "deny", "tools": {"read_note": {"limits": [limit]}}});
    let connected = world.connect("notes", &upstream.url(), document).await;
    let agent = connected.agent();
    assert!(passed(&agent.call(&world.sluice, "read_note", json!({})).await));
    let refused = agent.call(&world.sluice, "read_note", json!({})).await;
    let told = decision(&refused)["retry_after_seconds"].as_u64().expect("a wait");
    let (since, told) = (Instant::now(), Duration::from_secs(told));
    loop {
        let late = since.elapsed();
        if passed(&agent.call(&world.sluice, "read_note", json!({})).await) {
            assert!(late + Duration::from_millis(1_100) > told, "passed {late:?}, told {told:?}");
            return;
        }
        assert!(late <= told, "still refused after {late:?}, told {told:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the upstream gets is what the client sent, digit for digit.
#[tokio::test]
async fn bodies_are_forwarded_byte_for_byte() {
    let world = World::start(setup()).await;
    let reply = r#"{"jsonrpc":"2.0","id":"007","result":{"content":[],"n":1E400 }}"#;
    let upstream = RawUpstream::start(RawUpstream::json(reply)).await;
    let body = json!({"name": "raw", "upstream_url": upstream.url(), "unknown_tools": "by_policy"});
    let server = id(&world.create("/servers", body).await);
    let document = json!({"version": "1", "default": "allow"});
    let body = json!({"name": "all", "document": document});
    let policy = id(&world.create(&format!("/servers/{server}/policies"), body).await);
    let body = json!({"label": "raw", "policy_id": policy});
    let grant = world.create(&format!("/servers/{server}/grants"), body).await;
    let bearer = format!("Bearer {}", grant["token"].as_str().expect("a token"));
    let agent = Agent { path: format!("/mcp/{server}/"), bearer };
    let sent = r#"{ "jsonrpc":"2.0", "id":"007","method":"tools/call","params":{"name":"t","arguments":{"id":9007199254740993,"price":1.10,"big":1e400,"x":"é"},"vendor":[1.0]}}"#;
    let before = upstream.bodies().len();
    let answer = agent.post(&world.sluice, sent).await;
    assert_eq!(answer.text(), reply);
    assert_eq!(&upstream.bodies()[before..], [sent.as_bytes()]);
    let raw = upstream.requests().pop().expect("a request");
    let head = String::from_utf8_lossy(&raw).to_ascii_lowercase();
    assert!(!head.contains("slg_") && !head.contains("authorization"), "{head}");
}
