//! Log lines on standard error, as text or JSON.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

use crate::failure::{Failure, Outcome};
use crate::settings::{LogArgs, LogFormat};

/// Begins to write log lines.
pub(crate) fn start(log: &LogArgs) -> Outcome {
    let filter = EnvFilter::try_new(&log.log)
        .with_context(|| format!("`--log` is not a filter: `{}`", log.log))
        .map_err(|error| Failure::settings(error).remedy("write a level such as `info`"))?;
    let layer = match log.log_format {
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed()
        }
        LogFormat::Text => fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .boxed(),
    };
    // A second start in one process (the demo after `serve`) keeps the first.
    tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().ok();
    Ok(())
}
