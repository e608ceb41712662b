//! The change feed's reader: tells the proxy which cached routes to read again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sluice_control::Control;
use sluice_domain::{ApprovalId, ChangeKind, GrantId, PolicyId, ServerId};
use sluice_proxy::{Change as Stale, ProxyState};
use sluice_store::ChangeFeed;
use sluice_store::changes::Change;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A database that hangs counts as one that is down.
const PATIENCE: Duration = Duration::from_secs(5);

/// When the feed was last read.
#[derive(Debug)]
pub(crate) struct FeedState(Mutex<Instant>);

impl FeedState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Instant::now())))
    }

    /// How long ago the feed was last read.
    pub(crate) fn silent_for(&self) -> Duration {
        self.0.lock().elapsed()
    }

    fn alive(&self) {
        *self.0.lock() = Instant::now();
    }
}

/// Reads the feed until `stop`. It must have been opened before the proxy cached anything.
pub(crate) async fn run(
    mut feed: ChangeFeed,
    proxy: ProxyState,
    control: Control,
    state: Arc<FeedState>,
    decided: broadcast::Sender<ApprovalId>,
    stop: CancellationToken,
) {
    let mut failing = false;
    while !stop.is_cancelled() {
        match tokio::time::timeout(PATIENCE, feed.look()).await {
            Ok(Ok(found)) => {
                if std::mem::take(&mut failing) {
                    info!("The change feed is read again");
                }
                found.iter().filter_map(stale).for_each(|change| proxy.changed(change));
                for change in found.iter().filter(|change| change.kind == ChangeKind::Approval) {
                    decided.send(ApprovalId::from_uuid(change.object_id)).ok();
                    control.approval_changed(change.workspace_id);
                }
                proxy.feed_alive();
                state.alive();
                if !found.is_empty() {
                    continue;
                }
            }
            Ok(Err(_)) | Err(_) if failing => {}
            Ok(Err(error)) => {
                failing = true;
                warn!(error = ?error, "The change feed cannot be read; cached grants go on");
            }
            Err(_) => {
                failing = true;
                warn!("The change feed gives no answer; cached grants go on");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = feed.wait() => {}
        }
    }
}

/// What of the cache a change makes stale; `None` for what is not cached.
fn stale(change: &Change) -> Option<Stale> {
    let id = change.object_id;
    match change.kind {
        ChangeKind::Grant => Some(Stale::Grant(GrantId::from_uuid(id))),
        ChangeKind::Server | ChangeKind::Tools => Some(Stale::Server(ServerId::from_uuid(id))),
        ChangeKind::Policy => Some(Stale::Policy(PolicyId::from_uuid(id))),
        ChangeKind::Workspace => Some(Stale::Workspace(change.workspace_id)),
        ChangeKind::Member | ChangeKind::Approval | ChangeKind::ApiToken | ChangeKind::User => None,
    }
}
