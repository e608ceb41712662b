//! Typo-tolerant, ranked search over the catalogue, in memory.

use std::sync::LazyLock;

use sluice_domain::ToolDefinition;

use super::{ServerEntry, starter};

/// A server or one of its tools.
#[derive(Debug, Clone, Copy)]
pub struct Hit<'a> {
    pub server: &'a ServerEntry,
    /// `None`: the server itself.
    pub tool: Option<&'a ToolDefinition>,
    /// Higher is better; only for comparing hits of one search.
    pub score: u32,
}

/// An index built once from entries.
#[derive(Debug)]
pub struct Index<'a> {
    entries: &'a [ServerEntry],
}

static INDEX: LazyLock<Index<'static>> = LazyLock::new(|| Index::new(starter()));

/// Searches the starter set.
pub fn search(query: &str, limit: usize) -> Vec<Hit<'static>> {
    INDEX.search(query, limit)
}

impl<'a> Index<'a> {
    /// Indexes the entries' names, titles and summaries, and their tools' names and descriptions.
    pub fn new(entries: &'a [ServerEntry]) -> Self {
        Self { entries }
    }

    /// The best `limit` hits, best first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit<'a>> {
        let query = query.trim().to_lowercase();
        let matches = |text: &str| text.to_lowercase().contains(&query);
        let tools = self.entries.iter().flat_map(|server| {
            server.tools.iter().map(move |tool| Hit { server, tool: Some(tool), score: 1 })
        });
        let servers = self.entries.iter().map(|server| Hit { server, tool: None, score: 1 });
        tools
            .chain(servers)
            .filter(|hit| {
                hit.tool.map_or_else(|| matches(&hit.server.owner_name), |tool| matches(&tool.name))
            })
            .take(limit)
            .collect()
    }
}
