//! A PostgreSQL of a test's own, to be frozen and killed: a child process on a free port that ends with
//! the value. Tests that only read and write share the runner's ([`crate::db`]).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::redis_server::free_port;

/// Names the directory of `initdb` and `postgres`.
pub const PROGRAMS_VARIABLE: &str = "SLUICE_TEST_POSTGRES_PROGRAMS";

/// A private PostgreSQL server with one empty database.
#[derive(Debug)]
pub struct PostgresServer {
    child: Option<Child>,
    programs: PathBuf,
    port: u16,
    /// Not root, as which PostgreSQL does not run.
    user: Option<(u32, u32)>,
    dir: TempDir,
}

impl PostgresServer {
    /// Makes its files and starts it. Panics when PostgreSQL is not there: a missing service fails the test.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let user = unprivileged();
        if let Some((user, group)) = user {
            chown(dir.path(), Some(user), Some(group)).expect("root may give files away");
        }
        let mut server = Self { child: None, programs: programs(), port: free_port(), user, dir };
        let made = server
            .program("initdb")
            .args(["-U", "sluice", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
            .status();
        assert!(made.is_ok_and(|status| status.success()), "initdb failed");
        server.restart();
        server
    }

    /// An address of its database.
    pub fn url(&self) -> String {
        format!("postgres://sluice@127.0.0.1:{}/postgres", self.port)
    }

    /// Stops all its processes without ending them: connections stand, and nothing answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets frozen processes go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Kills all its processes at once, as a crash of its machine would; what was committed stays.
    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let children = children(child.id());
        child.kill().ok();
        child.wait().ok();
        for one in &children {
            send("-KILL", *one);
        }
        // Its successor refuses to start beside them.
        while children.iter().any(|one| Path::new(&format!("/proc/{one}")).exists()) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts it again on the same port and files.
    pub fn restart(&mut self) {
        self.kill();
        let port = self.port.to_string();
        let mut command = self.program("postgres");
        command.args(["-p", &port, "-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "unix_socket_directories=", "-c", "fsync=off"]);
        self.child = Some(command.spawn().expect("PostgreSQL can be started"));
        self.wait_until_ready();
    }

    /// A connection is greeted only when the server has recovered.
    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !self.greets() {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().ok()?) {
                panic!("PostgreSQL ended at start: {status}");
            }
            assert!(Instant::now() < deadline, "PostgreSQL did not answer within a minute");
            // There is no event to wait for: the server tells nobody that it is ready.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn greets(&self) -> bool {
        let greeted = || -> std::io::Result<bool> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            // A start-up message of protocol 3.0.
            let words = b"\0\x03\0\0user\0sluice\0database\0postgres\0\0";
            let length = u32::try_from(words.len() + 4).unwrap_or_default();
            stream.write_all(&[&length.to_be_bytes()[..], words].concat())?;
            let mut kind = [0];
            stream.read_exact(&mut kind)?;
            // `E`: it recovers still.
            Ok(kind == *b"R")
        };
        greeted().unwrap_or(false)
    }

    fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("the server runs");
        // The postmaster first: it would start what is missing.
        send(signal, child.id());
        for one in children(child.id()) {
            send(signal, one);
        }
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command
            .arg("-D")
            .arg(self.dir.path().join("data"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group).env("HOME", self.dir.path());
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn send(signal: &str, process: u32) {
    Command::new("kill").args([signal, &process.to_string()]).stderr(Stdio::null()).status().ok();
}

fn children(parent: u32) -> Vec<u32> {
    let listed = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output();
    let listed = listed.expect("processes can be listed").stdout;
    let pair = |line: &str| -> Option<(u32, u32)> {
        let mut numbers = line.split_whitespace().map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    let pairs = String::from_utf8_lossy(&listed);
    let pairs = pairs.lines().filter_map(pair);
    pairs.filter(|(_, of)| *of == parent).map(|(child, _)| child).collect()
}

/// Somebody other than root to run PostgreSQL as; `None` when we are not root.
fn unprivileged() -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| -> Option<u32> {
        let told = Command::new("id").args(arguments).output().ok()?;
        String::from_utf8_lossy(&told.stdout).trim().parse().ok()
    };
    if id(&["-u"]) != Some(0) {
        return None;
    }
    ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| Some((id(&["-u", name])?, id(&["-g", name])?)))
}

#[expect(clippy::disallowed_methods, reason = "the test runner names the directory")]
fn programs() -> PathBuf {
    if let Ok(directory) = std::env::var(PROGRAMS_VARIABLE) {
        return directory.into();
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut on_path = std::env::split_paths(&path).filter(|one| one.join("initdb").is_file());
    on_path.next().unwrap_or_else(|| {
        panic!(
            "there is no `initdb` on the path, and {PROGRAMS_VARIABLE} does not say where it is; \
             `cargo xtask test` does"
        )
    })
}
