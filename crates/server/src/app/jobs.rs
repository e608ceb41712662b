//! What is done every few seconds or hours: approvals expire, idle sessions end, old rows go.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sluice_control::{Control, ControlError};
use sluice_domain::WorkspaceId;
use sluice_limits::Counters;
use sluice_proxy::ProxyState;
use sluice_store::{Db, StoreError, approvals, calls, changes, security_events, workspaces};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::clock;
use crate::ports::StoredApprovals;
use crate::settings::BoundsArgs;

const SAVED_EVERY: Duration = Duration::from_secs(2);
const OFTEN: Duration = Duration::from_secs(5);
/// How often messages are looked for that nobody announced.
const LOOK: Duration = Duration::from_secs(2);
const SELDOM: Duration = Duration::from_hours(1);
const PIECE: i64 = 5_000;

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
        // However many there are, writing takes at most a twentieth of the time.
        pause = SAVED_EVERY.max(began.elapsed() * 20);
    }
}

/// Deletes what is kept no longer until `stop`.
pub(super) async fn seldom(control: Control, db: Db, bounds: BoundsArgs, stop: CancellationToken) {
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
        match clean(&db, &bounds).await {
            Ok(0) => {}
            Ok(rows) => info!(rows, "Deleted log rows past their retention"),
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

async fn clean(db: &Db, bounds: &BoundsArgs) -> Result<u64, StoreError> {
    let now = clock::now();
    let mut tx = db.begin().await?;
    let conn = &mut tx.conn();
    changes::prune(conn, now - (bounds.stale_routes * 2).max(SELDOM)).await?;
    tx.commit().await?;
    let mut deleted = 0;
    if !bounds.security_retention.is_zero() {
        deleted += delete(db, Log::Security, now - bounds.security_retention).await?;
    }
    if !bounds.call_retention.is_zero() {
        let before = now - bounds.call_retention;
        deleted += delete(db, Log::Approvals, before).await?;
        for workspace in all_workspaces(db).await? {
            deleted += delete(db, Log::Calls(workspace), before).await?;
        }
    }
    Ok(deleted)
}

#[derive(Clone, Copy)]
enum Log {
    Security,
    Approvals,
    Calls(WorkspaceId),
}

/// Deletes in pieces, so that writers get their turn in between.
async fn delete(db: &Db, log: Log, before: DateTime<Utc>) -> Result<u64, StoreError> {
    let mut deleted = 0;
    loop {
        let mut tx = db.begin().await?;
        let conn = &mut tx.conn();
        let rows = match log {
            Log::Security => security_events::prune(conn, before, PIECE).await?,
            Log::Approvals => approvals::prune(conn, before, PIECE).await?,
            Log::Calls(workspace) => calls::prune(conn, workspace, before, PIECE).await?,
        };
        tx.commit().await?;
        deleted += rows;
        if rows < PIECE.unsigned_abs() {
            return Ok(deleted);
        }
    }
}

async fn all_workspaces(db: &Db) -> Result<Vec<WorkspaceId>, StoreError> {
    let mut all: Vec<WorkspaceId> = Vec::new();
    loop {
        let mut tx = db.read().await?;
        let page = workspaces::list_all(&mut tx.conn(), all.last().copied(), PIECE).await?;
        tx.rollback().await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page.iter().map(|workspace| workspace.id));
    }
}
