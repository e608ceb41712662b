//! Refunds while Redis is away: none is paid twice, none is lost.

use futures_util::FutureExt as _;
use sluice_domain::{ReservationId, WorkspaceId};
use sluice_limits::{Counters, Demand, Reason, RedisOptions};
use sluice_testkit::RedisServer;

use crate::store::{demand, eventually};

/// A Redis that keeps its data over a restart.
const KEEPS: [&str; 2] = ["--appendonly", "yes"];

async fn used(counters: &Counters, workspace: WorkspaceId, limit: &Demand) -> String {
    let keys = [(limit.key.clone(), limit.max)];
    counters.read(workspace, &keys).await.expect("available")[0].used.to_string()
}

async fn ask(redis: &RedisServer, user: &str, words: &[&str]) {
    let url = redis.url().replace("redis://", &format!("redis://{user}"));
    let client = redis::Client::open(url).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]).exec_async(&mut connection).await.expect("it obeys");
}

#[tokio::test]
async fn a_refund_that_fails_and_fails_again_is_paid_once() {
    let mut redis = RedisServer::start_with(&KEEPS);
    let counters =
        Counters::redis(&redis.url(), RedisOptions::default()).await.expect("the address is fine");
    let (workspace, limit) = (WorkspaceId::new(), [demand("n", "hour", "10")]);
    let (kept, given_back) = (ReservationId::new(), ReservationId::new());
    for id in [kept, given_back] {
        assert!(counters.reserve(workspace, id, &limit).await.expect("available").granted);
    }
    // First failure: nobody there.
    redis.kill();
    let failed = counters.refund(workspace, given_back, &limit).await.expect_err("away");
    assert_eq!(failed.reason, Reason::Unreachable);
    assert_eq!(counters.health().waiting_refunds, 1);
    // A refund that was asked for twice is still one.
    counters.refund(workspace, given_back, &limit).now_or_never().expect("at once").expect_err("");
    // Second failure: it is back and takes writes, but refuses to run the refund.
    let may = ["on", "nopass", "~*", "+@all"];
    let nothing = ["--user", "default", "on", "nopass", "~*", "+@all", "-evalsha", "-eval"];
    redis.restart_as(&[&nothing[..], &["--user", "boss"], &may].concat());
    eventually("the refund is tried again, in vain", async || {
        counters.health().fault == Some(Reason::Credentials)
    })
    .await;
    assert_eq!(counters.health().waiting_refunds, 2);
    ask(&redis, "boss:@", &["ACL", "SETUSER", "default", "+evalsha", "+eval"]).await;
    eventually("the store is back", async || counters.health().is_well()).await;
    assert_eq!(used(&counters, workspace, &limit[0]).await, "1");
    let health = counters.health();
    assert_eq!((health.waiting_refunds, health.lost_refunds, health.faults), (0, 0, 1));
    counters.refund(workspace, given_back, &limit).await.expect("available");
    assert_eq!(used(&counters, workspace, &limit[0]).await, "1", "given back once");
    let late = counters.reserve(workspace, given_back, &limit).await.expect("available");
    assert!(!late.granted, "what was given back stays void");
}

#[tokio::test]
async fn more_refunds_than_are_kept_drop_the_oldest_and_say_so() {
    let mut redis = RedisServer::start_with(&KEEPS);
    let counters =
        Counters::redis(&redis.url(), RedisOptions::default()).await.expect("the address is fine");
    let (workspace, limit) = (WorkspaceId::new(), [demand("n", "hour", "10")]);
    let (oldest, next) = (ReservationId::new(), ReservationId::new());
    for id in [oldest, next] {
        assert!(counters.reserve(workspace, id, &limit).await.expect("available").granted);
    }
    redis.kill();
    counters.refund(workspace, oldest, &limit).await.expect_err("away");
    counters.refund(workspace, next, &limit).await.expect_err("away");
    for _ in 0..9_999 {
        counters.refund(workspace, ReservationId::new(), &limit).await.expect_err("away");
    }
    let health = counters.health();
    assert_eq!((health.waiting_refunds, health.lost_refunds), (10_000, 1));
    redis.restart();
    eventually("all are paid", async || counters.health().waiting_refunds == 0).await;
    eventually("the store is back", async || counters.health().is_well()).await;
    // The oldest one's call stays charged until its window has passed; nothing else does.
    assert_eq!(used(&counters, workspace, &limit[0]).await, "1");
}

#[tokio::test]
async fn a_refund_that_the_server_will_never_take_is_told_as_lost() {
    let redis = RedisServer::start();
    let counters =
        Counters::redis(&redis.url(), RedisOptions::default()).await.expect("the address is fine");
    let (workspace, limit, id) =
        (WorkspaceId::new(), [demand("n", "hour", "10")], ReservationId::new());
    assert!(counters.reserve(workspace, id, &limit).await.expect("available").granted);
    let record = format!("sluice:{{{workspace}}}:r:{id}");
    ask(&redis, "", &["DEL", &record]).await;
    ask(&redis, "", &["LPUSH", &record, "x"]).await;
    let failed = counters.refund(workspace, id, &limit).await.expect_err("not a reservation");
    assert!(matches!(failed.reason, Reason::Other(_)), "{failed}");
    let health = counters.health();
    assert_eq!((health.is_well(), health.waiting_refunds, health.lost_refunds), (true, 0, 1));
}
