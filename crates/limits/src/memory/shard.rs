//! The counters and reservations of some workspaces, under one lock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_domain::{Amount, GrantId, ReservationId, WorkspaceId};

use super::MemoryOptions;
use super::ends::Ends;
use super::slots::{Name, Slots};
use crate::buckets::Buckets;
use crate::contract::Reading;
use crate::plan::{Ask, session_of};
use crate::span::{SECOND, Span};

/// How many expired entries a call clears away: more than it adds, so that garbage never piles up.
const CLEARED_AT_ONCE: usize = 40;
/// A retry must find its reservation, however short the windows are.
const LEAST_REMEMBERED: i64 = 60 * SECOND;

#[derive(Debug, Clone)]
pub(crate) struct Counter {
    pub(crate) span: Span,
    pub(crate) buckets: Buckets,
}

/// One charge of a reservation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Charged {
    pub(crate) counter: Arc<str>,
    pub(crate) epoch: i64,
    pub(crate) bucket: i64,
    pub(crate) amount: Amount,
}

/// What became of a reservation id. An empty list of charges: it was given back, and is void.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) until: i64,
    pub(crate) charges: Vec<Charged>,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Shard {
    bounds: MemoryOptions,
    counters: Slots,
    of_workspace: HashMap<WorkspaceId, usize>,
    records: HashMap<(WorkspaceId, ReservationId), Record>,
    counter_ends: BinaryHeap<Reverse<(i64, Name)>>,
    record_ends: Ends,
}

impl Shard {
    pub(crate) fn new(bounds: MemoryOptions) -> Self {
        Self {
            bounds,
            counters: Slots::default(),
            of_workspace: HashMap::new(),
            records: HashMap::new(),
            counter_ends: BinaryHeap::new(),
            record_ends: Ends::default(),
        }
    }

    /// Charges all `asks`, giving `old` back first, or changes nothing. `None`: no room for another counter.
    pub(crate) fn book(
        &mut self,
        now: i64,
        workspace: WorkspaceId,
        old: Option<ReservationId>,
        id: ReservationId,
        asks: &[Ask],
        keep: Duration,
    ) -> Option<(bool, Vec<Reading>)> {
        self.clear(now);
        if let Some(record) = self.records.get(&(workspace, id)) {
            let granted = !record.charges.is_empty();
            return Some((granted, self.read_as_charged(now, workspace, asks)));
        }
        let Some(old) = old else {
            let granted = self.charge(now, workspace, id, asks, keep)?;
            let read = if granted { Self::read_as_charged } else { Self::read };
            return Some((granted, read(self, now, workspace, asks)));
        };
        let mut work = self.settled(now, workspace, asks);
        let given_back = self.records.get(&(workspace, old)).cloned();
        let mut elsewhere = Vec::new();
        for charged in given_back.iter().flat_map(|record| &record.charges) {
            match asks.iter().position(|ask| ask.name == charged.counter) {
                Some(at) => give_back(&mut work[at], charged),
                None => elsewhere.push(charged.clone()),
            }
        }
        if !asks.iter().zip(&work).all(|(ask, buckets)| buckets.fits(ask.max, ask.amount)) {
            let readings = readings(now, asks, &work, |ask| ask.amount);
            return Some((false, readings));
        }
        let names = self.names(workspace, asks)?;
        let mut charges = Vec::with_capacity(asks.len());
        for ((ask, buckets), name) in asks.iter().zip(&mut work).zip(&names) {
            let bucket = ask.span.index(now);
            buckets.add(bucket, ask.amount);
            let (counter, amount) = (Arc::clone(&name.1), ask.amount);
            charges.push(Charged { counter, epoch: buckets.epoch, bucket, amount });
        }
        let readings = readings(now, asks, &work, |_| Amount::ZERO);
        for ((ask, buckets), name) in asks.iter().zip(work).zip(names) {
            self.put(name, ask.span, buckets);
        }
        self.give_back_all(now, workspace, &elsewhere);
        self.remember(workspace, old, now + LEAST_REMEMBERED, Vec::new());
        if !charges.is_empty() {
            let counts_until = self.counts_until(workspace, asks);
            let until = remembered_until(now, counts_until, keep);
            self.remember(workspace, id, until, charges);
        }
        Some((true, readings))
    }

    /// [`Self::book`] without anything to give back; of a refusal, how the counters stand.
    pub(crate) fn charge_or_tell(
        &mut self,
        now: i64,
        workspace: WorkspaceId,
        id: ReservationId,
        asks: &[Ask],
        keep: Duration,
    ) -> Option<Result<(), Vec<Reading>>> {
        self.clear(now);
        let granted = match self.records.get(&(workspace, id)) {
            Some(record) => !record.charges.is_empty(),
            None => self.charge(now, workspace, id, asks, keep)?,
        };
        Some(if granted { Ok(()) } else { Err(self.read(now, workspace, asks)) })
    }

    /// Charges all `asks` or none: in place, since nearly every call is like that. `None`: no room.
    fn charge(
        &mut self,
        now: i64,
        workspace: WorkspaceId,
        id: ReservationId,
        asks: &[Ask],
        keep: Duration,
    ) -> Option<bool> {
        let (mut granted, mut new) = (true, 0);
        let mut places = Vec::with_capacity(asks.len());
        for ask in asks {
            let place = self.counters.place(workspace, ask);
            granted &= if let Some(known) = place.and_then(|place| self.counters.at(place)) {
                known.buckets.settle(ask.span, now);
                known.buckets.fits(ask.max, ask.amount)
            } else {
                new += 1;
                ask.amount <= ask.max
            };
            places.push(place);
        }
        if !granted {
            return Some(false);
        }
        if !self.has_room(workspace, new) {
            return None;
        }
        let mut counts_until = None;
        let mut charges = Vec::with_capacity(asks.len());
        for (ask, place) in asks.iter().zip(places) {
            let bucket = ask.span.index(now);
            let place = if let Some(place) = place {
                self.counters.at(place)?.buckets.add(bucket, ask.amount);
                place
            } else {
                let mut buckets = Buckets::default();
                buckets.add(bucket, ask.amount);
                self.put((workspace, Arc::clone(&ask.name)), ask.span, buckets)
            };
            let known = self.counters.at(place)?;
            counts_until = counts_until.max(known.buckets.empties_at(ask.span));
            let (counter, epoch) = (Arc::clone(&ask.name), known.buckets.epoch);
            charges.push(Charged { counter, epoch, bucket, amount: ask.amount });
        }
        if !charges.is_empty() {
            let until = remembered_until(now, counts_until, keep);
            self.remember(workspace, id, until, charges);
        }
        Some(true)
    }

    pub(crate) fn refund(&mut self, now: i64, workspace: WorkspaceId, id: ReservationId) {
        self.clear(now);
        let charges = self.records.get(&(workspace, id)).map(|record| record.charges.clone());
        self.give_back_all(now, workspace, &charges.unwrap_or_default());
        self.remember(workspace, id, now + 2 * LEAST_REMEMBERED, Vec::new());
    }

    pub(crate) fn read(&mut self, now: i64, workspace: WorkspaceId, asks: &[Ask]) -> Vec<Reading> {
        let work = self.settled(now, workspace, asks);
        readings(now, asks, &work, |ask| ask.amount)
    }

    fn read_as_charged(&mut self, now: i64, workspace: WorkspaceId, asks: &[Ask]) -> Vec<Reading> {
        let work = self.settled(now, workspace, asks);
        readings(now, asks, &work, |_| Amount::ZERO)
    }

    /// The sessions of grants whose counters still count, `most` of each grant. Looks at every
    /// counter of the shard: for people, not for calls.
    pub(crate) fn sessions(
        &self,
        now: i64,
        workspace: WorkspaceId,
        grants: &[GrantId],
        most: usize,
    ) -> Vec<(GrantId, String)> {
        let mut of_grants: BTreeMap<String, BTreeMap<String, i64>> =
            grants.iter().map(|grant| (grant.to_string(), BTreeMap::new())).collect();
        for ((of, name), counter) in self.counters.iter() {
            if *of == workspace
                && let Some(ends) =
                    counter.buckets.empties_at(counter.span).filter(|end| *end > now)
                && let Some((grant, session)) = session_of(name)
                && let Some(sessions) = of_grants.get_mut(&grant)
            {
                let last = sessions.entry(session).or_insert(ends);
                *last = ends.max(*last);
            }
        }
        let mut of = |grant: &GrantId| {
            let sessions = of_grants.remove(&grant.to_string()).unwrap_or_default();
            let mut sessions: Vec<_> = sessions.into_iter().collect();
            sessions.sort_by_key(|(_, ends)| Reverse(*ends));
            sessions.truncate(most);
            sessions
        };
        grants.iter().flat_map(|grant| of(grant).into_iter().map(|one| (*grant, one.0))).collect()
    }

    /// Empties a counter; what it held.
    pub(crate) fn reset(&mut self, now: i64, workspace: WorkspaceId, ask: &Ask) -> Amount {
        let place = self.counters.place(workspace, ask);
        let Some(counter) = place.and_then(|place| self.counters.at(place)) else {
            return Amount::ZERO;
        };
        counter.buckets.settle(counter.span, now);
        let held = counter.buckets.used();
        counter.buckets.filled.clear();
        counter.buckets.epoch = now.max(counter.buckets.epoch + 1);
        held
    }

    /// Copies of the counters asked for, without what counts no more.
    fn settled(&mut self, now: i64, workspace: WorkspaceId, asks: &[Ask]) -> Vec<Buckets> {
        asks.iter()
            .map(|ask| {
                let place = self.counters.place(workspace, ask);
                let Some(known) = place.and_then(|place| self.counters.at(place)) else {
                    return Buckets::default();
                };
                known.buckets.settle(ask.span, now);
                known.buckets.clone()
            })
            .collect()
    }

    /// The keys of the counters, if there is room for those that are new.
    fn names(&self, workspace: WorkspaceId, asks: &[Ask]) -> Option<Vec<Name>> {
        let names: Vec<Name> = asks.iter().map(|ask| (workspace, Arc::clone(&ask.name))).collect();
        let new = asks.iter().filter(|ask| self.counters.place(workspace, ask).is_none()).count();
        self.has_room(workspace, new).then_some(names)
    }

    fn has_room(&self, workspace: WorkspaceId, new: usize) -> bool {
        let of_workspace = || self.of_workspace.get(&workspace).copied().unwrap_or(0);
        new == 0
            || self.counters.len() + new <= self.bounds.max_counters
                && of_workspace() + new <= self.bounds.max_counters_of_workspace
    }

    /// Stores a counter, and sees to its end; gives its place.
    pub(crate) fn put(&mut self, name: Name, span: Span, buckets: Buckets) -> usize {
        let ends = buckets.empties_at(span).unwrap_or(0);
        let (place, new) = self.counters.put(name.clone(), Counter { span, buckets });
        if new {
            *self.of_workspace.entry(name.0).or_insert(0) += 1;
            self.counter_ends.push(Reverse((ends, name)));
        }
        place
    }

    fn give_back_all(&mut self, now: i64, workspace: WorkspaceId, charges: &[Charged]) {
        for charged in charges {
            if let Some(counter) = self.counters.get_mut(&(workspace, Arc::clone(&charged.counter)))
            {
                counter.buckets.settle(counter.span, now);
                give_back(&mut counter.buckets, charged);
            }
        }
    }

    /// Until when any of the counters counts.
    fn counts_until(&self, workspace: WorkspaceId, asks: &[Ask]) -> Option<i64> {
        asks.iter()
            .filter_map(|ask| self.counters.get(&(workspace, Arc::clone(&ask.name))))
            .filter_map(|counter| counter.buckets.empties_at(counter.span))
            .max()
    }

    pub(crate) fn remember(
        &mut self,
        workspace: WorkspaceId,
        id: ReservationId,
        until: i64,
        charges: Vec<Charged>,
    ) {
        if self.records.len() >= self.bounds.max_reservations
            && let Some(first) = self.record_ends.pop()
        {
            self.records.remove(&first);
        }
        self.records.insert((workspace, id), Record { until, charges });
        self.record_ends.push(until, (workspace, id));
    }

    /// Clears away some of what has ended. Each entry has one place in its heap at least; where its
    /// end moved on, it is put back.
    pub(crate) fn clear(&mut self, now: i64) {
        for _ in 0..CLEARED_AT_ONCE {
            let Some(Reverse((ends, _))) = self.counter_ends.peek() else { break };
            if *ends > now {
                break;
            }
            let Some(Reverse((_, name))) = self.counter_ends.pop() else { break };
            let Some(counter) = self.counters.get(&name) else { continue };
            match counter.buckets.empties_at(counter.span).filter(|ends| *ends > now) {
                Some(ends) => self.counter_ends.push(Reverse((ends, name))),
                None => self.forget(&name),
            }
        }
        for _ in 0..CLEARED_AT_ONCE {
            let Some(ended) = self.record_ends.pop_ended(now) else { break };
            if self.records.get(&ended).is_some_and(|record| record.until <= now) {
                self.records.remove(&ended);
            }
        }
    }

    fn forget(&mut self, name: &Name) {
        self.counters.remove(name);
        if let Some(count) = self.of_workspace.get_mut(&name.0) {
            *count -= 1;
            if *count == 0 {
                self.of_workspace.remove(&name.0);
            }
        }
    }

    pub(crate) fn counters(&self) -> impl Iterator<Item = (&Name, &Counter)> {
        self.counters.iter()
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = (&(WorkspaceId, ReservationId), &Record)> {
        self.records.iter()
    }

    /// Counters and reservations.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.counters.len(), self.records.len())
    }
}

/// As long as the charge counts, but no longer than `keep` and no shorter than a retry may take.
fn remembered_until(now: i64, counts_until: Option<i64>, keep: Duration) -> i64 {
    let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
    counts_until.unwrap_or(now).min(now.saturating_add(keep)).max(now + LEAST_REMEMBERED)
}

fn give_back(buckets: &mut Buckets, charged: &Charged) {
    if buckets.epoch == charged.epoch {
        buckets.take_back(charged.bucket, charged.amount);
    }
}

fn readings(
    now: i64,
    asks: &[Ask],
    work: &[Buckets],
    amount: impl Fn(&Ask) -> Amount,
) -> Vec<Reading> {
    asks.iter()
        .zip(work)
        .map(|(ask, buckets)| buckets.reading(ask.span, now, ask.max, amount(ask)))
        .collect()
}
