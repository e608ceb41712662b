//! Configurations to paste into MCP clients, with the proxy URL and the token filled in.

use askama::Template;
use serde_json::{Value, json};

use crate::filters;
use crate::ui::Code;
use crate::ui::code::pretty;

/// One client's configuration.
#[derive(Debug)]
pub(crate) struct Client {
    /// The value of its radio button; the style sheet knows these six.
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    pub(crate) where_to: &'static str,
    pub(crate) code: Code,
}

/// All clients, one shown at a time.
#[derive(Debug, Template)]
#[template(path = "parts/clients.html")]
pub(crate) struct Clients {
    pub(crate) clients: Vec<Client>,
}

impl askama::filters::HtmlSafe for Clients {}

/// The name under which a client lists the server: letters, digits, hyphens.
fn key(name: &str) -> String {
    let mut out = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let out: String = out.trim_end_matches('-').chars().take(40).collect();
    if out.is_empty() { "server".to_owned() } else { out }
}

/// Quoted for a POSIX shell.
fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// mcp-remote refuses plain http to anything but this machine, unless told.
fn needs_allow_http(url: &str) -> bool {
    let host =
        url.strip_prefix("http://").map(|rest| rest.split(['/', ':']).next().unwrap_or_default());
    host.is_some_and(|host| host != "localhost" && host != "127.0.0.1")
}

fn remote(url: &str, token: &str) -> Value {
    // A space inside an argument is lost by some versions of the client, so it travels in `env`.
    let mut args = vec!["-y", "mcp-remote", url, "--header", "Authorization:${AUTH_HEADER}"];
    if needs_allow_http(url) {
        args.push("--allow-http");
    }
    json!({"command": "npx", "args": args, "env": {"AUTH_HEADER": format!("Bearer {token}")}})
}

/// A first call that any server answers.
fn curl_hello(url: &str, token: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}});
    curl(url, token, &body.to_string(), "")
}

fn curl(url: &str, token: &str, body: &str, more: &str) -> String {
    format!(
        "curl -sS {} \\\n  -H {} \\\n  -H 'Content-Type: application/json' \\\n  -H 'Accept: application/json, text/event-stream' \\\n{more}  -d {}",
        shell(url),
        shell(&format!("Authorization: Bearer {token}")),
        shell(body)
    )
}

/// A call of one tool.
pub(crate) fn curl_call(url: &str, token: &str, tool: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or(json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    curl(url, token, &body.to_string(), "  -H 'MCP-Protocol-Version: 2025-06-18' \\\n")
}

impl Clients {
    /// The configurations for a server of this name.
    pub(crate) fn new(name: &str, url: &str, token: &str) -> Self {
        let key = key(name);
        let bearer = format!("Bearer {token}");
        let one = |value: Value| Value::Object([(key.clone(), value)].into_iter().collect());
        let headers = json!({"Authorization": bearer});
        let code = |value: &Value| Code::json("JSON", &pretty(value));
        let command = format!(
            "claude mcp add --transport http {key} {} \\\n  --header {}",
            shell(url),
            shell(&format!("Authorization: {bearer}"))
        );
        let client = |key, name, where_to, code| Client { key, name, where_to, code };
        Self {
            clients: vec![
                client(
                    "claude-desktop",
                    "Claude Desktop",
                    "Settings → Developer → Edit config, then restart the app. It starts `mcp-remote`, which needs Node.",
                    code(&json!({"mcpServers": one(remote(url, token))})),
                ),
                client(
                    "claude-code",
                    "Claude Code",
                    "Run this in a terminal.",
                    Code::wrapped("Shell", &command),
                ),
                client(
                    "cursor",
                    "Cursor",
                    "In `~/.cursor/mcp.json`, or `.cursor/mcp.json` of a project.",
                    code(&json!({"mcpServers": one(json!({"url": url, "headers": headers}))})),
                ),
                client(
                    "vscode",
                    "VS Code",
                    "In `.vscode/mcp.json`, or through MCP: Open User Configuration.",
                    code(
                        &json!({"servers": one(json!({"type": "http", "url": url, "headers": headers}))}),
                    ),
                ),
                client(
                    "json",
                    "mcpServers",
                    "For any client that reads `mcpServers`.",
                    code(
                        &json!({"mcpServers": one(json!({"type": "http", "url": url, "headers": headers}))}),
                    ),
                ),
                client(
                    "curl",
                    "curl",
                    "The first message of a session, to see that the token works.",
                    Code::wrapped("Shell", &curl_hello(url, token)),
                ),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_keys_and_texts_are_quoted() {
        assert_eq!(key("My Files! (prod)"), "my-files-prod");
        assert_eq!(key("…"), "server");
        assert_eq!(shell("a'b"), "'a'\\''b'");
        let call = curl_call("http://x/mcp/1", "slg_x", "it's", "not json");
        assert!(call.contains(r#"{"name":"it'\''s","arguments":{}}"#), "{call}");
    }

    #[test]
    fn every_configuration_holds_the_address_and_the_token() {
        let clients = Clients::new("files", "https://s.example/mcp/1", "slg_abc").clients;
        assert_eq!(clients.len(), 6);
        for client in clients {
            let html = client.code.body.0;
            assert!(
                html.contains("https://s.example/mcp/1") && html.contains("slg_abc"),
                "{}",
                client.name
            );
        }
        assert!(needs_allow_http("http://gateway.example/mcp/1"));
        assert!(
            !needs_allow_http("http://localhost:8080/mcp/1")
                && !needs_allow_http("https://g.example")
        );
    }
}
