//! The router on a fresh database, and a client that speaks to it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use http::{HeaderMap, Method, StatusCode};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sluice_api::{ApiState, router};
use sluice_control::operator::Operator;
use sluice_control::{Bounds, Control, ControlParts, ControlSettings, Signup};
use sluice_domain::Role;
use sluice_limits::Counters;
use sluice_store::Db;
use sluice_testkit::db::{FreshDatabase, FromFresh};
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, TestClock};
use sluice_upstream::{Upstream, UpstreamOptions};
use sluice_vault::{Passwords, Vault, generate_master_key};
use sluice_web::{WebSettings, WebState, wrap};
use tower::ServiceExt;

pub(crate) struct Api {
    router: Router,
    operator: Operator,
    pub(crate) db: Db,
    pub(crate) vault: Arc<Vault>,
    pub(crate) clock: TestClock,
    pub(crate) counters: Counters,
    pub(crate) upstream: FakeServer,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Fails the test unless the status is this one.
    pub(crate) fn must(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// The problem's code and pointer.
    pub(crate) fn problem(&self) -> (String, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text);
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("type"), format!("/docs/api#{}", text("code")));
        (text("code"), text("pointer"))
    }
}

/// The same with few requests a minute.
pub(crate) struct Limited(pub(crate) Api);

pub(crate) const FEW: u32 = 5;

impl FromFresh for Limited {
    async fn from_fresh(fresh: &FreshDatabase) -> Self {
        let bounds = Bounds { requests_per_minute: FEW, ..Bounds::default() };
        Self(Api::alone(fresh, bounds).await)
    }
}

impl FromFresh for Api {
    async fn from_fresh(fresh: &FreshDatabase) -> Self {
        Self::alone(fresh, Bounds::default()).await
    }
}

impl Api {
    /// A replica with counters of its own.
    async fn alone(fresh: &FreshDatabase, bounds: Bounds) -> Self {
        let clock = TestClock::at("2026-11-30T12:00:00Z");
        let counters = Counters::in_memory(clock.function());
        Self::with(fresh.connect().await, bounds, clock, counters).await
    }

    /// A replica over the database and these counters.
    pub(crate) async fn with(db: Db, bounds: Bounds, clock: TestClock, counters: Counters) -> Self {
        let vault = Arc::new(Vault::from_keys(&generate_master_key("k1")).expect("a key"));
        let public_url: url::Url = "http://localhost:8080".parse().expect("a URL");
        let options = UpstreamOptions { allow_private: true, ..Default::default() };
        let parts = ControlParts {
            db: db.clone(),
            vault: Arc::clone(&vault),
            upstream: Arc::new(Upstream::new(options)),
            counters: counters.clone(),
            mailer: None,
            passwords: Passwords::without_cost(),
            settings: ControlSettings {
                public_url: public_url.clone(),
                proxy_public_url: public_url.clone(),
                signup: Signup::Open,
                example_url: None,
                bounds,
                providers: Vec::new(),
            },
        };
        let control = Control::new(parts, clock.function());
        let settings = WebSettings {
            public_url,
            allowed_hosts: vec!["localhost".to_owned()],
            trusted_proxies: Vec::new(),
        };
        let web = WebState::new(control, settings);
        let router = wrap(router(ApiState { web: web.clone() }), &web);
        let operator = Operator::new(db.clone(), Arc::clone(&vault), clock.function());
        let upstream = FakeServer::start().await;
        upstream.tools(vec![
            tool("executePython", "Execute Python code in a sandbox"),
            tool("read_file", "Read a file"),
            tool("delete_file", "Delete a file for ever"),
        ]);
        Self { router, operator, db, vault, clock, counters, upstream }
    }
}

impl Api {
    /// A client with a token of the workspace, which is made if missing.
    pub(crate) async fn client(&self, workspace: &str, email: &str, role: Role) -> Client<'_> {
        let made = self.operator.api_token(email, workspace, role, true).await.expect("a token");
        let token = made.token.expose_secret().to_owned();
        Client { api: self, base: format!("/api/v1/workspaces/{workspace}"), token }
    }

    pub(crate) async fn admin(&self) -> Client<'_> {
        self.client("acme", "ann@example.test", Role::Admin).await
    }

    pub(crate) async fn send(&self, request: Request) -> Answer {
        let response = self.router.clone().oneshot(request).await.expect("the router answers");
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        let text = String::from_utf8_lossy(&body).into_owned();
        Answer { status: parts.status, headers: parts.headers, text }
    }
}

/// Somebody with a token.
#[derive(Clone)]
pub(crate) struct Client<'a> {
    pub(crate) api: &'a Api,
    base: String,
    pub(crate) token: String,
}

impl Client<'_> {
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let path = if path.starts_with("/api/") {
            path.to_owned()
        } else {
            format!("{}{path}", self.base)
        };
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.api.send(request.body(body.into()).expect("a request")).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path, &[("content-type", "application/json")], body.to_string())
            .await
    }

    pub(crate) async fn change(
        &self,
        method: Method,
        path: &str,
        if_match: Option<&str>,
        body: &Value,
    ) -> Answer {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(if_match.map(|tag| ("if-match", tag)));
        self.call(method, path, &headers, body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, &[], Body::empty()).await
    }

    /// The fake upstream as a server; gives its id.
    pub(crate) async fn connect(&self, name: &str) -> String {
        let body = json!({"name": name, "upstream_url": self.api.upstream.url()});
        let made = self.post("/servers", &body).await.must(201).json();
        made["id"].as_str().expect("an id").to_owned()
    }
}
