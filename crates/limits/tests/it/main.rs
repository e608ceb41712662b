//! The contract of the counters, held by both stores.

mod bindings;
mod cluster;
mod contract;
mod cost;
mod day;
mod everywhere;
mod failure;
mod file;
mod model;
mod real_time;
mod reference;
mod refunds;
mod relay;
mod shared;
mod store;
