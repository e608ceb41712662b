//! The log records that the proxy makes and the store keeps.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{CallId, Code, GrantId, Outcome, PolicyId, ServerId, WorkspaceId};

/// Where the time of a request went, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallTiming {
    pub total_us: i64,
    pub limits_us: i64,
    pub approval_us: i64,
    pub upstream_us: i64,
}

/// One row of the call log: a request through the proxy and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    pub id: CallId,
    pub workspace: WorkspaceId,
    pub server: ServerId,
    pub grant: GrantId,
    pub grant_label: String,
    pub at: DateTime<Utc>,
    /// JSON-RPC method, cut to 128 characters; empty where none could be read.
    pub method: String,
    /// Tool name of a `tools/call`, cut to 256 characters.
    pub tool: Option<String>,
    pub outcome: Outcome,
    pub code: Code,
    /// JSON Pointer or `(hidden)` and the like; empty when allowed.
    pub rule: String,
    /// What the agent was told.
    pub message: String,
    pub policy: Option<PolicyId>,
    pub policy_version: Option<i64>,
    /// The policy only observed: the call went through all the same.
    pub observed: bool,
    pub counter: Option<String>,
    pub retry_after_s: Option<i64>,
    /// JSON: argument names and types, or redacted values where the server's setting says so.
    pub arguments: Option<String>,
    /// JSON: the decision's trace.
    pub trace: Option<String>,
    pub client_name: Option<String>,
    pub protocol_version: Option<String>,
    pub session: Option<String>,
    pub client_address: Option<String>,
    pub request_bytes: i64,
    pub response_bytes: i64,
    pub upstream_status: Option<i32>,
    pub timing: CallTiming,
}

words!(
    /// What the security log counts.
    SecurityKind, "security event" {
        BadToken = "bad_token",
        ExpiredToken = "expired_token",
        RevokedToken = "revoked_token",
        WrongServer = "wrong_server",
        UnknownServer = "unknown_server",
        ForeignOrigin = "foreign_origin",
        ForeignSession = "foreign_session",
        NetworkNotAllowed = "network_not_allowed",
        LoginFailed = "login_failed",
    }
);

/// One refused attempt, for the security log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityEvent {
    pub id: CallId,
    pub at: DateTime<Utc>,
    pub kind: SecurityKind,
    /// The workspace, where the token tells it.
    pub workspace: Option<WorkspaceId>,
    pub grant: Option<GrantId>,
    pub address: String,
    /// Path, origin or the like, cut to 256 characters; never a token.
    pub detail: String,
    /// How many such attempts the row stands for.
    #[serde(default = "once")]
    pub times: i64,
}

const fn once() -> i64 {
    1
}
