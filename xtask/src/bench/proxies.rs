//! What is measured: nginx, and the binary with each of its stores.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::PROXIES;
use crate::services::Services;
use crate::soak::gateway::{Gateway, Start};

/// Where calls go.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    pub(super) path: String,
    pub(super) token: String,
    /// The proxy; none of the upstream itself.
    pub(super) process: Option<u32>,
}

/// Everything that is measured; ends with this value.
#[derive(Debug)]
pub(super) struct Proxies {
    pub(super) targets: Vec<Arc<Target>>,
    _gateways: Vec<Gateway>,
    _nginx: Nginx,
}

impl Proxies {
    pub(super) async fn start(
        binary: &Path,
        nginx: &Path,
        [one, two]: &[Services; 2],
        upstream: SocketAddr,
    ) -> Result<Self> {
        let nginx = Nginx::start(nginx, upstream)?;
        let plain = |name, address, process| {
            let (path, token) = ("/mcp".to_owned(), "none".to_owned());
            Arc::new(Target { name, address, path, token, process })
        };
        let mut targets = vec![
            plain("upstream", upstream, None),
            plain("nginx", nginx.address, Some(nginx.child.id())),
        ];
        let database = |services: &Services| ("SLUICE_DATABASE_URL", services.postgres_url());
        let redis = ("SLUICE_REDIS_URL", two.redis_url());
        let kinds = [
            ("sqlite", Vec::new()),
            ("postgres", vec![database(one)]),
            ("redis", vec![database(two), redis]),
        ];
        let mut gateways = Vec::new();
        for (name, mut settings) in kinds {
            settings.push(("TOKIO_WORKER_THREADS", "1".to_owned()));
            // Rows wait rather than calls: what is measured is calls.
            settings.push(("SLUICE_LOG_UNAVAILABLE", "allow".to_owned()));
            let through = ["taskset", "-c", PROXIES];
            let start = Start { binary, through: &through, settings: &settings, policy: policy() };
            let gateway = Gateway::start_as(&start, upstream).await?;
            let client = gateway.grant("bench").await?;
            targets.push(Arc::new(Target {
                name,
                address: client.address,
                path: client.path,
                token: client.token,
                process: Some(gateway.process()),
            }));
            gateways.push(gateway);
        }
        Ok(Self { targets, _gateways: gateways, _nginx: nginx })
    }
}

/// One tool, with three limits that are never reached and a rule about an argument.
fn policy() -> Value {
    let limit = |counter: &str, scope: &str| json!({ "counter": counter, "max": 100_000_000, "window": "hour", "scope": scope });
    json!({
        "version": "1", "default": "deny",
        "tools": { "echo": {
            "require": [{ "conditions": [{ "path": "args.city", "op": "starts_with", "value": "Berlin" }] }],
            "limits": [limit("a", "grant"), limit("b", "server"), limit("c", "workspace")]
        } }
    })
}

/// nginx as a plain proxy, with connections to the upstream that it keeps.
#[derive(Debug)]
struct Nginx {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Nginx {
    fn start(program: &Path, upstream: SocketAddr) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("sluice-bench").tempdir()?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let settings = format!(
            "worker_processes 1; master_process off; daemon off; pid nginx.pid;
            error_log stderr crit; events {{ worker_connections 4096; }}
            http {{
                access_log off; tcp_nodelay on; keepalive_timeout 300s; keepalive_requests 100000000;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                upstream calls {{ server {upstream}; keepalive 512; keepalive_requests 100000000; }}
                server {{
                    listen {address};
                    location / {{
                        proxy_pass http://calls; proxy_http_version 1.1; proxy_buffering off;
                        proxy_set_header Connection \"\";
                    }}
                }}
            }}"
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, settings)?;
        let child = Command::new("taskset")
            .args(["-c", PROXIES])
            .arg(program)
            .arg("-p")
            .arg(directory.path())
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start nginx")?;
        let mut nginx = Self { child, address, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(address).is_err() {
            if Instant::now() > deadline || nginx.child.try_wait()?.is_some() {
                bail!("nginx does not listen");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
