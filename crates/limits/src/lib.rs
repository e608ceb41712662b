//! Counters in process and in Redis under one contract: every limit of a call is charged in one
//! atomic step or none is. What a limit means is `policy`'s; what becomes of a refused call, the caller's.

mod bindings;
mod buckets;
mod contract;
mod counters;
mod file;
mod memory;
mod plan;
mod redis;
mod relay;
mod span;
mod unavailable;

pub use crate::redis::{RedisCounters, RedisOptions, RedisUrlError};
pub use bindings::{Bindings, Displaced};
pub use contract::{Clock, CounterKey, Demand, Reading, Reserved, session_owner};
pub use counters::Counters;
pub use file::FileError;
pub use memory::{Memory, MemoryOptions};
pub use plan::Prepared;
pub use relay::{MAX_MESSAGE as MAX_RELAYED, Pushed, Relay};

pub use unavailable::{Health, Reason, RedisUse, Unavailable};
