//! Redis down, frozen, restarted, full, locked: an answer in time, then at once, then recovery.

use std::time::{Duration, Instant};

use sluice_domain::{ReservationId, WorkspaceId};
use sluice_limits::{Counters, Demand, Reason, RedisOptions, RedisUrlError, Reserved, Unavailable};
use sluice_testkit::RedisServer;

use crate::store::{demand, eventually};

/// Sluice's promise: an answer in under 2 s. The first call may take the store's time-out of one.
const IN_TIME: Duration = Duration::from_millis(1_800);
const AT_ONCE: Duration = Duration::from_millis(50);

struct Case {
    counters: Counters,
    workspace: WorkspaceId,
    limit: [Demand; 1],
}

impl Case {
    async fn on(url: &str) -> Self {
        let counters =
            Counters::redis(url, RedisOptions::default()).await.expect("the address is fine");
        Self { counters, workspace: WorkspaceId::new(), limit: [demand("n", "hour", "3")] }
    }

    async fn reserve(&self) -> Result<Reserved, Unavailable> {
        self.counters.reserve(self.workspace, ReservationId::new(), &self.limit).await
    }

    async fn used(&self) -> String {
        let keys = [(self.limit[0].key.clone(), self.limit[0].max)];
        self.counters.read(self.workspace, &keys).await.expect("available")[0].used.to_string()
    }

    /// Fails in time, and from then on at once.
    async fn fails(&self) -> Reason {
        let asked = Instant::now();
        let failed = self.reserve().await.expect_err("unavailable");
        assert!(asked.elapsed() < IN_TIME, "the first answer took {:?}", asked.elapsed());
        for _ in 0..20 {
            let asked = Instant::now();
            self.reserve().await.expect_err("still unavailable");
            assert!(asked.elapsed() < AT_ONCE, "a later answer took {:?}", asked.elapsed());
        }
        let health = self.counters.health();
        assert_eq!((health.store, health.faults), ("redis", 1));
        assert!(!health.is_well() && health.for_how_long.is_some());
        failed.reason
    }

    async fn recovers(&self) {
        eventually("the store comes back", async || self.counters.health().is_well()).await;
    }
}

#[tokio::test]
async fn killed_and_started_empty() {
    // F-R5.
    let mut redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    for _ in 0..3 {
        assert!(case.reserve().await.expect("available").granted);
    }
    assert!(!case.reserve().await.expect("available").granted);
    redis.kill();
    assert_eq!(case.fails().await, Reason::Unreachable);
    redis.restart();
    case.recovers().await;
    // The data is gone: the window starts anew.
    assert!(case.reserve().await.expect("available").granted);
    assert_eq!(case.used().await, "1");
}

#[tokio::test]
async fn away_at_start() {
    let mut redis = RedisServer::start();
    redis.kill();
    let asked = Instant::now();
    let case = Case::on(&redis.url()).await;
    assert!(asked.elapsed() < IN_TIME);
    assert!(!case.counters.probe().await.is_well());
    assert_eq!(case.reserve().await.expect_err("unavailable").reason, Reason::Unreachable);
    redis.restart();
    case.recovers().await;
    assert!(case.reserve().await.expect("available").granted);
}

#[tokio::test]
async fn restarted_between_two_calls_is_not_even_noticed() {
    let mut redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    assert!(case.reserve().await.expect("available").granted);
    redis.restart();
    assert!(case.reserve().await.expect("reconnects and asks again").granted);
    assert!(case.counters.health().is_well());
}

#[tokio::test]
async fn frozen_and_thawed_counts_nothing_twice() {
    let redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    assert!(case.reserve().await.expect("available").granted);
    redis.freeze();
    let (let_through, refused) = (ReservationId::new(), ReservationId::new());
    let ask = |id| case.counters.reserve(case.workspace, id, &case.limit);
    // Both wait at once, so both were sent before the circuit opened.
    let (first, second) = tokio::join!(ask(let_through), ask(refused));
    for late in [first, second] {
        let late = late.expect_err("frozen");
        assert_eq!((late.reason, late.doubtful), (Reason::TimedOut, true));
    }
    let asked = Instant::now();
    // One call was refused for it, so it is refunded; the refund waits for Redis.
    case.counters.refund(case.workspace, refused, &case.limit).await.expect_err("frozen");
    ask(let_through).await.expect_err("frozen");
    assert!(asked.elapsed() < AT_ONCE);
    assert_eq!(case.counters.health().waiting_refunds, 1);
    redis.thaw();
    case.recovers().await;
    // The other is asked again, as a retry does. What Redis got while frozen counts once at most.
    assert!(ask(let_through).await.expect("available").granted);
    eventually("two calls are counted", async || case.used().await == "2").await;
    assert_eq!(case.counters.health().waiting_refunds, 0);
    assert!(!ask(refused).await.expect("available").granted, "what was given back stays void");
    assert_eq!(case.used().await, "2");
}

#[tokio::test]
async fn many_calls_at_once_on_a_frozen_redis_are_all_answered_in_time() {
    let redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    redis.freeze();
    let asked = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (counters, workspace, limit) =
            (case.counters.clone(), case.workspace, case.limit.clone());
        running
            .spawn(async move { counters.reserve(workspace, ReservationId::new(), &limit).await });
    }
    assert!(running.join_all().await.iter().all(Result::is_err));
    assert!(asked.elapsed() < IN_TIME, "{:?}", asked.elapsed());
    assert_eq!(case.counters.health().faults, 1);
    redis.thaw();
    case.recovers().await;
}

#[tokio::test]
async fn a_wrong_password_is_named_and_heals_when_corrected() {
    let redis = RedisServer::start_with(&["--requirepass", "right"]);
    let port = redis.address().port();
    for url in [redis.url(), format!("redis://:wrong@127.0.0.1:{port}/0")] {
        let case = Case::on(&url).await;
        assert_eq!(case.fails().await, Reason::Credentials, "{url}");
    }
    let wrong = Case::on(&format!("redis://:soon@127.0.0.1:{port}/0")).await;
    wrong.fails().await;
    let right =
        redis::Client::open(format!("redis://:right@127.0.0.1:{port}/0")).expect("an address");
    let mut connection = right.get_multiplexed_async_connection().await.expect("let in");
    redis::cmd("CONFIG")
        .arg(&["SET", "requirepass", "soon"])
        .exec_async(&mut connection)
        .await
        .expect("set");
    wrong.recovers().await;
    assert!(wrong.reserve().await.expect("available").granted);
}

#[tokio::test]
async fn a_full_memory_refuses_and_heals() {
    let redis = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let case = Case::on(&redis.url()).await;
    let charged = ReservationId::new();
    case.counters.reserve(case.workspace, charged, &case.limit).await.expect("available");
    let client = redis::Client::open(redis.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let mut set = async |bytes: &str| {
        let command = &["SET", "maxmemory", bytes];
        redis::cmd("CONFIG").arg(command).exec_async(&mut connection).await.expect("set");
    };
    set("1").await;
    assert_eq!(case.fails().await, Reason::OutOfMemory);
    set("0").await;
    case.recovers().await;
    assert!(case.reserve().await.expect("available").granted);
    assert_eq!(case.used().await, "2", "what was refused while full was not counted");
}

#[tokio::test]
async fn a_replica_takes_no_writes() {
    let (master, replica) = (RedisServer::start(), RedisServer::start());
    let case = Case::on(&replica.url()).await;
    let client = redis::Client::open(replica.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let port = master.address().port().to_string();
    redis::cmd("REPLICAOF")
        .arg(&["127.0.0.1", &port])
        .exec_async(&mut connection)
        .await
        .expect("obeys");
    assert_eq!(case.fails().await, Reason::ReadOnly);
    redis::cmd("REPLICAOF").arg(&["NO", "ONE"]).exec_async(&mut connection).await.expect("obeys");
    case.recovers().await;
    assert!(case.reserve().await.expect("available").granted);
}

#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    let client = redis::Client::open(redis.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    for used in ["1", "2"] {
        redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut connection).await.expect("flushed");
        assert!(case.reserve().await.expect("available").granted);
        assert_eq!(case.used().await, used);
    }
    assert_eq!(case.counters.health().faults, 0);
}

#[tokio::test]
async fn a_foreign_value_under_a_counters_key_hurts_that_counter_alone() {
    let redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    let client = redis::Client::open(redis.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let key = format!("sluice:{{{}}}:c:g:s3600:n:g", case.workspace);
    redis::cmd("LPUSH").arg(&key).arg("x").exec_async(&mut connection).await.expect("pushed");
    let failed = case.reserve().await.expect_err("not a counter");
    assert!(matches!(failed.reason, Reason::Other(_)), "{failed}");
    let other = [demand("other", "hour", "1")];
    let reserved = case.counters.reserve(case.workspace, ReservationId::new(), &other).await;
    assert!(reserved.expect("the others go on").granted);
}

#[tokio::test]
async fn an_unusable_address_is_said_without_its_password() {
    let error = Counters::redis("http://:s3cret@host", RedisOptions::default())
        .await
        .expect_err("no Redis");
    assert_eq!(error, RedisUrlError::Scheme);
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}
