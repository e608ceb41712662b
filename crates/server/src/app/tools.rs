//! Reads servers again whose lists held something new.

use futures_util::StreamExt as _;
use futures_util::stream;
use sluice_control::Control;
use sluice_domain::{ServerId, ToolDefinition, WorkspaceId};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::ports::ToolsQueue;

/// Servers that are read at once.
const AT_ONCE: usize = 4;

/// Reads what the proxy saw change, until `stop`.
pub(super) async fn read_again(control: Control, seen: ToolsQueue, stop: CancellationToken) {
    loop {
        let servers = tokio::select! {
            () = stop.cancelled() => return,
            servers = seen.next() => servers,
        };
        let reading = stream::iter(servers).for_each_concurrent(AT_ONCE, async |(place, shown)| {
            one(&control, place, shown).await;
        });
        tokio::select! {
            () = stop.cancelled() => return,
            () = reading => {}
        }
    }
}

async fn one(
    control: &Control,
    (workspace, server): (WorkspaceId, ServerId),
    shown: Vec<ToolDefinition>,
) {
    match control.reread(workspace, server).await {
        Ok(Ok(_)) => info!(%server, "Read a server's tools again: its list had changed"),
        // Why is kept with the server, where people see it.
        Ok(Err(failure)) => {
            debug!(%server, code = %failure.code, "A server's tools could not be read again");
        }
        Err(error) => debug!(%server, %error, "A server's tools could not be read again"),
    }
    if shown.is_empty() {
        return;
    }
    match control.shown(workspace, server, shown).await {
        Ok(Some(report)) if !(report.changed.is_empty() && report.added.is_empty()) => {
            warn!(
                %workspace, %server, changed = report.changed.len(), added = report.added.len(),
                "A server shows agents other tools than it shows the gateway"
            );
        }
        Ok(_) => {}
        Err(error) => warn!(%server, %error, "Could not note which tools agents were shown"),
    }
}
