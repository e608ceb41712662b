//! Log lines on standard error, as text or JSON, and the metrics recorder.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

use crate::failure::{Failure, Outcome};
use crate::settings::{LogArgs, LogFormat};

/// Upper bounds of the latency histograms' buckets, in seconds.
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0,
];

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

/// The recorder behind `/metrics`.
pub(crate) fn metrics() -> Outcome<PrometheusHandle> {
    PrometheusBuilder::new()
        .set_buckets(SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("cannot start the metrics recorder")
        .map_err(Failure::bad)
}
