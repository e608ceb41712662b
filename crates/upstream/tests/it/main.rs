//! Upstreams of every kind, on loopback.

mod addresses;
mod fake;
mod read;
mod read_failures;
mod send;
mod tls;
