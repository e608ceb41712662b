//! A workspace behind the router.

use std::sync::Arc;

use axum::Router;
use sluice_api::ApiState;
use sluice_control::{Bounds, Control, ControlParts, ControlSettings, Provider, Signup};
use sluice_dashboard::DashboardState;
use sluice_limits::Counters;
use sluice_store::Db;
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, TestClock};
use sluice_upstream::{Mailer, Upstream, UpstreamOptions};
use sluice_vault::{Passwords, Vault, generate_master_key};
use sluice_web::{WebSettings, WebState, wrap};

use crate::browser::Browser;

/// One installation.
pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) db: Db,
    pub(crate) counters: Counters,
    pub(crate) clock: TestClock,
    pub(crate) upstream: FakeServer,
    pub(crate) control: Control,
    pub(crate) vault: Arc<Vault>,
    pub(crate) fresh: FreshDatabase,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = TestClock::at("2026-11-30T12:00:00Z");
        let counters = Counters::in_memory(clock.function());
        Self::with(clock, counters).await
    }

    pub(crate) async fn with(clock: TestClock, counters: Counters) -> Self {
        Self::with_mailer(clock, counters, None).await
    }

    pub(crate) async fn with_mailer(
        clock: TestClock,
        counters: Counters,
        mailer: Option<Mailer>,
    ) -> Self {
        Self::on(FreshDatabase::sqlite(), clock, counters, mailer).await
    }

    pub(crate) async fn on(
        fresh: FreshDatabase,
        clock: TestClock,
        counters: Counters,
        mailer: Option<Mailer>,
    ) -> Self {
        Self::vouched(fresh, clock, counters, mailer, Vec::new()).await
    }

    /// With identity providers.
    pub(crate) async fn vouched(
        fresh: FreshDatabase,
        clock: TestClock,
        counters: Counters,
        mailer: Option<Mailer>,
        providers: Vec<Provider>,
    ) -> Self {
        let db = fresh.connect().await;
        let upstream = Upstream::new(UpstreamOptions { allow_private: true, ..Default::default() });
        let example = FakeServer::start().await;
        example.tools(vec![tool("executePython", "Execute Python code in a sandbox")]);
        let settings = ControlSettings {
            public_url: "http://localhost:8080".parse().expect("a URL"),
            proxy_public_url: "http://localhost:8080/".parse().expect("a URL"),
            signup: Signup::Open,
            example_url: Some(example.url().parse().expect("a URL")),
            bounds: wide(),
            providers,
        };
        let vault = Arc::new(Vault::from_keys(&generate_master_key("k1")).expect("a key"));
        let parts = ControlParts {
            db: db.clone(),
            vault: Arc::clone(&vault),
            upstream: Arc::new(upstream),
            counters: counters.clone(),
            mailer,
            passwords: Passwords::without_cost(),
            settings,
        };
        let control = Control::new(parts, clock.function());
        let web = WebState::new(
            control.clone(),
            WebSettings {
                public_url: "http://localhost:8080".parse().expect("a URL"),
                allowed_hosts: vec!["localhost".to_owned()],
                trusted_proxies: Vec::new(),
            },
        );
        // As the binary serves them.
        let router = sluice_api::router(ApiState { web: web.clone() })
            .merge(sluice_dashboard::router(DashboardState::new(web.clone())));
        let router = wrap(router, &web);
        Self { router, db, counters, clock, upstream: example, control, vault, fresh }
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.router.clone())
    }

    /// A browser signed in with a workspace `acme`.
    pub(crate) async fn admin(&self) -> Browser {
        let mut browser = self.browser();
        browser.sign_up("ann@example.test").await;
        let made = browser.submit("/workspaces/new", &[("name", "Acme")]).await;
        assert_eq!(made.location(), "/w/acme/");
        browser
    }

    /// The same with the fake upstream connected; gives the server's path as well.
    pub(crate) async fn connected(&self) -> (Browser, String) {
        self.upstream.tools(vec![
            tool("executePython", "Execute Python code in a sandbox"),
            tool("read_file", "Read a file"),
            tool("delete_file", "Delete a file for ever"),
        ]);
        let mut browser = self.admin().await;
        let fields = [("name", "sandbox"), ("upstream_url", &self.upstream.url())];
        let answer = browser.submit("/w/acme/servers/new", &fields).await;
        let path = answer.location().to_owned();
        assert!(path.starts_with("/w/acme/servers/"), "{path}");
        (browser, path)
    }
}

/// Room for one of everything for each route.
fn wide() -> Bounds {
    let most = 2_000;
    Bounds {
        servers: most,
        api_tokens: most,
        open_invites: most,
        endpoints: most,
        members: most,
        ..Bounds::default()
    }
}
