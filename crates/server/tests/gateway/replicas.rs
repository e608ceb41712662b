//! Several replicas on PostgreSQL and Redis: one migration, shared limits, revocation everywhere.

use std::time::{Duration, Instant};

use ::http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::{FakeServer, RedisServer};

use crate::spread::shared;
use crate::world::{World, passed};

#[tokio::test]
async fn three_replicas_that_start_at_once_migrate_once() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let first = shared(database.url(), &redis.url());
    let mut replicas =
        [first.serve_unready(), first.replica().serve_unready(), first.replica().serve_unready()];
    for replica in &mut replicas {
        replica.until_ready().await;
    }
    for replica in replicas {
        assert!(!replica.said().contains("ERROR"), "{}", replica.said());
        replica.stop().await;
    }
    database.remove().await;
}

#[tokio::test]
async fn two_replicas_share_a_limit_exactly_and_learn_of_a_revocation() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let upstream = FakeServer::start().await;
    let world = World::start(shared(database.url(), &redis.url())).await;
    let other = world.sluice.setup().replica().serve().await;
    let limit = json!({"counter": "c", "window": "hour", "max": 10});
    let document =
        json!({"version": "1", "default": "deny", "tools": {"echo": {"limits": [limit]}}});
    let connected = world.connect("notes", &upstream.url(), document).await;
    let agent = connected.agent();

    let calls = (0..50).map(|number| {
        let at = if number % 2 == 0 { &world.sluice } else { &other };
        agent.call(at, "echo", json!({"n": number}))
    });
    let answers = futures_util::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|answer| passed(answer)).count(), 10);
    assert_eq!(upstream.calls_of("echo"), 10);

    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let path = format!("/grants/{}", connected.grant);
    world.must(Method::DELETE, &path, Value::Null, 204).await;
    let revoked = Instant::now();
    for replica in [&world.sluice, &other] {
        while agent.post(replica, ask.clone()).await.status != StatusCode::UNAUTHORIZED {
            assert!(revoked.elapsed() < Duration::from_secs(1), "a revoked grant still works");
        }
    }
    other.stop().await;
    world.sluice.stop().await;
    database.remove().await;
}
