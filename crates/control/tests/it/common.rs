//! A workspace with its people, on a fresh database, with a clock that stands still and a fake upstream.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use sluice_control::{
    Actor, Admin, Bounds, Connected, Control, ControlError, ControlParts, ControlSettings, Entry,
    LoggedIn, Origin, Permission, PolicyManager, Provider, ServerForm, SignUp, SignedUp, Signup,
    Viewer,
};
use sluice_domain::{Role, ServerId};
use sluice_limits::Counters;
use sluice_store::{Db, users};
use sluice_testkit::db::{FreshDatabase, FromFresh};
use sluice_testkit::mcp_server::tool;
use sluice_testkit::{FakeServer, TestClock, TlsFront};
use sluice_upstream::{Mailer, Upstream, UpstreamOptions};
use sluice_vault::{Passwords, Vault, generate_master_key};

pub(crate) const PASSWORD: &str = "a long enough password";

pub(crate) struct World {
    pub(crate) control: Control,
    pub(crate) clock: TestClock,
    pub(crate) counters: Counters,
    pub(crate) db: Db,
    pub(crate) vault: Arc<Vault>,
    /// The vault's keys.
    pub(crate) keys: SecretString,
    pub(crate) upstream: FakeServer,
}

impl FromFresh for World {
    async fn from_fresh(fresh: &FreshDatabase) -> Self {
        Self::with_signup(fresh.connect().await, Signup::Open).await
    }
}

pub(crate) fn secret(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

/// A login that asks for nothing more.
#[track_caller]
pub(crate) fn complete(entry: Entry) -> LoggedIn {
    entry.complete().expect("no second factor is asked for")
}

pub(crate) fn origin() -> Origin {
    Origin { address: "192.0.2.1".to_owned(), user_agent: "tests".to_owned() }
}

fn control(
    db: &Db,
    vault: &Arc<Vault>,
    counters: &Counters,
    clock: &TestClock,
    (signup, mailer, allow_private): (Signup, Option<Mailer>, bool),
) -> Control {
    let upstream = Upstream::new(UpstreamOptions { allow_private, ..Default::default() });
    let settings = ControlSettings {
        public_url: "http://localhost:8080".parse().expect("a URL"),
        proxy_public_url: "http://localhost:8080/".parse().expect("a URL"),
        signup,
        example_url: None,
        bounds: Bounds::default(),
        providers: Vec::new(),
    };
    let parts = ControlParts {
        db: db.clone(),
        vault: Arc::clone(vault),
        upstream: Arc::new(upstream),
        counters: counters.clone(),
        mailer,
        passwords: Passwords::without_cost(),
        settings,
    };
    Control::new(parts, clock.function())
}

impl World {
    /// The same database under other master keys, as after a restart.
    pub(crate) fn with_keys(&self, keys: &SecretString) -> Control {
        let vault = Arc::new(Vault::from_keys(keys).expect("a key"));
        control(&self.db, &vault, &self.counters, &self.clock, (Signup::Open, None, true))
    }

    pub(crate) async fn with_signup(db: Db, signup: Signup) -> Self {
        Self::with(db, signup, None, true).await
    }

    /// With mail, or with none; with private endpoints, or not.
    pub(crate) async fn with(
        db: Db,
        signup: Signup,
        mailer: Option<Mailer>,
        allow_private: bool,
    ) -> Self {
        let clock = TestClock::at("2026-11-30T12:00:00Z");
        let counters = Counters::in_memory(clock.function());
        Self::made(db, clock, counters, (signup, mailer, allow_private)).await
    }

    /// With counters that are kept elsewhere.
    pub(crate) async fn counting(db: Db, clock: TestClock, counters: Counters) -> Self {
        Self::made(db, clock, counters, (Signup::Open, None, true)).await
    }

    async fn made(
        db: Db,
        clock: TestClock,
        counters: Counters,
        (signup, mailer, allow_private): (Signup, Option<Mailer>, bool),
    ) -> Self {
        let keys = generate_master_key("k1");
        let vault = Arc::new(Vault::from_keys(&keys).expect("a key"));
        let control = control(&db, &vault, &counters, &clock, (signup, mailer, allow_private));
        Self { control, clock, counters, db, vault, keys, upstream: FakeServer::start().await }
    }

    /// Another process of the same installation, with its own settings and keys.
    pub(crate) fn beside(&self, vault: &Arc<Vault>, allow_private: bool) -> Control {
        let upstream = UpstreamOptions { allow_private, ..UpstreamOptions::default() };
        let parts = ControlParts {
            db: self.db.clone(),
            vault: Arc::clone(vault),
            upstream: Arc::new(Upstream::new(upstream)),
            counters: self.counters.clone(),
            mailer: None,
            passwords: Passwords::without_cost(),
            settings: self.control.settings().clone(),
        };
        Control::new(parts, self.clock.function())
    }

    /// The same installation with identity providers.
    pub(crate) fn vouched_by(&self, providers: Vec<Provider>) -> Control {
        let upstream = UpstreamOptions { allow_private: true, ..UpstreamOptions::default() };
        let parts = ControlParts {
            db: self.db.clone(),
            vault: Arc::clone(&self.vault),
            upstream: Arc::new(Upstream::new(upstream)),
            counters: self.counters.clone(),
            mailer: None,
            passwords: Passwords::without_cost(),
            settings: ControlSettings { providers, ..self.control.settings().clone() },
        };
        Control::new(parts, self.clock.function())
    }

    /// Another process, for which every name leads to `address`, and that to the front.
    pub(crate) fn leading(&self, front: &TlsFront, address: &'static str) -> Control {
        let to = front.address;
        let upstream = UpstreamOptions {
            allow_private: true,
            extra_roots: vec![front.authority.clone()],
            resolve: Some(Arc::new(|_| Ok(vec![address.parse().expect("an address")]))),
            dial: Some(Arc::new(move |_| to)),
        };
        let parts = ControlParts {
            db: self.db.clone(),
            vault: Arc::clone(&self.vault),
            upstream: Arc::new(Upstream::new(upstream)),
            counters: self.counters.clone(),
            mailer: None,
            passwords: Passwords::without_cost(),
            settings: self.control.settings().clone(),
        };
        Control::new(parts, self.clock.function())
    }

    pub(crate) async fn sign_up(&self, email: &str) -> Result<LoggedIn, ControlError> {
        self.sign_up_with(email, None).await
    }

    pub(crate) async fn sign_up_with(
        &self,
        email: &str,
        invite: Option<SecretString>,
    ) -> Result<LoggedIn, ControlError> {
        let form = SignUp {
            email: email.to_owned(),
            password: secret(PASSWORD),
            name: String::new(),
            invite: invite.clone(),
            next: String::new(),
        };
        match self.control.sign_up(form, &origin()).await? {
            SignedUp::In(entry) => Ok(complete(entry)),
            SignedUp::Mailed => self.settled(email, invite).await,
        }
    }

    /// Somebody whose account is as one was before mail was set up: open, and its address not confirmed.
    async fn settled(
        &self,
        email: &str,
        invite: Option<SecretString>,
    ) -> Result<LoggedIn, ControlError> {
        let mut tx = self.db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let user = users::find_by_email(conn, email).await.expect("answers").expect("there");
        users::set_settled(conn, user.id).await.expect("settles");
        tx.commit().await.expect("commits");
        let login = complete(self.control.log_in(email, secret(PASSWORD), &origin()).await?);
        if let Some(invite) = invite {
            self.control.accept_invite(&self.actor(&login).await, &invite).await?;
        }
        Ok(login)
    }

    pub(crate) async fn actor(&self, login: &LoggedIn) -> Actor {
        let found = self.control.who(login.token.expose_secret(), "192.0.2.1").await;
        found.expect("the store answers").expect("a live login")
    }

    /// Somebody with an account.
    pub(crate) async fn person(&self, email: &str) -> Actor {
        let login = self.sign_up(email).await.expect("signs up");
        self.actor(&login).await
    }

    /// A workspace of that name and its admin.
    pub(crate) async fn workspace(&self, name: &str, email: &str) -> Admin {
        let actor = self.person(email).await;
        let workspace = self.control.create_workspace(&actor, name).await.expect("makes it");
        self.control.enter(&actor, &workspace.slug).await.expect("its maker is an admin")
    }

    /// Another member.
    pub(crate) async fn member<P: Permission>(&self, admin: &Admin, email: &str, role: Role) -> P {
        let invited = self.control.invite(admin, email, role).await.expect("invites");
        let login = self.sign_up_with(email, Some(invited.token)).await.expect("joins");
        let actor = self.actor(&login).await;
        self.control.enter(&actor, &admin.slug).await.expect("may")
    }

    pub(crate) async fn manager(&self, admin: &Admin) -> PolicyManager {
        self.member(admin, "manager@example.test", Role::PolicyManager).await
    }

    pub(crate) async fn viewer(&self, admin: &Admin) -> Viewer {
        self.member(admin, "viewer@example.test", Role::Viewer).await
    }

    /// The fake upstream with three tools, connected under the name.
    pub(crate) async fn connect(&self, admin: &Admin, name: &str) -> Connected {
        self.upstream.tools(vec![
            tool("executePython", "Execute Python code in a sandbox"),
            tool("read_file", "Read a file"),
            tool("delete_file", "Delete a file for ever"),
        ]);
        let form = ServerForm {
            name: name.to_owned(),
            upstream_url: self.upstream.url(),
            ..Default::default()
        };
        self.control.connect(admin, form).await.expect("connects")
    }

    pub(crate) async fn server(&self, admin: &Admin) -> ServerId {
        self.connect(admin, "sandbox").await.server.id
    }
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, ControlError>) -> String {
    result.expect_err("refused").code().to_string()
}
