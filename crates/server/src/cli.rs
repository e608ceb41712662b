//! The command line: which commands there are.

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::admin::AdminCommand;
use crate::commands::approvals::ApprovalsCommand;
use crate::commands::audit::AuditCommand;
use crate::commands::catalogue::CatalogueCommand;
use crate::commands::configuration::{ApplyArgs, ExportArgs, ImportArgs};
use crate::commands::doctor::DoctorArgs;
use crate::commands::healthcheck::HealthcheckArgs;
use crate::commands::migrate::MigrateArgs;
use crate::commands::policy::PolicyCommand;
use crate::commands::risk::RiskCommand;
use crate::commands::rotate_keys::RotateKeysArgs;
use crate::commands::scan::ScanArgs;
use crate::settings::ServeArgs;

/// A gateway between AI agents and MCP servers: rules, limits and approvals for every tool call.
///
/// `sluice` alone is `sluice serve`.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves dashboard, API and proxy (the default).
    Serve(Box<ServeArgs>),
    /// Brings the database up to this version.
    Migrate(MigrateArgs),
    /// Checks settings, database, Redis, clock and keys.
    Doctor(Box<DoctorArgs>),
    /// Asks the Sluice on this machine whether it is ready; for container health checks.
    Healthcheck(HealthcheckArgs),
    /// Plays the whole path against a temporary installation and prints what an agent sees.
    Demo,
    /// The policy language: its JSON Schema, checks, decisions and tests of documents.
    Policy(PolicyCommand),
    /// Rates tools without any server or network.
    Risk(RiskCommand),
    Scan(ScanArgs),
    /// The public catalogue: fills it from registries and files, and shows records of it.
    Catalogue(CatalogueCommand),
    /// Wraps everything sealed with the current master key.
    RotateKeys(RotateKeysArgs),
    /// Checks the admin audit log, or writes it out.
    Audit(AuditCommand),
    Approvals(ApprovalsCommand),
    Export(Box<ExportArgs>),
    Import(Box<ImportArgs>),
    Apply(Box<ApplyArgs>),
    /// The operator's tools; they work beside a running server.
    Admin(AdminCommand),
}

/// Puts `serve` in where no command is named.
pub(crate) fn with_default_command(arguments: Vec<OsString>) -> Vec<OsString> {
    let first = arguments.get(1).and_then(|word| word.to_str());
    let about_itself = ["-h", "--help", "-V", "--version"];
    let serve = match first {
        None => true,
        Some(word) => word.starts_with('-') && !about_itself.contains(&word),
    };
    let mut arguments = arguments;
    if serve {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}

/// Variables that look like settings and are none: a misspelt one would be ignored in silence.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut command = Cli::command();
    command.build();
    let serve = command.find_subcommand("serve").into_iter();
    let known: Vec<_> = serve
        .flat_map(clap::Command::get_arguments)
        .filter_map(|argument| argument.get_env()?.to_str())
        .collect();
    // What the project's own tests are told.
    let of_tests = |name: &str| {
        name.starts_with("SLUICE_TEST_") || ["SLUICE_BIN", "SLUICE_E2E"].contains(&name)
    };
    // What `sluice apply` is told.
    let of_files = |name: &str| name.starts_with("SLUICE_SECRET_") || name == "SLUICE_API_TOKEN";
    names
        .filter(|name| name.starts_with("SLUICE_") && !of_tests(name) && !of_files(name))
        .filter(|name| !known.contains(&name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_line_without_a_command_serves() {
        for (line, expected) in [
            ("sluice", "sluice serve"),
            ("sluice --listen 127.0.0.1:1", "sluice serve --listen 127.0.0.1:1"),
            ("sluice --help", "sluice --help"),
            ("sluice migrate", "sluice migrate"),
        ] {
            assert_eq!(with_default_command(words(line)), words(expected), "{line}");
        }
    }

    #[test]
    fn every_setting_has_a_variable_and_a_line_of_help() {
        let mut command = Cli::command();
        command.build();
        let serve = command.find_subcommand("serve").expect("there is `serve`");
        for argument in serve.get_arguments().filter(|argument| argument.get_id() != "help") {
            let name = argument.get_id();
            assert!(argument.get_help().is_some(), "no help: {name}");
            let variable = argument.get_env().and_then(|name| name.to_str()).unwrap_or_default();
            let standard = variable.starts_with("OTEL_");
            assert!(standard || variable.starts_with("SLUICE_"), "no variable: {name}");
        }
    }

    #[test]
    fn a_misspelt_variable_is_noticed() {
        let names = ["SLUICE_LISTEN", "SLUICE_REDIS", "PATH", "SLUICE_TEST_REDIS_URL"];
        let unknown = unknown_variables(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(unknown, ["SLUICE_REDIS"]);
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
