//! A workspace with one of everything, and the names that examples give it.

use chrono::TimeDelta;
use regex::Regex;
use serde_json::{Value, json};
use sluice_domain::{
    ApprovalId, CallId, CallRecord, CallTiming, Code, Outcome, ReservationId, Role, WorkspaceId,
};
use sluice_store::approvals::{self, NewApproval};
use sluice_store::{calls, users, workspaces};
use sluice_vault::Place;

use crate::common::{Answer, Api, Client};

/// Stands in examples for the upstream on this machine.
const URL: &str = "https://mcp.example.com/mcp";
const HASH: &str = "f3a1c0de5b7e4a1f9c2d8e6b0a7f4c3d2e1b0a9f8c7d6e5b4a3f2c1d0e9b8a7f";

/// One of everything.
pub(super) struct Scene<'a> {
    pub(super) admin: Client<'a>,
    /// By kind, what stands for `{id}`.
    things: Vec<(&'static str, String)>,
    /// What is shown, and what it is here.
    names: Vec<(String, String)>,
}

fn shown(number: usize) -> String {
    format!("019a0000-0000-7000-8000-{number:012x}")
}

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("no id: {value}")).to_owned()
}

impl<'a> Scene<'a> {
    pub(super) async fn new(api: &'a Api) -> Self {
        let admin = api.admin().await;
        let server = admin.connect("sandbox").await;
        admin.post(&format!("/servers/{server}/refresh"), &Value::Null).await.must(200);
        let tools = admin.get(&format!("/servers/{server}/tools/read_file")).await.must(200).json();
        let limits = json!([{"counter": "reads", "window": "hour", "max": 100, "scope": "grant"}]);
        let document =
            json!({"version": "1", "default": "deny", "tools": {"read_file": {"limits": limits}}});
        let policy = json!({"name": "reading", "document": document});
        let policy =
            id(&admin.post(&format!("/servers/{server}/policies"), &policy).await.must(201).json());
        let grant = json!({"label": "agent", "policy_id": policy});
        let grant =
            id(&admin.post(&format!("/servers/{server}/grants"), &grant).await.must(201).json());
        let mut scene = Self { admin, things: Vec::new(), names: Vec::new() };
        scene.names.push((URL.to_owned(), api.upstream.url()));
        scene
            .names
            .push((HASH.to_owned(), tools["definition_hash"].as_str().expect("a hash").to_owned()));
        scene.thing("servers", server);
        scene.thing("policies", policy);
        scene.thing("grants", grant);
        scene.made_past_the_api(api).await;
        scene.rest(api).await;
        scene
    }

    fn thing(&mut self, kind: &'static str, id: String) {
        self.names.push((shown(self.names.len() - 1), id.clone()));
        self.things.push((kind, id));
    }

    fn of(&self, kind: &str) -> String {
        let found = self.things.iter().find(|(one, _)| *one == kind);
        found.unwrap_or_else(|| panic!("there is no {kind}")).1.clone()
    }

    async fn rest(&mut self, api: &Api) {
        let url = api.upstream.url();
        let endpoint = json!({"name": "hooks", "kind": "webhook", "url": url});
        let endpoint =
            id(&self.admin.post("/notification-endpoints", &endpoint).await.must(201).json());
        self.thing("notification-endpoints", endpoint);
        api.client("acme", "bob@example.test", Role::Viewer).await;
        let members = self.admin.get("/members").await.must(200).json();
        let items = members["items"].as_array().expect("members");
        let bob = items.iter().find(|one| one["email"] == "bob@example.test").expect("bob");
        self.thing("members", id(bob));
        let invite = json!({"email": "guest@example.test", "role": "viewer"});
        let invite = id(&self.admin.post("/invites", &invite).await.must(201).json());
        self.thing("invites", invite);
        let token = json!({"label": "old", "role": "viewer"});
        let token = id(&self.admin.post("/api-tokens", &token).await.must(201).json());
        self.thing("api-tokens", token);
    }

    async fn made_past_the_api(&mut self, api: &Api) {
        let mut tx = api.db.begin().await.expect("begins");
        let conn = &mut tx.conn();
        let workspace =
            workspaces::find_by_slug(conn, "acme").await.expect("reads").expect("is there").id;
        let ann = users::find_by_email(conn, "ann@example.test").await.expect("reads");
        users::set_verified(conn, ann.expect("is there").id, api.clock.now()).await.expect("notes");
        let mut parked = Vec::new();
        for digest in ["1", "2"] {
            let (new, sealed) = self.waiting(api, workspace);
            let new = NewApproval { arguments_digest: digest, sealed_arguments: &sealed, ..new };
            let id = new.id;
            approvals::create_or_join(conn, workspace, new, 99, api.clock.now())
                .await
                .expect("parks");
            parked.push(id.to_string());
        }
        let call = self.call(api, workspace);
        calls::insert_batch(conn, std::slice::from_ref(&call)).await.expect("logs");
        tx.commit().await.expect("commits");
        for id in parked {
            self.thing("approvals", id);
        }
        self.thing("calls", call.id.to_string());
    }

    fn waiting(&self, api: &Api, workspace: WorkspaceId) -> (NewApproval<'static>, Vec<u8>) {
        let (id, now) = (ApprovalId::new(), api.clock.now());
        let arguments = br#"{"path":"notes.txt"}"#;
        let sealed = api.vault.seal(Place::approval_arguments(workspace, id), arguments);
        let new = NewApproval {
            id,
            server: self.of("servers").parse().expect("an id"),
            grant: self.of("grants").parse().expect("an id"),
            grant_label: "agent",
            call: CallId::new(),
            tool: "delete_file",
            tool_hash: None,
            arguments_digest: "",
            sealed_arguments: &[],
            policy: self.of("policies").parse().expect("an id"),
            policy_version: 1,
            rule: "/tools/delete_file/approve_if/0",
            rules_digest: "rules",
            session: None,
            client_name: Some("claude-code"),
            reservation: Some(ReservationId::new()),
            demands: Some("[]"),
            approvers: &[],
            quorum: 1,
            self_allowed: true,
            hold_until: now + TimeDelta::seconds(50),
            expires_at: now + TimeDelta::minutes(30),
        };
        (new, sealed)
    }

    fn call(&self, api: &Api, workspace: WorkspaceId) -> CallRecord {
        CallRecord {
            id: CallId::new(),
            workspace,
            server: self.of("servers").parse().expect("an id"),
            grant: self.of("grants").parse().expect("an id"),
            grant_label: "agent".to_owned(),
            at: api.clock.now(),
            method: "tools/call".to_owned(),
            tool: Some("read_file".to_owned()),
            outcome: Outcome::Allowed,
            code: Code::Allowed,
            rule: String::new(),
            message: String::new(),
            policy: Some(self.of("policies").parse().expect("an id")),
            policy_version: Some(1),
            observed: false,
            counter: None,
            retry_after_s: None,
            arguments: Some(r#"{"path":"string"}"#.to_owned()),
            trace: Some("[]".to_owned()),
            client_name: Some("claude-code".to_owned()),
            protocol_version: Some("2025-06-18".to_owned()),
            session: None,
            client_address: Some("203.0.113.9".to_owned()),
            request_bytes: 142,
            response_bytes: 310,
            upstream_status: Some(200),
            timing: CallTiming {
                total_us: 8_412,
                limits_us: 310,
                approval_us: 0,
                upstream_us: 7_900,
            },
        }
    }

    /// The path of an operation, with what is really here.
    pub(super) fn path(&self, operation: &str, path: &str) -> String {
        let parts: Vec<&str> = path.split('/').collect();
        let kind = parts.iter().position(|part| *part == "{id}").map(|at| parts[at - 1]);
        let mut path =
            format!("/api/v1{}", path.replace("{ws}", "acme").replace("{tool}", "read_file"));
        path = path.replace("{version}", "2");
        if let Some(kind) = kind {
            // The first is approved, the second is denied.
            let second = self.things.iter().filter(|(one, _)| *one == kind).nth(1);
            let id = match (operation, second) {
                ("deny_approval" | "reveal_approval", Some((_, id))) => id.clone(),
                ("undo_recommended", _) => self.of("pressed"),
                ("remove_policy", _) => self.of("unused"),
                _ => self.of(kind),
            };
            path = path.replace("{id}", &id);
        }
        match operation {
            "delete_workspace" => path + "?confirm=acme",
            _ => path,
        }
    }

    /// Remembers what an operation made, for those that need it later.
    pub(super) fn keep(&mut self, operation: &str, answer: &Answer) {
        let kind = match operation {
            "test_endpoint" => "notification-deliveries",
            "list_exceptions" => "approval-exceptions",
            "save_log_filter" => "log-filters",
            "add_join_domain" => "join-domains",
            "apply_recommended" => "pressed",
            "create_policy" => "unused",
            _ => return,
        };
        let made = answer.json();
        let made = made.get("policy").or(made["items"].get(0)).unwrap_or(&made);
        self.thing(kind, id(made));
    }

    /// An example's text, with what is really here.
    pub(super) fn real(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real))
    }

    /// An answer's text as it stands in the document.
    pub(super) fn example(&mut self, text: &str) -> String {
        let mut text = self
            .names
            .iter()
            .fold(text.to_owned(), |text, (shown, real)| text.replace(real, shown));
        // As records of changes show it: they leave the path out.
        let cut = Regex::new(r"http://127\.0\.0\.1:\d+/…").expect("a pattern");
        text = cut
            .replace_all(&text, URL.replace("mcp.example.com/mcp", "mcp.example.com/…"))
            .into_owned();
        let ids = Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
            .expect("a pattern");
        while let Some(found) =
            ids.find_iter(&text).map(|found| found.as_str()).find(|id| !id.starts_with("019a0000"))
        {
            let (real, name) = (found.to_owned(), shown(self.names.len() - 1));
            text = text.replace(&real, &name);
            self.names.push((name, real));
        }
        let secrets =
            Regex::new("(slg_|slu_|whsec_|/join/)[A-Za-z0-9_+/=-]{20,}").expect("a pattern");
        secrets.replace_all(&text, "${1}…").into_owned()
    }
}

/// What differs from run to run is made the same.
pub(super) fn round(mut value: Value) -> Value {
    match &mut value {
        Value::Object(parts) => {
            for (name, part) in parts.iter_mut() {
                *part = match (name.as_str(), part.take()) {
                    ("last4", Value::String(_)) => "q7Xb".into(),
                    ("hash", Value::String(_)) => HASH.into(),
                    ("took_ms", Value::Number(_)) => 12.into(),
                    (_, other) => round(other),
                };
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| *part = round(part.take())),
        _ => {}
    }
    value
}
