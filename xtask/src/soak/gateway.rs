//! The binary under load: started with a data directory of its own, and looked at from outside.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Client;

/// How long the binary may take until it is ready.
const READY: Duration = Duration::from_mins(1);

/// A running binary; ends with this value.
#[derive(Debug)]
pub(crate) struct Gateway {
    child: Child,
    address: SocketAddr,
    api: Client,
    server: Value,
    policy: Value,
    _data: TempDir,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What the process uses at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Usage {
    /// Resident memory in KiB.
    pub(super) memory: f64,
    pub(super) descriptors: f64,
    pub(super) tasks: f64,
    pub(super) sessions: f64,
    /// Requests and streams.
    pub(super) open: f64,
}

/// How the binary is started.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    pub(crate) binary: &'a Path,
    /// A program that starts it, with its arguments: `taskset` and the like.
    pub(crate) through: &'a [&'a str],
    /// Settings besides those of the soak.
    pub(crate) settings: &'a [(&'a str, String)],
    /// The policy of its grants.
    pub(crate) policy: Value,
}

impl Gateway {
    /// Starts it with one server, `upstream`, and a policy that allows all.
    pub(super) async fn start(binary: &Path, upstream: SocketAddr) -> Result<Self> {
        let policy = json!({ "version": "1", "default": "allow" });
        Self::start_as(&Start { binary, through: &[], settings: &[], policy }, upstream).await
    }

    /// Starts it with one server, `upstream`.
    pub(crate) async fn start_as(start: &Start<'_>, upstream: SocketAddr) -> Result<Self> {
        let data = tempfile::Builder::new().prefix("sluice-soak").tempdir()?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let place = data.path().to_owned();
        let settled = |mut command: Command, arguments: &[&str]| {
            command.args(arguments).env("SLUICE_LISTEN", address.to_string());
            command.env("SLUICE_PUBLIC_URL", format!("http://{address}"));
            command.env("SLUICE_DATA_DIR", &place).env("SLUICE_LOG", "warn").stdin(Stdio::null());
            command.envs(start.settings.iter().cloned());
            command
        };
        let serve = match start.through {
            [] => Command::new(start.binary),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(start.binary);
                command
            }
        };
        let child =
            settled(serve, &["serve"]).stdout(Stdio::null()).spawn().context("cannot start")?;
        let mut gateway = Self {
            child,
            address,
            api: Client {
                address,
                path: String::new(),
                token: String::new(),
                grant: String::new(),
            },
            server: Value::Null,
            policy: Value::Null,
            _data: data,
        };
        gateway.until_ready().await?;
        let who =
            ["--email", "soak@example.com", "--workspace", "soak", "--create", "--role", "admin"];
        let made =
            settled(Command::new(start.binary), &[&["admin", "api-token"], &who[..]].concat())
                .output()?;
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        let made: Value = serde_json::from_slice(&made.stdout).context(said)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        gateway.api.path = format!("/api/v1/workspaces/{}", text(&made["workspace"]));
        gateway.api.token = text(&made["token"]);
        gateway.connect(upstream, &start.policy).await?;
        Ok(gateway)
    }

    async fn until_ready(&mut self) -> Result<()> {
        let probe = Client { path: "/readyz".to_owned(), ..self.api.clone() };
        let deadline = Instant::now() + READY;
        while !probe.ask("GET", "", "").await.is_ok_and(|reply| reply.status == 200) {
            if Instant::now() > deadline || self.child.try_wait()?.is_some() {
                bail!("the binary does not become ready");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn connect(&mut self, upstream: SocketAddr, policy: &Value) -> Result<()> {
        let server = json!({
            "name": "soak", "upstream_url": format!("http://{upstream}/mcp"),
            "transport": "streamable_http", "unknown_tools": "by_policy"
        });
        self.server = self.api.made("/servers", &server).await?["id"].clone();
        let document = json!({ "name": "all", "document": policy });
        let path = format!("/servers/{}/policies", self.server.as_str().unwrap_or_default());
        self.policy = self.api.made(&path, &document).await?["id"].clone();
        Ok(())
    }

    /// A client with a grant of its own.
    pub(crate) async fn grant(&self, label: &str) -> Result<Client> {
        let server = self.server.as_str().unwrap_or_default();
        let body = json!({ "label": label, "policy_id": self.policy });
        let made = self.api.made(&format!("/servers/{server}/grants"), &body).await?;
        let token = made["token"].as_str().context("no token")?.to_owned();
        let grant = made["id"].as_str().context("no id")?.to_owned();
        Ok(Client { address: self.address, path: format!("/mcp/{server}"), token, grant })
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Revokes a client's grant.
    pub(super) async fn revoke(&self, client: &Client) -> Result<()> {
        let path = format!("{}/grants/{}", self.api.path, client.grant);
        let reply =
            Client { path, ..self.api.clone() }.ask("DELETE", "if-match: *\r\n", "").await?;
        if reply.status >= 300 {
            bail!("DELETE: {} {}", reply.status, reply.text());
        }
        Ok(())
    }

    /// What it uses now.
    pub(super) async fn usage(&self) -> Result<Usage> {
        let scrape = Client { path: "/metrics".to_owned(), ..self.api.clone() };
        let text = scrape.ask("GET", "", "").await?.text();
        let gauge = |name: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name));
            let value = line.and_then(|line| line.split(' ').nth(1)?.parse().ok());
            value.with_context(|| format!("/metrics has no {name}"))
        };
        let process = format!("/proc/{}", self.child.id());
        let status = std::fs::read_to_string(format!("{process}/status"))?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|text| text.split_whitespace().next()?.parse().ok());
        let descriptors = u32::try_from(std::fs::read_dir(format!("{process}/fd"))?.count())?;
        Ok(Usage {
            memory: memory.context("no VmRSS")?,
            descriptors: descriptors.into(),
            tasks: gauge("sluice_tasks")?,
            sessions: gauge("sluice_sessions")?,
            open: gauge("sluice_open_requests")?,
        })
    }
}
