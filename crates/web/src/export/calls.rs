//! A call as REST and files show it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sluice_domain::{CallRecord, CallTiming};
use utoipa::ToSchema;

use super::Row;

/// Where the time went, in microseconds.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct Timing {
    total_us: i64,
    limits_us: i64,
    approval_us: i64,
    upstream_us: i64,
}

impl From<CallTiming> for Timing {
    fn from(timing: CallTiming) -> Self {
        let CallTiming { total_us, limits_us, approval_us, upstream_us } = timing;
        Self { total_us, limits_us, approval_us, upstream_us }
    }
}

/// A request through the proxy and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallBody {
    /// The `X-Request-Id` of the answer.
    #[schema(format = Uuid)]
    id: String,
    at: DateTime<Utc>,
    #[schema(format = Uuid)]
    server_id: String,
    #[schema(format = Uuid)]
    grant_id: String,
    grant_label: String,
    method: String,
    tool: Option<String>,
    outcome: &'static str,
    code: &'static str,
    /// JSON Pointer into the policy, or `(hidden)` and the like; empty when allowed.
    rule: String,
    /// What the agent was told.
    message: String,
    #[schema(format = Uuid)]
    policy_id: Option<String>,
    policy_version: Option<i64>,
    /// The policy only observed: the call went through all the same.
    observed: bool,
    counter: Option<String>,
    retry_after_seconds: Option<i64>,
    /// Names and types, or redacted values where the server's setting says so.
    arguments: Option<Value>,
    trace: Option<Value>,
    client_name: Option<String>,
    protocol_version: Option<String>,
    session: Option<String>,
    client_address: Option<String>,
    request_bytes: i64,
    response_bytes: i64,
    upstream_status: Option<i32>,
    timing: Timing,
}

fn json(text: Option<String>) -> Option<Value> {
    text.and_then(|text| serde_json::from_str(&text).ok())
}

impl From<CallRecord> for CallBody {
    fn from(call: CallRecord) -> Self {
        Self {
            id: call.id.to_string(),
            at: call.at,
            server_id: call.server.to_string(),
            grant_id: call.grant.to_string(),
            grant_label: call.grant_label,
            method: call.method,
            tool: call.tool,
            outcome: call.outcome.as_str(),
            code: call.code.as_str(),
            rule: call.rule,
            message: call.message,
            policy_id: call.policy.map(|id| id.to_string()),
            policy_version: call.policy_version,
            observed: call.observed,
            counter: call.counter,
            retry_after_seconds: call.retry_after_s,
            arguments: json(call.arguments),
            trace: json(call.trace),
            client_name: call.client_name,
            protocol_version: call.protocol_version,
            session: call.session,
            client_address: call.client_address,
            request_bytes: call.request_bytes,
            response_bytes: call.response_bytes,
            upstream_status: call.upstream_status,
            timing: call.timing.into(),
        }
    }
}

impl Row for CallBody {
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("id", "/id"),
        ("at", "/at"),
        ("server_id", "/server_id"),
        ("grant_id", "/grant_id"),
        ("grant_label", "/grant_label"),
        ("method", "/method"),
        ("tool", "/tool"),
        ("outcome", "/outcome"),
        ("code", "/code"),
        ("rule", "/rule"),
        ("message", "/message"),
        ("policy_id", "/policy_id"),
        ("policy_version", "/policy_version"),
        ("observed", "/observed"),
        ("counter", "/counter"),
        ("retry_after_seconds", "/retry_after_seconds"),
        ("client_name", "/client_name"),
        ("protocol_version", "/protocol_version"),
        ("client_address", "/client_address"),
        ("request_bytes", "/request_bytes"),
        ("response_bytes", "/response_bytes"),
        ("upstream_status", "/upstream_status"),
        ("total_us", "/timing/total_us"),
        ("upstream_us", "/timing/upstream_us"),
    ];
}
