//! Upstreams of every kind, on loopback.

mod addresses;
mod fake;
mod mail;
mod read;
mod read_failures;
mod send;
mod tls;
