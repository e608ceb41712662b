//! Finds the programs that tests need, or installs them with apt where that is allowed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::run;

/// A program that tests need.
#[derive(Debug)]
pub(crate) struct Need {
    /// For people: `PostgreSQL 15 or newer`.
    pub(crate) what: &'static str,
    /// Debian packages, the first that exists is taken.
    pub(crate) packages: &'static [&'static str],
    /// Finds it on this machine.
    pub(crate) find: fn() -> Option<PathBuf>,
}

pub(crate) const POSTGRES: Need = Need {
    what: "PostgreSQL 15 or newer (`initdb`, `pg_ctl`)",
    packages: &["postgresql"],
    find: postgres,
};
pub(crate) const REDIS: Need = Need {
    what: "Redis 7 or newer, or Valkey (`redis-server`)",
    packages: &["redis-server", "valkey-server"],
    find: redis,
};
pub(crate) const CHROMIUM: Need =
    Need { what: "Chromium", packages: &["chromium", "chromium-browser"], find: chromium };
pub(crate) const NODE: Need =
    Need { what: "Node.js 20 or newer", packages: &["nodejs"], find: node };
pub(crate) const NPM: Need = Need { what: "npm", packages: &["npm"], find: npm };
pub(crate) const PYTHON: Need =
    Need { what: "Python 3.10 or newer with `venv`", packages: &["python3-venv"], find: python };
pub(crate) const NGINX: Need = Need {
    what: "nginx",
    packages: &["nginx-light", "nginx"],
    find: || on_path("nginx").or_else(system_nginx),
};
pub(crate) const CXX: Need = Need { what: "a C++ compiler (`c++`)", packages: &["g++"], find: cxx };

/// Finds every need, installing with apt what is missing if this is Debian and we are root.
pub(crate) fn all(needs: &[&Need]) -> Result<Vec<PathBuf>> {
    let missing: Vec<_> = needs.iter().filter(|need| (need.find)().is_none()).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    let still = |need: &&Need| {
        (need.find)()
            .with_context(|| format!("{} is not there, even after installing it", need.what))
    };
    needs.iter().map(still).collect()
}

fn install(missing: &[&&Need]) -> Result<()> {
    let names: Vec<_> = missing.iter().map(|need| need.what).collect();
    let names = names.join("; ");
    if on_path("apt-get").is_none() || user_id() != Some(0) {
        let packages: Vec<_> = missing.iter().map(|need| need.packages[0]).collect();
        bail!(
            "the tests need {names}. On Debian or Ubuntu: `sudo apt-get install {}`; elsewhere \
             install it your way, and have its programs on the path",
            packages.join(" ")
        );
    }
    println!("xtask: installing {names}");
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq");
        command
    };
    run::done(apt().arg("update"))?;
    for need in missing {
        let installed = need.packages.iter().any(|package| {
            let mut command = apt();
            command.args(["install", "-y", "--no-install-recommends", package]);
            command.stdout(std::process::Stdio::null());
            run::done(&mut command).is_ok()
        });
        if !installed {
            bail!("apt could not install {}", need.what);
        }
    }
    Ok(())
}

/// Our user id.
pub(crate) fn user_id() -> Option<u32> {
    run::output(Command::new("id").arg("-u"))?.parse().ok()
}

pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// The directory of `initdb`, `pg_ctl` and `postgres`.
fn postgres() -> Option<PathBuf> {
    let mut directories: Vec<PathBuf> =
        ["/usr/lib/postgresql", "/usr/local/opt", "/opt/homebrew/opt"]
            .iter()
            .filter_map(|parent| std::fs::read_dir(parent).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .collect();
    directories.sort();
    directories.extend(on_path("initdb").and_then(|file| Some(file.parent()?.to_owned())));
    directories.into_iter().rev().find(|directory| {
        directory.join("initdb").is_file()
            && directory.join("pg_ctl").is_file()
            && version(&directory.join("postgres")).is_some_and(|major| major >= 15)
    })
}

/// Where Debian puts it, which is not on everybody's path.
fn system_nginx() -> Option<PathBuf> {
    Some(PathBuf::from("/usr/sbin/nginx")).filter(|file| file.is_file())
}

fn redis() -> Option<PathBuf> {
    let valkey = on_path("valkey-server");
    let redis = on_path("redis-server");
    redis.filter(|file| redis_major(file).is_some_and(|major| major >= 7)).or(valkey)
}

fn chromium() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(on_path)
}

fn node() -> Option<PathBuf> {
    on_path("node").filter(|file| version(file).is_some_and(|major| major >= 20))
}

fn cxx() -> Option<PathBuf> {
    on_path("c++")
}

fn npm() -> Option<PathBuf> {
    on_path("npm")
}

fn python() -> Option<PathBuf> {
    let file = on_path("python3")?;
    let check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    run::output(Command::new(&file).args(["-c", check]))?;
    Some(file)
}

/// The first whole number of `--version`.
fn version(program: &Path) -> Option<u32> {
    first_number(&run::output(Command::new(program).arg("--version"))?)
}

/// `Redis server v=7.0.15 sha=…`
fn redis_major(program: &Path) -> Option<u32> {
    let text = run::output(Command::new(program).arg("--version"))?;
    first_number(text.split("v=").nth(1)?)
}

fn first_number(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        assert_eq!(first_number("postgres (PostgreSQL) 15.8 (Debian 15.8-0)"), Some(15));
        assert_eq!(first_number("v20.20.2"), Some(20));
        assert_eq!(first_number("no number"), None);
    }
}
