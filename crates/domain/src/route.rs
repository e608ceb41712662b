//! What the proxy needs to know to decide a grant's calls: read by `store`,
//! compiled and cached by `proxy`.

use chrono::{DateTime, Utc};

use crate::{
    Category, GrantId, PolicyId, ServerId, ServerSettings, Severity, ToolState, UserId, WorkspaceId,
};

/// Grant + server + policy + tools, as one consistent read.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteRecord {
    pub workspace: WorkspaceId,
    /// The workspace's slug, for addresses shown to agents.
    pub workspace_slug: String,
    /// The operator switched the workspace off.
    pub suspended: bool,
    /// Tool calls that the operator lets the workspace make in a day (UTC).
    pub calls_per_day: Option<u32>,
    pub grant: RouteGrant,
    pub server: RouteServer,
    pub policy: Option<RoutePolicy>,
    pub tools: Vec<RouteTool>,
}

/// The grant's part of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteGrant {
    pub id: GrantId,
    pub label: String,
    /// Decide and log but let through, for this grant alone.
    pub observe: bool,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked: bool,
    /// Networks (CIDR) that may use the grant; empty: any.
    pub networks: Vec<String>,
    pub created_by: Option<UserId>,
}

/// The server's part of a route. Credentials stay sealed; `upstream` opens them with the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteServer {
    pub id: ServerId,
    pub name: String,
    pub upstream_url: String,
    pub settings: ServerSettings,
    /// Sealed upstream headers (a JSON object name → value), if any.
    pub sealed_headers: Option<Vec<u8>>,
    /// Rises with every change of the row, so that caches can compare.
    pub revision: i64,
    /// False until the tools were read once.
    pub tools_read: bool,
}

/// The policy's part of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePolicy {
    pub id: PolicyId,
    pub name: String,
    pub version: i64,
    /// The text that was saved.
    pub document: String,
}

/// A tool's part of a route.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteTool {
    pub name: String,
    pub category: Category,
    pub severity: Severity,
    pub state: ToolState,
    /// Hash of the reviewed definition, see `store`.
    pub definition_hash: String,
    /// The pinned input schema's JSON text.
    pub input_schema: Option<String>,
}
