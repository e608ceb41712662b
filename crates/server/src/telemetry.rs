//! Log lines on standard error, as text or JSON, and what a collector is sent.

mod collector;
mod lines;
mod spans;

use std::io::IsTerminal as _;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

pub(crate) use collector::Collector;

use crate::failure::{Failure, Outcome};
use crate::settings::{LogArgs, LogFormat};
use lines::{Json, Lines};

/// Begins to write log lines.
pub(crate) fn start(log: &LogArgs) -> Outcome {
    start_with(log, None)
}

/// The same, and sends them to a collector besides.
pub(crate) fn start_with(log: &LogArgs, lines: Option<Lines>) -> Outcome {
    let filter = || {
        EnvFilter::try_new(&log.log)
            .with_context(|| format!("`--log` is not a filter: `{}`", log.log))
            .map_err(|error| Failure::settings(error).remedy("write a level such as `info`"))
    };
    let layer = match log.log_format {
        LogFormat::Json => {
            fmt::layer().event_format(Json).with_ansi(false).with_writer(std::io::stderr).boxed()
        }
        LogFormat::Text => fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .boxed(),
    };
    let lines = match lines {
        Some(lines) => Some(lines.with_filter(filter()?)),
        None => None,
    };
    // A second start in one process (the demo after `serve`) keeps the first.
    let registry = tracing_subscriber::registry().with(layer.with_filter(filter()?)).with(lines);
    registry.try_init().ok();
    Ok(())
}
