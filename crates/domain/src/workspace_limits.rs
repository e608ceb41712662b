//! What an operator allows one workspace, where that differs from the installation.

use serde::{Deserialize, Serialize};

/// The most a workspace may have; `None`: what the installation allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<u32>,
    /// Live grants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<u32>,
    /// Tool calls that are forwarded in a day (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_day: Option<u32>,
}

impl WorkspaceLimits {
    /// The most servers, where the installation allows `most`.
    pub fn servers_or(&self, most: i64) -> i64 {
        self.servers.map_or(most, i64::from)
    }

    /// The most live grants, where the installation allows `most`.
    pub fn grants_or(&self, most: i64) -> i64 {
        self.grants.map_or(most, i64::from)
    }
}
