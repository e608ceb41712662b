//! Calls that a person is asked about, as real MCP clients see them with the time-outs that they come
//! with: the TypeScript SDK (both lines) and the Python SDK, in both eras of the protocol.

use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::{RedisServer, Setup};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::world::{Upstream, Workspace, e2e, node, python, setup, text};

const TOOL: &str = "executePython";

/// A client of an SDK; `opens`: it opens pages for its user.
fn sdk(name: &str, opens: bool) -> Command {
    let (program, script, how) = match name {
        "typescript-v1" => (node(), "approval.mjs", "v1"),
        "typescript-v2" => (node(), "approval.mjs", "v2"),
        "python" => (python(), "approval.py", "auto"),
        "python-legacy" => (python(), "approval.py", "legacy"),
        other => panic!("no such SDK: {other}"),
    };
    let mut command = Command::new(program);
    command.args([script, TOOL, how]).args(opens.then_some("opens"));
    command
}

const SDKS: [&str; 4] = ["typescript-v1", "typescript-v2", "python", "python-legacy"];

/// A running client, told by lines what to call.
struct Agent {
    name: String,
    _child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    async fn start(name: &str, opens: bool, server: &Value, token: &str) -> Self {
        let mut child = sdk(name, opens)
            .current_dir(e2e())
            .env("PROXY_URL", text(&server["proxy_url"]))
            .env("TOKEN", token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the client starts");
        let input = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut agent = Self { name: name.to_owned(), _child: child, input, lines };
        agent.next("ready").await;
        agent
    }

    /// Lets it call the tool; what came of that is a line.
    async fn call(&mut self, code: &str) {
        let line = format!("{}\n", json!({ "code": code }));
        self.input.write_all(line.as_bytes()).await.expect("it reads");
    }

    /// The next line, which must be of this step.
    async fn next(&mut self, step: &str) -> Value {
        let line = tokio::time::timeout(Duration::from_mins(2), self.lines.next_line());
        let line = line.await.unwrap_or_else(|_| panic!("{}: no {step} in two minutes", self.name));
        let line = line.expect("readable").unwrap_or_else(|| panic!("{}: it ended", self.name));
        let line: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(line["step"], step, "{}: {line}", self.name);
        assert!(line["failed"].is_null(), "{}: {line}", self.name);
        line
    }

    /// The call came through.
    async fn ran(&mut self) {
        let told = self.next("call").await;
        assert_eq!(told["is_error"], false, "{}: {told}", self.name);
        assert!(text(&told["text"]).starts_with("ran "), "{}: {told}", self.name);
    }
}

/// The grant's waiting approval, waited for.
async fn parked(workspace: &Workspace<'_>, grant: &str) -> String {
    loop {
        let pending = workspace.get("/approvals?status=pending").await;
        let items = pending["items"].as_array().expect("items");
        if let Some(one) = items.iter().find(|one| one["grant"]["label"] == grant) {
            return text(&one["id"]).to_owned();
        }
        // Another process tells nobody here that it parked a call.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn decide(workspace: &Workspace<'_>, id: &str, how: &str, note: &str) {
    workspace.post(&format!("/approvals/{id}/{how}"), &json!({ "note": note })).await;
}

/// `approve_if: []`, with nothing said about how: held as long as a rule holds by default.
fn asks() -> Value {
    json!({ "version": "1", "default": "deny", "tools": { TOOL: { "approve_if": [{ "conditions": [] }] } } })
}

async fn patiently(workspace: &Workspace<'_>, server: &Value, policy: &Value, name: &str) {
    let token = workspace.grant(server, name, policy).await;
    let mut agent = Agent::start(name, false, server, &token).await;

    // Nobody decides while it is held: it is told before its own patience ends.
    agent.call("1").await;
    let told = agent.next("call").await;
    assert_eq!(told["is_error"], true, "{name}: {told}");
    let seconds = told["seconds"].as_f64().expect("a number");
    assert!(seconds >= 45.0, "{name}: held for {seconds} s");
    let decision = &told["meta"]["dev.sluice/decision"];
    let id = text(&decision["approval"]["id"]).to_owned();
    assert_eq!(decision["code"], "approval_pending", "{name}");
    let words = text(&told["text"]);
    assert!(words.starts_with("[APPROVAL REQUIRED] ") && words.contains(&id), "{name}: {words}");
    assert!(text(&decision["approval"]["url"]).ends_with(&format!("/w/acme/approvals/{id}")));

    // Approved while nobody held it, the same call runs, once; then it is asked about anew.
    decide(workspace, &id, "approve", "").await;
    agent.call("1").await;
    agent.ran().await;
    let approval = workspace.get(&format!("/approvals/{id}")).await;
    assert_eq!(approval["status"], "used", "{name}");

    // Approved while it is held.
    agent.call("22").await;
    decide(workspace, &parked(workspace, name).await, "approve", "").await;
    agent.ran().await;

    // Denied while it is held, with a note.
    agent.call("333").await;
    decide(workspace, &parked(workspace, name).await, "deny", "Use the staging copy.").await;
    let told = agent.next("call").await;
    assert_eq!(told["is_error"], true, "{name}: {told}");
    assert_eq!(told["meta"]["dev.sluice/decision"]["code"], "approval_denied", "{name}");
    assert!(text(&told["text"]).contains("Use the staging copy."), "{name}: {told}");
}

async fn every_sdk(setup: Setup) {
    let (upstream, sluice) = (Upstream::python().await, setup.serve().await);
    let workspace = Workspace::new(&sluice).await;
    let server = workspace.connect("python-sandbox", &upstream.url).await;
    let policy = workspace.policy(&server, "asks", asks()).await;
    join_all(SDKS.map(|name| patiently(&workspace, &server, &policy, name))).await;
    let calls = loop {
        let calls = workspace.get("/calls?outcome=allowed&tool=executePython").await;
        let logged = calls["items"].as_array().expect("items").len();
        if logged >= 2 * SDKS.len() {
            break calls;
        }
        // The log is written a moment after the answer; the runner ends a test that waits for ever.
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(calls["items"].as_array().map(Vec::len), Some(8), "two runs each: {calls:#}");
    sluice.stop().await;
}

/// On both databases at once, since most of it is waiting.
#[tokio::test]
async fn every_sdk_waits_and_is_told_within_its_own_time_out_on_both_databases() {
    let (database, redis) = (FreshDatabase::postgres().await, RedisServer::start());
    let (at, redis_url) = (database.url().to_owned(), redis.url());
    let shared = setup().with("SLUICE_DATABASE_URL", at).with("SLUICE_REDIS_URL", redis_url);
    tokio::join!(every_sdk(setup()), every_sdk(shared));
    database.remove().await;
}

/// By the call's answer in the newest protocol, on the call's stream in the one before.
#[tokio::test]
async fn a_client_that_opens_pages_brings_up_the_approvers_page() {
    let (upstream, sluice) = (Upstream::python().await, setup().serve().await);
    let workspace = Workspace::new(&sluice).await;
    let server = workspace.connect("python-sandbox", &upstream.url).await;
    let policy = workspace.policy(&server, "asks", asks()).await;
    for name in SDKS {
        let token = workspace.grant(&server, name, &policy).await;
        let mut agent = Agent::start(name, true, &server, &token).await;
        agent.call("1").await;
        let page = agent.next("page").await;
        let id = parked(&workspace, name).await;
        assert_eq!(page["mode"], "url", "{name}");
        assert!(text(&page["url"]).ends_with(&format!("/w/acme/approvals/{id}")), "{name}: {page}");
        decide(&workspace, &id, "approve", "").await;
        if name == "typescript-v1" {
            agent.next("page-done").await;
        }
        agent.ran().await;
    }
    sluice.stop().await;
}
