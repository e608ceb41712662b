//! What the end-to-end tests share: a served workspace, its REST calls, and an agent that speaks MCP.

use ::http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use sluice_testkit::http::Answer;
use sluice_testkit::{Setup, Sluice};

/// A fresh installation of the binary under test.
pub(crate) fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_sluice"))
}

/// A running Sluice with one workspace and an admin's API token.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) sluice: Sluice,
    pub(crate) workspace: String,
    pub(crate) token: String,
}

/// A server with its grant, as the agent needs them.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    pub(crate) server: String,
    pub(crate) grant: String,
    pub(crate) token: String,
}

impl World {
    /// Starts from an empty database, as a script would.
    pub(crate) async fn start(setup: Setup) -> Self {
        let made = setup
            .json(&[
                "admin",
                "api-token",
                "--email",
                "ann@example.com",
                "--workspace",
                "acme",
                "--create",
                "--role",
                "admin",
            ])
            .await;
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let (workspace, token) = (text("workspace"), text("token"));
        assert!(token.starts_with("slu_"), "{token}");
        Self { sluice: setup.serve().await, workspace, token }
    }

    /// One REST call below `/api/v1`.
    pub(crate) async fn rest(&self, method: Method, path: &str, body: Value) -> Answer {
        self.rest_at(&self.sluice, method, path, body).await
    }

    /// The same through another replica.
    pub(crate) async fn rest_at(
        &self,
        at: &Sluice,
        method: Method,
        path: &str,
        body: Value,
    ) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("if-match", "*"),
        ];
        at.send(method, &format!("/api/v1{path}"), &headers, body).await
    }

    /// One REST call below the workspace that must answer `expected`.
    pub(crate) async fn must(
        &self,
        method: Method,
        path: &str,
        body: Value,
        expected: u16,
    ) -> Value {
        let path = format!("/workspaces/{}{path}", self.workspace);
        let answer = self.rest(method.clone(), &path, body).await;
        assert_eq!(answer.status.as_u16(), expected, "{method} {path}: {}", answer.text());
        if answer.body.is_empty() { Value::Null } else { answer.json() }
    }

    /// POSTs and expects 201.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        self.must(Method::POST, path, body, 201).await
    }

    /// Connects an upstream, reads its tools, and makes a grant with this policy.
    pub(crate) async fn connect(&self, name: &str, upstream: &str, document: Value) -> Connected {
        let server = self.create("/servers", json!({"name": name, "upstream_url": upstream})).await;
        let server = id(&server);
        self.must(Method::POST, &format!("/servers/{server}/refresh"), json!({}), 200).await;
        let body = json!({"name": "rules", "document": document});
        let policy = id(&self.create(&format!("/servers/{server}/policies"), body).await);
        let body = json!({"label": "agent", "policy_id": policy});
        let grant = self.create(&format!("/servers/{server}/grants"), body).await;
        let token = grant["token"].as_str().expect("a token").to_owned();
        Connected { server, grant: id(&grant), token }
    }

    /// A server whose tools are not read, with these settings, and an agent that may call any.
    pub(crate) async fn unread(&self, name: &str, settings: Value) -> Agent {
        let mut server =
            json!({"name": name, "transport": "streamable_http", "unknown_tools": "by_policy"});
        let all = server.as_object_mut().expect("an object");
        all.extend(settings.as_object().expect("an object").clone());
        let server = id(&self.create("/servers", server).await);
        let policy = json!({"name": "all", "document": {"version": "1", "default": "allow"}});
        let policy = id(&self.create(&format!("/servers/{server}/policies"), policy).await);
        let grant = json!({"label": name, "policy_id": policy});
        let grant = self.create(&format!("/servers/{server}/grants"), grant).await;
        let token = grant["token"].as_str().expect("a token").to_owned();
        Connected { server, grant: id(&grant), token }.agent()
    }

    /// The newest rows of the call log, once there are `count` of them.
    pub(crate) async fn calls(&self, query: &str, count: usize) -> Vec<Value> {
        let path = format!("/calls?limit=1000&{query}");
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            let page = self.must(Method::GET, &path, Value::Null, 200).await;
            let items = page["items"].as_array().expect("items").clone();
            if items.len() >= count {
                return items;
            }
            assert!(tokio::time::Instant::now() < deadline, "{} rows, not {count}", items.len());
            // Rows are written in batches, and nobody is told when.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

impl Connected {
    /// An agent that has the grant.
    pub(crate) fn agent(&self) -> Agent {
        Agent { path: format!("/mcp/{}", self.server), bearer: format!("Bearer {}", self.token) }
    }
}

/// The `id` of what a POST made.
pub(crate) fn id(made: &Value) -> String {
    made["id"].as_str().unwrap_or_else(|| panic!("no id: {made}")).to_owned()
}

/// A client that speaks MCP over plain HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) path: String,
    pub(crate) bearer: String,
}

impl Agent {
    /// Sends raw bytes.
    pub(crate) async fn post(&self, at: &Sluice, body: impl Into<bytes::Bytes>) -> Answer {
        let headers = [
            ("authorization", self.bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        at.send(Method::POST, &self.path, &headers, body).await
    }

    /// One request; the whole JSON-RPC answer.
    pub(crate) async fn rpc(&self, at: &Sluice, id: i64, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.post(at, request.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK, "{method}: {}", answer.text());
        assert!(!request_id(&answer.headers).is_empty(), "every answer has X-Request-Id");
        let json = answer.json();
        assert_eq!(json["id"], id, "{json}");
        json
    }

    /// Calls a tool; the JSON-RPC answer.
    pub(crate) async fn call(&self, at: &Sluice, tool: &str, arguments: Value) -> Value {
        self.rpc(at, 7, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The names in `tools/list`.
    pub(crate) async fn tools(&self, at: &Sluice) -> Vec<String> {
        let answer = self.rpc(at, 1, "tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().expect("a list").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }
}

/// The decision that a refused call carries.
pub(crate) fn decision(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["dev.sluice/decision"]
}

/// Whether the call reached the tool and came back well.
pub(crate) fn passed(answer: &Value) -> bool {
    answer["result"].is_object() && answer["result"]["isError"] != true
}

/// The `X-Request-Id` of an answer.
pub(crate) fn request_id(headers: &HeaderMap) -> &str {
    headers.get("x-request-id").and_then(|value| value.to_str().ok()).unwrap_or_default()
}
