//! `sluice demo`: the whole path in the terminal, against a temporary installation: a server is
//! connected, a rule applied, a grant made, and an agent calls until it is refused.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context as _, anyhow, bail};
use clap::Parser as _;
use http::Method;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use sluice_domain::Role;

use crate::app;
use crate::cli::{Cli, Command};
use crate::commands::admin;
use crate::failure::{Failure, Outcome};
use crate::settings::ServeArgs;
use crate::{client, say, telemetry};

const TOOL: &str = "executePython";

pub(crate) async fn run() -> Outcome {
    let directory = tempfile::tempdir().context("no temporary directory").map_err(Failure::bad)?;
    let address = free_address().map_err(Failure::bad)?;
    let args = settings(address, directory.path()).map_err(Failure::bad)?;
    telemetry::start(&args.log)?;
    let running = app::start(args.clone(), None).await?;
    let played = play(&args, address, running.example()).await;
    running.stop(false).await;
    played.map_err(Failure::bad)
}

fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

/// Settings of a throw-away installation, whatever the environment says.
fn settings(address: SocketAddr, directory: &std::path::Path) -> anyhow::Result<ServeArgs> {
    let data = directory.join("data").display().to_string();
    let (listen, public) = (address.to_string(), format!("http://{address}"));
    let words = [
        "sluice",
        "serve",
        "--listen",
        &listen,
        "--public-url",
        &public,
        "--data-dir",
        &data,
        "--log",
        "error",
        "--role",
        "all",
        "--signup",
        "closed",
        "--example-server",
        "yes",
        "--allow-private-upstreams",
        "yes",
    ];
    let Command::Serve(mut args) = Cli::try_parse_from(words)?.command else {
        bail!("`serve` was asked for");
    };
    args.storage.database_url = None;
    args.storage.redis_url = None;
    args.storage.keys.master_keys = None;
    args.network.proxy_listen = None;
    args.network.metrics_listen = None;
    args.network.proxy_public_url = None;
    args.network.allowed_hosts = Vec::new();
    Ok(*args)
}

async fn play(
    args: &ServeArgs,
    address: SocketAddr,
    example: Option<SocketAddr>,
) -> anyhow::Result<()> {
    let example = example.context("the example server does not run")?;
    say!("A Sluice of its own runs at http://{address}, with a temporary database.\n");
    say!("1. The operator makes a workspace and an API token:");
    let made = admin::make_token(&args.storage, "demo@example.com", "demo", Role::Admin, true)
        .await
        .map_err(|failure| anyhow!("{failure}"))?;
    say!(
        "   sluice admin api-token --email demo@example.com --workspace demo --create --role admin"
    );
    let api =
        Api { address, workspace: made.workspace, token: made.token.expose_secret().to_owned() };

    say!("\n2. A script connects an MCP server and lets Sluice read its tools:");
    let body = json!({"name": "example", "upstream_url": format!("http://{example}/mcp")});
    let server = text(&api.post("/servers", body).await?, "id")?;
    api.post(&format!("/servers/{server}/refresh"), json!({})).await?;
    show_tools(&api.get(&format!("/servers/{server}/tools")).await?);

    say!("\n3. It applies the recommended rule to {TOOL}, and everything else is denied:");
    let path = format!("/servers/{server}/tools/{TOOL}/apply-recommended");
    let policy = api.post(&path, json!({"rest": "deny"})).await?["policy"].clone();
    say!("   {}", policy["document"]);

    say!("\n4. It makes a grant, whose token an agent gets:");
    let body = json!({"label": "demo agent", "policy_id": policy["id"]});
    let grant = api.post(&format!("/servers/{server}/grants"), body).await?;
    say!("   http://{address}/mcp/{server}   Authorization: Bearer slg_…");

    say!("\n5. The agent calls {TOOL} eleven times:");
    let agent = Agent { address, path: format!("/mcp/{server}"), token: text(&grant, "token")? };
    agent.eleven_calls().await?;
    say!("\n6. And a tool that nobody allowed:");
    let answer = agent.call("read_note", json!({"title": "welcome"})).await?;
    say!("   read_note → {}", said(&answer));
    say!("\nThat is all. `sluice` starts it for good; open it in a browser and go on there.");
    Ok(())
}

fn show_tools(tools: &Value) {
    for tool in tools["items"].as_array().into_iter().flatten() {
        let word = |name: &str| tool[name].as_str().unwrap_or("?").to_owned();
        say!("   {:<14} {:<12} {}", word("name"), word("category"), word("severity"));
    }
}

struct Api {
    address: SocketAddr,
    workspace: String,
    token: String,
}

impl Api {
    async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, body.to_string()).await
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, String::new()).await
    }

    async fn send(&self, method: Method, path: &str, body: String) -> anyhow::Result<Value> {
        let path = format!("/api/v1/workspaces/{}{path}", self.workspace);
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let (status, body) = client::send(self.address, method, &path, &headers, body).await?;
        if !status.is_success() {
            bail!("{path}: {status} {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

struct Agent {
    address: SocketAddr,
    path: String,
    token: String,
}

impl Agent {
    async fn eleven_calls(&self) -> anyhow::Result<()> {
        let mut passed = 0;
        let mut refusal = Value::Null;
        for number in 1..=11 {
            let answer = self.call(TOOL, json!({"code": format!("print({number})")})).await?;
            say!("   {number:>2}. {}", said(&answer));
            if answer["result"]["isError"] == true {
                refusal = answer["result"]["_meta"]["dev.sluice/decision"].clone();
            } else {
                passed += 1;
            }
        }
        say!("   The refusal carries, for the agent's program:\n   {refusal}");
        if passed != 10 || refusal["code"] != "rate_limited" {
            bail!("ten calls should pass and the eleventh be refused; {passed} passed");
        }
        Ok(())
    }

    async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let body = request.to_string();
        let (status, body) =
            client::send(self.address, Method::POST, &self.path, &headers, body).await?;
        if !status.is_success() {
            bail!("{}: {status} {}", self.path, String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

/// What an agent reads in an answer.
fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or("(no text)")
}

fn text(of: &Value, name: &str) -> anyhow::Result<String> {
    of[name].as_str().map(str::to_owned).with_context(|| format!("no `{name}` in {of}"))
}
