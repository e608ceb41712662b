//! The index of the whole catalogue in memory: what search and lists are answered from. Built aside, and swapped in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use sluice_domain::{Category, Severity};
use sluice_risk::catalogue::registry::clean;
use sluice_risk::catalogue::shared::joins;
use sluice_risk::catalogue::{IndexBuilder, ServerEntry, Texts, WordIndex, starter};
use sluice_risk::{classify, findings};
use sluice_store::Db;
use sluice_store::catalogue as stored;
use sluice_store::catalogue::ListedTool;
use uuid::Uuid;

use super::{entry, share};
use crate::ControlError;

/// Rows that are read at once.
const PIECE: i64 = 5_000;

/// A server on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfServer {
    pub slug: Box<str>,
    pub owner_name: Box<str>,
    pub title: Box<str>,
    pub summary: Box<str>,
    pub tools: u32,
}

/// A tool on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfTool {
    /// The place of its server.
    pub server: u32,
    pub name: Box<str>,
    pub category: Category,
    pub severity: Severity,
    /// Its definition has signs of poison.
    pub poisoned: bool,
    /// The beginning of what it does.
    pub about: Box<str>,
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShelfHit<'a> {
    Server(&'a ShelfServer),
    Tool(&'a ShelfServer, &'a ShelfTool),
}

/// The index.
#[derive(Debug)]
pub struct Shelf {
    revision: Option<i64>,
    servers: Vec<ShelfServer>,
    tools: Vec<ShelfTool>,
    /// What each document of the index is: tools have the highest bit set.
    documents: Vec<u32>,
    words: WordIndex,
    /// Records of what workspaces gave that are part of another: their places in URLs, and the other's.
    joined: HashMap<Box<str>, Box<str>>,
}

const TOOL: u32 = 1 << 31;
/// Characters of a tool's description that lists show.
const MOST_ABOUT: usize = 100;

/// The shelf that is in use.
#[derive(Debug)]
pub(crate) struct InUse(ArcSwap<Shelf>);

impl InUse {
    /// With the starter set alone, until the database was read.
    pub(crate) fn new() -> Self {
        Self(ArcSwap::from_pointee(Shelf::starter()))
    }

    pub(crate) fn load(&self) -> Arc<Shelf> {
        self.0.load_full()
    }

    pub(crate) fn replace(&self, built: Shelf) {
        self.0.store(Arc::new(built));
    }
}

impl Shelf {
    /// The starter set alone.
    pub fn starter() -> Self {
        Building::with_starter().finish(None)
    }

    /// The catalogue's number when it was read.
    pub(super) fn revision(&self) -> Option<i64> {
        self.revision
    }

    /// All servers: the starter set first, then by their places in URLs.
    pub fn servers(&self) -> &[ShelfServer] {
        &self.servers
    }

    /// All tools, those of one server together.
    pub fn tools(&self) -> &[ShelfTool] {
        &self.tools
    }

    /// The server of a tool.
    pub fn server_of(&self, tool: &ShelfTool) -> &ShelfServer {
        &self.servers[tool.server as usize]
    }

    /// The place in URLs of the record that tells the tools given at this one.
    pub fn joined(&self, slug: &str) -> Option<&str> {
        self.joined.get(slug).map(AsRef::as_ref)
    }

    /// Whether this record also tells what a workspace gave.
    pub fn has_joined(&self, slug: &str) -> bool {
        self.joined.values().any(|other| &**other == slug)
    }

    /// The best hits, best first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<ShelfHit<'_>> {
        let found = self.words.search(query, limit);
        found.iter().filter_map(|(document, _)| self.hit(*document)).collect()
    }

    fn hit(&self, document: u32) -> Option<ShelfHit<'_>> {
        let place = *self.documents.get(document as usize)?;
        if place & TOOL == 0 {
            return self.servers.get(place as usize).map(ShelfHit::Server);
        }
        let tool = self.tools.get((place & !TOOL) as usize)?;
        Some(ShelfHit::Tool(self.server_of(tool), tool))
    }

    /// How many tools there are, and this part of them.
    pub fn tools_where(
        &self,
        holds: impl Fn(&ShelfTool) -> bool,
        skip: usize,
        take: usize,
    ) -> (usize, Vec<&ShelfTool>) {
        let total = self.tools.iter().filter(|tool| holds(tool)).count();
        let part = self.tools.iter().filter(|tool| holds(tool)).skip(skip).take(take).collect();
        (total, part)
    }
}

#[derive(Default)]
struct Building {
    servers: Vec<ShelfServer>,
    tools: Vec<ShelfTool>,
    documents: Vec<u32>,
    words: IndexBuilder,
    places: HashMap<Uuid, u32>,
    /// Who speaks for the addresses at which workspaces give tools.
    speakers: HashMap<String, u32>,
    joined: HashMap<Box<str>, Box<str>>,
    /// Records that are part of another, and their tools.
    given: HashSet<Uuid>,
    waiting: Vec<ListedTool>,
}

/// Category, severity, and whether it looks poisoned.
type Rated = (Category, Severity, bool);

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX) & !TOOL
}

impl Building {
    fn with_starter() -> Self {
        let mut building = Self::default();
        for entry in starter() {
            let server = building.server(entry);
            for tool in &entry.tools {
                let rating = classify(tool);
                let about = tool.description.as_deref().unwrap_or_default();
                let poisoned = !findings(tool).is_empty();
                let rating = (rating.category, rating.severity, poisoned);
                building.tool(server, &tool.name, about, rating);
            }
        }
        building
    }

    fn server(&mut self, entry: &ServerEntry) -> u32 {
        let place = number(self.servers.len());
        if let Some(slug) = joins(entry) {
            self.speakers.entry(slug).or_insert(place);
        }
        self.words.add(&Texts {
            name: &entry.title,
            also: &entry.owner_name,
            description: &entry.summary,
        });
        self.documents.push(place);
        self.servers.push(ShelfServer {
            slug: entry.slug.as_str().into(),
            owner_name: entry.owner_name.as_str().into(),
            title: entry.title.as_str().into(),
            summary: entry.summary.as_str().into(),
            tools: 0,
        });
        place
    }

    fn tool(&mut self, server: u32, name: &str, about: &str, rating: Rated) {
        let place = number(self.tools.len());
        let Some(of) = self.servers.get_mut(server as usize) else { return };
        of.tools += 1;
        self.words.add(&Texts { name, also: &of.title, description: about });
        self.documents.push(place | TOOL);
        let (category, severity, poisoned) = rating;
        let about = clean(about, MOST_ABOUT).into_boxed_str();
        let name = name.into();
        self.tools.push(ShelfTool { server, name, category, severity, poisoned, about });
    }

    /// What a workspace gave: part of the record that speaks for the address, or a record of its own.
    fn given(&mut self, id: Uuid, entry: &ServerEntry) {
        let speaker = self.speakers.get(&entry.slug).copied();
        let place = speaker.unwrap_or_else(|| self.server(entry));
        if let Some(of) = speaker.and_then(|place| self.servers.get(place as usize)) {
            self.joined.insert(entry.slug.as_str().into(), of.slug.clone());
            self.given.insert(id);
        }
        self.places.insert(id, place);
    }

    /// Adds the given tools that the records they are part of do not tell themselves.
    fn add_given(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let places: HashSet<u32> =
            waiting.iter().filter_map(|tool| self.places.get(&tool.server_id).copied()).collect();
        let own: HashSet<(u32, Box<str>)> = self
            .tools
            .iter()
            .filter(|tool| places.contains(&tool.server))
            .map(|tool| (tool.server, tool.name.clone()))
            .collect();
        self.given.clear();
        for tool in &waiting {
            let place = self.places.get(&tool.server_id).copied().unwrap_or(u32::MAX);
            if !own.contains(&(place, tool.name.as_str().into())) {
                self.listed(tool);
            }
        }
    }

    fn listed(&mut self, tool: &ListedTool) {
        if self.given.contains(&tool.server_id) {
            self.waiting.push(tool.clone());
            return;
        }
        if let Some(server) = self.places.get(&tool.server_id).copied() {
            self.tool(
                server,
                &tool.name,
                &tool.about,
                (tool.category, tool.severity, tool.poisoned),
            );
        }
    }

    fn finish(mut self, revision: Option<i64>) -> Shelf {
        self.add_given();
        Shelf {
            joined: self.joined,
            revision,
            servers: self.servers,
            tools: self.tools,
            documents: self.documents,
            words: self.words.finish(),
        }
    }
}

/// Reads the whole catalogue in pieces, in one snapshot.
pub(super) async fn build(db: &Db, revision: i64) -> Result<Shelf, ControlError> {
    let mut building = Building::with_starter();
    let mut tx = db.read().await?;
    let conn = &mut tx.conn();
    let mut after = String::new();
    let mut given = Vec::new();
    loop {
        let piece = stored::next_servers(conn, &after, PIECE).await?;
        let Some(last) = piece.last() else { break };
        after.clone_from(&last.slug);
        for server in piece.iter().filter(|server| !server.is_deleted) {
            let entry = entry(server)?;
            if server.origin == share::ORIGIN {
                given.push((server.id, entry));
            } else {
                let place = building.server(&entry);
                building.places.insert(server.id, place);
            }
        }
    }
    for (id, entry) in given {
        building.given(id, &entry);
    }
    let mut after = (Uuid::nil(), String::new());
    loop {
        let piece = stored::next_tools(conn, (after.0, &after.1), PIECE).await?;
        let Some(last) = piece.last() else { break };
        after = (last.server_id, last.name.clone());
        building = tokio::task::spawn_blocking(move || {
            for tool in &piece {
                building.listed(tool);
            }
            building
        })
        .await
        .map_err(ControlError::internal)?;
    }
    tx.rollback().await?;
    tokio::task::spawn_blocking(move || building.finish(Some(revision)))
        .await
        .map_err(ControlError::internal)
}
