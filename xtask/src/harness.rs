//! `cargo xtask harness`: a kit of real clients and servers through the binary, on private services.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::services::Services;
use crate::{find, run, test};

/// Runs `e2e/harness.mjs`; the exit code is its own.
pub(crate) fn run(kit: &Path, binary: Option<PathBuf>, replicas: &[u8]) -> Result<ExitCode> {
    let kit = kit.canonicalize().with_context(|| format!("no kit at {}", kit.display()))?;
    let found = find::all(&[&find::POSTGRES, &find::REDIS, &find::NODE])?;
    let binary = test::binary_or(binary)?;
    let services = Services::start(&found[0], &found[1])?;
    let mut harness = Command::new(&found[2]);
    harness
        .arg(run::root().join("e2e/harness.mjs"))
        .arg(kit)
        .arg(run::target().join("harness"))
        .arg(binary)
        .args(replicas.iter().map(u8::to_string))
        .env("HARNESS_POSTGRES_URL", services.postgres_url())
        .env("HARNESS_REDIS_URL", services.redis_url());
    let status = run::guarded(&mut harness)?;
    drop(services);
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
