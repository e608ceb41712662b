//! The contract of the counters, held by both stores.

mod bindings;
mod cluster;
mod contract;
mod failure;
mod file;
mod model;
mod reference;
mod shared;
mod store;
