//! Random histories of calls, retries, lost answers, refunds, releases, crashes and time, window
//! borders among it, compared step by step with the slow reference, on both stores.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt as _;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sluice_domain::ReservationId;
use sluice_limits::{Counters, Demand, RedisOptions};
use sluice_testkit::RedisServer;
use tempfile::TempDir;

use crate::reference::Reference;
use crate::store::{Store, amount, calendar, demand, of};

/// One step of a history. Numbers pick among what there is.
#[derive(Debug, Clone)]
enum Step {
    Reserve {
        limits: usize,
        billionths: i128,
    },
    /// The caller gives up half-way, and asks again under the same id.
    Lost {
        limits: usize,
    },
    Repeat {
        which: usize,
    },
    Refund {
        which: usize,
    },
    Release {
        which: usize,
        limits: usize,
    },
    Pass {
        micros: i64,
    },
    /// To just before, or right at, the next border of a calendar day.
    Border {
        before: bool,
    },
    /// The counters of the process are written to their file, as they are every few seconds.
    Write,
    /// The process dies; a new one goes on with what is in the file, or in Redis.
    Crash,
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
        1 => any::<bool>().prop_map(|before| Step::Border { before }),
        2 => (1_usize..16).prop_map(|limits| Step::Lost { limits }),
        2 => Just(Step::Write),
        1 => Just(Step::Crash),
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
    /// Where the store's Redis is; none: it is in memory.
    redis: Option<String>,
    files: TempDir,
    reference: Reference,
    booked: Vec<Booked>,
    /// What was true when the counters were last written.
    written: (Reference, Vec<Booked>),
}

impl Run {
    fn new(store: Store, redis: Option<String>) -> Self {
        let files = tempfile::tempdir().expect("a directory");
        let (reference, booked, written) = Default::default();
        Self { store, redis, files, reference, booked, written }
    }

    async fn write(&mut self) {
        let file = self.files.path().join("counters.json");
        if self.store.counters.save_changes(&file).await.expect("written") {
            self.written = (self.reference.clone(), self.booked.clone());
        }
    }

    /// What Redis keeps goes on; in memory, what was counted since the last writing is forgotten.
    async fn crash(&mut self) {
        let clock = self.store.clock.function();
        if let Some(url) = &self.redis {
            let options = RedisOptions { clock: Some(clock), ..RedisOptions::default() };
            self.store.counters = Counters::redis(url, options).await.expect("an address");
            return;
        }
        self.store.counters = Counters::in_memory(clock);
        let file = self.files.path().join("counters.json");
        self.store.counters.load(&file).await.expect("read");
        (self.reference, self.booked) = self.written.clone();
    }

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
            Step::Lost { limits: set } => {
                let (id, demands) = (ReservationId::new(), limits(set, 1_000_000_000));
                let kept = Duration::from_hours(168);
                // Polled once, it is sent; nobody hears the answer.
                let counters = &self.store.counters;
                let _ = counters.reserve_for(workspace, id, &demands, kept).now_or_never();
                self.reserve(id, &demands).await;
                self.booked.push(Booked { id, demands, at: now, remembered: TimeDelta::days(7) });
            }
            Step::Pass { micros } => {
                self.store.advance(Duration::from_micros(micros.unsigned_abs()));
            }
            Step::Border { before } => {
                let tomorrow = now.date_naive() + chrono::Days::new(1);
                let border = tomorrow.and_time(chrono::NaiveTime::MIN).and_utc();
                let left = border - now - TimeDelta::microseconds(i64::from(before));
                self.store.advance(left.to_std().unwrap_or_default());
            }
            Step::Write => self.write().await,
            Step::Crash => self.crash().await,
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
        let known = self.reference.knows(id);
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

async fn history(store: Store, redis: Option<String>, steps: &[Step]) {
    let mut run = Run::new(store, redis);
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
    let outcome = runner(250).run(&steps(120), |steps| {
        runtime.block_on(history(Store::in_memory(), None, &steps));
        Ok(())
    });
    outcome.expect("every history agrees");
}

#[test]
fn redis_does_as_the_reference() {
    let (runtime, server) = (runtime(), RedisServer::start());
    let outcome = runner(40).run(&steps(80), |steps| {
        // One server for all histories, a workspace for each.
        let store = runtime.block_on(Store::at(&server.url()));
        runtime.block_on(history(store, Some(server.url()), &steps));
        Ok(())
    });
    outcome.expect("every history agrees");
}
