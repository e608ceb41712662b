//! Redis down, frozen, slow, restarted, full, locked: an answer in time, then at once, then
//! recovery. How long an answer takes at most is told by a clock of Tokio's that stands still.

use std::time::Duration;

use futures_util::FutureExt as _;
use sluice_domain::{ReservationId, WorkspaceId};
use sluice_limits::{Counters, Demand, Reason, RedisOptions, RedisUrlError, Reserved, Unavailable};
use sluice_testkit::RedisServer;
use tokio::time::Instant;

use crate::store::{demand, eventually};

/// Sluice's promise: an answer in under 2 s.
const IN_TIME: Duration = Duration::from_secs(2);

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

    /// Fails, and from then on at once.
    async fn fails(&self) -> Reason {
        let failed = self.reserve().await.expect_err("unavailable");
        for _ in 0..20 {
            // Nothing is waited for: the circuit is open.
            let at_once = self.reserve().now_or_never().expect("an answer at once");
            at_once.expect_err("still unavailable");
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
    let case = Case::on(&redis.url()).await;
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
    // One call was refused for it, so it is refunded; the refund waits for Redis.
    let refunding = case.counters.refund(case.workspace, refused, &case.limit);
    refunding.now_or_never().expect("at once").expect_err("frozen");
    ask(let_through).now_or_never().expect("at once").expect_err("frozen");
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
    tokio::time::pause();
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
    tokio::time::resume();
    assert_eq!(case.counters.health().faults, 1);
    redis.thaw();
    case.recovers().await;
}

/// A listener that takes connections and never says a word.
async fn mute() -> (tokio::net::TcpListener, std::net::SocketAddr) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// A call may wait for its session and for its limits, and gives back what is in doubt.
async fn is_answered_in_time(case: &Case) {
    let bindings = case.counters.bindings(3);
    let id = ReservationId::new();
    let asked = Instant::now();
    let _ = bindings.get("grant", "session", Duration::from_mins(1)).await;
    case.counters.reserve(case.workspace, id, &case.limit).await.expect_err("unavailable");
    let _ = case.counters.refund(case.workspace, id, &case.limit).await;
    assert!(asked.elapsed() < IN_TIME, "{:?}", asked.elapsed());
}

#[tokio::test]
async fn whatever_is_at_the_other_end_an_answer_comes_in_under_two_seconds() {
    let (_listener, address) = mute().await;
    let mut dead = RedisServer::start();
    let gone = dead.address();
    dead.kill();
    for scheme in ["redis", "redis-cluster", "redis-sentinel"] {
        let master = if scheme == "redis-sentinel" { "/mymaster" } else { "" };
        for address in [address, gone] {
            tokio::time::pause();
            let asked = Instant::now();
            let case = Case::on(&format!("{scheme}://{address}{master}")).await;
            assert!(asked.elapsed() < IN_TIME, "opening {scheme} took {:?}", asked.elapsed());
            is_answered_in_time(&case).await;
            assert!(!case.counters.probe().await.is_well(), "{scheme} {address}");
            tokio::time::resume();
        }
    }
}

#[tokio::test]
async fn a_redis_that_freezes_between_two_calls_is_answered_for_in_under_two_seconds() {
    let redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    assert!(case.reserve().await.expect("available").granted);
    redis.freeze();
    tokio::time::pause();
    is_answered_in_time(&case).await;
    tokio::time::resume();
    redis.thaw();
    case.recovers().await;
}

#[tokio::test]
async fn slow_within_the_bound_is_waited_for_and_beyond_it_counts_nothing_twice() {
    let redis = RedisServer::start();
    let case = Case::on(&redis.url()).await;
    assert!(case.reserve().await.expect("available").granted);
    let client = redis::Client::open(redis.url()).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
    let mut pause = async |milliseconds: &str| {
        let mut command = redis::cmd("CLIENT");
        command.arg(&["PAUSE", milliseconds, "ALL"]);
        command.exec_async(&mut connection).await.expect("it pauses");
    };
    pause("50").await;
    assert!(case.reserve().await.expect("waited for").granted);
    assert_eq!(case.counters.health().faults, 0);
    pause("2500").await;
    let ask = |id| case.counters.reserve(case.workspace, id, &case.limit);
    let late = ReservationId::new();
    let failed = ask(late).await.expect_err("too slow");
    assert_eq!((failed.reason, failed.doubtful), (Reason::TimedOut, true));
    ask(ReservationId::new()).now_or_never().expect("at once").expect_err("still slow");
    case.recovers().await;
    // It was on its way: asked again, it counts once, whether it arrived or not.
    for _ in 0..2 {
        assert!(ask(late).await.expect("available").granted);
        assert_eq!(case.used().await, "3");
    }
    assert!(!case.reserve().await.expect("available").granted);
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
