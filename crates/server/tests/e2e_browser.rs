//! The whole path in a real browser, on the binary, with a real MCP server behind it. The script is
//! `e2e/browser.mjs`; what it finds wrong on any page fails the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use sluice_testkit::Setup;
use sluice_testkit::redis_server::free_port;
use tokio::process::Command;

fn needed(variable: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    assert!(value.is_some(), "{variable} is not set; run the tests by `cargo xtask test`");
    value.map(PathBuf::from).unwrap_or_default()
}

/// Where screenshots are kept for a person to look at.
fn shots() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots")
}

#[tokio::test]
async fn a_newcomer_caps_a_runaway_tool_in_the_browser() {
    let e2e = needed("SLUICE_E2E");
    let port = free_port();
    let upstream = Command::new(e2e.join(".venv/bin/python"))
        .arg("python_server.py")
        .arg(port.to_string())
        .current_dir(&e2e)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the server starts");
    let listening = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            // Another process tells nobody that it listens.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let minute = Duration::from_mins(1);
    tokio::time::timeout(minute, listening).await.expect("the server listens within a minute");
    let sluice = Setup::new(env!("CARGO_BIN_EXE_sluice")).serve().await;
    let base = format!("http://localhost:{}", sluice.address().port());
    let output = Command::new(needed("SLUICE_TEST_NODE"))
        .arg("browser.mjs")
        .current_dir(&e2e)
        .env("BASE", base)
        .env("UPSTREAM", format!("http://127.0.0.1:{port}/mcp"))
        .env("CHROMIUM", needed("SLUICE_TEST_CHROMIUM"))
        .env("SHOTS", shots())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("node starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> =
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let faults: Vec<&Value> = lines.iter().filter(|line| line["step"] == "fault").collect();
    assert!(faults.is_empty(), "{faults:#?}\n{err}");
    assert!(output.status.success(), "{out}\n{err}\n{}", sluice.said());
    assert!(lines.iter().any(|line| line["step"] == "end"), "the script came to its end\n{out}");
    drop(upstream);
    sluice.stop().await;
}
