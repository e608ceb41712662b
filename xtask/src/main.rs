//! `cargo xtask`: tests with everything they need, and reports.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task runner talks to the terminal"
)]

mod api;
mod bench;
mod catalogue;
mod clients;
mod disagreements;
mod find;
mod fuzz;
mod harness;
mod pages;
mod risk_report;
mod run;
mod services;
mod soak;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Tasks of the project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Runs every test against private PostgreSQL and Redis instances; finds or installs what is missing.
    Test {
        /// Only tests whose name contains this.
        filter: Option<String>,
        /// Tests against the debug binary instead of building the release one.
        #[arg(long)]
        debug: bool,
    },
    /// Starts private PostgreSQL and Redis instances, prints their addresses and waits for Ctrl-C.
    Services,
    /// Fuzzes the readers that untrusted bytes reach, each target for a bounded time; fails on a finding.
    Fuzz {
        /// One of the files in `fuzz/targets`, without `.rs`; all of them where none is named.
        target: Option<String>,
        /// How long each target runs; goes on with what earlier runs kept.
        #[arg(long, default_value_t = 20)]
        seconds: u32,
        /// Instead of a time: so many inputs each (dear targets fewer), from the seeds alone. The same walk every time.
        #[arg(long, conflicts_with = "seconds")]
        inputs: Option<u32>,
        /// Where the walk begins: the same walk for the same number, another one every time for 0.
        #[arg(long, default_value_t = 1)]
        seed: u32,
    },
    /// Calls every operation of the running REST API as its description allows, and as it does not, by
    /// Schemathesis; fails where an answer is not as described.
    Api {
        /// The binary; without it the release one is built.
        #[arg(long)]
        binary: Option<PathBuf>,
        /// The same requests for the same number, others every time for 0.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many requests of chance for an operation.
        #[arg(long)]
        examples: Option<u32>,
    },
    /// Runs a kit of real clients and servers through the binary, on one replica and on two.
    Harness {
        /// The kit's folder.
        dir: PathBuf,
        /// The binary; without it the release one is built.
        #[arg(long)]
        binary: Option<PathBuf>,
        /// How many replicas, once for each run; without it one and then two.
        #[arg(long)]
        replicas: Vec<u8>,
    },
    /// Puts the binary under load for a while, with clients and servers that vanish; fails where something grows.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// How long, in seconds instead.
        #[arg(long)]
        seconds: Option<u64>,
        /// The binary; without it the release one is built.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Measures calls through the binary beside nginx as a plain proxy: throughput, latency, CPU, memory.
    Bench {
        /// Rounds, in each of which every target has its turn.
        #[arg(long, default_value_t = 3)]
        rounds: u32,
        /// Seconds of a turn.
        #[arg(long, default_value_t = 3)]
        seconds: u64,
        /// Connections that ask at once; may be given several times.
        #[arg(long, default_values_t = [1, 16, 64])]
        connections: Vec<u32>,
        /// The binary; without it the release one is built.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Opens idle event streams and tells what each costs in memory.
    Streams {
        /// How many.
        #[arg(long, default_value_t = 10_000)]
        count: u32,
        /// The binary; without it the release one is built.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Loads half a million tools into the catalogue and tells how long that and a search take.
    Catalogue {
        /// Servers, of 25 tools each.
        #[arg(long, default_value_t = 20_000)]
        servers: u32,
        /// The binary; without it the release one is built.
        #[arg(long)]
        binary: Option<PathBuf>,
        /// An empty PostgreSQL database; without it SQLite.
        #[arg(long)]
        database: Option<String>,
    },
    /// Fills a workspace with a thousand servers, ten thousand grants and calls, and times every page.
    Pages {
        /// Calls in the log.
        #[arg(long, default_value_t = 10_000_000)]
        rows: u32,
        /// On a private PostgreSQL; without it SQLite.
        #[arg(long)]
        postgres: bool,
        /// The binary; without it the release one is built.
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Rates labelled tools and prints how often the classifier is right; `--check` fails below the floors.
    RiskReport {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Test { filter, debug } => test::run(filter.as_deref(), debug),
        Task::Services => test::services(),
        Task::Fuzz { target, seconds, inputs, seed } => {
            let bound = inputs.map_or(fuzz::Bound::Seconds(seconds), fuzz::Bound::Inputs);
            fuzz::run(bound, seed, target.as_deref())
        }
        Task::Api { binary, seed, examples } => api::run(binary, seed, examples),
        Task::Harness { dir, binary, replicas } => harness::run(&dir, binary, &replicas),
        Task::Soak { minutes, seconds, binary } => {
            let time = seconds.map_or_else(|| Duration::from_mins(minutes), Duration::from_secs);
            test::binary_or(binary).and_then(|binary| soak::run(&binary, time))
        }
        Task::Bench { rounds, seconds, connections, binary } => {
            let time = Duration::from_secs(seconds);
            test::binary_or(binary)
                .and_then(|binary| bench::run(&binary, rounds.max(1), time, &connections))
        }
        Task::Streams { count, binary } => {
            test::binary_or(binary).and_then(|binary| soak::streams(&binary, count))
        }
        Task::Catalogue { servers, binary, database } => test::binary_or(binary)
            .and_then(|binary| catalogue::run(&binary, servers, database.as_deref())),
        Task::Pages { rows, postgres, binary } => {
            test::binary_or(binary).and_then(|binary| pages::run(&binary, rows, postgres))
        }
        Task::RiskReport { arguments } => risk_report::run(&arguments).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
