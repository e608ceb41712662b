//! Wires the crates into a running Sluice.

mod assembly;
mod jobs;
mod retention;
mod routers;
mod stores;
mod tools;

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sluice_limits::Counters;
use sluice_proxy::{ProxyState, Spans};
use sluice_store::{Db, ServingLock};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::failure::Outcome;
use crate::records::Writer;
use crate::settings::ServeArgs;

/// The stages of a stop, each a token that tasks wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stages {
    /// Readiness fails; idle streams end.
    pub(crate) stopping: CancellationToken,
    /// Nothing new is accepted; what is in flight ends.
    pub(crate) closing: CancellationToken,
    /// Log queues are written out.
    pub(crate) draining: CancellationToken,
}

/// A running Sluice.
#[derive(Debug)]
pub(crate) struct Running {
    address: SocketAddr,
    example: Option<SocketAddr>,
    stages: Stages,
    listeners: JoinSet<()>,
    tasks: JoinSet<()>,
    writers: Vec<Writer>,
    proxy: ProxyState,
    counters: Counters,
    counters_file: std::path::PathBuf,
    db: Db,
    /// How long requests are taken after a stop, so that whoever sends them here learns of it first.
    notice: Duration,
    _locks: (Option<File>, Option<ServingLock>),
}

/// Starts everything; ready when it returns.
pub(crate) async fn start(args: ServeArgs, spans: Option<Arc<dyn Spans>>) -> Outcome<Running> {
    assembly::assemble(args, spans).await
}

impl Running {
    /// Where the main address really is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the example server listens, if it runs.
    pub(crate) fn example(&self) -> Option<SocketAddr> {
        self.example
    }

    /// Stops in order; `patient` gives notice first.
    pub(crate) async fn stop(mut self, patient: bool) {
        self.stages.stopping.cancel();
        self.proxy.stop();
        if patient {
            tokio::time::sleep(self.notice).await;
        }
        self.stages.closing.cancel();
        while self.listeners.join_next().await.is_some() {}
        self.stages.draining.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                error!(%error, "A task broke");
            }
        }
        for writer in self.writers {
            writer.drained().await;
        }
        if let Err(error) = self.counters.save(&self.counters_file).await {
            warn!(%error, "The counters could not be saved and begin anew at the next start");
        }
        self.db.close().await;
    }
}
