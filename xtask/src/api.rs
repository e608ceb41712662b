//! `cargo xtask api`: the running API against its own description, by Schemathesis.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{clients, find, run, test};

/// Enough for every operation's borders and some chance; the same requests on every run.
const EXAMPLES: u32 = 12;

/// Installs Schemathesis where it is missing, and runs it; the exit code is its own.
pub(crate) fn run(binary: Option<PathBuf>, seed: u64, examples: Option<u32>) -> Result<ExitCode> {
    let found = find::all(&[&find::PYTHON])?;
    let place = clients::schemathesis(&found[0])?;
    let binary = test::binary_or(binary)?;
    let directory = run::target().join("api");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let mut check = Command::new(place.join(".venv/bin/python"));
    check
        .arg(place.join("check.py"))
        .arg(binary)
        .arg(run::root().join("docs/openapi.json"))
        .arg(directory)
        .args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"])
        // What a busy machine would answer late or make slowly is no finding.
        .args(["--suppress-health-check", "all", "--request-timeout", "120"])
        .args(["--max-examples", &examples.unwrap_or(EXAMPLES).to_string()]);
    if seed > 0 {
        check.args(["--seed", &seed.to_string()]);
    }
    let status = run::guarded(&mut check)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
