//! What a play needs beside its upstream: gateways that can die, people.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::body::Body;
use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sluice_control::{
    Admin, Bounds, Control, ControlParts, ControlSettings, Origin, PolicyManager, ServerForm,
    SignUp, SignedUp, Signup,
};
use sluice_domain::{ApprovalId, CallId, Role, ServerId, WorkspaceId};
use sluice_limits::Counters;
use sluice_proxy::{
    Approval, ApprovalKey, Approvals, CallLog, Exception, ParkError, ParkedCall, ProxyOptions,
    ProxyParts, ProxyState, Released, StoreUnavailable,
};
use sluice_store::Db;
use sluice_testkit::TestClock;
use sluice_upstream::{Upstream, UpstreamOptions};
use sluice_vault::{Passwords, Vault, generate_master_key};
use tokio::sync::{broadcast, mpsc};

use super::tool::Tool;
use crate::ports::{ClockOf, SecurityQueue, StoredApprovals, StoredRoutes, ToolsQueue};

/// The approvals of a gateway that can die: then it reaches the store no more, nor says how anything
/// ended.
struct Mortal {
    inner: Arc<StoredApprovals>,
    alive: Arc<AtomicBool>,
    /// Calls that wait for a decision.
    held: Arc<Mutex<usize>>,
}

impl Mortal {
    fn up(&self) -> bool {
        self.alive.load(Ordering::SeqCst)
    }
}

/// Counts itself for as long as it lives.
struct Held(Arc<Mutex<usize>>);

impl Held {
    fn new(count: &Arc<Mutex<usize>>) -> Self {
        *count.lock() += 1;
        Self(Arc::clone(count))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

impl Approvals for Mortal {
    fn find<'a>(
        &'a self,
        key: &'a ApprovalKey,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Approval>, StoreUnavailable>> {
        if self.up() { Approvals::find(&*self.inner, key, now) } else { gone() }
    }

    fn excepted<'a>(
        &'a self,
        key: &'a ApprovalKey,
        hash: Option<&'a str>,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Option<Exception>, StoreUnavailable>> {
        if self.up() { Approvals::excepted(&*self.inner, key, hash, now) } else { gone() }
    }

    fn park(&self, call: ParkedCall) -> BoxFuture<'_, Result<Approval, ParkError>> {
        if self.up() {
            return Approvals::park(&*self.inner, call);
        }
        async { Err(ParkError::Unavailable(StoreUnavailable)) }.boxed()
    }

    fn decided(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
    ) -> BoxFuture<'_, Result<Approval, StoreUnavailable>> {
        let held = Held::new(&self.held);
        let deciding = Approvals::decided(&*self.inner, workspace, id);
        async move {
            let decided = deciding.await;
            drop(held);
            if self.up() { decided } else { Err(StoreUnavailable) }
        }
        .boxed()
    }

    fn claim(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        now: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<bool, StoreUnavailable>> {
        if self.up() { Approvals::claim(&*self.inner, workspace, id, call, now) } else { gone() }
    }

    fn released(
        &self,
        workspace: WorkspaceId,
        id: ApprovalId,
        call: CallId,
        how: Released,
        now: DateTime<Utc>,
    ) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        if self.up() {
            return Approvals::released(&*self.inner, workspace, id, call, how, now);
        }
        gone()
    }
}

fn gone<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, StoreUnavailable>> {
    async { Err(StoreUnavailable) }.boxed()
}

/// A gateway.
pub(super) struct Replica {
    pub(super) state: ProxyState,
    pub(super) alive: Arc<AtomicBool>,
    approvals: Arc<StoredApprovals>,
    changed: broadcast::Sender<ApprovalId>,
}

impl Replica {
    /// As the feed would: that these changed, and perhaps the policies.
    pub(super) fn learn(&self, approvals: &BTreeSet<ApprovalId>) {
        self.state.changed(sluice_proxy::Change::Everything);
        for id in approvals {
            self.changed.send(*id).ok();
        }
    }

    /// As the job does: what runs here, still runs.
    pub(super) async fn beat(&self) {
        self.approvals.say_what_runs().await.expect("the store answers");
    }
}

/// An installation with two who may decide.
pub(super) struct Scene {
    pub(super) control: Control,
    pub(super) counters: Counters,
    pub(super) clock: TestClock,
    pub(super) tool: Tool,
    pub(super) admin: Admin,
    pub(super) other: PolicyManager,
    pub(super) server: ServerId,
    /// Calls that wait for a decision, at all gateways.
    pub(super) held: Arc<Mutex<usize>>,
    ids: AtomicU64,
    db: Db,
    vault: Arc<Vault>,
}

impl Scene {
    /// An id that no other call has.
    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::SeqCst)
    }

    pub(super) async fn new(db: Db) -> Self {
        let clock = TestClock::at("2026-11-30T00:00:00Z");
        let counters = Counters::in_memory(clock.function());
        let vault = Arc::new(Vault::from_keys(&generate_master_key("k1")).expect("a key"));
        let private = UpstreamOptions { allow_private: true, ..UpstreamOptions::default() };
        let settings = ControlSettings {
            public_url: "http://localhost:8080".parse().expect("a URL"),
            proxy_public_url: "http://localhost:8080".parse().expect("a URL"),
            signup: Signup::Open,
            example_url: None,
            bounds: Bounds::default(),
            providers: Vec::new(),
        };
        let parts = ControlParts {
            db: db.clone(),
            vault: Arc::clone(&vault),
            upstream: Arc::new(Upstream::new(private)),
            counters: counters.clone(),
            mailer: None,
            passwords: Passwords::without_cost(),
            settings,
        };
        let control = Control::new(parts, clock.function());
        let admin = person(&control, "ann@example.test", None).await;
        let workspace = control.create_workspace(&admin, "acme").await.expect("makes it");
        let admin: Admin = control.enter(&admin, &workspace.slug).await.expect("its maker");
        let invited = control.invite(&admin, "bob@example.test", Role::PolicyManager).await;
        let other =
            person(&control, "bob@example.test", Some(invited.expect("invites").token)).await;
        let other = control.enter(&other, &workspace.slug).await.expect("may");
        let tool = Tool::default();
        let upstream_url = tool.serve().await;
        let form = ServerForm { name: "pay".to_owned(), upstream_url, ..ServerForm::default() };
        let server = control.connect(&admin, form).await.expect("connects").server.id;
        let (held, ids) = (Arc::default(), AtomicU64::new(1));
        Self { control, counters, clock, tool, admin, other, server, held, ids, db, vault }
    }

    pub(super) fn replica(&self) -> Replica {
        let (changed, _) = broadcast::channel(1_024);
        let alive = Arc::new(AtomicBool::new(true));
        let approvals = Arc::new(StoredApprovals {
            db: self.db.clone(),
            vault: Arc::clone(&self.vault),
            clock: ClockOf(self.clock.function()),
            replica: uuid::Uuid::now_v7().to_string(),
            changed: changed.clone(),
            running: Arc::default(),
        });
        let (calls, mut records) = CallLog::new(10_000);
        tokio::spawn(async move { while records.recv().await.is_some() {} });
        let private = UpstreamOptions { allow_private: true, ..UpstreamOptions::default() };
        let state = ProxyState::new(ProxyParts {
            routes: Arc::new(StoredRoutes(self.db.clone())),
            upstream: Upstream::new(private),
            vault: Arc::clone(&self.vault),
            counters: self.counters.clone(),
            approvals: Some(Arc::new(Mortal {
                inner: Arc::clone(&approvals),
                alive: Arc::clone(&alive),
                held: Arc::clone(&self.held),
            })),
            calls,
            security: Arc::new(SecurityQueue::new(mpsc::channel(10).0)),
            spans: None,
            tools_seen: Arc::new(ToolsQueue::default()),
            clock: self.clock.function(),
            options: ProxyOptions::default(),
        });
        Replica { state, alive, approvals, changed }
    }
}

async fn person(
    control: &Control,
    email: &str,
    invite: Option<SecretString>,
) -> sluice_control::Actor {
    let form = SignUp {
        email: email.to_owned(),
        password: SecretString::from("a long enough password"),
        name: String::new(),
        invite,
        next: String::new(),
    };
    let origin = Origin { address: "192.0.2.1".to_owned(), user_agent: "tests".to_owned() };
    let signed_up = control.sign_up(form, &origin).await.expect("signs up");
    let SignedUp::In(entry) = signed_up else { panic!("no mail is sent") };
    let login = entry.complete().expect("no second factor is asked for");
    let found = control.who(login.token.expose_secret(), "192.0.2.1").await;
    found.expect("the store answers").expect("a live login")
}

/// What a client is told of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Ran,
    /// It was not made, by this code.
    NotMade(String),
    /// A JSON-RPC error, which says itself whether it may have run.
    Failed {
        may_have_run: bool,
    },
}

/// Makes one call, as a client does.
pub(super) async fn call(
    state: ProxyState,
    server: ServerId,
    token: SecretString,
    id: u64,
    tool: &'static str,
    n: usize,
) -> Told {
    let params = json!({"name": tool, "arguments": {"n": n}});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let request = Request::post(format!("/mcp/{server}"))
        .header("authorization", format!("Bearer {}", token.expose_secret()))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .body(Body::from(body.to_string()))
        .expect("a request");
    let response = state.serve(&server.to_string(), request).await;
    let body = response.into_body().collect().await.expect("whole").to_bytes();
    let answer: Value = serde_json::from_slice(&body).expect("JSON");
    // Where the gateway cannot even look the token up, it has not read the body.
    assert!(answer["id"] == id || answer["error"]["data"]["may_have_run"] == false, "{answer}");
    let decision = &answer["result"]["_meta"]["dev.sluice/decision"]["code"];
    match (answer["error"].is_null(), decision.as_str()) {
        (true, Some(code)) => Told::NotMade(code.to_owned()),
        (true, None) => Told::Ran,
        (false, _) => {
            Told::Failed { may_have_run: answer["error"]["data"]["may_have_run"] == json!(true) }
        }
    }
}
