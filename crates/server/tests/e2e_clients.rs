//! Real MCP clients (TypeScript and Python SDK) through the binary to real MCP servers: what a
//! newcomer's agent sees when its tool is capped.

use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::redis_server::{RedisServer, free_port};
use sluice_testkit::{Setup, Sluice};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The installed copy of `e2e/`, see `cargo xtask test`.
fn e2e() -> PathBuf {
    std::env::var_os("SLUICE_E2E")
        .map(PathBuf::from)
        .expect("SLUICE_E2E names the installed clients; run the tests by `cargo xtask test`")
}

fn node() -> PathBuf {
    std::env::var_os("SLUICE_TEST_NODE").map_or_else(|| "node".into(), PathBuf::from)
}

fn python() -> PathBuf {
    e2e().join(".venv/bin/python")
}

/// A real MCP server as a child process, waited for until its port answers.
struct Upstream {
    _child: Child,
    url: String,
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
        let listening = async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                // Another process tells nobody that it listens.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        let minute = std::time::Duration::from_mins(1);
        tokio::time::timeout(minute, listening).await.expect("the server listens within a minute");
        Self { _child: child, url: format!("http://127.0.0.1:{port}/mcp") }
    }

    async fn python() -> Self {
        let port = free_port();
        let mut command = Command::new(python());
        command.arg("python_server.py").arg(port.to_string());
        Self::start(command, port).await
    }

    async fn everything() -> Self {
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
struct Workspace<'a> {
    sluice: &'a Sluice,
    authorization: String,
}

impl<'a> Workspace<'a> {
    async fn new(sluice: &'a Sluice) -> Self {
        let arguments = ["admin", "api-token", "--email", "ann@example.com", "--workspace", "acme"];
        let more = ["--create", "--role", "admin"];
        let made = sluice.setup().json(&[&arguments[..], &more[..]].concat()).await;
        assert_eq!(made["workspace"], "acme");
        let token = made["token"].as_str().expect("a token is printed");
        Self { sluice, authorization: format!("Bearer {token}") }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let headers =
            [("authorization", self.authorization.as_str()), ("content-type", "application/json")];
        let path = format!("/api/v1/workspaces/acme{path}");
        let answer = self.sluice.send(Method::POST, &path, &headers, body.to_string()).await;
        assert!(answer.status.is_success(), "{path}: {} {}", answer.status, answer.text());
        answer.json()
    }

    async fn get(&self, path: &str) -> Value {
        let headers = [("authorization", self.authorization.as_str())];
        let path = format!("/api/v1/workspaces/acme{path}");
        let answer = self.sluice.send(Method::GET, &path, &headers, "").await;
        assert!(answer.status.is_success(), "{path}: {} {}", answer.status, answer.text());
        answer.json()
    }

    async fn connect(&self, name: &str, upstream: &str) -> Value {
        self.post("/servers", &json!({ "name": name, "upstream_url": upstream })).await
    }

    async fn grant(&self, server: &Value, label: &str, policy: &Value) -> String {
        let path = format!("/servers/{}/grants", text(&server["id"]));
        let made = self.post(&path, &json!({ "label": label, "policy_id": policy })).await;
        text(&made["token"]).to_owned()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

/// Runs a client script to its end and gives its lines.
async fn client(mut command: Command, proxy_url: &str, token: &str) -> Vec<Value> {
    let output = command
        .current_dir(e2e())
        .env("PROXY_URL", proxy_url)
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

fn typescript(tool: &str, arguments: &Value, times: u32) -> Command {
    let mut command = Command::new(node());
    command.args(["client.mjs", tool, &arguments.to_string(), &times.to_string()]);
    command
}

fn python_client(mode: &str, tool: &str, arguments: &Value, times: u32) -> Command {
    let mut command = Command::new(python());
    command.args(["client.py", tool, &arguments.to_string(), &times.to_string(), mode]);
    command
}

fn step<'a>(lines: &'a [Value], step: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["step"] == step).collect()
}

/// Ten calls pass, the eleventh is refused with the words and facts of the policy language.
fn ten_pass_and_the_eleventh_is_refused(lines: &[Value], policy: &Value) {
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
        format!(
            "[POLICY DENIED] executePython is limited to 10 calls a minute. Retry after {wait} s."
        )
    );
    assert_eq!(decision["code"], "rate_limited");
    assert_eq!(decision["rule"], "/tools/executePython/limits/0");
    assert_eq!(decision["counter"], "executepython_rate");
    assert_eq!(decision["policy"], policy["name"]);
    assert_eq!(decision["policy_version"], policy["version"]);
    assert_eq!(text(&decision["request_id"]).len(), 36);
    assert_eq!(step(lines, "end").len(), 1, "the client ended well");
}

/// Every SDK calls a capped tool eleven times; the workspace's log says why the eleventh was refused.
async fn the_cap_holds_for_each_sdk(workspace: &Workspace<'_>) {
    let upstream = Upstream::python().await;
    let server = workspace.connect("python-sandbox", &upstream.url).await;
    let tool = format!("/servers/{}/tools/executePython/apply-recommended", text(&server["id"]));
    let policy = workspace.post(&tool, &json!({ "rest": "deny" })).await["policy"].clone();
    let proxy_url = text(&server["proxy_url"]);
    let code = json!({ "code": "print(1)" });
    let clients = [
        ("typescript", typescript("executePython", &code, 11)),
        ("python", python_client("auto", "executePython", &code, 11)),
        ("python-legacy", python_client("legacy", "executePython", &code, 11)),
    ];
    for (label, command) in clients {
        let token = workspace.grant(&server, label, &policy["id"]).await;
        let lines = client(command, proxy_url, &token).await;
        assert_eq!(step(&lines, "list")[0]["tools"], json!(["executePython"]), "{label}");
        ten_pass_and_the_eleventh_is_refused(&lines, &policy);
    }
    let refused = workspace.get("/calls?code=rate_limited").await;
    let rows = refused["items"].as_array().expect("items");
    assert_eq!(rows.len(), 3, "{refused:#}");
    for row in rows {
        assert_eq!(row["tool"], "executePython");
        assert_eq!(row["rule"], "/tools/executePython/limits/0");
    }
}

#[tokio::test]
async fn the_eleventh_call_of_each_sdk_is_refused_and_the_log_says_why() {
    let sluice = Setup::new(env!("CARGO_BIN_EXE_sluice")).serve().await;
    the_cap_holds_for_each_sdk(&Workspace::new(&sluice).await).await;
    sluice.stop().await;
}

/// `e2e/balancer.mjs` before two replicas: each request of a session goes to the other one.
async fn balancer(replicas: [&Setup; 2]) -> (Child, String) {
    let mut command = Command::new(node());
    command.arg("balancer.mjs").args(replicas.map(|setup| setup.address().port().to_string()));
    command.current_dir(e2e()).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("the balancer starts");
    let out = child.stdout.take().expect("standard output is piped");
    let line = BufReader::new(out).lines().next_line().await.expect("it can be read");
    let said: Value = serde_json::from_str(&line.expect("it says a line")).expect("JSON");
    (child, text(&said["url"]).to_owned())
}

#[tokio::test]
async fn the_cap_holds_when_each_request_goes_to_another_replica() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let key: [u8; 32] = std::array::from_fn(|at| u8::try_from(at * 7).unwrap_or(1));
    let keys = format!("k1:{}", STANDARD.encode(key));
    let first = Setup::new(env!("CARGO_BIN_EXE_sluice"))
        .with("SLUICE_DATABASE_URL", database.url())
        .with("SLUICE_REDIS_URL", redis.url())
        .with("SLUICE_MASTER_KEYS", keys);
    let second = first.replica();
    let (_balancer, url) = balancer([&first, &second]).await;
    let first = first.with("SLUICE_PUBLIC_URL", &url).serve().await;
    let second = second.with("SLUICE_PUBLIC_URL", &url).serve().await;
    the_cap_holds_for_each_sdk(&Workspace::new(&first).await).await;
    first.stop().await;
    second.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn what_a_policy_denies_or_hides_is_refused_and_gone_from_the_list() {
    let upstream = Upstream::python().await;
    let sluice = Setup::new(env!("CARGO_BIN_EXE_sluice")).serve().await;
    let workspace = Workspace::new(&sluice).await;
    let server = workspace.connect("python-sandbox", &upstream.url).await;
    let document = json!({
        "version": "1", "default": "deny", "hide": ["delete_*"],
        "tools": { "reached_counts": {}, "delete_file": {}, "list_files": {} }
    });
    let path = format!("/servers/{}/policies", text(&server["id"]));
    let policy = workspace.post(&path, &json!({ "name": "reader", "document": document })).await;
    let token = workspace.grant(&server, "agent", &policy["id"]).await;
    let proxy_url = text(&server["proxy_url"]);

    let hidden = typescript("delete_file", &json!({ "path": "a" }), 1);
    let lines = client(hidden, proxy_url, &token).await;
    assert_eq!(step(&lines, "list")[0]["tools"], json!(["list_files", "reached_counts"]));
    let call = step(&lines, "call")[0];
    assert_eq!(call["is_error"], true);
    assert_eq!(call["meta"]["dev.sluice/decision"]["code"], "unknown_tool");

    let denied = python_client("auto", "executePython", &json!({ "code": "1" }), 1);
    let lines = client(denied, proxy_url, &token).await;
    let call = step(&lines, "call")[0];
    assert_eq!(call["meta"]["dev.sluice/decision"]["code"], "default_deny");

    let counts = typescript("reached_counts", &json!({}), 1);
    let lines = client(counts, proxy_url, &token).await;
    let reached: Value =
        serde_json::from_str(text(&step(&lines, "call")[0]["text"])).expect("JSON");
    assert_eq!(reached, json!({ "executePython": 0, "list_files": 0, "delete_file": 0 }));
    sluice.stop().await;
}

#[tokio::test]
async fn server_everything_works_through_the_proxy_as_without_it() {
    let upstream = Upstream::everything().await;
    let sluice = Setup::new(env!("CARGO_BIN_EXE_sluice")).serve().await;
    let workspace = Workspace::new(&sluice).await;
    let server = workspace.connect("everything", &upstream.url).await;
    let path = format!("/servers/{}/policies", text(&server["id"]));
    let document = json!({ "version": "1", "default": "allow" });
    let policy = workspace.post(&path, &json!({ "name": "open", "document": document })).await;
    let token = workspace.grant(&server, "agent", &policy["id"]).await;
    let message = json!({ "message": "hi" });
    for command in [typescript("echo", &message, 2), python_client("auto", "echo", &message, 2)] {
        let lines = client(command, text(&server["proxy_url"]), &token).await;
        let calls = step(&lines, "call");
        assert_eq!(calls.len(), 2);
        assert!(calls.iter().all(|call| call["text"] == "Echo: hi"), "{lines:#?}");
    }
    sluice.stop().await;
}
