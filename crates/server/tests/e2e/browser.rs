//! The whole path in a real browser, on the binary, with a real MCP server behind it. The scripts are
//! `e2e/browser.mjs`, `e2e/pages.mjs` and `e2e/inbox.mjs`; what they find wrong on any page fails the test.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use sluice_testkit::{Setup, Sluice};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::world::{Upstream, Workspace, e2e, needed, node, setup, text};

const TOOL: &str = "executePython";
const PASSWORD: &str = "a long enough password";

/// Where screenshots are kept for a person to look at.
fn shots() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots")
}

/// The script found nothing wrong, and ran to its last line.
fn came_to_its_end(output: &Output, sluice: &Sluice) {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> =
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let faults: Vec<&Value> = lines.iter().filter(|line| line["step"] == "fault").collect();
    assert!(faults.is_empty(), "{faults:#?}\n{err}");
    assert!(output.status.success(), "{out}\n{err}\n{}", sluice.said());
    assert!(lines.iter().any(|line| line["step"] == "end"), "the script came to its end\n{out}");
}

#[tokio::test]
async fn a_newcomer_caps_a_runaway_tool_in_the_browser() {
    let upstream = Upstream::python().await;
    let sluice = setup().serve().await;
    let output = Command::new(node())
        .arg("browser.mjs")
        .current_dir(e2e())
        .env("BASE", format!("http://localhost:{}", sluice.address().port()))
        .env("UPSTREAM", &upstream.url)
        .env("CHROMIUM", needed("SLUICE_TEST_CHROMIUM"))
        .env("SHOTS", shots())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("node starts");
    came_to_its_end(&output, &sluice);
    sluice.stop().await;
}

/// Gives a person a password to sign in with.
async fn let_in(sluice: &Sluice, email: &str) {
    let setting = ["admin", "reset-password", "--email", email, "--password-stdin"];
    let mut command = sluice.setup().command(setting);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(PASSWORD.as_bytes()).await.expect("it reads");
    drop(input);
    assert!(child.wait().await.expect("it ends").success());
}

/// A catalogue with a record whose names and texts nowhere break, and its pages.
async fn with_long_names() -> (Setup, [String; 4]) {
    let setup = setup();
    let name = format!("zebra_{}", "x".repeat(120));
    let record = json!({"server": {"name": format!("com.example/{}", "notes".repeat(20)), "version": "1.0.0",
            "title": "T".repeat(90), "description": "d".repeat(300),
            "remotes": [{"type": "streamable-http", "url": format!("https://mcp.example.com/{}", "p".repeat(150))}]},
        "tools": [{"name": name, "description": "Deletes".to_owned() + &"e".repeat(400),
            "inputSchema": {"type": "object", "properties": {"q".repeat(100): {"type": "string", "description": "w".repeat(200)}}}}]});
    let file = setup.data_dir().join("long.json");
    std::fs::create_dir_all(setup.data_dir()).expect("a folder");
    std::fs::write(&file, record.to_string()).expect("written");
    let output = setup.output(&["catalogue", "import", file.to_str().expect("UTF-8")]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let server = format!("/tools/com.example~{}", "notes".repeat(20));
    let tool = format!("{server}/{name}");
    (setup, [server, tool, "/tools?q=zebra".to_owned(), "/categories/write".to_owned()])
}

/// The pages are those that the router serves: a new one is looked at without being named anywhere.
#[tokio::test]
async fn every_page_is_sound_and_each_role_is_offered_what_it_may() {
    let upstream = Upstream::python().await;
    let (setup, long) = with_long_names().await;
    let sluice = setup.serve().await;
    let mut tokens = Vec::new();
    for (email, workspace, role) in [
        ("ann@example.com", "acme", "admin"),
        ("bob@example.com", "acme", "policy_manager"),
        ("cyd@example.com", "acme", "viewer"),
        ("eve@example.com", "other", "admin"),
    ] {
        let who = ["admin", "api-token", "--email", email, "--workspace", workspace];
        let made = sluice.setup().json(&[&who[..], &["--create", "--role", role]].concat()).await;
        tokens.push(text(&made["token"]).to_owned());
        let_in(&sluice, email).await;
    }
    let mut command = Command::new(node());
    // `SLUICE_DOCS_PICTURES=static` makes the handbook's pictures anew.
    if let Some(folder) = std::env::var_os("SLUICE_DOCS_PICTURES") {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        command.env("PICTURES", root.join(folder));
    }
    let output = command
        .arg("pages.mjs")
        .current_dir(e2e())
        .env("BASE", format!("http://localhost:{}", sluice.address().port()))
        .env("TOKEN", &tokens[0])
        .env("UPSTREAM", &upstream.url)
        .env("PASSWORD", PASSWORD)
        .env("PATHS", json!(sluice_dashboard::paths()).to_string())
        .env("LONG", json!(long).to_string())
        .env("CHROMIUM", needed("SLUICE_TEST_CHROMIUM"))
        .env("SHOTS", shots())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("node starts");
    came_to_its_end(&output, &sluice);
    sluice.stop().await;
}

#[tokio::test]
async fn an_approver_decides_calls_in_the_browser_and_they_are_released() {
    let upstream = Upstream::python().await;
    let sluice = setup().serve().await;
    let workspace = Workspace::new(&sluice).await;
    let server = workspace.connect("python-sandbox", &upstream.url).await;
    let document = json!({
        "version": "1", "default": "deny",
        "tools": { TOOL: { "approve_if": [{ "conditions": [] }], "approval": { "hold": "10m" } } },
    });
    let policy = workspace.policy(&server, "asks", document).await;
    let token = workspace.grant(&server, "agent", &policy).await;
    let_in(&sluice, "ann@example.com").await;
    let output = Command::new(node())
        .arg("inbox.mjs")
        .current_dir(e2e())
        .env("BASE", format!("http://localhost:{}", sluice.address().port()))
        .env("WORKSPACE", "acme")
        .env("EMAIL", "ann@example.com")
        .env("PASSWORD", PASSWORD)
        .env("PROXY_URL", text(&server["proxy_url"]))
        .env("TOKEN", token)
        .env("TOOL", TOOL)
        .env("CHROMIUM", needed("SLUICE_TEST_CHROMIUM"))
        .env("SHOTS", shots())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("node starts");
    came_to_its_end(&output, &sluice);
    // Everything that was done there stands in the approvals' histories.
    let all = workspace.get("/approvals").await;
    let mut seen = std::collections::BTreeSet::new();
    for approval in all["items"].as_array().expect("items") {
        let events = workspace.get(&format!("/approvals/{}/events", text(&approval["id"]))).await;
        let events = events["items"].as_array().expect("items").clone();
        seen.extend(events.iter().map(|event| text(&event["kind"]).to_owned()));
    }
    for kind in ["asked", "shown", "revealed", "approved", "denied", "released", "ran"] {
        assert!(seen.contains(kind), "no {kind} in {seen:?}");
    }
    sluice.stop().await;
}
