//! All SQL, migrations and the change feed, for PostgreSQL and SQLite. Functions take a
//! connection and a workspace; only the caller begins and commits.

mod column;
mod conn;
mod db;
mod error;
mod lock;
mod migrate;
mod text;

pub mod account_links;
pub mod admin_events;
pub mod api_tokens;
pub mod approvals;
pub mod calls;
pub mod catalogue;
pub mod changes;
pub mod configuration;
pub mod endpoints;
mod feed;
pub mod find;
pub mod grants;
pub mod idempotency;
pub mod identities;
pub mod invites;
pub mod join_domains;
pub mod login_sessions;
pub mod members;
pub mod outbox;
pub mod passkeys;
pub mod policies;
pub mod routes;
pub mod saved_filters;
pub mod second_factor;
pub mod security_events;
pub mod servers;
pub mod tools;
pub mod users;
pub mod workspaces;

pub use conn::Conn;
pub use db::{Db, DbOptions, PoolUse, Tx};
pub use error::StoreError;
pub use feed::ChangeFeed;
pub use lock::ServingLock;
pub use migrate::SchemaState;
