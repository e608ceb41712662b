//! What the tests share: the installed programs, real upstreams, a workspace of the running binary, and
//! agents that call through the proxy.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use sluice_testkit::redis_server::free_port;
use sluice_testkit::{Setup, Sluice};
use tokio::process::{Child, Command};

/// What `cargo xtask test` names in the environment.
pub(crate) fn needed(variable: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    assert!(value.is_some(), "{variable} is not set; run the tests by `cargo xtask test`");
    value.map(PathBuf::from).unwrap_or_default()
}

/// The installed copy of `e2e/`.
pub(crate) fn e2e() -> PathBuf {
    needed("SLUICE_E2E")
}

pub(crate) fn node() -> PathBuf {
    needed("SLUICE_TEST_NODE")
}

pub(crate) fn python() -> PathBuf {
    e2e().join(".venv/bin/python")
}

/// A fresh installation of the binary under test.
pub(crate) fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_sluice"))
}

/// Waits until something listens on a port of this machine.
pub(crate) async fn listening(port: u16) {
    let listening = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            // Another process tells nobody that it listens.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_mins(1), listening).await;
    in_time.unwrap_or_else(|_| panic!("nothing listens on {port} within a minute"));
}

/// A real MCP server as a child process, waited for until its port answers.
#[derive(Debug)]
pub(crate) struct Upstream {
    _child: Child,
    pub(crate) url: String,
}

impl Upstream {
    async fn start(mut command: Command, port: u16) -> Self {
        let child = command
            .current_dir(e2e())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        listening(port).await;
        Self { _child: child, url: format!("http://127.0.0.1:{port}/mcp") }
    }

    /// A small Python server with an `executePython` tool.
    pub(crate) async fn python() -> Self {
        let port = free_port();
        let mut command = Command::new(python());
        command.arg("python_server.py").arg(port.to_string());
        Self::start(command, port).await
    }

    /// `@modelcontextprotocol/server-everything` in Streamable HTTP mode.
    pub(crate) async fn everything() -> Self {
        let port = free_port();
        let mut command = Command::new(node());
        command
            .arg("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
            .arg("streamableHttp")
            .env("PORT", port.to_string());
        Self::start(command, port).await
    }
}

/// A workspace of the running binary and its admin's token.
#[derive(Debug)]
pub(crate) struct Workspace<'a> {
    sluice: &'a Sluice,
    authorization: String,
}

impl<'a> Workspace<'a> {
    pub(crate) async fn new(sluice: &'a Sluice) -> Self {
        let arguments = ["admin", "api-token", "--email", "ann@example.com", "--workspace", "acme"];
        let more = ["--create", "--role", "admin"];
        let made = sluice.setup().json(&[&arguments[..], &more[..]].concat()).await;
        assert_eq!(made["workspace"], "acme");
        Self { sluice, authorization: format!("Bearer {}", text(&made["token"])) }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let headers =
            [("authorization", self.authorization.as_str()), ("content-type", "application/json")];
        let path = format!("/api/v1/workspaces/acme{path}");
        let answer = self.sluice.send(Method::POST, &path, &headers, body.to_string()).await;
        assert!(answer.status.is_success(), "{path}: {} {}", answer.status, answer.text());
        answer.json()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let headers = [("authorization", self.authorization.as_str())];
        let path = format!("/api/v1/workspaces/acme{path}");
        let answer = self.sluice.send(Method::GET, &path, &headers, "").await;
        assert!(answer.status.is_success(), "{path}: {} {}", answer.status, answer.text());
        answer.json()
    }

    /// Connects a server and reads its tools.
    pub(crate) async fn connect(&self, name: &str, upstream: &str) -> Value {
        let body = json!({ "name": name, "upstream_url": upstream });
        let server = self.post("/servers", &body).await;
        self.post(&format!("/servers/{}/refresh", text(&server["id"])), &json!({})).await;
        server
    }

    /// Writes a policy for a server.
    pub(crate) async fn policy(&self, server: &Value, name: &str, document: Value) -> Value {
        let path = format!("/servers/{}/policies", text(&server["id"]));
        self.post(&path, &json!({ "name": name, "document": document })).await
    }

    /// Applies the recommended rule of one tool; the rest is denied.
    pub(crate) async fn limit(&self, server: &Value, tool: &str) -> Value {
        let path = format!("/servers/{}/tools/{tool}/apply-recommended", text(&server["id"]));
        self.post(&path, &json!({ "rest": "deny" })).await["policy"].clone()
    }

    /// A token for an agent.
    pub(crate) async fn grant(&self, server: &Value, label: &str, policy: &Value) -> String {
        let path = format!("/servers/{}/grants", text(&server["id"]));
        let body = json!({ "label": label, "policy_id": policy["id"] });
        text(&self.post(&path, &body).await["token"]).to_owned()
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

/// Runs a client script to its end and gives its lines.
pub(crate) async fn client(mut command: Command, server: &Value, token: &str) -> Vec<Value> {
    let output = command
        .current_dir(e2e())
        .env("PROXY_URL", text(&server["proxy_url"]))
        .env("TOKEN", token)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the client starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the client failed\n{out}\n{err}");
    out.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// The TypeScript SDK.
pub(crate) fn typescript(tool: &str, arguments: &Value, times: u32) -> Command {
    let mut command = Command::new(node());
    command.args(["client.mjs", tool, &arguments.to_string(), &times.to_string()]);
    command
}

/// The Python SDK; `auto` begins with the newest protocol, `legacy` with the handshake.
pub(crate) fn python_client(mode: &str, tool: &str, arguments: &Value, times: u32) -> Command {
    let mut command = Command::new(python());
    command.args(["client.py", tool, &arguments.to_string(), &times.to_string(), mode]);
    command
}

/// The lines of one step.
pub(crate) fn step<'a>(lines: &'a [Value], step: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["step"] == step).collect()
}

/// Ten calls pass, the eleventh is refused with the words and facts of the policy language.
pub(crate) fn ten_pass_and_the_eleventh_is_refused(lines: &[Value], tool: &str, policy: &Value) {
    let calls = step(lines, "call");
    assert_eq!(calls.len(), 11, "{lines:#?}");
    for call in &calls[..10] {
        assert_eq!(call["is_error"], false, "{call:#}");
    }
    let refused = calls[10];
    assert_eq!(refused["is_error"], true, "{refused:#}");
    let decision = &refused["meta"]["dev.sluice/decision"];
    let wait = decision["retry_after_seconds"].as_u64().expect("a wait is told");
    assert!((1..=63).contains(&wait), "{wait}");
    assert_eq!(
        text(&refused["text"]),
        format!("[POLICY DENIED] {tool} is limited to 10 calls a minute. Retry after {wait} s.")
    );
    assert_eq!(decision["code"], "rate_limited");
    assert_eq!(decision["rule"], format!("/tools/{tool}/limits/0"));
    assert_eq!(decision["counter"], format!("{}_rate", tool.to_lowercase()));
    assert_eq!(decision["policy"], policy["name"]);
    assert_eq!(decision["policy_version"], policy["version"]);
    assert_eq!(text(&decision["request_id"]).len(), 36);
    assert_eq!(step(lines, "end").len(), 1, "the client ended well");
}
