//! Servers whose lists held something new, on their way to be read again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sluice_domain::{ServerId, ToolDefinition, WorkspaceId};
use sluice_proxy::{ShownTool, ToolsSeen};
use tokio::sync::Notify;

/// Servers that wait at once; what comes then is seen again with the next list.
const MAX_WAITING: usize = 1_000;
/// Definitions that wait for one server.
const MAX_SHOWN: usize = 500;

/// Servers that wait to be read, each once, with what their lists showed agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolsQueue(Arc<Waiting>);

/// What waits: definitions by server.
type Shown = HashMap<(WorkspaceId, ServerId), Vec<ToolDefinition>>;

#[derive(Debug, Default)]
struct Waiting {
    servers: Mutex<Shown>,
    some: Notify,
}

impl ToolsSeen for ToolsQueue {
    fn seen(&self, workspace: WorkspaceId, server: ServerId, tools: Vec<ShownTool>) {
        let mut servers = self.0.servers.lock();
        if servers.len() >= MAX_WAITING && !servers.contains_key(&(workspace, server)) {
            return;
        }
        let shown = servers.entry((workspace, server)).or_default();
        let room = MAX_SHOWN.saturating_sub(shown.len());
        shown.extend(tools.into_iter().take(room).map(|tool| tool.definition));
        self.0.some.notify_one();
    }

    fn is_poisoned(&self, definition: &ToolDefinition) -> bool {
        !sluice_risk::findings(definition).is_empty()
    }
}

impl ToolsQueue {
    /// Waits for servers to read.
    pub(crate) async fn next(&self) -> Shown {
        loop {
            let waiting = std::mem::take(&mut *self.0.servers.lock());
            if !waiting.is_empty() {
                return waiting;
            }
            self.0.some.notified().await;
        }
    }
}
