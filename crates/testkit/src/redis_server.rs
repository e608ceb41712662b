//! A Redis (or Valkey) of a test's own: a child process on a free port that ends with the value.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A private Redis server.
#[derive(Debug)]
pub struct RedisServer {
    child: Option<Child>,
    programs: Vec<String>,
    port: u16,
    settings: Vec<String>,
    dir: TempDir,
}

impl RedisServer {
    /// Starts the server named by `SLUICE_TEST_REDIS_SERVER`, else `redis-server` or
    /// `valkey-server` from the path. Panics when there is none: a missing service fails the test.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// [`Self::start`] with more settings, such as `["--requirepass", "secret"]`.
    pub fn start_with(settings: &[&str]) -> Self {
        Self::start_one(programs(), settings)
    }

    /// A Valkey server: the one that `SLUICE_TEST_VALKEY_SERVER` names, else `valkey-server` from
    /// the path. Panics when there is none.
    pub fn start_valkey() -> Self {
        Self::start_one(valkey_programs(), &[])
    }

    fn start_one(programs: Vec<String>, settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut server = Self { child: None, programs, port: free_port(), settings, dir };
        server.restart();
        server
    }

    /// A Sentinel that watches `master` under the name `mymaster`. Its own file, as it rewrites it.
    pub fn start_sentinel(master: &Self) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let file = dir.path().join("sentinel.conf");
        let watch = format!(
            "sentinel monitor mymaster 127.0.0.1 {} 1\nsentinel down-after-milliseconds mymaster 1000\n",
            master.port
        );
        std::fs::write(&file, watch).expect("a file can be written");
        let settings = vec![file.display().to_string(), "--sentinel".to_owned()];
        let mut server =
            Self { child: None, programs: programs(), port: free_port(), settings, dir };
        server.restart();
        server
    }

    /// Stops the process without ending it: connections stand, and nothing answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets a frozen process go on, with all that was sent to it meanwhile.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Sends one command, which must be obeyed; its answer as text, empty where it is none.
    pub async fn ask(&self, words: &[&str]) -> String {
        let client = redis::Client::open(self.url()).expect("the address is an address");
        let mut connection = client.get_multiplexed_async_connection().await.expect("it listens");
        let mut command = redis::cmd(words[0]);
        let answer = command.arg(&words[1..]).query_async(&mut connection).await;
        redis::from_redis_value(answer.expect("it obeys")).unwrap_or_default()
    }

    fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("the server runs");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal} failed");
    }

    /// `redis://127.0.0.1:<port>/0`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Kills the server as a crash would; its data is lost, unless the settings keep it.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// [`Self::restart`] with these settings besides the first ones.
    pub fn restart_as(&mut self, settings: &[&str]) {
        let count = self.settings.len();
        self.settings.extend(settings.iter().map(|&setting| setting.to_owned()));
        self.restart();
        self.settings.truncate(count);
    }

    /// Starts a server on the same port, after killing the one that runs; empty, unless the settings
    /// keep data.
    pub fn restart(&mut self) {
        self.kill();
        for program in self.programs.clone() {
            if let Ok(child) = self.command(&program).spawn() {
                self.child = Some(child);
                self.wait_until_ready();
                return;
            }
        }
        panic!(
            "none of {:?} can be started: put one on the path, or name it in \
             SLUICE_TEST_REDIS_SERVER (Valkey: SLUICE_TEST_VALKEY_SERVER)",
            self.programs
        );
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let [file, mode] = &self.settings[..]
            && mode == "--sentinel"
        {
            let port = self.port.to_string();
            command.args([file, mode, "--port", &port, "--bind", "127.0.0.1"]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            return command;
        }
        command
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .arg("--dir")
            .arg(self.dir.path())
            .args(&self.settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(self.address()).is_err() {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().ok()?) {
                panic!("Redis ended at start: {status}");
            }
            assert!(Instant::now() < deadline, "Redis did not answer within 10 s");
            // There is no event to wait for: the server tells nobody that it listens.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn programs() -> Vec<String> {
    named("SLUICE_TEST_REDIS_SERVER", &["redis-server", "valkey-server"])
}

fn valkey_programs() -> Vec<String> {
    named("SLUICE_TEST_VALKEY_SERVER", &["valkey-server"])
}

#[expect(clippy::disallowed_methods, reason = "the test runner names the program")]
fn named(variable: &str, else_one_of: &[&str]) -> Vec<String> {
    match std::env::var(variable) {
        Ok(program) if !program.is_empty() => vec![program],
        _ => else_one_of.iter().map(|&program| program.to_owned()).collect(),
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("loopback has a free port")
        .port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_server_answers_on_the_same_port_and_is_empty() {
        let mut server = RedisServer::start();
        let client = redis::Client::open(server.url()).expect("the address is an address");
        let mut connection = client.get_connection().expect("it listens");
        redis::cmd("SET").arg("k").arg(1).exec(&mut connection).expect("it takes a key");
        server.restart();
        let mut connection = client.get_connection().expect("it listens again");
        let kept: Option<i64> = redis::cmd("GET").arg("k").query(&mut connection).expect("answers");
        assert_eq!(kept, None);
    }
}
