//! Reads servers again whose lists held something new.

use futures_util::StreamExt as _;
use futures_util::stream;
use sluice_control::Control;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

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
        let reading = stream::iter(servers).for_each_concurrent(AT_ONCE, async |(workspace, server)| {
            match control.reread(workspace, server).await {
                Ok(Ok(_)) => info!(%server, "Read a server's tools again: its list had changed"),
                // Why is kept with the server, where people see it.
                Ok(Err(failure)) => debug!(%server, code = failure.code, "A server's tools could not be read again"),
                Err(error) => debug!(%server, %error, "A server's tools could not be read again"),
            }
        });
        tokio::select! {
            () = stop.cancelled() => return,
            () = reading => {}
        }
    }
}
