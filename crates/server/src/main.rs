//! The `sluice` binary: settings, wiring, telemetry, commands.

mod app;
mod cli;
mod client;
mod clock;
mod commands;
mod data_dir;
mod example;
mod failure;
mod feed;
mod front;
mod health;
mod listen;
mod open;
mod ports;
mod records;
mod remote;
mod settings;
mod telemetry;
mod wire;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Outcome};

/// A call makes some dozens of small allocations; with the system's allocator they cost as much as all
/// that the call is checked for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Writes a line of a command's answer to standard output.
macro_rules! say {
    ($($words:tt)*) => { $crate::line(format_args!($($words)*)) };
}
pub(crate) use say;

/// A reader that has gone away, as `head` does, is no failure.
fn line(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout().lock(), "{words}");
}

fn main() -> ExitCode {
    let cli = Cli::parse_from(cli::with_default_command(std::env::args_os().collect()));
    match run(cli.command) {
        Ok(code) => code,
        Err(failure) => {
            complain(&failure);
            failure.code()
        }
    }
}

fn run(command: Command) -> Outcome<ExitCode> {
    // One provider for every TLS client of the process; a second installation is refused harmlessly.
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::bad)?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => commands::serve::run(*args).await,
            Command::Migrate(args) => commands::migrate::run(args).await,
            Command::Doctor(args) => commands::doctor::run(*args).await,
            Command::Healthcheck(args) => commands::healthcheck::run(args).await,
            // `policy check` and `policy test` say by their code whether the document is good.
            Command::Policy(command) => return Ok(commands::policy::run(command).into()),
            Command::Risk(command) => commands::risk::run(command),
            Command::Scan(args) => commands::scan::run(args).await,
            Command::Catalogue(command) => commands::catalogue::run(command).await,
            Command::RotateKeys(args) => commands::rotate_keys::run(args).await,
            Command::Audit(args) => commands::audit::run(args).await,
            Command::Export(args) => commands::configuration::export(*args).await,
            Command::Import(args) => commands::configuration::import(*args).await,
            Command::Apply(args) => commands::configuration::apply(*args).await,
            Command::Approvals(command) => commands::approvals::run(command).await,
            Command::Demo => commands::demo::run().await,
            Command::Admin(args) => commands::admin::run(args).await,
        }
        .map(|()| ExitCode::SUCCESS)
    })
}

#[expect(clippy::print_stderr, reason = "what is wrong is told even where no log line is wanted")]
pub(crate) fn complain(failure: &Failure) {
    eprintln!("{failure}");
}
