//! The real clients and servers of the end-to-end tests: npm packages and a Python environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::run;

/// Installs `e2e/package-lock.json` exactly, unless that was done already.
pub(crate) fn node_packages(npm: &Path) -> Result<()> {
    let directory = run::root().join("e2e");
    let lock = directory.join("package-lock.json");
    once(&lock, &directory.join("node_modules/.installed"), || {
        let mut command = Command::new(npm);
        command.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&directory);
        // A browser is found on the machine, never downloaded.
        command.env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1").stdout(Stdio::null());
        run::done(&mut command)
    })
}

/// The Python of an environment with `e2e/requirements.txt`.
pub(crate) fn python_packages(python: &Path) -> Result<PathBuf> {
    let requirements = run::root().join("e2e/requirements.txt");
    let environment = run::target().join("e2e-python");
    let inside = environment.join("bin/python");
    once(&requirements, &environment.join(".installed"), || {
        run::done(Command::new(python).args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut command = Command::new(&inside);
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        run::done(command.arg(&requirements))
    })?;
    Ok(inside)
}

/// Runs `install` unless `mark` already holds what `source` says.
fn once(source: &Path, mark: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted =
        std::fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
    if std::fs::read(mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install()?;
    std::fs::write(mark, wanted).with_context(|| format!("cannot write {}", mark.display()))
}
