//! `sluice serve`: runs until a signal says stop.

use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::app::{self, Running};
use crate::failure::{Failure, Outcome};
use crate::settings::ServeArgs;
use crate::telemetry::Collector;
use crate::{cli, say, telemetry};

pub(crate) async fn run(args: ServeArgs) -> Outcome {
    let collector = Collector::start(&args.collector)?;
    telemetry::start_with(&args.log, collector.lines())?;
    args.check().map_err(Failure::settings)?;
    warn_of_oversights(&args);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::bad)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::bad)?;
    let running = tokio::select! {
        running = app::start(args.clone(), collector.spans()) => running?,
        // A start may wait long, for a migration of another replica.
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    greet(&args, &running);
    let patient = tokio::select! {
        _ = interrupt.recv() => false,
        _ = terminate.recv() => true,
    };
    info!("Stopping: calls in flight end first");
    tokio::select! {
        () = running.stop(patient) => info!("Stopped"),
        _ = interrupt.recv() => warn!("Stopped at once, at the second signal"),
        _ = terminate.recv() => warn!("Stopped at once, at the second signal"),
    }
    collector.end().await;
    Ok(())
}

/// What is allowed and probably not meant.
fn warn_of_oversights(args: &ServeArgs) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in cli::unknown_variables(names) {
        warn!("{name} is no setting of Sluice and is ignored; `sluice serve --help` lists them");
    }
    if args.storage.redis_url.is_some() && args.storage.keys.master_keys.is_none() {
        warn!(
            "Keys are generated into the data directory; several replicas must be given the same \
             ones by SLUICE_MASTER_KEYS, or they cannot open each other's stored credentials"
        );
    }
}

/// Tells a person where to go.
fn greet(args: &ServeArgs, running: &Running) {
    let network = &args.network;
    say!("Sluice {} is ready.", env!("CARGO_PKG_VERSION"));
    if network.role.serves_control() {
        say!("  Open {} in a browser to begin.", network.public_url);
    }
    if network.role.serves_proxy() {
        say!("  Agents connect to {}mcp/<server>.", network.proxy_url());
    }
    say!("  Listening on {}; data in {}.", running.address(), args.storage.data_dir.display());
    say!("  Ctrl-C stops it; `sluice --help` shows the other commands.");
}
