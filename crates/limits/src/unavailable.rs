//! Why the counters gave no answer, and how the store is doing.

use std::time::Duration;

/// What is wrong with the store, as the operator can act on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Nobody listens, or the connection broke.
    #[error("redis cannot be reached")]
    Unreachable,
    /// No answer within the bound.
    #[error("redis did not answer in time")]
    TimedOut,
    /// User name or password refused, none given where one is needed, or a user who may not run scripts.
    #[error("redis refused the user name or password, or the user may not run scripts")]
    Credentials,
    /// `maxmemory` reached with a policy that evicts nothing.
    #[error("redis is out of memory")]
    OutOfMemory,
    /// A replica, or a server that stopped writing (`min-replicas`, a failed save).
    #[error("redis takes no writes at the moment")]
    ReadOnly,
    /// Still reading its data from disk.
    #[error("redis is loading its data")]
    Loading,
    /// A cluster node was addressed as if it were a single server.
    #[error("redis is a cluster: the address must begin with redis-cluster://")]
    IsCluster,
    /// Slots without a node, or a majority of nodes away.
    #[error("the redis cluster is down")]
    ClusterDown,
    /// The Sentinels know no such master, or cannot be reached.
    #[error("no sentinel names a master")]
    NoMaster,
    /// Any other error of the server, by its code.
    #[error("redis answered with the error {0}")]
    Other(String),
    /// More counters are alive than this process keeps.
    #[error("too many counters are in use")]
    TooManyCounters,
}

/// The counters gave no verdict. Whether the call was charged is unknown where the answer is late;
/// repeating with the same reservation id never charges twice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limits unavailable: {reason}")]
pub struct Unavailable {
    pub reason: Reason,
    /// The charge may have been made all the same: a refused call should be refunded.
    pub doubtful: bool,
}

impl Unavailable {
    pub(crate) const fn certain(reason: Reason) -> Self {
        Self { reason, doubtful: false }
    }
}

/// How the store is doing, for `/readyz` and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `memory` or `redis`.
    pub store: &'static str,
    /// `None`: well.
    pub fault: Option<Reason>,
    /// How long the fault has lasted.
    pub for_how_long: Option<Duration>,
    /// How often the store went from well to faulty since the start.
    pub faults: u64,
    /// Refunds that wait for the store to come back.
    pub waiting_refunds: usize,
    /// Refunds that were given up: more waited than are kept, or the server will not take them.
    /// Their calls stay charged until their window has passed.
    pub lost_refunds: u64,
    /// Counters that count something, where they are in this process.
    pub counters: Option<usize>,
    /// How Redis is used, where it is.
    pub redis: Option<RedisUse>,
}

/// How the connection to Redis that all calls share is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisUse {
    /// Scripts that it was asked to run.
    pub commands: u64,
    /// Those whose answer is awaited.
    pub waiting: u64,
    /// How often it was made.
    pub connected: u64,
}

impl Health {
    /// Whether limits are being counted.
    pub const fn is_well(&self) -> bool {
        self.fault.is_none()
    }
}
