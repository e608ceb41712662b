//! `cargo xtask test`: services up, binary built, tests run, services down.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::services::Services;
use crate::{clients, find, run};

/// In how many parts the profile `places` of `.config/nextest.toml` divides a place.
const QUARTERS: usize = 4;

/// Where proptest takes the seed of its cases from.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs the tests; the exit code is the runner's.
pub(crate) fn run(filter: Option<&str>, debug: bool) -> Result<ExitCode> {
    let found = find::all(&[
        &find::POSTGRES,
        &find::REDIS,
        &find::CHROMIUM,
        &find::NODE,
        &find::NPM,
        &find::PYTHON,
    ])?;
    let [postgres, redis, chromium, node, npm, python] = &found[..] else {
        unreachable!("one path for each need");
    };
    let clients = clients::install(npm, python)?;
    let binary = binary(debug)?;
    let services = Services::start(postgres, redis)?;
    let mut runner = runner(filter);
    runner
        .current_dir(run::root())
        .env("TMPDIR", services.scratch())
        .env("SLUICE_TEST_POSTGRES_URL", services.postgres_url())
        .env("SLUICE_TEST_POSTGRES_PROGRAMS", postgres)
        .env("SLUICE_TEST_REDIS_URL", services.redis_url())
        .env("SLUICE_TEST_REDIS_SERVER", redis)
        .env("SLUICE_TEST_CHROMIUM", chromium)
        .env("SLUICE_TEST_NODE", node)
        .env("SLUICE_E2E", &clients)
        .env("SLUICE_BIN", binary);
    // The same cases on every run, so that a red one is the change's doing. To look for rarer ones:
    // `PROPTEST_RNG_SEED=… PROPTEST_CASES=100000 cargo nextest run -E 'test(properties)'`.
    if std::env::var_os(SEED).is_none() {
        runner.env(SEED, "1");
    }
    // Without one, the test that needs it says so.
    if let Some(valkey) = clients::valkey(&clients) {
        runner.env("SLUICE_TEST_VALKEY_SERVER", valkey);
    }
    let status = run::guarded(&mut runner)?;
    drop(services);
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Only the services, for a person who runs single tests by hand.
pub(crate) fn services() -> Result<ExitCode> {
    let found = find::all(&[&find::POSTGRES, &find::REDIS])?;
    let services = Services::start(&found[0], &found[1])?;
    println!("export SLUICE_TEST_POSTGRES_URL={}", services.postgres_url());
    println!("export SLUICE_TEST_POSTGRES_PROGRAMS={}", found[0].display());
    println!("export SLUICE_TEST_REDIS_URL={}", services.redis_url());
    println!("export SLUICE_TEST_REDIS_SERVER={}", found[1].display());
    eprintln!("Ctrl-C stops both.");
    run::until_stopped()?;
    Ok(ExitCode::SUCCESS)
}

/// The binary that was named, or the release one, built.
pub(crate) fn binary_or(named: Option<PathBuf>) -> Result<PathBuf> {
    Ok(named.map_or_else(|| binary(false), Ok)?.canonicalize()?)
}

/// The binary that end-to-end tests start.
fn binary(debug: bool) -> Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--package", "sluice-server"]).current_dir(run::root());
    if !debug {
        build.arg("--release");
    }
    run::done(&mut build)?;
    Ok(run::target().join(if debug { "debug" } else { "release" }).join("sluice"))
}

/// `cargo nextest` where it is installed, else `cargo test`.
fn runner(filter: Option<&str>) -> Command {
    let nextest = run::output(Command::new("cargo").args(["nextest", "--version"])).is_some();
    let mut command = Command::new("cargo");
    if nextest {
        // One place more for every two cores: tests wait for databases and for each other's processes.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let places = cores + cores.div_ceil(2);
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--profile", "places"]);
        command.args(["--test-threads", &(places * QUARTERS).to_string()]);
    } else {
        command.args(["test", "--workspace", "--no-fail-fast"]);
    }
    command.args(filter);
    command
}
