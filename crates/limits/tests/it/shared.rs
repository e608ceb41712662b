//! Many callers, several replicas, one count.

use std::time::Duration;

use sluice_domain::{ReservationId, WorkspaceId};
use sluice_limits::{Counters, Demand, RedisOptions};
use sluice_testkit::RedisServer;
use tokio::task::JoinSet;

use crate::store::{Store, calendar, demand, eventually, of, weighing};

async fn replica(redis: &RedisServer) -> Counters {
    Counters::redis(&redis.url(), RedisOptions::default()).await.expect("the address is fine")
}

/// How many of `calls` are let through, spread over `replicas`.
async fn granted(
    replicas: &[Counters],
    workspace: WorkspaceId,
    calls: usize,
    limits: &[Demand],
) -> usize {
    let mut running = JoinSet::new();
    for n in 0..calls {
        let (counters, limits) = (replicas[n % replicas.len()].clone(), limits.to_vec());
        running.spawn(async move {
            let reserved = counters.reserve(workspace, ReservationId::new(), &limits).await;
            reserved.expect("available").granted
        });
    }
    running.join_all().await.into_iter().filter(|granted| *granted).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_calls_through_three_replicas_let_exactly_a_hundred_through() {
    let redis = RedisServer::start();
    let replicas = [replica(&redis).await, replica(&redis).await, replica(&redis).await];
    for run in 0..5 {
        let workspace = WorkspaceId::new();
        let limits = [demand("n", "hour", "100"), weighing("0.1", demand("sum", "day", "100"))];
        assert_eq!(granted(&replicas, workspace, 1_000, &limits).await, 100, "run {run}");
        let keys = [(limits[0].key.clone(), limits[0].max), (limits[1].key.clone(), limits[1].max)];
        let seen = replicas[2].read(workspace, &keys).await.expect("available");
        assert_eq!(seen.iter().map(|r| r.used.to_string()).collect::<Vec<_>>(), ["100", "10"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_calls_in_process_let_exactly_a_hundred_through() {
    let store = Store::in_memory();
    for run in 0..5 {
        let limits = [demand("n", "hour", "100"), of("w", demand("broad", "day", "1000"))];
        let workspace = WorkspaceId::new();
        let through =
            granted(std::slice::from_ref(&store.counters), workspace, 1_000, &limits).await;
        assert_eq!(through, 100, "run {run}");
    }
}

#[tokio::test]
async fn every_key_has_an_end_and_one_that_lost_it_gets_it_back() {
    // F-R2.
    let redis = RedisServer::start();
    let counters = replica(&redis).await;
    let client = redis::Client::open(redis.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let workspace = WorkspaceId::new();
    let limits = [demand("s", "second", "1"), calendar(demand("c", "month", "1"))];
    let id = ReservationId::new();
    counters.reserve(workspace, id, &limits[..1]).await.expect("available");
    counters.reserve(workspace, ReservationId::new(), &limits[1..]).await.expect("available");
    counters.refund(workspace, ReservationId::new(), &limits).await.expect("available");
    counters.bindings(3).put("g", "s", b"v", Duration::from_mins(1)).await.expect("available");

    let keys: Vec<String> =
        redis::cmd("KEYS").arg("*").query_async(&mut connection).await.expect("keys");
    assert!(keys.len() >= 7, "{keys:?}");
    for key in &keys {
        let left: i64 =
            redis::cmd("PTTL").arg(key).query_async(&mut connection).await.expect("pttl");
        assert!(left != -1, "{key} has no end");
        redis::cmd("PERSIST").arg(key).exec_async(&mut connection).await.expect("persist");
    }
    // The counter works again when its window has passed, though Redis would keep it for ever.
    eventually("the second passes", async || {
        counters
            .reserve(workspace, ReservationId::new(), &limits[..1])
            .await
            .expect("available")
            .granted
    })
    .await;
    let refused =
        counters.reserve(workspace, ReservationId::new(), &limits[1..]).await.expect("available");
    assert!(!refused.granted);
    for key in keys.iter().filter(|key| key.contains(":c:")) {
        let left: i64 =
            redis::cmd("PTTL").arg(key).query_async(&mut connection).await.expect("pttl");
        assert!(left != -1, "{key} was not healed");
    }
    // A reservation heals when its call is sent again.
    let again = counters.reserve(workspace, id, &limits[..1]).await.expect("available");
    assert!(again.granted, "it is the reservation that was granted");
    let key = keys.iter().find(|key| key.contains(&id.to_string())).expect("its key");
    let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.expect("pttl");
    assert!(left > 0, "{key} was not healed: {left}");
}

#[tokio::test]
async fn a_counter_in_redis_stays_small_whatever_it_counts() {
    let store = Store::in_redis().await;
    let limit = demand("n", "minute", "1000000");
    for _ in 0..400 {
        store.reserve(std::slice::from_ref(&limit)).await;
        store.advance(Duration::from_millis(500));
    }
    let server = store.redis.as_ref().expect("a server");
    let client = redis::Client::open(server.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let key = format!("sluice:{{{}}}:c:g:s60:n:g", store.workspace);
    let length: usize =
        redis::cmd("STRLEN").arg(&key).query_async(&mut connection).await.expect("strlen");
    assert!(length > 0 && length < 21 * 20, "{length} bytes");
}
