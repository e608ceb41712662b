//! Open streams learn of revocations, expiries and edits from the real change feed, on both databases.

use std::time::{Duration, Instant};

use ::http::{Method, StatusCode};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::http::{self, Opened};
use sluice_testkit::{RedisServer, Setup};
use tokio::time::timeout;

use crate::world::{Agent, World, id, setup};

const WITHIN: Duration = Duration::from_secs(1);

/// A server with one tool, sessions, and a stream that stays open.
async fn upstream() -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

async fn answer(request: Request) -> Response {
    if request.method() == Method::GET {
        let hello =
            futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from(": hello\n\n"))]);
        let open = futures_util::StreamExt::chain(hello, futures_util::stream::pending());
        return ([("content-type", "text/event-stream")], Body::from_stream(open)).into_response();
    }
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match asked["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "s", "version": "1"}}),
        Some("tools/list") => {
            json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let message = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    ([("mcp-session-id", "s-1")], axum::Json(message)).into_response()
}

/// A session's stream, open and greeted.
async fn stream(world: &World, agent: &Agent) -> Opened {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let answer = agent.post(&world.sluice, hello.to_string()).await;
    let session = answer.header("mcp-session-id").to_owned();
    let headers = [
        ("authorization", agent.bearer.as_str()),
        ("accept", "text/event-stream"),
        ("mcp-session-id", session.as_str()),
    ];
    let opened = http::open(world.sluice.address(), Method::GET, &agent.path, &headers, "").await;
    let mut opened = opened.expect("it answers");
    assert_eq!(opened.status, StatusCode::OK);
    assert_eq!(opened.piece().await.expect("open").expect("whole"), ": hello\n\n");
    opened
}

async fn told(stream: &mut Opened, since: Instant, within: Duration) -> Option<String> {
    let piece = timeout(within, stream.piece()).await.expect("nothing was told in time");
    assert!(since.elapsed() < within, "{:?}", since.elapsed());
    piece.map(|piece| String::from_utf8_lossy(&piece.expect("whole")).into_owned())
}

async fn streams_learn(setup: Setup) {
    let (world, url) = (World::start(setup).await, upstream().await);
    let connected = world.connect("notes", &url, json!({"version": "1", "default": "allow"})).await;
    let mut edited = stream(&world, &connected.agent()).await;
    let policies = format!("/servers/{}/policies", connected.server);
    let policy = id(&world.must(Method::GET, &policies, Value::Null, 200).await["items"][0]);
    let edit = json!({"name": "rules", "document": {"version": "1", "default": "deny"}});
    let since = Instant::now();
    world.must(Method::PUT, &format!("/policies/{policy}"), edit, 200).await;
    let news = told(&mut edited, since, WITHIN).await.expect("open still");
    assert!(news.contains("notifications/tools/list_changed"), "{news}");

    let since = Instant::now();
    world.must(Method::DELETE, &format!("/grants/{}", connected.grant), Value::Null, 204).await;
    assert_eq!(told(&mut edited, since, WITHIN).await, None, "a revoked grant's stream ends");

    let expires = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now())
        + chrono::TimeDelta::seconds(3);
    let grant = json!({"label": "short", "policy_id": policy, "expires_at": expires.to_rfc3339()});
    let grants = format!("/servers/{}/grants", connected.server);
    let token = world.create(&grants, grant).await["token"].as_str().expect("a token").to_owned();
    let agent = Agent { bearer: format!("Bearer {token}"), ..connected.agent() };
    let mut short = stream(&world, &agent).await;
    let since = Instant::now();
    let within = Duration::from_secs(3) + WITHIN;
    assert_eq!(told(&mut short, since, within).await, None, "an expired grant's stream ends");
    world.sluice.stop().await;
}

#[tokio::test]
async fn streams_learn_on_sqlite() {
    streams_learn(setup()).await;
}

#[tokio::test]
async fn streams_learn_on_postgresql() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let shared =
        setup().with("SLUICE_DATABASE_URL", database.url()).with("SLUICE_REDIS_URL", redis.url());
    streams_learn(shared).await;
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
