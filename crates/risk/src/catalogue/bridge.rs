//! The command that puts a public stdio-to-HTTP bridge in front of a server that only speaks stdio.
//! The end-to-end tests run it as it is shown.

use serde::Serialize;

use super::ServerEntry;

/// Where the bridge listens: on this machine only.
const PORT: u16 = 8808;
/// The bridges, at the versions that the tests run; `e2e/` pins the same.
const NODE_BRIDGE: &str = "mcp-proxy@6.7.19";
const PYTHON_BRIDGE: &str = "mcp-proxy@0.13.0";

/// How to reach a stdio server over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BridgeCommand {
    /// What to run once before, if anything.
    pub install: Option<String>,
    /// Environment variables to set before, without values.
    pub env: Vec<String>,
    /// Starts bridge and server; listens on loopback only.
    pub command: String,
    /// Where the server answers then.
    pub upstream_url: String,
}

/// The bridge for a server that only speaks stdio; `None` for one that has an address. It is started
/// by the package runner that the server itself needs, so that nothing else has to be installed.
pub fn bridge_command(entry: &ServerEntry) -> Option<BridgeCommand> {
    let server = entry.stdio_command.as_deref()?;
    let command = if server.starts_with("uvx ") {
        format!("uvx {PYTHON_BRIDGE} --port {PORT} --pass-environment -- {server}")
    } else {
        format!("npx -y {NODE_BRIDGE} --host 127.0.0.1 --port {PORT} -- {server}")
    };
    Some(BridgeCommand {
        install: entry.stdio_install.clone(),
        env: entry.stdio_env.clone(),
        command,
        upstream_url: format!("http://127.0.0.1:{PORT}/mcp"),
    })
}
