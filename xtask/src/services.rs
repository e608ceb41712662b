//! Private PostgreSQL and Redis: on free loopback ports, in a temporary directory, stopped with the value.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::{find, run};

/// Both services.
#[derive(Debug)]
pub(crate) struct Services {
    postgres: Postgres,
    redis: Redis,
    /// For the tests' own files.
    scratch: PathBuf,
    _directory: TempDir,
}

impl Services {
    /// Starts both.
    pub(crate) fn start(postgres: &Path, redis: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("sluice-test").tempdir_in(quickest())?;
        // PostgreSQL's own user must be able to go through it.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711))?;
        let postgres = Postgres::start(postgres, directory.path())?;
        let redis = Redis::start(redis, directory.path())?;
        let scratch = directory.path().join("tmp");
        std::fs::create_dir(&scratch)?;
        // As the system's own: some tests run a program as somebody else.
        std::fs::set_permissions(&scratch, std::fs::Permissions::from_mode(0o1777))?;
        Ok(Self { postgres, redis, scratch, _directory: directory })
    }

    /// A folder for temporary files, which goes with the services.
    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// An address of a database that may make databases.
    pub(crate) fn postgres_url(&self) -> String {
        format!("postgres://sluice@127.0.0.1:{}/postgres", self.postgres.port)
    }

    pub(crate) fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.redis.port)
    }
}

/// Free memory for files, in KiB, from which on they are kept there.
const ROOM: u64 = 4 << 20;

/// Where files are made and removed quickest. Each PostgreSQL test makes a database of 650 files and removes it: on a
/// disk's file system that takes four times the processor's time that it takes in memory. A person's `TMPDIR` goes first.
fn quickest() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let free = || {
        // Some tests run programs that they write.
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mut there = mounts.lines().filter(|line| line.contains(" /dev/shm "));
        if there.any(|line| line.contains("noexec")) {
            return None;
        }
        let told = run::output(Command::new("df").args(["--output=avail", "-k"]).arg(memory))?;
        told.lines().last()?.trim().parse::<u64>().ok()
    };
    let elsewhere = std::env::var_os("TMPDIR").is_some();
    if !elsewhere && free().is_some_and(|kib| kib >= ROOM) {
        return memory.to_owned();
    }
    std::env::temp_dir()
}

#[derive(Debug)]
struct Postgres {
    programs: PathBuf,
    data: PathBuf,
    user: Option<(u32, u32)>,
    port: u16,
}

impl Postgres {
    fn start(programs: &Path, directory: &Path) -> Result<Self> {
        let home = directory.join("postgres");
        std::fs::create_dir(&home)?;
        let user = unprivileged()?;
        if let Some((user, group)) = user {
            chown(&home, Some(user), Some(group))?;
        }
        let port = free_port()?;
        let postgres = Self { programs: programs.to_owned(), data: home.join("data"), user, port };
        postgres.initialise(&home)?;
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='{}' \
             -c fsync=off -c full_page_writes=off -c synchronous_commit=off -c max_connections=500",
            home.display()
        );
        run::done(
            postgres
                .program("pg_ctl", &home)
                .args(["-w", "-t", "60", "-o", &options, "-l"])
                .arg(home.join("log"))
                .arg("start"),
        )
        .context("PostgreSQL does not start")?;
        Ok(postgres)
    }

    fn initialise(&self, home: &Path) -> Result<()> {
        run::done(self.program("initdb", home).args([
            "-U",
            "sluice",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]))
        .context("PostgreSQL cannot make its files")
    }

    /// One of PostgreSQL's programs on our data, never as root.
    fn program(&self, name: &str, home: &Path) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command
            .arg("-D")
            .arg(&self.data)
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group).env("HOME", home);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.data.join("postmaster.pid").exists() {
            let home = self.data.parent().unwrap_or(&self.data);
            run::done(self.program("pg_ctl", home).args(["-m", "immediate", "-w", "stop"])).ok();
        }
    }
}

/// Somebody other than root to run PostgreSQL as; `None` when we are not root.
fn unprivileged() -> Result<Option<(u32, u32)>> {
    if find::user_id() != Some(0) {
        return Ok(None);
    }
    let id = |flag: &str, name: &str| -> Option<u32> {
        run::output(Command::new("id").args([flag, name]))?.parse().ok()
    };
    for name in ["postgres", "nobody"] {
        if let (Some(user), Some(group)) = (id("-u", name), id("-g", name)) {
            return Ok(Some((user, group)));
        }
    }
    bail!("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")
}

#[derive(Debug)]
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start(program: &Path, directory: &Path) -> Result<Self> {
        let port = free_port()?;
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "no", "--daemonize", "no", "--dir"])
            .arg(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Ctrl-C of the terminal is for us; we stop Redis when the tests have ended.
            .process_group(0)
            .spawn()
            .context("cannot start Redis")?;
        let redis = Self { child, port };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline {
                bail!("Redis did not answer within 20 s");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
