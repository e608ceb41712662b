//! The data path on a loopback port, over ports that keep everything in memory.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Method;
use secrecy::{ExposeSecret as _, SecretString};
use sluice_domain::{
    CallRecord, Category, GrantId, PolicyId, RouteGrant, RoutePolicy, RouteRecord, RouteServer,
    RouteTool, SecurityKind, ServerId, ServerSettings, Severity, ToolDefinition, ToolState, UserId,
    WorkspaceId,
};
use sluice_limits::{Counters, RedisOptions};
use sluice_proxy::{
    Approvals, CallLog, Change, ProxyOptions, ProxyParts, ProxyState, Routes, SecurityLog,
    ToolsSeen,
};
use sluice_testkit::http::{self as client, Answer, Opened};
use sluice_testkit::{RedisServer, TestClock};
use sluice_upstream::{Upstream, UpstreamOptions, definition_hash};
use sluice_vault::{Issued, TokenHash, TokenKind, Vault, generate_master_key};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::fakes::{FakeStore, Noted};

pub(crate) const ALLOW_ALL: &str = r#"{"version":"1","default":"allow"}"#;

/// A grant's token and what its route is made from.
#[derive(Clone)]
pub(crate) struct Grant {
    pub(crate) token: String,
    hash: TokenHash,
    pub(crate) record: RouteRecord,
}

pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) state: ProxyState,
    pub(crate) clock: TestClock,
    pub(crate) store: Arc<FakeStore>,
    pub(crate) noted: Arc<Noted>,
    pub(crate) counters: Counters,
    key: SecretString,
    records: mpsc::Receiver<CallRecord>,
    task: JoinHandle<()>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Replicas on one store and one Redis.
pub(crate) struct Replicas {
    pub(crate) one: Gateway,
    pub(crate) two: Gateway,
    pub(crate) redis: RedisServer,
}

/// Counters that wait: a machine may be busy, and these tests are not about that.
fn patient() -> RedisOptions {
    RedisOptions { timeout: std::time::Duration::from_secs(10), ..RedisOptions::default() }
}

impl Replicas {
    pub(crate) async fn start() -> Self {
        Self::with(ProxyOptions::default()).await
    }

    pub(crate) async fn with(options: ProxyOptions) -> Self {
        let redis = RedisServer::start();
        let (store, key) = (Arc::default(), generate_master_key("test"));
        let start = async || {
            let counters = Counters::redis(&redis.url(), patient()).await;
            let counters = Some(counters.expect("an address"));
            let (store, key) = (Arc::clone(&store), key.clone());
            Gateway::with(Setup {
                counters,
                store,
                key,
                options: options.clone(),
                ..Setup::default()
            })
            .await
        };
        let (one, two) = (start().await, start().await);
        Self { one, two, redis }
    }

    /// One more replica, in a runtime of its own: shut down, it ends as a killed process does.
    pub(crate) async fn third(&self) -> (Gateway, Runtime) {
        let runtime = Runtime::new().expect("threads");
        let (url, store, key) =
            (self.redis.url(), Arc::clone(&self.one.store), self.one.key.clone());
        let starting = runtime.spawn(async move {
            let counters = Counters::redis(&url, patient()).await;
            let counters = Some(counters.expect("an address"));
            Gateway::with(Setup { counters, store, key, ..Setup::default() }).await
        });
        (starting.await.expect("it starts"), runtime)
    }
}

/// How a gateway is started.
pub(crate) struct Setup {
    pub(crate) options: ProxyOptions,
    pub(crate) log: usize,
    pub(crate) approvals: Option<Arc<dyn Approvals>>,
    pub(crate) clock: TestClock,
    /// None: counters of its own, in memory.
    pub(crate) counters: Option<Counters>,
    /// Shared with another replica.
    pub(crate) store: Arc<FakeStore>,
    pub(crate) key: SecretString,
    pub(crate) upstream: UpstreamOptions,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            options: ProxyOptions::default(),
            log: 1_000,
            approvals: None,
            clock: TestClock::at("2026-11-30T12:00:00Z"),
            counters: None,
            store: Arc::default(),
            key: generate_master_key("test"),
            upstream: UpstreamOptions { allow_private: true, ..UpstreamOptions::default() },
        }
    }
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let clock = setup.clock;
        let store = setup.store;
        let noted = Arc::new(Noted::default());
        let counters = setup.counters.unwrap_or_else(|| Counters::in_memory(clock.function()));
        let (calls, records) = CallLog::new(setup.log);
        let vault = Vault::from_keys(&setup.key).expect("a key");
        let state = ProxyState::new(ProxyParts {
            routes: Arc::clone(&store) as Arc<dyn Routes>,
            upstream: Upstream::new(setup.upstream),
            vault: Arc::new(vault),
            counters: counters.clone(),
            approvals: setup.approvals,
            calls,
            security: Arc::clone(&noted) as Arc<dyn SecurityLog>,
            spans: None,
            tools_seen: Arc::clone(&noted) as Arc<dyn ToolsSeen>,
            clock: clock.function(),
            options: setup.options,
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let app =
            sluice_proxy::router(state.clone()).into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move {
            axum::serve(listener, app).await.ok();
        });
        let key = setup.key;
        Self { address, state, clock, store, noted, counters, key, records, task }
    }

    /// A grant on a new server of a new workspace.
    pub(crate) fn grant(&self, upstream: &str, policy: &str) -> Grant {
        self.grant_with(upstream, policy, |_| {})
    }

    pub(crate) fn grant_with(
        &self,
        upstream: &str,
        policy: &str,
        change: impl FnOnce(&mut RouteRecord),
    ) -> Grant {
        let mut record = record(upstream, policy);
        change(&mut record);
        self.enter(record)
    }

    /// Another grant of the same server.
    pub(crate) fn sibling(&self, grant: &Grant) -> Grant {
        let mut record = grant.record.clone();
        record.grant.id = GrantId::new();
        self.enter(record)
    }

    pub(crate) fn enter(&self, record: RouteRecord) -> Grant {
        let issued = Issued::new(TokenKind::Grant);
        self.store.routes.lock().insert(issued.hash, record.clone());
        Grant { token: issued.token.expose_secret().to_owned(), hash: issued.hash, record }
    }

    /// Changes a grant's route in the store, and tells the data path.
    pub(crate) fn change(&self, grant: &mut Grant, change: impl FnOnce(&mut RouteRecord)) {
        change(&mut grant.record);
        self.store.routes.lock().insert(grant.hash, grant.record.clone());
        self.state.changed(Change::Grant(grant.record.grant.id));
    }

    /// The records so far.
    pub(crate) fn records(&mut self) -> Vec<CallRecord> {
        std::iter::from_fn(|| self.records.try_recv().ok()).collect()
    }

    /// The next record, waited for.
    pub(crate) async fn record(&mut self) -> CallRecord {
        tokio::time::timeout(std::time::Duration::from_secs(10), self.records.recv())
            .await
            .expect("a record comes")
            .expect("the log is open")
    }

    pub(crate) fn security(&self) -> Vec<SecurityKind> {
        self.noted.events.lock().iter().map(|event| event.kind).collect()
    }
}

pub(crate) fn record(upstream: &str, policy: &str) -> RouteRecord {
    RouteRecord {
        workspace: WorkspaceId::new(),
        workspace_slug: "acme".to_owned(),
        suspended: false,
        calls_per_day: None,
        grant: RouteGrant {
            id: GrantId::new(),
            label: "agent".to_owned(),
            observe: false,
            expires_at: None,
            revoked: false,
            networks: Vec::new(),
            created_by: Some(UserId::new()),
        },
        server: RouteServer {
            id: ServerId::new(),
            name: "stage".to_owned(),
            upstream_url: upstream.to_owned(),
            settings: ServerSettings::default(),
            sealed_headers: None,
            revision: 1,
            tools_read: true,
        },
        policy: Some(RoutePolicy {
            id: PolicyId::new(),
            name: "main".to_owned(),
            version: 4,
            document: policy.to_owned(),
        }),
        tools: ["echo", "other", "read_note", "delete_note", "slow"].map(tool).into(),
    }
}

pub(crate) fn tool(name: &str) -> RouteTool {
    RouteTool {
        name: name.to_owned(),
        category: Category::Read,
        severity: Severity::Low,
        state: ToolState::Current,
        definition_hash: definition_hash(&definition(&named(name))),
        input_schema: None,
    }
}

/// A tool as stages list it.
pub(crate) fn named(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#)
}

pub(crate) fn definition(text: &str) -> ToolDefinition {
    serde_json::from_str(text).expect(text)
}

pub(crate) const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

impl Grant {
    pub(crate) fn path(&self) -> String {
        format!("/mcp/{}", self.record.server.id)
    }

    pub(crate) async fn open(
        &self,
        gateway: &Gateway,
        method: Method,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Opened {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", bearer.as_str())];
        for default in [ACCEPT, JSON] {
            if !headers.iter().any(|(name, _)| *name == default.0) {
                all.push(default);
            }
        }
        all.extend_from_slice(headers);
        client::open(gateway.address, method, &self.path(), &all, body.to_owned())
            .await
            .expect("the gateway answers")
    }

    pub(crate) async fn post(
        &self,
        gateway: &Gateway,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.open(gateway, Method::POST, headers, body).await.whole().await.expect("a whole answer")
    }

    pub(crate) async fn call(
        &self,
        gateway: &Gateway,
        id: &str,
        tool: &str,
        arguments: &str,
    ) -> Answer {
        self.post(gateway, &[], &call(id, tool, arguments)).await
    }

    /// Opens a session and gives its id.
    pub(crate) async fn initialize(&self, gateway: &Gateway) -> String {
        let answer = self.post(gateway, &[], &initialize()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.header("mcp-session-id").to_owned()
    }
}

pub(crate) fn initialize() -> String {
    r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"1"}}}"#.to_owned()
}

pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> String {
    let tool = serde_json::Value::from(tool);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{tool},"arguments":{arguments}}}}}"#
    )
}

/// The code in the note of a refused call.
pub(crate) fn code(answer: &Answer) -> String {
    let json = answer.json();
    let note = &json["result"]["_meta"]["dev.sluice/decision"]["code"];
    note.as_str().map_or_else(|| panic!("not refused: {}", answer.text()), str::to_owned)
}
