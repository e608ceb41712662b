//! The whole path in a real browser, on the binary, with a real MCP server behind it. The script is
//! `e2e/browser.mjs`; what it finds wrong on any page fails the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::world::{Upstream, e2e, needed, node, setup};

/// Where screenshots are kept for a person to look at.
fn shots() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots")
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
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Value> =
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let faults: Vec<&Value> = lines.iter().filter(|line| line["step"] == "fault").collect();
    assert!(faults.is_empty(), "{faults:#?}\n{err}");
    assert!(output.status.success(), "{out}\n{err}\n{}", sluice.said());
    assert!(lines.iter().any(|line| line["step"] == "end"), "the script came to its end\n{out}");
    sluice.stop().await;
}
