//! A day of traffic through three replicas, every verdict and every wait compared with the slow
//! reference. The clock runs as fast as the machine can; `SLUICE_TEST_DAY_SPEED=100` paces it to a
//! hundred times the wall's, which takes a quarter of an hour.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use sluice_domain::{Amount, ReservationId, Scope};
use sluice_limits::{CounterKey, Counters, Demand, RedisOptions, session_owner};
use sluice_testkit::RedisServer;

use crate::reference::Reference;
use crate::store::{Store, calendar, demand, of, weighing};

const MIDNIGHT: &str = "2026-11-30T00:00:00Z";
/// Virtual time between two looks at whether somebody calls.
const TICK: TimeDelta = TimeDelta::seconds(10);

/// A linear congruential generator: the same day at every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The limits of one of three agents: their own, their session's, the server's and the workspace's.
fn limits(dice: &mut Dice) -> Vec<Demand> {
    let agent = format!("0193a000-0000-7000-8000-00000000000{}", dice.below(3));
    let session = {
        let limit = demand("burst", "15s", "3");
        let owner = session_owner(agent.parse().expect("an id"), "s");
        Demand { key: CounterKey { scope: Scope::Session, owner, ..limit.key.clone() }, ..limit }
    };
    let cents = i128::from(dice.below(20_000)) * 10_000_000;
    let all = [
        of(&agent, demand("calls", "minute", "4")),
        session,
        of("server", demand("server", "hour", "120")),
        of("workspace", calendar(demand("daily", "day", "1500"))),
        of("workspace", calendar(demand("quarter", "15m", "40"))),
        of("workspace", weighing("0", demand("money", "6h", "30000.50"))),
    ];
    let money = Amount::from_billionths(cents);
    let mut chosen: Vec<Demand> = all.into_iter().filter(|_| dice.below(4) > 0).collect();
    for limit in chosen.iter_mut().filter(|limit| limit.key.counter == "money") {
        limit.amount = money;
    }
    chosen
}

/// Calls in ten seconds: few at night, most at noon, and a burst now and then.
fn calls(dice: &mut Dice, at: DateTime<Utc>) -> u64 {
    let busy = 12 - u64::from(at.hour().abs_diff(12));
    let usual = u64::from(dice.below(24) < busy);
    usual + if dice.below(300) == 0 { 8 } else { 0 }
}

#[expect(clippy::disallowed_methods, reason = "whoever runs the test may pace it")]
fn speed() -> Option<u32> {
    std::env::var("SLUICE_TEST_DAY_SPEED").ok().and_then(|speed| speed.parse().ok())
}

/// Waits until the wall has caught up with the virtual clock.
async fn paced(started: Instant, passed: TimeDelta, speed: Option<u32>) {
    if let Some(speed) = speed.filter(|speed| *speed > 0) {
        let due = started + passed.to_std().unwrap_or_default() / speed;
        tokio::time::sleep_until(due.into()).await;
    }
}

/// One call at one replica; both sides must say the same.
async fn call(
    counters: &Counters,
    store: &Store,
    reference: &mut Reference,
    dice: &mut Dice,
) -> bool {
    let (id, demands, now) = (ReservationId::new(), limits(dice), store.clock.now());
    let expected = reference.reserve(id, &demands, now);
    let told = counters.reserve(store.workspace, id, &demands).await.expect("available");
    assert_eq!(told.granted, expected, "at {now}: {demands:?}");
    if !told.granted {
        let told: Vec<_> = told.readings.iter().map(|reading| reading.wait).collect();
        let waits: Vec<_> = demands.iter().map(|demand| reference.wait(demand, now)).collect();
        assert_eq!(told, waits, "waits at {now}: {demands:?}");
    } else if dice.below(20) == 0 {
        // The upstream could not be reached.
        reference.refund(id);
        counters.refund(store.workspace, id, &demands).await.expect("available");
    }
    told.granted
}

async fn a_day(store: Store, replicas: &[Counters]) {
    store.set(MIDNIGHT);
    let (mut reference, mut dice) = (Reference::default(), Dice(0x2026_1130));
    let (started, speed) = (Instant::now(), speed());
    let (mut passed, mut tally) = (TimeDelta::zero(), [0; 2]);
    while passed < TimeDelta::days(1) {
        for turn in 0..calls(&mut dice, store.clock.now()) {
            let replica = usize::try_from(turn + dice.below(3)).expect("small") % replicas.len();
            let granted = call(&replicas[replica], &store, &mut reference, &mut dice).await;
            tally[usize::from(granted)] += 1;
            store.advance(Duration::from_micros(dice.below(900_000)));
        }
        passed += TICK;
        let now = MIDNIGHT.parse::<DateTime<Utc>>().expect("a time") + passed;
        store.clock.set(store.clock.now().max(now));
        paced(started, passed, speed).await;
    }
    let [refused, granted] = tally;
    assert!(granted > 1_000 && refused > 300, "{granted} passed, {refused} were refused");
    let limit = of("server", demand("server", "hour", "120"));
    reference.check_promise(&limit.key, limit.max);
}

#[tokio::test]
async fn in_memory() {
    let store = Store::in_memory();
    let counters = store.counters.clone();
    a_day(store, &[counters]).await;
}

#[tokio::test]
async fn in_redis_through_three_replicas() {
    let redis = RedisServer::start();
    let store = Store::at(&redis.url()).await;
    let replica = async || {
        let options =
            RedisOptions { clock: Some(store.clock.function()), ..RedisOptions::default() };
        Counters::redis(&redis.url(), options).await.expect("the address is fine")
    };
    let replicas = [store.counters.clone(), replica().await, replica().await];
    a_day(store, &replicas).await;
}
