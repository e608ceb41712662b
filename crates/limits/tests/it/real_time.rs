//! The promise in real time, on both stores, with everything interleaved: many callers, refunds,
//! callers that die while they wait, and window borders.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::Utc;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use sluice_domain::{ReservationId, WorkspaceId};
use sluice_limits::{Counters, Demand, RedisOptions};
use sluice_testkit::RedisServer;
use tokio::task::JoinSet;

use crate::store::{calendar, demand};

const MAX: usize = 10;
const SECOND: Duration = Duration::from_secs(1);

/// A call that was let through: between these two moments it was charged.
type Moment = (SystemTime, SystemTime);

/// One caller: most calls stand, every fifth is given back, and some are given up half-way, so that
/// nobody knows whether they were charged.
async fn caller(
    counters: Counters,
    workspace: WorkspaceId,
    limits: Vec<Demand>,
    passed: Arc<Mutex<Vec<Moment>>>,
    seed: usize,
) {
    for turn in seed.. {
        if passed.lock().len() >= 3 * MAX {
            return;
        }
        let (id, asked) = (ReservationId::new(), SystemTime::now());
        let reserving = counters.reserve(workspace, id, &limits);
        if turn % 97 == 0 {
            // Sent, and given up before the answer: a crash of whoever asked.
            let _ = reserving.now_or_never();
        } else if reserving.await.expect("available").granted {
            if turn % 5 == 0 {
                counters.refund(workspace, id, &limits).await.expect("available");
            } else {
                passed.lock().push((asked, SystemTime::now()));
            }
        }
        tokio::task::yield_now().await;
    }
}

async fn keeps_its_promise(replicas: &[Counters]) {
    for limit in [demand("sliding", "second", "10"), calendar(demand("calendar", "second", "10"))] {
        let (workspace, passed) = (WorkspaceId::new(), Arc::default());
        let mut callers = JoinSet::new();
        for seed in 0..4 {
            let counters = replicas[seed % replicas.len()].clone();
            let limits = vec![limit.clone(), demand("broad", "minute", "100000")];
            callers.spawn(caller(counters, workspace, limits, Arc::clone(&passed), seed));
        }
        tokio::time::timeout(Duration::from_mins(1), callers.join_all()).await.expect("it goes on");
        let passed = passed.lock();
        let within = |from: SystemTime, to: SystemTime| {
            passed.iter().filter(|(asked, answered)| *asked >= from && *answered < to).count()
        };
        for (asked, _) in passed.iter() {
            // Seen from outside, these were surely charged within one second.
            let from = match limit.key.reset {
                sluice_domain::Reset::Sliding => *asked,
                sluice_domain::Reset::Calendar => {
                    let since = asked.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
                    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
                }
            };
            let count = within(from, from + SECOND);
            assert!(count <= MAX, "{count} calls within a second, {}", limit.key.counter);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_redis_through_two_replicas() {
    let redis = RedisServer::start();
    let replica = async || {
        Counters::redis(&redis.url(), RedisOptions::default()).await.expect("the address is fine")
    };
    keeps_its_promise(&[replica().await, replica().await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_memory() {
    let clock = Arc::new(|| chrono::DateTime::<Utc>::from(SystemTime::now()));
    keeps_its_promise(&[Counters::in_memory(clock)]).await;
}
