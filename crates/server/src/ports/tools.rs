//! Servers whose lists held something new, on their way to be read again.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use sluice_domain::{ServerId, WorkspaceId};
use sluice_proxy::ToolsSeen;
use tokio::sync::Notify;

/// Servers that wait at once; what comes then is seen again with the next list.
const MAX_WAITING: usize = 1_000;

/// Servers that wait to be read; each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolsQueue(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    servers: Mutex<HashSet<(WorkspaceId, ServerId)>>,
    some: Notify,
}

impl ToolsSeen for ToolsQueue {
    fn seen(&self, workspace: WorkspaceId, server: ServerId) {
        let mut servers = self.0.servers.lock();
        if servers.len() < MAX_WAITING && servers.insert((workspace, server)) {
            self.0.some.notify_one();
        }
    }
}

impl ToolsQueue {
    /// Waits for servers to read.
    pub(crate) async fn next(&self) -> Vec<(WorkspaceId, ServerId)> {
        loop {
            let waiting: Vec<_> = self.0.servers.lock().drain().collect();
            if !waiting.is_empty() {
                return waiting;
            }
            self.0.some.notified().await;
        }
    }
}
