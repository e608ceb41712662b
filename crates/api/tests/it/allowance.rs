//! How many requests a token may send: told in every answer, and kept across replicas.

use chrono::TimeDelta;
use http::Method;
use sluice_control::Bounds;
use sluice_domain::Role;
use sluice_limits::{Counters, RedisOptions};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::{RedisServer, TestClock, on_both};

use crate::common::{Api, FEW, Limited};

on_both! {
    async fn a_token_is_told_what_is_left_and_refused_when_nothing_is(limited: Limited) {
        let api = limited.0;
        let admin = api.admin().await;
        for left in (0..FEW).rev() {
            let answer = admin.get("/api/v1/me").await.must(200);
            assert_eq!(answer.header("ratelimit-policy"), "\"token\";q=5;w=60");
            assert!(answer.header("ratelimit").starts_with(&format!("\"token\";r={left};t=")), "{}", answer.header("ratelimit"));
        }
        let refused = admin.get("/servers").await.must(429);
        assert_eq!(refused.problem().0, "rate_limited");
        let wait: u64 = refused.header("retry-after").parse().expect("seconds");
        assert!((1..=120).contains(&wait), "{wait}");
        assert!(refused.header("ratelimit").starts_with("\"token\";r=0;t="));
        // Another token has its own, and nobody has none.
        let other = api.client("acme", "ben@example.test", Role::Viewer).await;
        other.get("/api/v1/me").await.must(200);
        let mut nobody = admin.clone();
        nobody.token.clear();
        let unknown = nobody.get("/api/v1/me").await.must(401);
        assert_eq!(unknown.header("ratelimit"), "");
        api.clock.advance(TimeDelta::seconds(i64::try_from(wait).expect("short")));
        admin.get("/api/v1/me").await.must(200);
    }

    async fn a_refused_request_does_nothing(limited: Limited) {
        let api = limited.0;
        let admin = api.admin().await;
        for _ in 0..FEW {
            admin.get("/api/v1/me").await.must(200);
        }
        let body = r#"{"label": "x", "role": "viewer"}"#;
        let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
        admin.call(Method::POST, "/api-tokens", &headers, body).await.must(429);
        api.clock.advance(TimeDelta::minutes(2));
        let listed = admin.get("/api-tokens").await.must(200).json();
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
        admin.call(Method::POST, "/api-tokens", &headers, body).await.must(201);
    }
}

#[tokio::test]
async fn replicas_that_share_redis_share_the_allowance() {
    let (fresh, redis) = (FreshDatabase::sqlite(), RedisServer::start());
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let clock = TestClock::at("2026-11-30T12:00:00Z");
        let counters =
            Counters::redis(&redis.url(), RedisOptions::default()).await.expect("an address");
        let bounds = Bounds { requests_per_minute: FEW, ..Bounds::default() };
        replicas.push(Api::with(fresh.connect().await, bounds, clock, counters).await);
    }
    let [one, two] = &replicas[..] else { panic!("two") };
    let first = one.admin().await;
    let mut second = two.admin().await;
    second.token.clone_from(&first.token);
    for n in 0..FEW {
        let at = if n % 2 == 0 { &first } else { &second };
        at.get("/api/v1/me").await.must(200);
    }
    for client in [&first, &second] {
        client.get("/api/v1/me").await.must(429);
    }
}
