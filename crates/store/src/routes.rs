//! What the proxy needs to decide a grant's calls, in one consistent read: begin it with
//! [`Db::read`](crate::Db::read).

use chrono::{DateTime, Utc};
use sluice_domain::{
    Category, GrantId, PolicyId, RouteGrant, RoutePolicy, RouteRecord, RouteServer, RouteTool,
    ServerId, ServerSettings, Severity, ToolDefinition, ToolState, UserId, WorkspaceId,
    WorkspaceLimits,
};

use crate::column::record;
use crate::conn::{fetch_all, fetch_optional};
use crate::{Conn, StoreError};

record! {
    /// Grant, server and workspace of a token.
    struct Head {
        workspace_id: WorkspaceId,
        workspace_slug: String,
        suspended: bool,
        limits: WorkspaceLimits,
        grant_id: GrantId,
        label: String,
        observe: bool,
        expires_at: Option<DateTime<Utc>>,
        previous: bool,
        previous_until: Option<DateTime<Utc>>,
        revoked: bool,
        networks: Vec<String>,
        created_by: Option<UserId>,
        server_id: ServerId,
        server_name: String,
        upstream_url: String,
        settings: ServerSettings,
        sealed_headers: Option<Vec<u8>>,
        revision: i64,
        tools_read: bool,
        policy_id: Option<PolicyId>,
    }
}

record! {
    /// The newest version of a policy.
    struct PolicyRow {
        id: PolicyId,
        name: String,
        version: i64,
        document: String,
    }
}

record! {
    /// A tool that is in the server's list.
    struct ToolRow {
        name: String,
        category: Category,
        severity: Severity,
        state: ToolState,
        hash: String,
        definition: String,
    }
}

/// The route of a token, or `None` if no grant has it. Expired and revoked grants are found, so
/// that the security log can tell them apart. A token that was rotated away expires at the end of
/// its overlap.
pub async fn find(
    conn: &mut Conn<'_>,
    token_hash: &[u8],
) -> Result<Option<RouteRecord>, StoreError> {
    let Some(head) = head(conn, token_hash).await? else { return Ok(None) };
    let policy = match head.policy_id {
        Some(policy) => find_policy(conn, head.workspace_id, policy).await?,
        None => None,
    };
    let tools = find_tools(conn, head.workspace_id, head.server_id).await?;
    Ok(Some(route(head, policy, tools)))
}

fn route(head: Head, policy: Option<RoutePolicy>, tools: Vec<RouteTool>) -> RouteRecord {
    let overlap = if head.previous { head.previous_until } else { None };
    let expires_at = match (head.expires_at, overlap) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    RouteRecord {
        workspace: head.workspace_id,
        workspace_slug: head.workspace_slug,
        suspended: head.suspended,
        calls_per_day: head.limits.calls_per_day,
        grant: RouteGrant {
            id: head.grant_id,
            label: head.label,
            observe: head.observe,
            expires_at,
            revoked: head.revoked,
            networks: head.networks,
            created_by: head.created_by,
        },
        server: RouteServer {
            id: head.server_id,
            name: head.server_name,
            upstream_url: head.upstream_url,
            settings: head.settings,
            sealed_headers: head.sealed_headers,
            revision: head.revision,
            tools_read: head.tools_read,
        },
        policy,
        tools,
    }
}

async fn head(conn: &mut Conn<'_>, token_hash: &[u8]) -> Result<Option<Head>, StoreError> {
    Ok(fetch_optional!(
        conn,
        Head,
        "SELECT w.id AS workspace_id, w.slug AS workspace_slug,
                (w.suspended OR w.deleted_at IS NOT NULL) AS suspended,
                w.limits, g.id AS grant_id, g.label, g.observe, g.expires_at, g.token_hash <> $1 AS previous,
                g.previous_until, g.networks,
                (g.revoked_at IS NOT NULL OR s.deleted_at IS NOT NULL) AS revoked, g.created_by,
                s.id AS server_id, s.name AS server_name, s.upstream_url, s.settings,
                s.sealed_headers, s.revision, s.tools_read, g.policy_id
         FROM grants g
         JOIN workspaces w ON w.id = g.workspace_id
         JOIN servers s ON s.workspace_id = g.workspace_id AND s.id = g.server_id
         WHERE g.token_hash = $1 OR g.previous_token_hash = $1",
        token_hash
    )?)
}

async fn find_policy(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    id: PolicyId,
) -> Result<Option<RoutePolicy>, StoreError> {
    let row = fetch_optional!(
        conn,
        PolicyRow,
        "SELECT p.id, p.name, p.version, v.document
         FROM policies p JOIN policy_versions v ON v.workspace_id = p.workspace_id
              AND v.policy_id = p.id AND v.version = p.version
         WHERE p.workspace_id = $1 AND p.id = $2 AND p.deleted_at IS NULL",
        workspace,
        id
    )?;
    Ok(row.map(|row| RoutePolicy {
        id: row.id,
        name: row.name,
        version: row.version,
        document: row.document,
    }))
}

async fn find_tools(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
) -> Result<Vec<RouteTool>, StoreError> {
    let rows = fetch_all!(
        conn,
        ToolRow,
        "SELECT name, category, severity, state, COALESCE(reviewed_hash, hash) AS hash,
                COALESCE(reviewed_definition, definition) AS definition
         FROM tools WHERE workspace_id = $1 AND server_id = $2 AND state <> 'gone' ORDER BY name",
        workspace,
        server
    )?;
    rows.into_iter().map(tool).collect()
}

fn tool(row: ToolRow) -> Result<RouteTool, StoreError> {
    let definition: ToolDefinition = serde_json::from_str(&row.definition).map_err(|source| {
        StoreError::Unreadable { what: "tools.definition", source: source.into() }
    })?;
    Ok(RouteTool {
        name: row.name,
        category: row.category,
        severity: row.severity,
        state: row.state,
        definition_hash: row.hash,
        input_schema: definition.input_schema.map(|schema| schema.to_string()),
    })
}
