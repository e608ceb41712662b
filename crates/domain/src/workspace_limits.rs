//! What an operator allows one workspace, where that differs from the installation.

use chrono::TimeDelta;
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
    /// Days that the call log is kept; 0: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_days: Option<u32>,
}

impl WorkspaceLimits {
    /// How long the call log is kept, where the installation keeps it for `usual`; `None`: for ever.
    pub fn log_kept(&self, usual: Option<TimeDelta>) -> Option<TimeDelta> {
        match self.log_days {
            None => usual,
            Some(0) => None,
            Some(days) => Some(TimeDelta::days(days.into())),
        }
    }

    /// The most servers, where the installation allows `most`.
    pub fn servers_or(&self, most: i64) -> i64 {
        self.servers.map_or(most, i64::from)
    }

    /// The most live grants, where the installation allows `most`.
    pub fn grants_or(&self, most: i64) -> i64 {
        self.grants.map_or(most, i64::from)
    }
}
