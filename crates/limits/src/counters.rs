//! The one contract over both stores.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sluice_domain::{Amount, GrantId, ReservationId, WorkspaceId};

use crate::bindings::Bindings;
use crate::contract::{Clock, CounterKey, Demand, Reading, Reserved};
use crate::file::FileError;
use crate::memory::{Memory, MemoryOptions};
use crate::plan::{self, Plan, Prepared};
use crate::redis::{RedisCounters, RedisOptions, RedisUrlError};
use crate::relay::Relay;
use crate::unavailable::{Health, Unavailable};

/// How long a reservation is remembered for a retry or a refund, unless asked for longer.
const REMEMBERED: Duration = Duration::from_mins(2);

/// Where the counters live. Cheap to clone; clones share the counts.
#[derive(Debug, Clone)]
pub enum Counters {
    /// In this process: exact for one replica, kept across a clean restart.
    Memory(Arc<Memory>),
    /// In Redis or Valkey: shared by all replicas.
    Redis(Arc<RedisCounters>),
}

impl Counters {
    /// Counters in this process.
    pub fn in_memory(clock: Clock) -> Self {
        Self::Memory(Arc::new(Memory::new(clock, MemoryOptions::default())))
    }

    /// Counters in Redis. Fails only for an unusable address: a Redis that is away shows in
    /// [`Self::health`], and is used as soon as it is back. Must be called within a Tokio runtime.
    pub async fn redis(url: &str, options: RedisOptions) -> Result<Self, RedisUrlError> {
        RedisCounters::open(url, options).await.map(|store| Self::Redis(Arc::new(store)))
    }

    /// Charges every demand, or none. Repeating with the same id charges nothing more.
    pub async fn reserve(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        demands: &[Demand],
    ) -> Result<Reserved, Unavailable> {
        self.reserve_for(workspace, id, demands, REMEMBERED).await
    }

    /// [`Self::reserve`], remembered for at least `keep`: for a call that is parked that long.
    pub async fn reserve_for(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        demands: &[Demand],
        keep: Duration,
    ) -> Result<Reserved, Unavailable> {
        if demands.is_empty() {
            return Ok(Reserved { granted: true, readings: Vec::new() });
        }
        let (plan, keep) = (Plan::of(demands), keep.max(REMEMBERED));
        match self {
            Self::Memory(memory) => memory.reserve(workspace, id, &plan, keep),
            Self::Redis(redis) => redis.reserve(workspace, id, &plan, keep).await,
        }
    }

    /// Charges every demand, or none; tells how the counters stand only where it refuses. Else as
    /// [`Self::reserve_for`].
    pub async fn charge(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        prepared: &Prepared,
        keep: Duration,
    ) -> Result<Result<(), Reserved>, Unavailable> {
        let (plan, keep) = (&prepared.plan, keep.max(REMEMBERED));
        match self {
            _ if plan.asks.is_empty() => Ok(Ok(())),
            Self::Memory(memory) => memory.charge(workspace, id, plan, keep),
            Self::Redis(redis) => redis.charge(workspace, id, plan, keep).await,
        }
    }

    /// [`Self::refund`] of what was charged as `prepared`.
    pub async fn refund_prepared(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        prepared: &Prepared,
    ) -> Result<(), Unavailable> {
        self.refund_plan(workspace, id, &prepared.plan).await
    }

    /// Gives a reservation's charges back to the buckets they were charged to, once. An id that was
    /// never charged can be charged no more. Where the store is away, the refund waits for it.
    pub async fn refund(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        demands: &[Demand],
    ) -> Result<(), Unavailable> {
        self.refund_plan(workspace, id, &Plan::of(demands)).await
    }

    async fn refund_plan(
        &self,
        workspace: WorkspaceId,
        id: ReservationId,
        plan: &Plan,
    ) -> Result<(), Unavailable> {
        match self {
            _ if plan.asks.is_empty() => {}
            Self::Memory(memory) => memory.refund(workspace, id),
            Self::Redis(redis) => redis.refund(workspace, id, plan).await?,
        }
        Ok(())
    }

    /// Gives `old` back and charges `new`, in one step: a parked call's charge moves to its release.
    /// If the limits refuse, nothing changes and `old` stays charged.
    pub async fn rebook(
        &self,
        workspace: WorkspaceId,
        old: ReservationId,
        old_demands: &[Demand],
        new: ReservationId,
        demands: &[Demand],
    ) -> Result<Reserved, Unavailable> {
        let (before, plan) = (Plan::of(old_demands), Plan::of(demands));
        if before.asks.is_empty() {
            return self.reserve(workspace, new, demands).await;
        }
        match self {
            Self::Memory(memory) => memory.rebook(workspace, old, new, &plan, REMEMBERED),
            Self::Redis(redis) => {
                redis.rebook(workspace, old, &before, new, &plan, REMEMBERED).await
            }
        }
    }

    /// How counters stand towards their `max`; `wait` says when anything more would fit. Charges nothing.
    pub async fn read(
        &self,
        workspace: WorkspaceId,
        keys: &[(CounterKey, Amount)],
    ) -> Result<Vec<Reading>, Unavailable> {
        let asks: Vec<_> = keys.iter().map(|(key, max)| plan::look(key, *max)).collect();
        match self {
            _ if asks.is_empty() => Ok(Vec::new()),
            Self::Memory(memory) => Ok(memory.read(workspace, &asks)),
            Self::Redis(redis) => redis.read(workspace, &asks).await,
        }
    }

    /// The sessions of these grants whose own counters may still count, `most` of each grant.
    pub async fn sessions(
        &self,
        workspace: WorkspaceId,
        grants: &[GrantId],
        most: usize,
    ) -> Result<Vec<(GrantId, String)>, Unavailable> {
        match self {
            _ if grants.is_empty() || most == 0 => Ok(Vec::new()),
            Self::Memory(memory) => Ok(memory.sessions(workspace, grants, most)),
            Self::Redis(redis) => redis.sessions(workspace, grants, most).await,
        }
    }

    /// Empties a counter, and says what it held. What was charged before cannot be refunded any more.
    pub async fn reset(
        &self,
        workspace: WorkspaceId,
        key: &CounterKey,
    ) -> Result<Amount, Unavailable> {
        let ask = plan::look(key, Amount::ZERO);
        match self {
            Self::Memory(memory) => Ok(memory.reset(workspace, &ask)),
            Self::Redis(redis) => redis.reset(workspace, &ask).await,
        }
    }

    /// How the store is doing, as the calls so far have found it; asks nothing.
    pub fn health(&self) -> Health {
        match self {
            Self::Memory(memory) => memory.health(),
            Self::Redis(redis) => redis.health(),
        }
    }

    /// Asks the store whether it answers, within a second.
    pub async fn probe(&self) -> Health {
        if let Self::Redis(redis) = self {
            redis.probe().await;
        }
        self.health()
    }

    /// Writes the counters of this process to a file that only its owner may read. Does nothing for
    /// Redis, which keeps its own.
    pub async fn save(&self, path: &Path) -> Result<(), FileError> {
        match self {
            Self::Memory(memory) => memory.save(path).await,
            Self::Redis(_) => Ok(()),
        }
    }

    /// [`Self::save`], if anything was counted since the last time. Says whether it was.
    pub async fn save_changes(&self, path: &Path) -> Result<bool, FileError> {
        let Self::Memory(memory) = self else { return Ok(false) };
        if !memory.take_changed() {
            return Ok(false);
        }
        let saved = memory.save(path).await;
        if saved.is_err() {
            memory.note_change();
        }
        saved.map(|()| true)
    }

    /// Reads what [`Self::save`] wrote; a missing file is no error. Says how many counters still count.
    pub async fn load(&self, path: &Path) -> Result<usize, FileError> {
        match self {
            Self::Memory(memory) => memory.load(path).await,
            Self::Redis(_) => Ok(0),
        }
    }

    /// A small map of expiring entries in the same store, with at most `cap` entries an owner.
    pub fn bindings(&self, cap: usize) -> Bindings {
        match self {
            Self::Memory(memory) => Bindings::in_memory(memory.clock(), cap),
            Self::Redis(redis) => Bindings::in_redis(Arc::clone(redis), cap),
        }
    }

    /// The way to other replicas on the same store; `address` must be this one's alone.
    pub fn relay(&self, address: &str) -> Relay {
        match self {
            Self::Memory(_) => Relay::alone(address),
            Self::Redis(redis) => Relay::in_redis(address, Arc::clone(redis)),
        }
    }
}
