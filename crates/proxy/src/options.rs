//! The data path's settings, each with the default that `server` documents.

use std::time::Duration;

use sluice_domain::OnUnavailable;

/// Settings of the data path.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Where the dashboard is, without a slash at the end; used in addresses that agents are shown.
    pub dashboard_url: String,
    /// Origins that may call (`scheme://host[:port]`), beside those of `loopback_origins`.
    pub allowed_origins: Vec<String>,
    /// Whether any loopback origin may call; true when listening on loopback.
    pub loopback_origins: bool,
    /// Largest request body, in bytes.
    pub max_request_bytes: usize,
    /// Largest single message of an upstream, in bytes.
    pub max_message_bytes: usize,
    /// Memory for messages of upstreams that are held until they are complete, in bytes, all calls together.
    pub max_held_bytes: usize,
    /// How long a request body may take to arrive.
    pub request_timeout: Duration,
    /// Routes that are kept compiled.
    pub cached_routes: u64,
    /// How long routes go on being used while the store is down.
    pub stale_routes: Duration,
    /// How long a session may go unused.
    pub session_idle: Duration,
    /// Sessions that one grant may have open; a new one takes the place of the one unused for longest.
    pub sessions_per_grant: usize,
    /// Open streams and calls of one grant at once.
    pub max_open_per_grant: usize,
    /// What becomes of calls while the call log is full.
    pub on_log_full: OnUnavailable,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            dashboard_url: "http://localhost:8080".to_owned(),
            allowed_origins: Vec::new(),
            loopback_origins: true,
            max_request_bytes: 4 << 20,
            max_message_bytes: 64 << 20,
            max_held_bytes: 256 << 20,
            request_timeout: Duration::from_mins(1),
            cached_routes: 10_000,
            stale_routes: Duration::from_mins(10),
            session_idle: Duration::from_hours(1),
            sessions_per_grant: 1_000,
            max_open_per_grant: 1_000,
            on_log_full: OnUnavailable::Deny,
        }
    }
}
