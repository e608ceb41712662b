//! `cargo xtask pages`: fills a workspace with a thousand servers, ten thousand grants and millions of log rows,
//! and tells how long each page of the dashboard takes then.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::services::Services;
use crate::{find, run};

const ROUNDS: usize = 40;
const SERVERS: u32 = 1_000;
const GRANTS: u32 = 10_000;
/// What a page may take at the 95th percentile.
const GOAL: Duration = Duration::from_millis(50);

/// Fills SQLite, or PostgreSQL, with `rows` calls of thirty days and asks for every page.
pub(crate) fn run(binary: &Path, rows: u32, postgres: bool) -> Result<ExitCode> {
    let folder = tempfile::Builder::new().prefix("sluice-pages").tempdir()?;
    let found = find::all(&[&find::POSTGRES, &find::REDIS])?;
    let services = postgres.then(|| Services::start(&found[0], &found[1])).transpose()?;
    let database = services.as_ref().map(Services::postgres_url);
    let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let data = folder.path().join("data");
    let serve = || -> Result<Ends> {
        let mut command = Command::new(binary);
        command
            .arg("serve")
            .env("SLUICE_DATA_DIR", &data)
            .env("SLUICE_LISTEN", address.to_string());
        command.env("SLUICE_PUBLIC_URL", format!("http://{address}")).stdin(Stdio::null());
        if let Some(database) = &database {
            command.env("SLUICE_DATABASE_URL", database);
        }
        let child = Ends(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(began.elapsed() < Duration::from_mins(2), "the binary is not there");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(child)
    };
    let mut visitor = Visitor { address, cookies: Vec::new() };
    let began = serve()?;
    let ids = visitor.one_of_each()?;
    drop(began);
    let began = Instant::now();
    fill(&data, database.as_deref(), &ids, rows)?;
    println!("{rows} rows were loaded in {:.0} s", began.elapsed().as_secs_f64());
    let _serving = serve()?;
    let late = visitor.measure(&ids)?;
    if late.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("over {} ms: {}", GOAL.as_millis(), late.join(", "));
    Ok(ExitCode::FAILURE)
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // A clean stop, so that SQLite folds its log.
        let stop = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        if stop.is_err() {
            self.0.kill().ok();
        }
        self.0.wait().ok();
    }
}

/// What everything else is copied from.
struct Ids {
    server: String,
    policy: String,
    grant: String,
}

/// A browser without a screen.
struct Visitor {
    address: SocketAddr,
    cookies: Vec<(String, String)>,
}

struct Answer {
    status: u16,
    location: String,
    body: String,
}

impl Visitor {
    fn send(&mut self, method: &str, path: &str, form: Option<&str>) -> Result<Answer> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_mins(2)))?;
        let cookies: Vec<String> = self.cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let form = form.unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\naccept: text/html\r\n\
             cookie: {}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             sec-fetch-site: same-origin\r\ncontent-length: {}\r\n\r\n{form}",
            self.address,
            cookies.join("; "),
            form.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        let mut location = String::new();
        for line in head.lines() {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("location") {
                value.clone_into(&mut location);
            }
            let pair = value.split(';').next().and_then(|pair| pair.split_once('='));
            if let Some((key, value)) = pair.filter(|_| name.eq_ignore_ascii_case("set-cookie")) {
                self.cookies.retain(|(known, _)| known != key);
                self.cookies.push((key.to_owned(), value.to_owned()));
            }
        }
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Ok(Answer { status, location, body: body.to_owned() })
    }

    /// Fills in the form of a page and sends it; gives where it leads.
    fn submit(&mut self, page: &str, to: &str, fields: &str) -> Result<Answer> {
        let shown = self.send("GET", page, None)?;
        let token = shown.body.split("name=\"csrf\" value=\"").nth(1).context("no form")?;
        let token = token.split('"').next().unwrap_or_default();
        let answer = self.send("POST", to, Some(&format!("csrf={token}&{fields}")))?;
        ensure!(answer.status < 400, "{to}: {}", answer.status);
        Ok(answer)
    }

    /// An account, a workspace, the built-in server, a rule and a grant.
    fn one_of_each(&mut self) -> Result<Ids> {
        let account = "email=ann%40example.com&password=correct-horse-battery-9&name=Ann";
        self.submit("/signup", "/signup", account)?;
        self.submit("/workspaces/new", "/workspaces/new", "name=Acme")?;
        let form = "/w/acme/servers/new";
        let server = self.submit(form, form, "name=example&upstream_url=example")?.location;
        let server = server.split('?').next().unwrap_or_default().to_owned();
        let page = self.send("GET", &server, None)?;
        let mut links =
            page.body.split("href=\"").skip(1).filter_map(|link| link.split('"').next());
        let apply = links.find(|link| link.ends_with("/apply")).context("no button")?;
        let apply = apply.to_owned();
        self.submit(&apply, &apply, "")?;
        let of = format!("{server}/grants/new");
        self.submit(&of, &of, "label=agent")?;
        let first = |body: &str, before: &str| -> Result<String> {
            let found =
                body.split(before).skip(1).find(|rest| rest.as_bytes().get(36) == Some(&b'"'));
            Ok(found.context("no id")?.get(..36).context("no id")?.to_owned())
        };
        let policies = self.send("GET", &format!("{server}/policies"), None)?;
        let grants = self.send("GET", &format!("{server}/grants"), None)?;
        Ok(Ids {
            server: server.rsplit('/').next().unwrap_or_default().to_owned(),
            policy: first(&policies.body, "/w/acme/policies/")?,
            grant: first(&grants.body, "/w/acme/grants/")?,
        })
    }

    /// Every page, and the log by every filter.
    fn addresses(&mut self, ids: &Ids) -> Result<Vec<String>> {
        let server = format!("/w/acme/servers/{}", ids.server);
        let newest = self.send("GET", "/w/acme/logs", None)?.body;
        let mut calls = newest.split("/w/acme/logs/").filter_map(|rest| rest.get(..36));
        let call = calls.find(|id| id.matches('-').count() == 4).context("no call")?;
        let tool = "execute_code";
        let mut pages: Vec<String> = [
            "/",
            "/servers",
            "/servers/new",
            "/policies",
            "/grants",
            "/grants?look=no-policy",
            "/limits",
            "/approvals",
            "/logs",
            "/tools?why=review",
            "/members",
            "/notifications",
            "/api-tokens",
            "/audit",
            "/security",
            "/settings",
            "/find?q=run",
            "/find?q=server+77",
            "/logs?outcome=denied",
            "/logs?outcome=allowed",
            "/logs?code=rate_limited",
            "/logs?kind=tools",
            "/logs?q=nothing-has-this",
            "/logs?q=agent+77",
            "/logs?rule=%2Fdefault",
        ]
        .iter()
        .map(|rest| format!("/w/acme{rest}"))
        .collect();
        pages.push(format!("/w/acme/logs?tool={tool}"));
        pages.push(format!("/w/acme/logs?server={}", ids.server));
        pages.push(format!("/w/acme/logs?grant={}", ids.grant));
        pages.push(format!("/w/acme/logs?policy={}", ids.policy));
        pages.push(format!("/w/acme/logs?server={}&outcome=denied&q=none", ids.server));
        pages.push(format!("/w/acme/logs/{call}"));
        pages.push(format!("/w/acme/logs?after={call}"));
        for back in [25, 14] {
            let from = shown(&format!("now - {back} days"))?;
            let to = shown(&format!("now - {} days", back - 1))?;
            pages.push(format!("/w/acme/logs?from={from}&to={to}"));
            pages.push(format!("/w/acme/logs?to={to}&tool={tool}"));
        }
        for rest in ["", "/policies", "/grants", "/grants/new", "/try", "/settings"] {
            pages.push(format!("{server}{rest}"));
        }
        for rest in ["", "/edit", "/try", "/versions"] {
            pages.push(format!("/w/acme/policies/{}{rest}", ids.policy));
        }
        pages.push(format!("/w/acme/grants/{}", ids.grant));
        pages.push(format!("/w/acme/limits?grant={}", ids.grant));
        Ok(pages)
    }

    /// Asks for each page; names those that were too slow.
    fn measure(&mut self, ids: &Ids) -> Result<Vec<String>> {
        let pages = self.addresses(ids)?;
        let load = std::fs::read_to_string("/proc/loadavg")?;
        println!("load of the machine before: {}", load.split(' ').next().unwrap_or_default());
        let mut late = Vec::new();
        println!("{:<78} median    p95", "page");
        for page in pages {
            // The first time what it needs is read from the disk.
            let answer = self.send("GET", &page, None)?;
            ensure!(answer.status == 200, "{page}: {}", answer.status);
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let began = Instant::now();
                self.send("GET", &page, None)?;
                times.push(began.elapsed());
            }
            times.sort_unstable();
            let (median, slow) = (times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
            println!(
                "{page:<78}{:>6.1}{:>8.1}",
                1e3 * median.as_secs_f64(),
                1e3 * slow.as_secs_f64()
            );
            if slow > GOAL {
                late.push(page);
            }
        }
        Ok(late)
    }
}

/// A time as the log's filter takes it.
fn shown(when: &str) -> Result<String> {
    let mut date = Command::new("date");
    date.args(["-u", "-d", when, "+%Y-%m-%dT%H:%M"]);
    run::output(&mut date).with_context(|| format!("`date` does not know `{when}`"))
}

/// Copies of the one of each, and calls, written by the databases themselves.
fn fill(data: &Path, database: Option<&str>, ids: &Ids, rows: u32) -> Result<()> {
    let text = match database {
        Some(_) => include_str!("pages/postgres.sql"),
        None => include_str!("pages/sqlite.sql"),
    };
    let days = match database {
        Some(_) => include_str!("../../migrations/postgres/0126_call_days.sql"),
        None => include_str!("../../migrations/sqlite/0126_call_days.sql"),
    };
    let counts: Vec<&str> = days.split("INSERT INTO").skip(1).take(2).collect();
    let counts = counts.iter().filter_map(|one| one.split(';').next());
    let counts: Vec<String> = counts.map(|one| format!("INSERT INTO{one};")).collect();
    let id = |id: &str| match database {
        Some(_) => format!("'{id}'"),
        None => format!("x'{}'", id.replace('-', "")),
    };
    let bytes: Vec<String> = (0..256).map(|n| format!("({n}, x'{n:02x}')")).collect();
    let sql = text
        .replace("@servers", &SERVERS.to_string())
        .replace("@grants", &GRANTS.to_string())
        .replace("@rows", &rows.to_string())
        .replace("@bytes", &bytes.join(", "))
        .replace("@server", &id(&ids.server))
        .replace("@policy", &id(&ids.policy))
        .replace("@grant", &id(&ids.grant))
        .replace("@counts", &counts.join("\n"));
    let mut fill = if let Some(database) = database {
        let mut psql = Command::new("psql");
        psql.args(["-q", "-v", "ON_ERROR_STOP=1", database]);
        psql
    } else {
        let mut sqlite = Command::new("sqlite3");
        sqlite.arg("-bail").arg(data.join("sluice.db"));
        sqlite
    };
    let mut fill = fill.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    fill.stdin.take().context("no input")?.write_all(sql.as_bytes())?;
    ensure!(fill.wait()?.success(), "the database refused what should be loaded");
    Ok(())
}
