//! The public catalogue: what registries, files and workspaces that agreed tell, kept beside the starter set of the binary,
//! and an index of all in memory for search and lists. It belongs to no workspace and asks for no permission.

mod keep;
mod reports;
pub(crate) mod share;
mod shelf;
mod sync;

pub use keep::Kept;
pub use reports::ReportForm;
pub use share::Publication;
pub(crate) use shelf::InUse;
pub use shelf::{Shelf, ShelfHit, ShelfServer, ShelfTool};
pub use sluice_store::catalogue::Report;
pub use sync::{Fetch, FetchError, SyncError, SyncReport, origin_of};

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::ToolDefinition;
use sluice_limits::Clock;
use sluice_risk::catalogue::registry::Record;
use sluice_risk::catalogue::{self as starter, ServerEntry};
use sluice_risk::grade::{Grade, Looked, STABILITY_DAYS, Watched, grade_of};
use sluice_store::catalogue::{self, CatalogueServer};
use sluice_store::{Conn, Db};

use crate::{Control, ControlError};

/// Changes that a page shows.
const MOST_CHANGES: i64 = 50;

/// A record with all that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogueRecord {
    pub entry: ServerEntry,
    /// `None`: the definitions were seen once only, or never.
    pub watched: Option<Watched>,
    /// Newest first.
    pub changes: Vec<RecordChange>,
    /// How many of the tools a workspace gave; the record itself does not tell them.
    pub given: usize,
}

/// Something that changed in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    pub at: DateTime<Utc>,
    /// `added`, `changed`, `removed` for tools, `record` for the record itself.
    pub kind: String,
    pub what: String,
}

impl CatalogueRecord {
    /// Computed from what is known now.
    pub fn grade(&self) -> Grade {
        let tools: Vec<Looked<'_>> = self.entry.tools.iter().map(Looked::at).collect();
        grade_of(&self.entry, &tools, self.watched)
    }
}

/// What fills the catalogue: the operator's commands. Works beside a running server.
pub struct Keeper {
    db: Db,
    clock: Clock,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeper")
    }
}

impl Keeper {
    /// On a database whose schema is current.
    pub fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock }
    }

    /// Keeps records that came from `origin`; what is there already and newer stays.
    pub async fn keep(&self, origin: &str, records: Vec<Record>) -> Result<Kept, ControlError> {
        let now = (self.clock)();
        let mut tx = self.db.begin().await?;
        let kept = keep::keep(&mut tx.conn(), origin, records, now).await?;
        tx.commit().await?;
        Ok(kept)
    }

    /// A record by its name or its place in URLs.
    pub async fn find(&self, name: &str) -> Result<Option<CatalogueRecord>, ControlError> {
        let slug =
            if name.contains('/') { starter::registry::slug(name) } else { name.to_lowercase() };
        let by_name = |entry: &&ServerEntry| entry.owner_name.eq_ignore_ascii_case(name);
        let of_starter = starter::starter().iter().find(by_name);
        let slug = of_starter.map_or(slug, |entry| entry.slug.clone());
        read(&self.db, &slug, (self.clock)()).await
    }
}

impl Control {
    /// A record by its place in URLs.
    pub async fn catalogue_record(
        &self,
        slug: &str,
    ) -> Result<Option<CatalogueRecord>, ControlError> {
        read(&self.inner.db, slug, self.now()).await
    }

    /// The index as it is now.
    pub fn shelf(&self) -> Arc<Shelf> {
        self.inner.shelf.load()
    }

    /// Builds the index anew if the catalogue changed since; says whether it did.
    pub async fn refresh_shelf(&self) -> Result<bool, ControlError> {
        let held = self.shelf().revision();
        let mut tx = self.read().await?;
        let revision = catalogue::revision(&mut tx.conn()).await?;
        tx.rollback().await?;
        if held == Some(revision) {
            return Ok(false);
        }
        let built = shelf::build(&self.inner.db, revision).await?;
        self.inner.shelf.replace(built);
        Ok(true)
    }
}

fn of_starter(entry: &ServerEntry) -> CatalogueRecord {
    CatalogueRecord { entry: entry.clone(), watched: None, changes: Vec::new(), given: 0 }
}

async fn read(
    db: &Db,
    slug: &str,
    now: DateTime<Utc>,
) -> Result<Option<CatalogueRecord>, ControlError> {
    let mut tx = db.read().await?;
    let conn = &mut tx.conn();
    let mut record = if let Some(entry) = starter::find(slug) {
        of_starter(entry)
    } else {
        let Some(server) = catalogue::find(conn, slug).await? else { return Ok(None) };
        whole(conn, &server, now).await?
    };
    join_given(conn, &mut record).await?;
    tx.rollback().await?;
    Ok(Some(record))
}

/// Adds the tools that a workspace gave at the record's own address; what the record tells of a tool stands.
async fn join_given(conn: &mut Conn<'_>, record: &mut CatalogueRecord) -> Result<(), ControlError> {
    let Some(slug) = starter::shared::joins(&record.entry) else { return Ok(()) };
    let Some(server) = catalogue::find(conn, &slug).await? else { return Ok(()) };
    if server.origin != share::ORIGIN {
        return Ok(());
    }
    for tool in catalogue::tools(conn, server.id).await? {
        if record.entry.tools.iter().all(|own| own.name != tool.name) {
            let tool = serde_json::from_str(&tool.definition).map_err(ControlError::internal)?;
            record.entry.tools.push(tool);
            record.given += 1;
        }
    }
    record.entry.tools_complete &= record.given == 0;
    Ok(())
}

async fn whole(
    conn: &mut Conn<'_>,
    server: &CatalogueServer,
    now: DateTime<Utc>,
) -> Result<CatalogueRecord, ControlError> {
    let mut entry = entry(server)?;
    let tools = catalogue::tools(conn, server.id).await?;
    let is_shared = server.origin == share::ORIGIN;
    // What is given by a workspace may leave something out.
    entry.tools_complete = server.tools_first_at.is_some() && !is_shared;
    if let (true, Some(read)) = (is_shared, server.tools_last_at) {
        entry.as_of = read.format("%Y-%m-%d").to_string();
    }
    entry.tools = tools
        .iter()
        .map(|tool| serde_json::from_str::<ToolDefinition>(&tool.definition))
        .collect::<Result<_, _>>()
        .map_err(ControlError::internal)?;
    let since = now - TimeDelta::days(STABILITY_DAYS);
    let watched = match (server.tools_first_at, server.tools_last_at) {
        (Some(first), Some(last)) if last > first => {
            let changes = catalogue::count_changed(conn, server.id, since).await?;
            let changes = usize::try_from(changes).unwrap_or_default();
            Some(Watched { days: (now - first).num_days(), changes })
        }
        _ => None,
    };
    let changes = catalogue::changes(conn, server.id, MOST_CHANGES).await?;
    let changes = changes
        .into_iter()
        .map(|change| RecordChange { at: change.at, kind: change.kind, what: change.what })
        .collect();
    let given = if is_shared { entry.tools.len() } else { 0 };
    Ok(CatalogueRecord { entry, watched, changes, given })
}

/// The record without its tools.
fn entry(server: &CatalogueServer) -> Result<ServerEntry, ControlError> {
    serde_json::from_str(&server.entry).map_err(ControlError::internal)
}
