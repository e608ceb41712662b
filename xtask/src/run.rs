//! Child processes: run one and read what it said, or wait for one that Ctrl-C may end.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, Result, bail};

/// The project's top folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project").to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// Runs a command to its end; anything but success is an error that names it.
pub(crate) fn done(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if status.success() { Ok(()) } else { bail!("`{shown}` failed: {status}") }
}

/// What a command printed, if it succeeded.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a command while Ctrl-C and SIGTERM end it instead of us, so that what was started is stopped.
pub(crate) fn guarded(command: &mut Command) -> Result<ExitStatus> {
    let shown = shown(command);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = terminate()?;
        let mut child = tokio::process::Command::from(take(command))
            .spawn()
            .with_context(|| format!("cannot start `{shown}`"))?;
        loop {
            tokio::select! {
                status = child.wait() => return Ok(status?),
                // The terminal sends Ctrl-C to the child as well; it ends by itself.
                signal = tokio::signal::ctrl_c() => signal?,
                _ = terminate.recv() => child.start_kill()?,
            }
        }
    })
}

/// Waits for Ctrl-C or SIGTERM.
pub(crate) fn until_stopped() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = terminate()?;
        tokio::select! {
            signal = tokio::signal::ctrl_c() => signal?,
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}

fn terminate() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
}

/// `tokio` wants the command by value.
fn take(command: &mut Command) -> Command {
    std::mem::replace(command, Command::new("true"))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
