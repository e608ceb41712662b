//! The binary as a child process: free ports, its own data directory, waited for until it is ready.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::http::{self, Answer};
use crate::redis_server::free_port;

/// How to start the binary.
#[derive(Debug, Clone)]
pub struct Setup {
    binary: PathBuf,
    directory: Arc<TempDir>,
    port: u16,
    settings: Vec<(String, String)>,
    /// The most bytes that a file may have, in blocks of 512.
    file_blocks: Option<u32>,
}

impl Setup {
    /// The binary that `SLUICE_BIN` names, else `built` (a test's `env!("CARGO_BIN_EXE_sluice")`),
    /// with a data directory and a port of its own, SQLite and in-process counters.
    pub fn new(built: &str) -> Self {
        let binary = std::env::var_os("SLUICE_BIN").map_or_else(|| built.into(), PathBuf::from);
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        Self {
            binary,
            directory: Arc::new(directory),
            port: free_port(),
            settings: Vec::new(),
            file_blocks: None,
        }
    }

    /// Sets an environment variable: `with("SLUICE_REDIS_URL", url)`.
    #[must_use]
    pub fn with(mut self, variable: &str, value: impl Into<String>) -> Self {
        self.settings.push((variable.to_owned(), value.into()));
        self
    }

    /// No file may grow beyond so many blocks of 512 bytes: to a process, a disk that is full.
    #[must_use]
    pub fn with_full_disk(mut self, file_blocks: u32) -> Self {
        self.file_blocks = Some(file_blocks);
        self
    }

    /// Another replica: the same settings, its own port and data directory.
    #[must_use]
    pub fn replica(&self) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        Self { directory: Arc::new(directory), port: free_port(), ..self.clone() }
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Where it will listen.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The binary with these arguments and our settings, not started.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = match self.file_blocks {
            None => Command::new(&self.binary),
            Some(blocks) => {
                // A write beyond the limit is an error, as on a full disk, and not a signal.
                let mut shell = Command::new("sh");
                shell.args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"", "sh"]);
                shell.arg(blocks.to_string()).arg(&self.binary);
                shell
            }
        };
        command
            .args(arguments)
            .env("SLUICE_LISTEN", self.address().to_string())
            .env("SLUICE_PUBLIC_URL", format!("http://localhost:{}", self.port))
            .env("SLUICE_DATA_DIR", self.data_dir())
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end.
    pub async fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().await.expect("the binary starts")
    }

    /// Runs a command that must succeed and print one JSON object.
    pub async fn json(&self, arguments: &[&str]) -> Value {
        let output = self.output(arguments).await;
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {}\n{err}", output.status);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("not JSON ({error}): {out}"))
    }

    /// Starts `sluice serve` and waits until it is ready.
    pub async fn serve(&self) -> Sluice {
        let mut sluice = self.serve_unready();
        sluice.until_ready().await;
        sluice
    }

    /// Starts `sluice serve`.
    pub fn serve_unready(&self) -> Sluice {
        let mut command = self.command(["serve"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let said = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().expect("standard error is piped")).lines();
        tokio::spawn(keep(lines, Arc::clone(&said)));
        Sluice { child, said, address: self.address(), setup: self.clone() }
    }
}

async fn keep(
    mut lines: tokio::io::Lines<BufReader<tokio::process::ChildStderr>>,
    said: Arc<Mutex<String>>,
) {
    while let Ok(Some(line)) = lines.next_line().await {
        let mut said = said.lock();
        said.push_str(&line);
        said.push('\n');
    }
}

/// A running `sluice serve`; killed with the value.
#[derive(Debug)]
pub struct Sluice {
    child: Child,
    said: Arc<Mutex<String>>,
    address: SocketAddr,
    setup: Setup,
}

impl Sluice {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How it was started.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        self.setup.directory.path()
    }

    /// What it has written to standard error.
    pub fn said(&self) -> String {
        self.said.lock().clone()
    }

    /// Waits until `/readyz` says yes.
    pub async fn until_ready(&mut self) {
        let ready = async {
            loop {
                if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                    panic!("sluice ended at start: {status}\n{}", self.said());
                }
                let answer = http::send(self.address, Method::GET, "/readyz", &[], "").await;
                if answer.is_ok_and(|answer| answer.status.is_success()) {
                    return;
                }
                // A process tells nobody that it listens.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_mins(1), ready).await.is_ok();
        assert!(in_time, "sluice was not ready within a minute\n{}", self.said());
    }

    /// Sends the signal that `kill -TERM` sends.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends the signal that Ctrl-C sends.
    pub fn interrupt(&self) {
        self.signal("-INT");
    }

    /// Kills it as a crash would.
    pub async fn crash(mut self) {
        self.child.kill().await.expect("the child can be killed");
    }

    /// Kills it as a crash would, without waiting for its end.
    pub fn crash_now(&self) {
        self.signal("-KILL");
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().await.expect("the child can be waited for");
        (status, self.said())
    }

    /// Stops it cleanly; panics unless the exit code is 0.
    pub async fn stop(self) {
        self.terminate();
        let (status, said) = self.ended().await;
        assert!(status.success(), "a clean stop ends with 0, not {status}\n{said}");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().expect("the child runs").to_string();
        let sent = std::process::Command::new("kill").args([signal, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot signal {id}");
    }

    /// Sends one request.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<bytes::Bytes>,
    ) -> Answer {
        http::send(self.address, method, path, headers, body)
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.said()))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
