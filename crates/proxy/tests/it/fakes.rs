//! Ports that keep everything in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sluice_domain::{RouteRecord, SecurityEvent, ServerId, ToolDefinition, WorkspaceId};
use sluice_proxy::{Routes, SecurityLog, ShownTool, StoreUnavailable, ToolsSeen};
use sluice_vault::TokenHash;

/// The routes of all grants, as the store would have them.
#[derive(Default)]
pub(crate) struct FakeStore {
    pub(crate) routes: Mutex<HashMap<TokenHash, RouteRecord>>,
    pub(crate) down: AtomicBool,
    pub(crate) loads: AtomicUsize,
}

impl Routes for FakeStore {
    fn load<'a>(
        &'a self,
        token: &'a TokenHash,
    ) -> BoxFuture<'a, Result<Option<RouteRecord>, StoreUnavailable>> {
        Box::pin(async move {
            self.loads.fetch_add(1, Ordering::Relaxed);
            if self.down.load(Ordering::Relaxed) {
                return Err(StoreUnavailable);
            }
            Ok(self.routes.lock().get(token).cloned())
        })
    }
}

#[derive(Default)]
pub(crate) struct Noted {
    pub(crate) events: Mutex<Vec<SecurityEvent>>,
    pub(crate) lists: AtomicUsize,
    /// Names and definitions of tools that were not as reviewed.
    pub(crate) shown: Mutex<Vec<ShownTool>>,
}

impl SecurityLog for Noted {
    fn record(&self, event: SecurityEvent) {
        self.events.lock().push(event);
    }
}

impl ToolsSeen for Noted {
    fn seen(&self, _: WorkspaceId, _: ServerId, tools: Vec<ShownTool>) {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.shown.lock().extend(tools);
    }

    fn is_poisoned(&self, definition: &ToolDefinition) -> bool {
        definition.description.as_deref().is_some_and(|text| text.contains("<IMPORTANT>"))
    }
}
