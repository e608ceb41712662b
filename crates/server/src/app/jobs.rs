//! What is done every few seconds or hours: approvals expire, idle sessions end, old rows go.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_control::{Control, ControlError};
use sluice_limits::Counters;
use sluice_proxy::ProxyState;
use sluice_store::Db;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::retention::Retention;
use crate::clock;
use crate::ports::StoredApprovals;

const SAVED_EVERY: Duration = Duration::from_secs(2);
const OFTEN: Duration = Duration::from_secs(5);
/// How often messages are looked for that nobody announced.
const LOOK: Duration = Duration::from_secs(2);
const SELDOM: Duration = Duration::from_hours(1);

/// Ends idle sessions and expired approvals until `stop`.
pub(super) async fn often(control: Control, proxy: ProxyState, stop: CancellationToken) {
    while wait(OFTEN, &stop).await {
        proxy.tidy().await;
        match control.expire_approvals().await {
            Ok(_) | Err(ControlError::Unavailable(_)) => {}
            Err(error) => error!(error = ?error, "Approvals could not be expired"),
        }
        match control.close_lost_releases(false).await {
            Ok(0) | Err(ControlError::Unavailable(_)) => {}
            Ok(lost) => warn!(
                lost,
                "Approved calls were lost with their replica; whether they ran is unknown"
            ),
            Err(error) => error!(error = ?error, "Lost calls could not be looked for"),
        }
    }
}

/// Says every few seconds which approved calls run here, until `stop`.
pub(super) async fn say_what_runs(approvals: Arc<StoredApprovals>, stop: CancellationToken) {
    while wait(OFTEN, &stop).await {
        match tokio::time::timeout(OFTEN, approvals.say_what_runs()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                warn!(error = ?error, "The database is not told which approved calls run");
            }
            Err(_) => warn!("The database is slow to learn which approved calls run"),
        }
    }
}

/// Keeps the index of the public catalogue up to date until `stop`: commands beside this process fill it.
pub(super) async fn catalogue(control: Control, stop: CancellationToken) {
    loop {
        match control.refresh_shelf().await {
            Ok(_) | Err(ControlError::Unavailable(_)) => {}
            Err(error) => error!(error = ?error, "The catalogue could not be read"),
        }
        if !wait(OFTEN, &stop).await {
            return;
        }
    }
}

/// Tells people of parked calls, and sends what is to be sent, until `stop`.
pub(super) async fn notices(control: Control, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let work = async {
            match control.tell_news().await {
                Ok(_) | Err(ControlError::Unavailable(_)) => {}
                Err(error) => error!(error = ?error, "News of approvals could not be told"),
            }
            match control.deliver_due().await {
                Ok(_) | Err(ControlError::Unavailable(_)) => {}
                Err(error) => error!(error = ?error, "Messages could not be sent"),
            }
        };
        tokio::pin!(work);
        tokio::select! {
            () = &mut work => {}
            () = stop.cancelled() => {
                // What is on its way may still arrive; what does not is sent by the next process.
                tokio::time::timeout(OFTEN, work).await.ok();
                return;
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = control.outgoing(LOOK) => {}
        }
    }
}

/// Writes the counters of this process to their file every few seconds until `stop`, so that a crash
/// loses no more than what was counted since.
pub(super) async fn save_counters(counters: Counters, file: PathBuf, stop: CancellationToken) {
    let (mut pause, mut failing) = (SAVED_EVERY, false);
    while wait(pause, &stop).await {
        let began = Instant::now();
        match counters.save_changes(&file).await {
            Ok(_) => failing = false,
            Err(_) if failing => {}
            Err(error) => {
                failing = true;
                warn!(error = ?error, "The counters cannot be written; a crash would begin them anew");
            }
        }
        // However many there are, writing takes at most a hundredth of the time.
        pause = SAVED_EVERY.max(began.elapsed() * 100);
    }
}

/// Deletes what is kept no longer until `stop`.
pub(super) async fn seldom(
    control: Control,
    db: Db,
    retention: Retention,
    stop: CancellationToken,
) {
    loop {
        if let Err(error) = control.sweep().await {
            warn!(error = ?error, "Old logins and keys could not be deleted");
        }
        match control.erase_closed_workspaces().await {
            Ok(0) => {}
            Ok(workspaces) => {
                info!(workspaces, "Erased workspaces that were deleted two weeks ago");
            }
            Err(error) => warn!(error = ?error, "Deleted workspaces could not be erased"),
        }
        match retention.apply(&db, clock::now()).await {
            Ok((0, 0)) => {}
            Ok((rows, days)) => info!(rows, days, "Deleted log rows and days past their retention"),
            Err(error) => warn!(error = ?error, "Old rows could not be deleted"),
        }
        if !wait(SELDOM, &stop).await {
            return;
        }
    }
}

async fn wait(time: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = tokio::time::sleep(time) => true,
    }
}
