//! Servers that only speak stdio, behind the very command that their catalogue page shows: run as it
//! stands there, connected at the address that stands beside it, called through the proxy.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use sluice_testkit::Sluice;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::world::{
    Workspace, client, e2e, node, setup, step, ten_pass_and_the_eleventh_is_refused, text,
    typescript,
};

const ADDRESS: &str = "127.0.0.1:8808";

/// What a server's page tells about its bridge.
async fn shown(sluice: &Sluice, slug: &str) -> Value {
    let path = format!("/tools/{slug}");
    let value = sluice.send(Method::GET, &format!("{path}.json"), &[], "").await.json();
    let bridge = value["bridge"].clone();
    let page = sluice.send(Method::GET, &path, &[("accept", "text/html")], "").await.text();
    let told = text(&bridge["command"]);
    assert!(page.contains(told), "`{told}` is not on the page");
    assert!(page.contains(text(&bridge["upstream_url"])), "the address is not on the page");
    bridge
}

/// A running bridge with the server behind it; it and its children end with the value.
struct Bridge {
    child: Child,
    said: File,
    _one_at_a_time: File,
}

impl Bridge {
    /// Runs a command line as a person's shell would, with `programs` on the path.
    async fn start(bridge: &Value, programs: &Path) -> Self {
        assert_eq!(bridge["upstream_url"], format!("http://{ADDRESS}/mcp"));
        // The port stands in the command, and other checkouts on this machine may test as well.
        let lock = std::env::temp_dir().join("sluice-test-8808.lock");
        let lock = File::create(lock).expect("a lock file can be made");
        lock.lock().expect("the lock is free some day");
        let taken = TcpStream::connect(ADDRESS).await.is_ok();
        assert!(!taken, "the tests need {ADDRESS}, where something else listens");
        let file = programs.join("said");
        let said = File::create(&file).expect("a file can be made");
        let inherited = std::env::var_os("PATH").expect("a path");
        let path = [e2e().join(".venv/bin"), programs.to_owned(), folder_of(&node())]
            .into_iter()
            .chain(std::env::split_paths(&inherited));
        let venv = e2e().join(".venv");
        let mut command = Command::new("sh");
        for name in bridge["env"].as_array().expect("a list") {
            command.env(text(name), "a value that only the server knows");
        }
        let child = command
            .args(["-c", text(&bridge["command"])])
            .current_dir(e2e())
            .env("PATH", std::env::join_paths(path).expect("a path"))
            .env("UV_TOOL_DIR", venv.join("uv-tools"))
            .env("UV_CACHE_DIR", venv.join("uv-cache"))
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("a second handle"))
            .stderr(said.try_clone().expect("a second handle"))
            .process_group(0)
            .spawn()
            .expect("a shell starts");
        let said = File::open(file).expect("the file is there");
        let mut bridge = Self { child, said, _one_at_a_time: lock };
        bridge.until(true).await;
        bridge
    }

    /// Waits until something listens there, or nothing any more.
    async fn until(&mut self, listens: bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
        while TcpStream::connect(ADDRESS).await.is_ok() != listens {
            let ended = self.child.try_wait().expect("the child can be asked");
            let dead = listens && ended.is_some();
            if dead || tokio::time::Instant::now() > deadline {
                let said = std::io::read_to_string(&self.said).unwrap_or_default();
                panic!(
                    "the bridge does not {}: {ended:?}\n{said}",
                    if listens { "start" } else { "end" }
                );
            }
            // Another process tells nobody that it listens.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn stop(mut self) {
        self.end_group();
        self.until(false).await;
    }

    fn end_group(&self) {
        if let Some(id) = self.child.id() {
            let group = format!("-{id}");
            std::process::Command::new("kill").args(["-TERM", "--", &group]).status().ok();
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.end_group();
    }
}

fn folder_of(program: &Path) -> std::path::PathBuf {
    program.parent().map(Path::to_owned).unwrap_or_default()
}

/// A program of this name that speaks stdio and offers one tool; what the two servers of the issue
/// install is not fetched by tests.
fn stand_in(programs: &TempDir, name: &str, tool: &str, variable: &str) {
    let file = programs.path().join(name);
    let script = format!(
        "#!/bin/sh\nexec '{}' '{}' {tool} {variable}\n",
        node().display(),
        e2e().join("stdio_server.mjs").display()
    );
    std::fs::write(&file, script).expect("a script can be written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("ours");
}

/// One server after the other, since their commands name one port.
#[tokio::test]
async fn a_stdio_server_is_capped_behind_the_command_that_its_page_shows() {
    let programs = tempfile::tempdir().expect("a temporary directory");
    stand_in(&programs, "smart-e2b", "executePython", "E2B_API_KEY");
    stand_in(&programs, "cowork-os", "execute_code", "");
    let sluice = setup().serve().await;
    let workspace = Workspace::new(&sluice).await;
    let python = json!({ "language": "python", "code": "print(1)" });
    for (slug, tool, arguments, answer) in [
        ("modelcontextprotocol-everything", "echo", json!({ "message": "hi" }), "Echo: hi"),
        ("modelcontextprotocol-time", "get_current_time", json!({ "timezone": "UTC" }), "UTC"),
        ("leghis-smart-e2b", "executePython", json!({ "code": "print(1)" }), "8 characters"),
        ("cowork-os-cowork-os", "execute_code", python, "8 characters"),
    ] {
        let bridge = shown(&sluice, slug).await;
        let running = Bridge::start(&bridge, programs.path()).await;
        let server = workspace.connect(slug, text(&bridge["upstream_url"])).await;
        let limit = json!({ "counter": format!("{}_rate", tool.to_lowercase()), "window": "minute", "max": 10 });
        let document =
            json!({ "version": "1", "default": "deny", "tools": { tool: { "limits": [limit] } } });
        let policy = match slug {
            "leghis-smart-e2b" | "cowork-os-cowork-os" => workspace.limit(&server, tool).await,
            _ => workspace.policy(&server, "capped", document).await,
        };
        let token = workspace.grant(&server, "agent", &policy).await;
        let lines = client(typescript(tool, &arguments, 11), &server, &token).await;
        assert!(text(&step(&lines, "call")[0]["text"]).contains(answer), "{slug}: {lines:#?}");
        ten_pass_and_the_eleventh_is_refused(&lines, tool, &policy);
        running.stop().await;
    }
    sluice.stop().await;
}

/// The variable that a page names is needed, and reaches the server through the bridge.
#[tokio::test]
async fn a_stdio_server_without_its_variable_does_not_start() {
    let output = Command::new(node())
        .args(["stdio_server.mjs", "executePython", "E2B_API_KEY"])
        .current_dir(e2e())
        .env_remove("E2B_API_KEY")
        .stdin(Stdio::null())
        .output()
        .await
        .expect("node starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E2B_API_KEY"));
}
