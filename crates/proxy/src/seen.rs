//! Names of tools that a grant was shown in lists, beyond those the store
//! knows: some servers offer more tools to clients that can do more.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use parking_lot::Mutex;
use sluice_domain::{GrantId, ServerId};
use sluice_mcp::ToolEntry;

/// Names remembered for one grant; a server that lists more is known by its own list only.
const MAX_NAMES: usize = 5_000;
const GRANTS: u64 = 20_000;
const PAGES: u64 = 50_000;
const REMEMBERED_FOR: Duration = Duration::from_hours(24);

#[derive(Debug, Clone)]
pub(crate) struct SeenTools {
    names: Cache<(GrantId, ServerId), Arc<Mutex<HashSet<String>>>>,
    pages: Cache<(ServerId, u64), ()>,
}

impl SeenTools {
    pub(crate) fn new() -> Self {
        let names = Cache::builder().max_capacity(GRANTS).time_to_idle(REMEMBERED_FOR).build();
        let pages = Cache::builder().max_capacity(PAGES).time_to_live(REMEMBERED_FOR).build();
        Self { names, pages }
    }

    /// Whether the grant was shown this tool.
    pub(crate) fn knows(&self, grant: GrantId, server: ServerId, tool: &str) -> bool {
        self.names.get(&(grant, server)).is_some_and(|names| names.lock().contains(tool))
    }

    /// Remembers a page of a list; true if the process had not seen a page like it of this server.
    pub(crate) fn remember(
        &self,
        grant: GrantId,
        server: ServerId,
        tools: &[ToolEntry],
        known: impl Fn(&str) -> bool,
    ) -> bool {
        let new: Vec<&ToolEntry> = tools.iter().filter(|tool| !known(&tool.name)).collect();
        if !new.is_empty() {
            let names = self.names.get_with((grant, server), Arc::default);
            let mut names = names.lock();
            for tool in new {
                if names.len() < MAX_NAMES && tool.name.len() <= 1_024 {
                    names.insert(tool.name.clone());
                }
            }
        }
        let mut hasher = DefaultHasher::new();
        for tool in tools {
            tool.raw.hash(&mut hasher);
        }
        let page = (server, hasher.finish());
        let first = !self.pages.contains_key(&page);
        self.pages.insert(page, ());
        first
    }
}
