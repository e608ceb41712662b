//! `sluice scan`: reads the MCP configuration files of clients, reads the tools of the servers named
//! there, and says how risky they are and what changed since the last scan.

mod configs;
mod expand;
mod lenient;
mod places;
mod program;
mod report;
mod sarif;
mod servers;
mod state;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use sluice_domain::Severity;

use self::configs::Configured;
use self::report::Report;
use self::servers::{Reader, Scanned};
use self::state::State;
use crate::clock;
use crate::failure::{Failure, Outcome};
use crate::say;

/// Servers that are read at the same time.
const AT_ONCE: usize = 4;

/// Says how risky the tools are that clients on this machine can use, and what changed since the last scan.
///
/// Without a file it looks where Claude Code, Claude Desktop, Cursor, VS Code, Windsurf, Gemini CLI and Zed keep
/// theirs, here and in the home directory. Remote servers are asked for their tools with the headers
/// of the configuration. Programs are started only with `--start`. No tool is ever called.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ScanArgs {
    /// Configuration files of clients: JSON, with or without comments.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Starts the programs that the configuration names, to ask them for their tools.
    #[arg(long)]
    start: bool,
    /// Fails (exit code 1) where a tool is rated this or worse, a definition looks poisoned, or a
    /// server could not be read.
    #[arg(long, value_name = "SEVERITY", value_parser = severity)]
    fail_on: Option<Severity>,
    /// Fails where anything changed since the last scan.
    #[arg(long)]
    fail_on_drift: bool,
    /// A server that could not be read is no reason to fail.
    #[arg(long)]
    allow_unread: bool,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Where the last scan is remembered.
    #[arg(long, default_value = "./sluice-data/scan.json", value_name = "FILE")]
    state: PathBuf,
    /// Compares with the last scan, and does not remember this one.
    #[arg(long)]
    no_save: bool,
    /// How long one server may take, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600), value_name = "SECONDS")]
    timeout: u64,
}

/// How the result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

fn severity(text: &str) -> Result<Severity, String> {
    let found = Severity::ALL.iter().find(|one| one.as_str().eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| "one of low, medium, high, critical".to_owned())
}

pub(crate) async fn run(args: ScanArgs) -> Outcome {
    let configured = configured(&args)?;
    let before = State::read(&args.state).map_err(|error| {
        Failure::settings(error)
            .remedy("name another file with --state, or move this one away to begin anew")
    })?;
    let reader = Reader::new(args.start, Duration::from_secs(args.timeout));
    let scanned: Vec<Scanned> = futures_util::stream::iter(&configured)
        .map(|one| reader.read(one, clock::now()))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let report = Report::new(scanned, before.as_ref(), clock::now());
    let reasons = report.reasons(args.fail_on, args.fail_on_drift, args.allow_unread);
    say!(
        "{}",
        match args.format {
            Format::Text => report.text(&reasons),
            Format::Json => report.json(&reasons).to_string(),
            Format::Sarif => sarif::document(&report).to_string(),
        }
    );
    if !args.no_save {
        State::after(before.as_ref(), &report).write(&args.state).map_err(Failure::settings)?;
    }
    match reasons.first() {
        None => Ok(()),
        Some(first) if reasons.len() == 1 => Err(Failure::bad(anyhow!("{first}"))),
        Some(first) => {
            Err(Failure::bad(anyhow!("{first}, and {} more reasons to fail", reasons.len() - 1)))
        }
    }
}

/// Every server that the files name.
fn configured(args: &ScanArgs) -> Outcome<Vec<Configured>> {
    let files = if args.files.is_empty() { places::existing() } else { args.files.clone() };
    if files.is_empty() {
        return Err(Failure::settings(anyhow!(
            "no client's configuration was found in its usual place"
        ))
        .remedy("name the file: sluice scan path/to/mcp.json"));
    }
    let mut all = Vec::new();
    for file in &files {
        let found = configs::read(file).map_err(|error| {
            Failure::settings(error)
                .remedy("give a client's MCP configuration: JSON with `mcpServers` or `servers`")
        })?;
        all.extend(found);
    }
    Ok(all)
}
