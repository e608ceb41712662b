//! Random histories of calls, retries, refunds, releases, resets and time, compared step by step
//! with the slow reference, on both stores.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sluice_domain::ReservationId;
use sluice_limits::Demand;

use crate::reference::Reference;
use crate::store::{Store, amount, calendar, demand, of};

/// One step of a history. Numbers pick among what there is.
#[derive(Debug, Clone)]
enum Step {
    Reserve { limits: usize, billionths: i128 },
    Repeat { which: usize },
    Refund { which: usize },
    Release { which: usize, limits: usize },
    Pass { micros: i64 },
    Look,
}

fn steps(longest: usize) -> impl Strategy<Value = Vec<Step>> {
    let billionths = prop_oneof![
        4 => Just(1_000_000_000),
        1 => 1_i128..3_000_000_000,
        1 => Just(0),
        1 => Just(7_500_000_000),
    ];
    let micros = prop_oneof![
        3 => 0_i64..2_000_000,
        3 => 0_i64..40_000_000,
        2 => Just(3_000_000),
        1 => Just(60_000_000),
        1 => 0_i64..5_000_000_000,
        1 => 0_i64..200_000_000_000,
    ];
    let step = prop_oneof![
        12 => (1_usize..16, billionths).prop_map(|(limits, billionths)| Step::Reserve { limits, billionths }),
        2 => (0_usize..100).prop_map(|which| Step::Repeat { which }),
        3 => (0_usize..100).prop_map(|which| Step::Refund { which }),
        2 => (0_usize..100, 1_usize..16).prop_map(|(which, limits)| Step::Release { which, limits }),
        8 => micros.prop_map(|micros| Step::Pass { micros }),
        1 => Just(Step::Look),
    ];
    prop::collection::vec(step, 1..longest)
}

/// Four limits of different kinds; the bits of `set` choose among them.
fn limits(set: usize, billionths: i128) -> Vec<Demand> {
    let all = [
        demand("minute", "minute", "7.5"),
        demand("hour", "hour", "20"),
        calendar(demand("day", "day", "40")),
        calendar(of("w", demand("quarter", "15m", "11"))),
    ];
    let chosen = all.into_iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
    chosen
        .map(|(_, limit)| Demand {
            amount: sluice_domain::Amount::from_billionths(billionths),
            ..limit
        })
        .collect()
}

/// A reservation that was asked for, and until when it is surely remembered.
#[derive(Debug, Clone)]
struct Booked {
    id: ReservationId,
    demands: Vec<Demand>,
    at: DateTime<Utc>,
    remembered: TimeDelta,
}

struct Run {
    store: Store,
    reference: Reference,
    booked: Vec<Booked>,
}

impl Run {
    async fn step(&mut self, step: &Step) {
        let now = self.store.clock.now();
        let workspace = self.store.workspace;
        match *step {
            Step::Reserve { limits: set, billionths } => {
                let (id, demands) = (ReservationId::new(), limits(set, billionths));
                self.reserve(id, &demands).await;
                self.booked.push(Booked { id, demands, at: now, remembered: TimeDelta::days(7) });
            }
            Step::Repeat { which } => {
                if let Some(Booked { id, demands, at, .. }) = self.pick(which)
                    && now - at < TimeDelta::seconds(60)
                {
                    self.reserve(id, &demands).await;
                }
            }
            Step::Refund { which } => {
                if let Some(Booked { id, demands, .. }) = self.pick(which) {
                    self.reference.refund(id);
                    self.store.refund(id, &demands).await;
                }
            }
            Step::Release { which, limits: set } => {
                if let Some(Booked { id: old, demands: before, .. }) = self.pick(which) {
                    let (new, demands) = (ReservationId::new(), limits(set, 1_000_000_000));
                    let counters = &self.store.counters;
                    let moved = counters.rebook(workspace, old, &before, new, &demands).await;
                    let expected = self.reference.rebook(old, new, &demands, now);
                    assert_eq!(moved.expect("available").granted, expected, "release");
                    let remembered = TimeDelta::seconds(120);
                    self.booked.push(Booked { id: new, demands, at: now, remembered });
                }
            }
            Step::Pass { micros } => {
                self.store.advance(Duration::from_micros(micros.unsigned_abs()));
            }
            Step::Look => {}
        }
        self.compare().await;
    }

    /// One of the reservations that are still remembered.
    fn pick(&self, which: usize) -> Option<Booked> {
        let now = self.store.clock.now();
        let remembered: Vec<_> =
            self.booked.iter().filter(|booked| now - booked.at < booked.remembered).collect();
        (!remembered.is_empty()).then(|| remembered[which % remembered.len()].clone())
    }

    async fn reserve(&mut self, id: ReservationId, demands: &[Demand]) {
        let (now, workspace) = (self.store.clock.now(), self.store.workspace);
        let kept = Duration::from_hours(168);
        let known = self.reference.charges.iter().any(|charge| charge.id == id)
            || self.reference.void.contains(&id);
        let waits: Vec<_> = demands.iter().map(|demand| self.reference.wait(demand, now)).collect();
        let rightly = self.reference.is_refused_rightly(demands, now);
        let expected = self.reference.reserve(id, demands, now);
        let counters = &self.store.counters;
        let told = counters.reserve_for(workspace, id, demands, kept).await.expect("available");
        assert_eq!(told.granted, expected, "verdict on {demands:?}");
        if !known && !told.granted {
            assert!(rightly, "refused earlier than a twentieth of a window: {demands:?}");
            let told: Vec<_> = told.readings.iter().map(|reading| reading.wait).collect();
            assert_eq!(told, waits, "waits of {demands:?}");
        }
    }

    async fn compare(&self) {
        let now = self.store.clock.now();
        let all = limits(15, 1);
        let keys: Vec<_> = all.iter().map(|limit| (limit.key.clone(), limit.max)).collect();
        let readings =
            self.store.counters.read(self.store.workspace, &keys).await.expect("available");
        for ((key, max), reading) in keys.iter().zip(readings) {
            assert_eq!(reading.used, self.reference.used(key, now), "{}", key.counter);
            assert_eq!(reading.remaining, max.saturating_sub(reading.used).max(amount("0")));
        }
    }
}

async fn history(store: Store, steps: &[Step]) {
    let mut run = Run { store, reference: Reference::default(), booked: Vec::new() };
    for step in steps {
        run.step(step).await;
    }
    for limit in limits(3, 1) {
        run.reference.check_promise(&limit.key, limit.max);
    }
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn memory_does_as_the_reference() {
    let runtime = runtime();
    let outcome = runner(400).run(&steps(120), |steps| {
        runtime.block_on(history(Store::in_memory(), &steps));
        Ok(())
    });
    outcome.expect("every history agrees");
}

#[test]
fn redis_does_as_the_reference() {
    let runtime = runtime();
    let store = runtime.block_on(Store::in_redis());
    let server = store.redis.as_ref().expect("a server");
    let outcome = runner(30).run(&steps(80), |steps| {
        // One server for all histories, a workspace for each.
        let fresh = Store::in_memory();
        let options = sluice_limits::RedisOptions {
            clock: Some(fresh.clock.function()),
            ..sluice_limits::RedisOptions::default()
        };
        let counters = runtime
            .block_on(sluice_limits::Counters::redis(&server.url(), options))
            .expect("the address is fine");
        runtime.block_on(history(Store { counters, ..fresh }, &steps));
        Ok(())
    });
    outcome.expect("every history agrees");
}

/// A day of traffic, two calls a second in bursts, against the reference.
#[tokio::test]
async fn a_days_traffic_counts_as_the_reference_does() {
    let store = Store::in_memory();
    let mut run = Run { store, reference: Reference::default(), booked: Vec::new() };
    let mut state = 0x2026_1130_u64;
    let mut random = |below: u64| {
        // A linear congruential generator: the same day at every run.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..24 * 60 {
        for _ in 0..random(4) {
            let demands = limits(usize::try_from(1 + random(15)).expect("small"), 1_000_000_000);
            let id = ReservationId::new();
            run.reserve(id, &demands).await;
            if random(10) == 0 {
                run.reference.refund(id);
                run.store.refund(id, &demands).await;
            }
            run.store.advance(Duration::from_micros(random(30_000_000)));
        }
        run.store.advance(Duration::from_micros(random(60_000_000)));
    }
    assert!(run.reference.charges.len() > 200, "the day was not empty");
    for limit in limits(3, 1) {
        run.reference.check_promise(&limit.key, limit.max);
    }
}
