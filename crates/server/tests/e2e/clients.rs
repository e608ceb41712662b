//! Real MCP clients (TypeScript and Python SDK) through the binary to real MCP servers: what a
//! newcomer's agent sees when its tool is capped.

use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sluice_testkit::db::FreshDatabase;
use sluice_testkit::{RedisServer, Setup};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::world::{
    Upstream, Workspace, client, e2e, node, python_client, setup, step,
    ten_pass_and_the_eleventh_is_refused, text, typescript,
};

/// Every SDK calls a capped tool eleven times; the workspace's log says why the eleventh was refused.
async fn the_cap_holds_for_each_sdk(workspace: &Workspace<'_>) {
    let upstream = Upstream::python().await;
    let server = workspace.connect("python-sandbox", &upstream.url).await;
    let policy = workspace.limit(&server, "executePython").await;
    let code = json!({ "code": "print(1)" });
    let clients = [
        ("typescript", typescript("executePython", &code, 11)),
        ("python", python_client("auto", "executePython", &code, 11)),
        ("python-legacy", python_client("legacy", "executePython", &code, 11)),
    ];
    for (label, command) in clients {
        let token = workspace.grant(&server, label, &policy).await;
        let lines = client(command, &server, &token).await;
        assert_eq!(step(&lines, "list")[0]["tools"], json!(["executePython"]), "{label}");
        ten_pass_and_the_eleventh_is_refused(&lines, "executePython", &policy);
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
    let sluice = setup().serve().await;
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
    let first = setup()
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
    let sluice = setup().serve().await;
    let workspace = Workspace::new(&sluice).await;
    let server = workspace.connect("python-sandbox", &upstream.url).await;
    let document = json!({
        "version": "1", "default": "deny", "hide": ["delete_*"],
        "tools": { "reached_counts": {}, "delete_file": {}, "list_files": {} }
    });
    let policy = workspace.policy(&server, "reader", document).await;
    let token = workspace.grant(&server, "agent", &policy).await;

    let hidden = typescript("delete_file", &json!({ "path": "a" }), 1);
    let lines = client(hidden, &server, &token).await;
    assert_eq!(step(&lines, "list")[0]["tools"], json!(["list_files", "reached_counts"]));
    let call = step(&lines, "call")[0];
    assert_eq!(call["is_error"], true);
    assert_eq!(call["meta"]["dev.sluice/decision"]["code"], "unknown_tool");

    let denied = python_client("auto", "executePython", &json!({ "code": "1" }), 1);
    let lines = client(denied, &server, &token).await;
    let call = step(&lines, "call")[0];
    assert_eq!(call["meta"]["dev.sluice/decision"]["code"], "default_deny");

    let counts = typescript("reached_counts", &json!({}), 1);
    let lines = client(counts, &server, &token).await;
    let reached: Value =
        serde_json::from_str(text(&step(&lines, "call")[0]["text"])).expect("JSON");
    assert_eq!(reached, json!({ "executePython": 0, "list_files": 0, "delete_file": 0 }));
    sluice.stop().await;
}

/// The same on the reference server: with its policy wide open it works as without Sluice, and under a
/// limit the eleventh call is refused.
#[tokio::test]
async fn server_everything_works_through_the_proxy_until_its_limit() {
    let upstream = Upstream::everything().await;
    let sluice = setup().serve().await;
    let workspace = Workspace::new(&sluice).await;
    let server = workspace.connect("everything", &upstream.url).await;
    let limit = json!({ "counter": "echo_rate", "window": "minute", "max": 10 });
    let open = json!({ "version": "1", "default": "allow" });
    let capped =
        json!({ "version": "1", "default": "deny", "tools": { "echo": { "limits": [limit] } } });
    let open = workspace.policy(&server, "open", open).await;
    let capped = workspace.policy(&server, "capped", capped).await;
    let message = json!({ "message": "hi" });
    for (sdk, command) in [
        ("typescript", typescript as fn(&str, &Value, u32) -> _),
        ("python", |tool, args, times| python_client("auto", tool, args, times)),
    ] {
        let token = workspace.grant(&server, &format!("{sdk} open"), &open).await;
        let lines = client(command("echo", &message, 2), &server, &token).await;
        let calls = step(&lines, "call");
        assert!(step(&lines, "list")[0]["tools"].as_array().is_some_and(|all| all.len() > 5));
        assert_eq!(calls.len(), 2);
        assert!(calls.iter().all(|call| call["text"] == "Echo: hi"), "{lines:#?}");

        let token = workspace.grant(&server, &format!("{sdk} capped"), &capped).await;
        let lines = client(command("echo", &message, 11), &server, &token).await;
        assert_eq!(step(&lines, "list")[0]["tools"], json!(["echo"]), "{sdk}");
        ten_pass_and_the_eleventh_is_refused(&lines, "echo", &capped);
    }
    sluice.stop().await;
}
