//! For tests only: databases, Redis, fake and real upstreams, a clock that is set by hand.

#![expect(clippy::missing_panics_doc, reason = "a helper of tests fails the test by a panic")]

pub mod bounds;
pub mod clock;
pub mod collector;
pub mod columns;
pub mod db;
pub mod fake_issuer;
pub mod fake_registry;
pub mod http;
pub mod mcp_server;
pub mod newer_schema;
pub mod passkey;
pub mod plug;
pub mod postgres_server;
pub mod raw_upstream;
pub mod redis_cluster;
pub mod redis_monitor;
pub mod redis_server;
pub mod sluice;
pub mod smtp_server;
pub mod tamper;
pub mod tls_front;
pub mod webhook_sink;

pub use clock::TestClock;
pub use fake_issuer::FakeIssuer;
pub use mcp_server::{Behaviour, FakeServer, Framing, Seen};
pub use passkey::{SoftAssertion, SoftPasskey};
pub use plug::Plug;
pub use postgres_server::PostgresServer;
pub use raw_upstream::RawUpstream;
pub use redis_cluster::RedisCluster;
pub use redis_monitor::RedisMonitor;
pub use redis_server::RedisServer;
pub use sluice::{Setup, Sluice};
pub use smtp_server::SmtpServer;
pub use tls_front::TlsFront;
pub use webhook_sink::{Posted, WebhookSink};
