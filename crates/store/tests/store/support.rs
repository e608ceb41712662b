//! A small world to test in: a workspace with an admin, a server, a policy and a grant.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sluice_domain::{
    ApprovalId, CallId, CallRecord, CallTiming, Category, Code, GrantId, Outcome, PolicyId,
    PolicyKind, ReservationId, Role, ServerId, ServerSettings, Severity, ToolDefinition, UserId,
    WorkspaceId,
};
use sluice_store::approvals::NewApproval;
use sluice_store::grants::{Grant, NewGrant};
use sluice_store::policies::{NewVersion, Policy};
use sluice_store::servers::{NewServer, Server};
use sluice_store::tools::{ReadTool, fingerprint};
use sluice_store::{Conn, Db, grants, members, policies, servers, users, workspaces};
use tokio::task::JoinHandle;

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000, 123_456_789).expect("a time")
}

pub(crate) fn later(seconds: i64) -> DateTime<Utc> {
    now() + TimeDelta::seconds(seconds)
}

/// Nanoseconds do not survive either database.
pub(crate) fn kept(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(at.timestamp_micros()).expect("a time")
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    pub(crate) workspace: WorkspaceId,
    pub(crate) user: UserId,
    pub(crate) server: ServerId,
    pub(crate) policy: PolicyId,
    pub(crate) grant: GrantId,
    pub(crate) token: [u8; 32],
}

pub(crate) async fn world(conn: &mut Conn<'_>, name: &str) -> World {
    let user = users::create(conn, &format!("{name}@example.test"), name, None, now())
        .await
        .expect("a user")
        .id;
    let workspace =
        workspaces::create(conn, name, name, Some(user), now()).await.expect("a workspace").id;
    members::add(conn, workspace, user, Role::Admin, now()).await.expect("a member");
    let server = new_server(conn, workspace, "notes").await.id;
    let policy = new_policy(conn, workspace, server, "strict").await.id;
    let token = token(name);
    let grant = new_grant(conn, workspace, server, "agent", Some(policy), &token).await.id;
    World { workspace, user, server, policy, grant, token }
}

/// Stands for the hash of a token.
pub(crate) fn token(seed: &str) -> [u8; 32] {
    let mut token = [7; 32];
    for (at, byte) in seed.bytes().enumerate() {
        token[at % 32] ^= byte.wrapping_add(u8::try_from(at % 251).expect("small"));
    }
    token
}

pub(crate) fn settings() -> ServerSettings {
    ServerSettings { connect_timeout_s: 3, ..ServerSettings::default() }
}

pub(crate) async fn new_server(conn: &mut Conn<'_>, workspace: WorkspaceId, name: &str) -> Server {
    let names = ["Authorization".to_owned()];
    let new = NewServer {
        id: ServerId::new(),
        name,
        upstream_url: "https://mcp.example.test/mcp",
        settings: &settings(),
        sealed_headers: Some(b"sealed"),
        header_names: &names,
        is_example: false,
        created_by: None,
    };
    servers::create(conn, workspace, new, now()).await.expect("a server")
}

pub(crate) fn version(document: &str) -> NewVersion<'_> {
    NewVersion { document, author: None, note: "" }
}

pub(crate) const DOCUMENT: &str = "{ \"version\":\"1\", \"default\": \"deny\" }\n";

pub(crate) async fn new_policy(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    name: &str,
) -> Policy {
    let first = version(DOCUMENT);
    policies::create(conn, workspace, server, name, PolicyKind::Custom, first, now())
        .await
        .expect("a policy")
}

pub(crate) fn grant_named<'a>(
    label: &'a str,
    policy: Option<PolicyId>,
    token: &'a [u8],
) -> NewGrant<'a> {
    NewGrant {
        label,
        token_hash: token,
        last4: "wxyz",
        policy,
        expires_at: None,
        observe: false,
        networks: &[],
        created_by: None,
    }
}

pub(crate) async fn new_grant(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    label: &str,
    policy: Option<PolicyId>,
    token: &[u8],
) -> Grant {
    grants::create(conn, workspace, server, grant_named(label, policy, token), now())
        .await
        .expect("a grant")
}

pub(crate) fn call(world: &World, tool: &str) -> CallRecord {
    CallRecord {
        id: CallId::new(),
        workspace: world.workspace,
        server: world.server,
        grant: world.grant,
        grant_label: "agent".to_owned(),
        at: kept(now()),
        method: "tools/call".to_owned(),
        tool: Some(tool.to_owned()),
        outcome: Outcome::Allowed,
        code: Code::Allowed,
        rule: String::new(),
        message: String::new(),
        policy: Some(world.policy),
        policy_version: Some(1),
        observed: false,
        counter: None,
        retry_after_s: None,
        arguments: Some(r#"{"b":1.10,"a":2}"#.to_owned()),
        trace: None,
        client_name: Some("claude".to_owned()),
        protocol_version: Some("2025-11-25".to_owned()),
        session: None,
        client_address: Some("192.0.2.1".to_owned()),
        request_bytes: 120,
        response_bytes: 4_000_000_000,
        upstream_status: Some(200),
        timing: CallTiming { total_us: 900, limits_us: 20, approval_us: 0, upstream_us: 800 },
    }
}

pub(crate) fn definition(name: &str, description: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        input_schema: Some(json!({"type": "object", "required": ["x"]})),
        output_schema: None,
        annotations: None,
    }
}

pub(crate) fn read_tool(name: &str, description: &str) -> ReadTool {
    let definition = definition(name, description);
    ReadTool {
        hash: fingerprint(&definition),
        definition,
        category: Category::Execute,
        severity: Severity::High,
        rating: json!({"reasons": []}),
        findings: json!([]),
        hold: false,
    }
}

pub(crate) fn poisoned(name: &str, description: &str) -> ReadTool {
    ReadTool { hold: true, findings: json!([{"kind": "hidden"}]), ..read_tool(name, description) }
}

pub(crate) fn approval<'a>(world: &World, digest: &'a str) -> NewApproval<'a> {
    NewApproval {
        id: ApprovalId::new(),
        server: world.server,
        grant: world.grant,
        grant_label: "agent",
        call: CallId::new(),
        tool: "pay",
        tool_hash: None,
        arguments_digest: digest,
        sealed_arguments: b"sealed",
        policy: world.policy,
        policy_version: 1,
        rule: "/tools/pay/approve_if/0",
        rules_digest: "rules",
        session: None,
        client_name: None,
        reservation: Some(ReservationId::new()),
        demands: Some("[]"),
        approvers: &[],
        quorum: 1,
        self_allowed: true,
        hold_until: later(50),
        expires_at: later(1800),
    }
}

/// Returns when `task`, which runs on the same database, waits for a lock, or is done. SQLite's
/// writers wait outside of the database, where nobody can look.
pub(crate) async fn waits_or_is_done<T>(db: &Db, task: &JoinHandle<T>) {
    const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while !db.is_sqlite() && !task.is_finished() {
        let mut tx = db.begin().await.expect("begins");
        let Conn::Postgres(conn) = tx.conn() else { return };
        let waiting: i64 = sqlx::query_scalar(WAITING).fetch_one(conn).await.expect("counts");
        if waiting > 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}
