//! Two workspaces, everybody who asks, and one of everything to be asked for.

mod made;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use http::{Method, Request};
use http_body_util::BodyExt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sluice_control::operator::Operator;
use sluice_control::{Provider, ProviderKind};
use sluice_domain::{Role, WorkspaceId};
use sluice_limits::Counters;
use sluice_store::identities::{self, NewIdentity};
use sluice_store::passkeys::{self, NewPasskeyRow};
use sluice_store::{users, workspaces};
use sluice_testkit::TestClock;
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::mcp_server::tool;
use tower::ServiceExt;
use uuid::Uuid;

use super::probe::{Identity, Who};
use crate::browser::Browser;
use crate::world::World;

const DOCUMENT: &str = r#"{"version":"1","default":"deny"}"#;

/// One of everything, by the word that stands for it in a path or body.
#[derive(Debug, Clone)]
pub(super) struct Things(BTreeMap<&'static str, String>);

impl Things {
    /// The same names, and ids of nothing.
    pub(super) fn made_up(like: &Self) -> Self {
        let id = |(name, old): (&&'static str, &String)| {
            let is_id = Uuid::parse_str(old).is_ok();
            (*name, if is_id { Uuid::now_v7().to_string() } else { old.clone() })
        };
        Self(like.0.iter().map(id).collect())
    }

    pub(super) fn without_ids(&self, text: &str) -> String {
        let ids = self.0.iter().filter(|(_, value)| Uuid::parse_str(value).is_ok());
        ids.fold(text.to_owned(), |text, (name, value)| text.replace(value.as_str(), name))
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Puts real names and ids into a path or body.
    pub(super) fn fill(&self, path: &str, slug: &str) -> String {
        let of = [
            ("/servers/{id}", "server"),
            ("/policies/{id}", "policy"),
            ("/grants/{id}", "grant"),
            ("/logs/filters/{id}", "filter"),
            ("/log-filters/{id}", "filter"),
            ("/logs/{id}", "call"),
            ("/calls/{id}", "call"),
            ("/approvals/exceptions/{id}", "exception"),
            ("/approval-exceptions/{id}", "exception"),
            ("/approvals/{id}", "approval"),
            ("/members/{id}", "member"),
            ("/invites/{id}", "invite"),
            ("/api-tokens/{id}", "api_token"),
            ("/join-domains/{id}", "join_domain"),
            ("/endpoints/{id}", "endpoint"),
            ("/notification-endpoints/{id}", "endpoint"),
            ("/deliveries/{id}", "delivery"),
            ("/notification-deliveries/{id}", "delivery"),
            ("/account/sessions/{id}", "session"),
            ("/account/workspaces/{id}", "workspace"),
            ("/account/identities/{id}", "identity"),
            ("/account/passkeys/{id}", "passkey"),
        ];
        let of = of.iter().find(|(part, _)| path.contains(part));
        let mut out = path.replace("{ws}", slug);
        if let Some((_, name)) = of {
            out = out.replace("{id}", self.get(name));
        }
        for (name, value) in &self.0 {
            out = out.replace(&format!("{{{name}}}"), value);
        }
        for (name, value) in [
            ("{tool}", "executePython"),
            ("{version}", "1"),
            ("{token}", "made-up"),
            ("{severity}", "critical"),
            ("{category}", "execute"),
            ("{slug}", "made-up"),
            ("{page}", "api"),
            ("{name}", "made-up"),
            ("{part}", "made-up"),
            ("{provider}", "acme"),
        ] {
            out = out.replace(name, value);
        }
        out
    }
}

/// Everything that the routes are tried on.
pub(super) struct Scene {
    pub(super) world: World,
    /// What was there first: it stays, whoever asks.
    pub(super) first: Things,
    /// What the next change is tried on.
    pub(super) spare: Things,
    operator: Operator,
    people: Vec<(Who, Identity)>,
    made: u32,
}

impl Scene {
    pub(super) async fn new(fresh: FreshDatabase) -> Self {
        let clock = TestClock::at("2026-11-30T12:00:00Z");
        let counters = Counters::in_memory(clock.function());
        let world = World::vouched(fresh, clock, counters, None, vec![provider()]).await;
        world.upstream.tools(vec![tool("executePython", "Execute Python code in a sandbox")]);
        let vault = std::sync::Arc::clone(&world.vault);
        let operator = Operator::new(world.db.clone(), vault, world.clock.function());
        let first = Things(BTreeMap::new());
        let spare = first.clone();
        let mut scene = Self { world, first, spare, operator, people: Vec::new(), made: 0 };
        scene.people().await;
        let mut things = scene.things().await;
        scene.of_the_account(&mut things).await;
        scene.first = things;
        scene.spare = scene.things().await;
        scene
    }

    pub(super) fn identity(&self, who: Who) -> Identity {
        let who = if who == Who::Foreign { Who::Stranger } else { who };
        let found = self.people.iter().find(|(one, _)| *one == who);
        found.map(|(_, identity)| identity.clone()).unwrap_or_default()
    }

    async fn member(&mut self, email: &str, workspace: &str, role: Role) -> (Browser, Identity) {
        let mut browser = self.world.browser();
        browser.sign_up(email).await;
        let made = self.operator.api_token(email, workspace, role, true).await.expect("a token");
        let token = made.token.expose_secret().to_owned();
        let csrf = browser.get("/account").await.value("csrf");
        let pairs = browser.cookies().into_iter().map(|(name, value)| format!("{name}={value}"));
        let cookies = pairs.collect::<Vec<_>>().join("; ");
        (browser, Identity { cookies, csrf, token })
    }

    async fn people(&mut self) {
        // A session and a token whose time is over before the others begin.
        let (_, expired) = self.member("ann@example.test", "acme", Role::Admin).await;
        let body = json!({"label": "short", "role": "admin", "expires_at": "2026-11-30T13:00:00Z"});
        let made = self.rest(&expired.token, Method::POST, "/api-tokens", &body).await;
        let token = made["token"].as_str().expect("a token").to_owned();
        self.people.push((Who::Expired, Identity { token, ..expired }));
        self.world.clock.advance(TimeDelta::days(61));
        for (who, email, workspace, role) in [
            (Who::Admin, "ada@example.test", "acme", Role::Admin),
            (Who::Manager, "max@example.test", "acme", Role::PolicyManager),
            (Who::Viewer, "vera@example.test", "acme", Role::Viewer),
            (Who::Stranger, "bob@example.test", "other", Role::Admin),
        ] {
            let (_, identity) = self.member(email, workspace, role).await;
            self.people.push((who, identity));
        }
        let (mut browser, mut ended) = self.member("eve@example.test", "acme", Role::Admin).await;
        browser.submit_to("/account", "/logout", &[]).await;
        let body = json!({"label": "gone", "role": "admin"});
        let made = self.rest(&ended.token, Method::POST, "/api-tokens", &body).await;
        let path = format!("/api-tokens/{}", id(&made));
        self.rest(&ended.token, Method::DELETE, &path, &Value::Null).await;
        made["token"].as_str().expect("a token").clone_into(&mut ended.token);
        self.people.push((Who::Ended, ended));
    }

    /// An answer of the API, which must be a good one.
    async fn rest(&self, token: &str, method: Method, path: &str, body: &Value) -> Value {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1/workspaces/acme{path}"))
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"))
            .body(axum::body::Body::from(body.to_string()))
            .expect("a request");
        let answer = self.world.router.clone().oneshot(request).await.expect("infallible");
        let status = answer.status();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// One of everything, made anew.
    pub(super) async fn things(&mut self) -> Things {
        self.made += 1;
        let (n, token) = (self.made, self.identity(Who::Admin).token);
        let post =
            async |path: String, body: Value| self.rest(&token, Method::POST, &path, &body).await;
        let url = self.world.upstream.url();
        let server = post("/servers".into(), json!({"name": format!("s{n}"), "upstream_url": url}));
        let server = id(&server.await);
        let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let policy = json!({"name": "p", "document": document});
        let policy = id(&post(format!("/servers/{server}/policies"), policy).await);
        let grant = json!({"label": "g", "policy_id": policy});
        let grant = id(&post(format!("/servers/{server}/grants"), grant).await);
        let invite = json!({"email": format!("guest{n}@example.test"), "role": "viewer"});
        let invite = id(&post("/invites".into(), invite).await);
        let api_token = post("/api-tokens".into(), json!({"label": "t", "role": "viewer"})).await;
        let endpoint = json!({"name": format!("e{n}"), "kind": "webhook", "url": url});
        let endpoint = id(&post("/notification-endpoints".into(), endpoint).await);
        let delivery = post(format!("/notification-endpoints/{endpoint}/test"), json!({})).await;
        let email = format!("member{n}@example.test");
        self.operator.api_token(&email, "acme", Role::Viewer, true).await.expect("a member");
        let member = self.member_id(&email).await;
        let of = (read(&server), read(&grant), read(&policy));
        let workspace = self.workspace().await;
        let approval = self.park(workspace, of, n).await;
        let let_through = self.park(workspace, of, n + 100_000).await;
        let path = format!("/approvals/{let_through}/approve");
        post(path, json!({"allow_for": "10m"})).await;
        let exceptions = self.rest(&token, Method::GET, "/approval-exceptions", &json!({})).await;
        let exception = id(&exceptions["items"][0]);
        let call = self.call(workspace, of).await;
        let filter = self.filter(workspace, n).await;
        let join_domain = self.join_domain(workspace, n).await;
        Things(BTreeMap::from([
            ("server", server),
            ("policy", policy),
            ("grant", grant),
            ("invite", invite),
            ("api_token", id(&api_token)),
            ("endpoint", endpoint),
            ("delivery", id(&delivery)),
            ("member", member),
            ("approval", approval.to_string()),
            ("exception", exception),
            ("call", call.to_string()),
            ("filter", filter),
            ("join_domain", join_domain),
            ("url", url),
            ("n", n.to_string()),
            ("session", self.first.get("session").to_owned()),
            ("workspace", self.first.get("workspace").to_owned()),
            ("identity", self.first.get("identity").to_owned()),
            ("passkey", self.first.get("passkey").to_owned()),
        ]))
    }

    /// Another login of the admin, and a workspace of theirs that was deleted.
    async fn of_the_account(&mut self, things: &mut Things) {
        let mut browser = self.world.browser();
        let fields = [("email", "ada@example.test"), ("password", crate::browser::PASSWORD)];
        browser.submit("/login", &fields).await;
        let cookies = self.identity(Who::Admin).cookies;
        let mut page = self.world.browser();
        let pairs = cookies.split("; ").filter_map(|pair| pair.split_once('='));
        page.set_cookies(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect());
        let body = page.get("/account").await.body;
        let session = body.split("/account/sessions/").filter_map(|rest| rest.split('/').next());
        let session = session.filter(|id| Uuid::parse_str(id).is_ok()).last();
        things.0.insert("session", session.expect("another session").to_owned());
        page.submit("/workspaces/new", &[("name", "Gone")]).await;
        let typed = [("confirm", "gone")];
        page.submit_to("/w/gone/settings", "/w/gone/settings/delete", &typed).await;
        let body = page.get("/account").await.body;
        let mut gone = body.split("/account/workspaces/").skip(1);
        let gone = gone.next().and_then(|rest| rest.split('/').next()).expect("a deleted one");
        things.0.insert("workspace", gone.to_owned());
        things.0.insert("identity", self.identity_of("ada@example.test").await);
        things.0.insert("passkey", self.passkey_of("ada@example.test").await);
    }

    /// Links somebody to a provider; gives the link's id.
    async fn identity_of(&self, email: &str) -> String {
        let mut tx = self.world.db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let user = users::find_by_email(conn, email).await.expect("reads").expect("is there").id;
        let new = NewIdentity { user, issuer: "https://id.example", subject: "1", email };
        identities::create(conn, new, self.world.clock.now()).await.expect("links");
        let all = identities::list(conn, user).await.expect("lists");
        tx.commit().await.expect("commits");
        all[0].id.to_string()
    }

    /// A passkey of somebody; gives its id.
    async fn passkey_of(&self, email: &str) -> String {
        let mut tx = self.world.db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let user = users::find_by_email(conn, email).await.expect("reads").expect("is there").id;
        let new = NewPasskeyRow {
            user,
            credential: b"credential",
            algorithm: -7,
            public_key: b"key",
            counter: 0,
            name: "Phone",
            backed_up: false,
        };
        let made = passkeys::create(conn, new, self.world.clock.now()).await.expect("keeps");
        tx.commit().await.expect("commits");
        made.expect("nobody has it").to_string()
    }

    async fn workspace(&self) -> WorkspaceId {
        let mut tx = self.world.db.read().await.expect("reads");
        let found = workspaces::find_by_slug(&mut tx.conn(), "acme").await.expect("reads");
        found.expect("is there").id
    }

    async fn member_id(&self, email: &str) -> String {
        let token = self.identity(Who::Admin).token;
        let all = self.rest(&token, Method::GET, "/members?limit=500", &Value::Null).await;
        let items = all["items"].as_array().expect("items");
        let found = items.iter().find(|item| item["email"] == email).expect("a member");
        found["user_id"].as_str().or(found["id"].as_str()).expect("an id").to_owned()
    }

    /// What was there first is as it was: nobody who may not has changed it.
    pub(super) async fn is_untouched(&self) {
        let made = self.operator.api_token("ann@example.test", "acme", Role::Admin, true).await;
        let token = made.expect("a token").token.expose_secret().to_owned();
        let get = async |path: String| self.rest(&token, Method::GET, &path, &Value::Null).await;
        let id = |name: &str| self.first.get(name).to_owned();
        assert_eq!(get(format!("/servers/{}", id("server"))).await["name"], "s1");
        assert_eq!(get(format!("/policies/{}", id("policy"))).await["version"], 1);
        let grant = get(format!("/grants/{}", id("grant"))).await;
        assert!(grant["revoked_at"].is_null(), "{grant}");
        let approval = get(format!("/approvals/{}", id("approval"))).await;
        assert_ne!(approval["status"], "denied", "{approval}");
    }
}

/// A provider where nobody answers.
fn provider() -> Provider {
    Provider {
        name: "acme".to_owned(),
        label: "Acme".to_owned(),
        kind: ProviderKind::Oidc,
        issuer: "http://127.0.0.1:1".to_owned(),
        client_id: "us".to_owned(),
        client_secret: SecretString::from("secret"),
    }
}

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("no id: {value}")).to_owned()
}

fn read<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().expect("an id")
}
