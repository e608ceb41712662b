//! What agents were shown in lists of tools: names beyond those that the store knows, since some servers
//! offer more to clients that can do more, and definitions, since a server may show agents another one
//! than it showed the gateway.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use moka::sync::Cache;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use sluice_domain::{GrantId, ServerId, ToolDefinition};
use sluice_limits::Bindings;
use sluice_mcp::ToolEntry;
use sluice_upstream::definition_hash;

use crate::ports::{ShownTool, ToolsSeen};
use crate::route::Route;

/// Names beyond the store's that are remembered for one grant; replicas share them.
pub(crate) const MAX_NAMES: usize = 1_000;
const MAX_NAME: usize = 1_024;
const GRANTS: u64 = 20_000;
/// About how much of the pages' names and hashes is kept, in bytes.
const PAGES: u64 = 32 << 20;
const DEFINITIONS: u64 = 200_000;
pub(crate) const REMEMBERED_FOR: Duration = Duration::from_hours(24);
/// The store is told of the same definition once in this time.
const TOLD_EVERY: Duration = Duration::from_mins(10);

/// One page of a list: each tool's name and the hash of its definition.
type Page = Arc<Vec<(String, String)>>;

pub(crate) struct SeenTools {
    shared: Bindings,
    names: Cache<(GrantId, ServerId), Arc<Mutex<HashSet<String>>>>,
    /// A server must not be able to make two pages look the same: the hash is seeded.
    pages: Cache<(ServerId, u64), Page>,
    seed: RandomState,
    /// Hashes of the definitions that a grant was shown last, where one was not as reviewed.
    shown: Cache<(GrantId, String), Shown>,
    /// Whether any was ever noted: nearly always none was, and no call needs to look.
    any_shown: AtomicBool,
    /// Whether definitions, by their hashes, have signs of poison.
    scanned: Cache<String, bool>,
    told: Cache<(ServerId, String), ()>,
}

/// The definition that a grant was shown last.
#[derive(Clone)]
struct Shown {
    hash: Arc<str>,
    poisoned: bool,
}

/// What is new about a page.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The process had not seen a page like it of this server.
    pub(crate) first: bool,
    /// Some definition is another one than the grant was shown before.
    pub(crate) turned: bool,
    /// Tools that are not as they were reviewed, and that the store was not told of lately.
    pub(crate) tell: Vec<ShownTool>,
}

impl SeenTools {
    pub(crate) fn new(shared: Bindings) -> Self {
        let names = Cache::builder().max_capacity(GRANTS).time_to_idle(REMEMBERED_FOR).build();
        let pages = Cache::builder()
            .weigher(|_, page: &Page| {
                let size: usize =
                    page.iter().map(|(name, hash)| name.len() + hash.len() + 64).sum();
                u32::try_from(size + 64).unwrap_or(u32::MAX)
            })
            .max_capacity(PAGES)
            .time_to_live(REMEMBERED_FOR)
            .build();
        let shown = Cache::builder().max_capacity(DEFINITIONS).time_to_idle(REMEMBERED_FOR).build();
        let told = Cache::builder().max_capacity(DEFINITIONS).time_to_live(TOLD_EVERY).build();
        let scanned =
            Cache::builder().max_capacity(DEFINITIONS).time_to_idle(REMEMBERED_FOR).build();
        let any_shown = AtomicBool::new(false);
        Self { shared, names, pages, seed: RandomState::new(), shown, any_shown, scanned, told }
    }

    /// Whether the grant was shown this tool, by this replica or another.
    pub(crate) async fn knows(&self, grant: GrantId, server: ServerId, tool: &str) -> bool {
        if self.names.get(&(grant, server)).is_some_and(|names| names.lock().contains(tool)) {
            return true;
        }
        if tool.len() > MAX_NAME {
            return false;
        }
        let owner = owner(grant, server);
        let there = matches!(self.shared.get(&owner, tool, REMEMBERED_FOR).await, Ok(Some(_)));
        if there {
            self.keep(grant, server, [tool]);
        }
        there
    }

    /// Keeps names here; gives those that were not there.
    fn keep<'a>(
        &self,
        grant: GrantId,
        server: ServerId,
        tools: impl IntoIterator<Item = &'a str>,
    ) -> Vec<&'a str> {
        let names = self.names.get_with((grant, server), Arc::default);
        let mut names = names.lock();
        let room =
            |names: &HashSet<String>, tool: &str| names.len() < MAX_NAMES && tool.len() <= MAX_NAME;
        tools
            .into_iter()
            .filter(|tool| room(&names, tool) && names.insert((*tool).to_owned()))
            .collect()
    }

    /// Names of a list that neither the store nor this replica knew.
    fn news(&self, route: &Route, tools: &[ToolEntry]) -> Vec<String> {
        let extra = tools.iter().map(|tool| &*tool.name).filter(|name| route.tool(name).is_none());
        let extra: Vec<&str> = extra.collect();
        if extra.is_empty() {
            return Vec::new();
        }
        let new = self.keep(route.record.grant.id, route.record.server.id, extra);
        new.into_iter().map(str::to_owned).collect()
    }

    /// Remembers for all replicas that the grant was shown tools that the store does not know.
    pub(crate) async fn remember(&self, route: &Route, tools: &[ToolEntry]) {
        let new = self.news(route, tools);
        if new.is_empty() {
            return;
        }
        let server = route.record.server.id;
        let owner = owner(route.record.grant.id, server);
        let mut puts = FuturesUnordered::new();
        for name in &new {
            puts.push(self.shared.put(&owner, name, b"", REMEMBERED_FOR));
        }
        while let Some(put) = puts.next().await {
            if put.is_err() {
                tracing::warn!(%server, "Could not tell other replicas which tools a grant was shown");
                return;
            }
        }
    }

    /// Compares a page with the definitions that were reviewed; what was not is looked at for poison.
    pub(crate) fn compare(
        &self,
        route: &Route,
        tools: &[ToolEntry],
        scanner: &dyn ToolsSeen,
    ) -> News {
        let (grant, server) = (route.record.grant.id, route.record.server.id);
        let mut news = News::default();
        let key =
            (server, self.seed.hash_one(tools.iter().map(|tool| &tool.raw).collect::<Vec<_>>()));
        let page = self.pages.get(&key).unwrap_or_else(|| {
            news.first = true;
            let page: Page =
                Arc::new(tools.iter().map(|tool| (tool.name.clone(), hash(tool))).collect());
            self.pages.insert(key, Arc::clone(&page));
            page
        });
        for ((name, hash), entry) in page.iter().zip(tools) {
            let as_reviewed = route.tool(name).is_some_and(|tool| tool.definition_hash == *hash);
            let poisoned = || !as_reviewed && self.scan(hash, entry, scanner);
            let turned = self.turn(grant, (name, hash), as_reviewed, poisoned);
            news.turned |= turned;
            // One that is as reviewed again is told of too, so that the store can say so.
            let told = || self.told.contains_key(&(server, hash.clone()));
            if if as_reviewed { !turned } else { told() } {
                continue;
            }
            if let Some(definition) = definition(entry) {
                self.told.insert((server, hash.clone()), ());
                news.tell.push(ShownTool { hash: hash.clone(), definition });
            }
        }
        news
    }

    /// Notes which definition a grant is shown; true if it is another one than before. One that is as
    /// reviewed needs a note only to take another one's place.
    fn turn(
        &self,
        grant: GrantId,
        (name, hash): (&str, &str),
        as_reviewed: bool,
        poisoned: impl FnOnce() -> bool,
    ) -> bool {
        let key = (grant, name.to_owned());
        match self.shown.get(&key) {
            Some(known) if *known.hash == *hash => false,
            None if as_reviewed => false,
            _ => {
                self.any_shown.store(true, Ordering::Release);
                self.shown.insert(key, Shown { hash: Arc::from(hash), poisoned: poisoned() });
                true
            }
        }
    }

    fn last_shown(&self, route: &Route, name: &str) -> Option<Shown> {
        let any = self.any_shown.load(Ordering::Acquire);
        any.then(|| self.shown.get(&(route.record.grant.id, name.to_owned()))).flatten()
    }

    /// Whether the grant was shown another definition of a tool than the one that was reviewed.
    pub(crate) fn differs(&self, route: &Route, name: &str) -> bool {
        let Some(tool) = route.tool(name) else { return false };
        let shown = self.last_shown(route, name);
        shown.is_some_and(|shown| *shown.hash != *tool.definition_hash)
    }

    /// Whether the definition that the grant was shown last was never reviewed and has signs of poison.
    pub(crate) fn poisoned(&self, route: &Route, name: &str) -> bool {
        let Some(shown) = self.last_shown(route, name) else { return false };
        let reviewed = route.tool(name).is_some_and(|tool| *tool.definition_hash == *shown.hash);
        shown.poisoned && !reviewed
    }

    /// Looks at a definition once; of one that cannot be read as such, at its whole text.
    fn scan(&self, hash: &str, entry: &ToolEntry, scanner: &dyn ToolsSeen) -> bool {
        self.scanned.get_with(hash.to_owned(), || {
            let whole = || ToolDefinition {
                name: entry.name.clone(),
                title: None,
                description: Some(entry.raw.clone()),
                input_schema: None,
                output_schema: None,
                annotations: None,
            };
            scanner.is_poisoned(&definition(entry).unwrap_or_else(whole))
        })
    }
}

fn owner(grant: GrantId, server: ServerId) -> String {
    format!("seen:{grant}:{server}")
}

fn definition(entry: &ToolEntry) -> Option<ToolDefinition> {
    serde_json::from_str(&entry.raw).ok()
}

/// The hash by which definitions are pinned; of one that cannot be read as such, a hash that is never pinned.
fn hash(entry: &ToolEntry) -> String {
    definition(entry).map_or_else(
        || format!("unreadable {:x?}", Sha256::digest(entry.raw.as_bytes())),
        |definition| definition_hash(&definition),
    )
}
