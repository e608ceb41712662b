//! Search over servers and their tools.

use std::sync::LazyLock;

use sluice_domain::ToolDefinition;

use super::index::{Texts, WordIndex};
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
    documents: Vec<(&'a ServerEntry, Option<&'a ToolDefinition>)>,
    words: WordIndex,
}

static INDEX: LazyLock<Index<'static>> = LazyLock::new(|| Index::new(starter()));

/// Searches the starter set.
pub fn search(query: &str, limit: usize) -> Vec<Hit<'static>> {
    INDEX.search(query, limit)
}

impl<'a> Index<'a> {
    /// Indexes the entries' names, titles and summaries, and their tools' names and descriptions.
    pub fn new(entries: &'a [ServerEntry]) -> Self {
        let documents: Vec<(&ServerEntry, Option<&ToolDefinition>)> = entries
            .iter()
            .flat_map(|entry| {
                std::iter::once((entry, None))
                    .chain(entry.tools.iter().map(move |tool| (entry, Some(tool))))
            })
            .collect();
        let words = WordIndex::build(documents.iter().map(|(server, tool)| match tool {
            Some(tool) => Texts {
                name: &tool.name,
                also: &server.title,
                description: tool.description.as_deref().unwrap_or_default(),
            },
            None => Texts {
                name: &server.title,
                also: &server.owner_name,
                description: &server.summary,
            },
        }));
        Self { documents, words }
    }

    /// The best `limit` hits, best first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit<'a>> {
        self.words
            .search(query, limit)
            .into_iter()
            .filter_map(|(document, score)| {
                let (server, tool) = self.documents.get(document as usize)?;
                Some(Hit { server, tool: *tool, score })
            })
            .collect()
    }
}
