//! Counters in this process. One short critical section a call; a workspace's counters share a
//! shard, so that all limits of a call are under one lock.

mod ends;
mod shard;
mod slots;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sluice_domain::{Amount, GrantId, ReservationId, WorkspaceId};

pub(crate) use self::shard::{Charged, Shard};
use crate::contract::{Clock, Reading, Reserved};
use crate::plan::{Ask, Plan};
use crate::unavailable::{Health, Reason, Unavailable};

const SHARDS: usize = 16;

/// Bounds of the counters in process. A call that would pass them is refused as `Unavailable`.
#[derive(Debug, Clone, Copy)]
pub struct MemoryOptions {
    /// Counters alive at once, in all.
    pub max_counters: usize,
    /// Counters alive at once in one workspace.
    pub max_counters_of_workspace: usize,
    /// Reservations remembered at once; beyond it the oldest can no longer be refunded.
    pub max_reservations: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            max_counters: 1_000_000,
            max_counters_of_workspace: 100_000,
            max_reservations: 1_000_000,
        }
    }
}

/// The in-process store behind [`crate::Counters`].
pub struct Memory {
    clock: Clock,
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
    /// Whether anything was counted since the counters were last written to their file.
    changed: AtomicBool,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Memory {
    /// An empty store.
    pub fn new(clock: Clock, options: MemoryOptions) -> Self {
        let of_shard = MemoryOptions {
            max_counters: options.max_counters.div_ceil(SHARDS),
            max_reservations: options.max_reservations.div_ceil(SHARDS),
            ..options
        };
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(of_shard))).collect();
        Self { clock, hasher: RandomState::new(), shards, changed: AtomicBool::new(false) }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::clone(&self.clock)
    }

    pub(crate) fn now(&self) -> i64 {
        (self.clock)().timestamp_micros()
    }

    /// Takes the note that something was counted.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn note_change(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// A workspace's shard, to change it.
    fn changing(&self, workspace: WorkspaceId) -> &Mutex<Shard> {
        self.note_change();
        self.shard(workspace)
    }

    pub(crate) fn shard(&self, workspace: WorkspaceId) -> &Mutex<Shard> {
        let hash = self.hasher.hash_one(workspace);
        let at = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        &self.shards[at]
    }

    pub(crate) fn shards(&self) -> &[Mutex<Shard>] {
        &self.shards
    }

    pub(crate) fn reserve(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        plan: &Plan,
        keep: Duration,
    ) -> Result<Reserved, Unavailable> {
        let mut shard = self.changing(workspace).lock();
        let outcome = shard.book(self.now(), workspace, None, id, &plan.asks, keep);
        answer(plan, outcome)
    }

    /// [`Self::reserve`], but how the counters stand is told only with a refusal.
    pub(crate) fn charge(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        plan: &Plan,
        keep: Duration,
    ) -> Result<Result<(), Reserved>, Unavailable> {
        let charged = self
            .changing(workspace)
            .lock()
            .charge_or_tell(self.now(), workspace, id, &plan.asks, keep)
            .ok_or(Unavailable::certain(Reason::TooManyCounters))?;
        let refused = |readings: Vec<Reading>| {
            let readings = plan.readings(&readings);
            Reserved { granted: false, readings }
        };
        Ok(charged.map_err(refused))
    }

    pub(crate) fn rebook(
        &self,
        workspace: WorkspaceId,
        old: ReservationId,
        new: ReservationId,
        plan: &Plan,
        keep: Duration,
    ) -> Result<Reserved, Unavailable> {
        let mut shard = self.changing(workspace).lock();
        let outcome = shard.book(self.now(), workspace, Some(old), new, &plan.asks, keep);
        answer(plan, outcome)
    }

    pub(crate) fn refund(&self, workspace: WorkspaceId, id: ReservationId) {
        self.changing(workspace).lock().refund(self.now(), workspace, id);
    }

    pub(crate) fn read(&self, workspace: WorkspaceId, asks: &[Ask]) -> Vec<Reading> {
        self.shard(workspace).lock().read(self.now(), workspace, asks)
    }

    pub(crate) fn sessions(
        &self,
        workspace: WorkspaceId,
        grants: &[GrantId],
        most: usize,
    ) -> Vec<(GrantId, String)> {
        self.shard(workspace).lock().sessions(self.now(), workspace, grants, most)
    }

    /// Empties a counter; what it held.
    pub(crate) fn reset(&self, workspace: WorkspaceId, ask: &Ask) -> Amount {
        self.changing(workspace).lock().reset(self.now(), workspace, ask)
    }

    pub(crate) fn health(&self) -> Health {
        Health {
            store: "memory",
            fault: None,
            for_how_long: None,
            faults: 0,
            waiting_refunds: 0,
            lost_refunds: 0,
            counters: Some(self.held().0),
            redis: None,
        }
    }

    /// Counters and reservations held.
    fn held(&self) -> (usize, usize) {
        self.shards
            .iter()
            .map(|shard| shard.lock().held())
            .fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }
}

fn answer(plan: &Plan, outcome: Option<(bool, Vec<Reading>)>) -> Result<Reserved, Unavailable> {
    let (granted, readings) = outcome.ok_or(Unavailable::certain(Reason::TooManyCounters))?;
    Ok(Reserved { granted, readings: plan.readings(&readings) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use chrono::DateTime;
    use sluice_domain::{Reset, Scope, Window};

    use super::*;
    use crate::contract::{CounterKey, Demand};
    use crate::span::SECOND;

    fn plan(owner: &str, window: Window) -> Plan {
        let key = CounterKey {
            counter: "n".to_owned(),
            window,
            reset: Reset::Sliding,
            scope: Scope::Session,
            owner: owner.to_owned(),
        };
        Plan::of(&[Demand { key, max: Amount::whole(1_000_000), amount: Amount::ONE }])
    }

    fn store(options: MemoryOptions) -> (Memory, Arc<AtomicI64>) {
        let now = Arc::new(AtomicI64::new(1_800_000_000 * SECOND));
        let read = Arc::clone(&now);
        let clock: Clock = Arc::new(move || {
            DateTime::from_timestamp_micros(read.load(Ordering::Relaxed)).expect("in range")
        });
        (Memory::new(clock, options), now)
    }

    #[test]
    fn what_no_longer_counts_is_forgotten_as_calls_come() {
        let (memory, now) = store(MemoryOptions::default());
        let workspace = WorkspaceId::new();
        let keep = Duration::from_mins(1);
        for n in 0..1_000 {
            let plan = plan(&format!("session-{n}"), Window::Minute);
            memory.reserve(workspace, ReservationId::new(), &plan, keep).expect("fits");
        }
        assert_eq!(memory.held(), (1_000, 1_000));
        now.fetch_add(600 * SECOND, Ordering::Relaxed);
        for _ in 0..1_000 {
            let plan = plan("one", Window::Minute);
            memory.reserve(workspace, ReservationId::new(), &plan, keep).expect("fits");
        }
        assert_eq!(memory.held(), (1, 1_000));
    }

    #[test]
    fn the_number_of_counters_is_bounded_and_one_workspace_cannot_take_all() {
        let bounds = MemoryOptions { max_counters_of_workspace: 10, ..MemoryOptions::default() };
        let (memory, _) = store(bounds);
        let (greedy, other) = (WorkspaceId::new(), WorkspaceId::new());
        let keep = Duration::from_mins(1);
        let reserve = |workspace, n: usize| {
            let plan = plan(&format!("session-{n}"), Window::Minute);
            memory.reserve(workspace, ReservationId::new(), &plan, keep)
        };
        for n in 0..10 {
            reserve(greedy, n).expect("fits");
        }
        assert_eq!(reserve(greedy, 10), Err(Unavailable::certain(Reason::TooManyCounters)));
        assert!(reserve(greedy, 9).expect("a known counter goes on").granted);
        assert!(reserve(other, 10).expect("others are not hurt").granted);
    }

    #[test]
    fn a_counter_is_small_whatever_it_counts() {
        let (memory, now) = store(MemoryOptions::default());
        let workspace = WorkspaceId::new();
        let plan = plan("one", Window::Minute);
        for _ in 0..5_000 {
            now.fetch_add(SECOND / 10, Ordering::Relaxed);
            memory
                .reserve(workspace, ReservationId::new(), &plan, Duration::from_secs(1))
                .expect("fits");
        }
        let shard = memory.shard(workspace).lock();
        assert!(shard.counters().all(|(_, counter)| counter.buckets.filled.len() <= 21));
    }
}
