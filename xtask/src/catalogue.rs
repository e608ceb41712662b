//! `cargo xtask catalogue`: loads a catalogue of half a million tools into the binary's database and tells how long
//! that takes, and how long a search over HTTP takes then.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

const TOOLS_OF_ONE: u32 = 25;
/// How long the binary may take to be ready, and then to have read the catalogue.
const PATIENCE: Duration = Duration::from_mins(10);
const ROUNDS: usize = 20;
const VERBS: &[&str] = &["get", "list", "create", "update", "delete", "search", "send", "execute"];
const NOUNS: &[&str] = &["file", "note", "issue", "payment", "user", "message", "table", "invoice"];
const QUERIES: &[&str] =
    &["execute", "exceute", "create+payment", "e", "delte+user", "note+17", "paymnt", "zzzzqqqq"];

/// Loads `servers` servers into SQLite, or into the PostgreSQL database at `database`.
pub(crate) fn run(binary: &Path, servers: u32, database: Option<&str>) -> Result<ExitCode> {
    let folder = tempfile::Builder::new().prefix("sluice-catalogue").tempdir()?;
    let file = folder.path().join("records.jsonl");
    write(&file, servers)?;
    let began = Instant::now();
    let mut import = command(binary, &folder, database, None);
    let done = import.args(["catalogue", "import"]).arg(&file).output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let took = began.elapsed();
    let tools = servers * TOOLS_OF_ONE;
    println!("{servers} servers and {tools} tools were loaded in {:.1} s", took.as_secs_f64());
    std::fs::remove_file(&file)?;

    let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let mut serve = command(binary, &folder, database, Some(address));
    let child = serve.arg("serve").stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let _child = Ends(child);
    let began = Instant::now();
    // The starter set is on the shelf as well.
    while !ask(address, "/tools.json?q=zzzzqqqq").is_ok_and(|body| count(&body) >= tools) {
        if began.elapsed() > PATIENCE {
            bail!("the catalogue was not read within {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("served and indexed {:.1} s after the start", began.elapsed().as_secs_f64());
    for query in QUERIES {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            ask(address, &format!("/tools?q={query}"))?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let (median, worst) = (times[ROUNDS / 2], times[ROUNDS - 1]);
        println!("/tools?q={query:<16} median {median:>9.2?}, worst of {ROUNDS} {worst:>9.2?}");
    }
    Ok(ExitCode::SUCCESS)
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn command(
    binary: &Path,
    folder: &TempDir,
    database: Option<&str>,
    address: Option<SocketAddr>,
) -> Command {
    let mut command = Command::new(binary);
    command.env("SLUICE_DATA_DIR", folder.path().join("data")).stdin(Stdio::null());
    if let Some(database) = database {
        command.env("SLUICE_DATABASE_URL", database);
    }
    if let Some(address) = address {
        command.env("SLUICE_LISTEN", address.to_string());
        command.env("SLUICE_PUBLIC_URL", format!("http://{address}"));
    }
    command
}

/// The number behind `"tool_count":`.
fn count(body: &str) -> u32 {
    let rest = body.split("\"tool_count\":").nth(1).unwrap_or_default().trim_start();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// The body of a GET.
fn ask(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.contains(" 200 "), "{path}: {}", head.lines().next().unwrap_or_default());
    Ok(body.to_owned())
}

/// One record a line, with tools as servers name them.
fn write(file: &Path, servers: u32) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    for server in 0..servers {
        let mut tools = String::new();
        for tool in 0..TOOLS_OF_ONE {
            let at = (server * TOOLS_OF_ONE + tool) as usize;
            let (verb, noun) = (VERBS[at % VERBS.len()], NOUNS[at / VERBS.len() % NOUNS.len()]);
            let comma = if tool == 0 { "" } else { "," };
            write!(
                tools,
                "{comma}{{\"name\":\"{verb}_{noun}_{tool}\",\"description\":\"{verb}s a {noun} of workspace {server}.\",\
                 \"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"id\":{{\"type\":\"string\"}}}}}}}}"
            )?;
        }
        writeln!(
            out,
            "{{\"server\":{{\"name\":\"com.example{}/server-{server}\",\"description\":\"Server {server}.\",\"version\":\"1.0.0\"}},\"tools\":[{tools}]}}",
            server % 1_000
        )?;
    }
    Ok(out.flush()?)
}
