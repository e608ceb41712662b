//! Keeps records: which may replace which, and what changed.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use sluice_domain::ToolDefinition;
use sluice_risk::catalogue::registry::{Record, clean};
use sluice_risk::catalogue::{Identity, Lifecycle, ServerEntry};
use sluice_risk::{classify, findings};
use sluice_store::Conn;
use sluice_store::catalogue::{self, CatalogueChange, CatalogueServer, CatalogueTool};
use uuid::Uuid;

use super::entry;
use crate::ControlError;

/// The beginning of a description that search knows.
const MOST_ABOUT: usize = 240;

/// What became of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Kept {
    pub added: usize,
    pub changed: usize,
    pub unchanged: usize,
    /// A newer or better proven record of that name stands.
    pub refused: usize,
    /// Tools that were added, changed or taken out.
    pub tools: usize,
}

impl std::ops::AddAssign for Kept {
    fn add_assign(&mut self, more: Self) {
        self.added += more.added;
        self.changed += more.changed;
        self.unchanged += more.unchanged;
        self.refused += more.refused;
        self.tools += more.tools;
    }
}

/// Rows that are written at the end, many at once.
#[derive(Default)]
struct Batch {
    servers: Vec<CatalogueServer>,
    tools: Vec<CatalogueTool>,
    changes: Vec<CatalogueChange>,
    kept: Kept,
}

/// Keeps them in the caller's transaction.
pub(super) async fn keep(
    conn: &mut Conn<'_>,
    origin: &str,
    records: Vec<Record>,
    now: DateTime<Utc>,
) -> Result<Kept, ControlError> {
    let mut batch = Batch::default();
    for record in newest(records, &mut batch.kept) {
        match catalogue::find(conn, &record.entry.slug).await? {
            None => batch.add(origin, record, now)?,
            Some(stored) => update(conn, origin, stored, record, &mut batch, now).await?,
        }
    }
    catalogue::insert_servers(conn, &batch.servers).await?;
    catalogue::insert_tools(conn, &batch.tools).await?;
    catalogue::insert_changes(conn, &batch.changes).await?;
    let kept = batch.kept;
    if kept.added + kept.changed + kept.tools > 0 {
        catalogue::note_change(conn).await?;
    }
    Ok(kept)
}

/// One record a name, the last that is not an old version; in the order in which they came.
fn newest(records: Vec<Record>, kept: &mut Kept) -> Vec<Record> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut found: Vec<Record> = Vec::new();
    for record in records {
        if record.superseded {
            kept.refused += 1;
            continue;
        }
        let Some(at) = places.get(&record.entry.slug) else {
            places.insert(record.entry.slug.clone(), found.len());
            found.push(record);
            continue;
        };
        kept.refused += 1;
        if time(&record) >= time(&found[*at]) {
            found[*at] = record;
        }
    }
    found
}

/// When the registry last changed it.
fn time(record: &Record) -> Option<DateTime<Utc>> {
    let text = record.updated_at.as_deref()?;
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
}

/// The record's time, of which the future is none: it would shut out every later record.
fn past(record: &Record, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    time(record).map(|at| at.min(now))
}

fn text(mut entry: ServerEntry) -> Result<String, ControlError> {
    entry.tools = Vec::new();
    entry.tools_complete = false;
    serde_json::to_string(&entry).map_err(ControlError::internal)
}

fn row(
    server: Uuid,
    place: usize,
    definition: &ToolDefinition,
) -> Result<CatalogueTool, ControlError> {
    let rating = classify(definition);
    let about = definition.description.as_deref().or(definition.title.as_deref());
    Ok(CatalogueTool {
        server_id: server,
        name: definition.name.clone(),
        place: i64::try_from(place).unwrap_or(i64::MAX),
        definition: serde_json::to_string(definition).map_err(ControlError::internal)?,
        about: clean(about.unwrap_or_default(), MOST_ABOUT),
        category: rating.category,
        severity: rating.severity,
        poisoned: !findings(definition).is_empty(),
    })
}

impl Batch {
    fn add(
        &mut self,
        origin: &str,
        record: Record,
        now: DateTime<Utc>,
    ) -> Result<(), ControlError> {
        let id = Uuid::now_v7();
        for (place, definition) in record.entry.tools.iter().enumerate() {
            self.tools.push(row(id, place, definition)?);
        }
        self.kept.added += 1;
        self.kept.tools += record.entry.tools.len();
        self.servers.push(CatalogueServer {
            id,
            slug: record.entry.slug.clone(),
            origin: origin.to_owned(),
            is_deleted: record.entry.lifecycle == Some(Lifecycle::Deleted),
            is_proven: record.entry.identity != Identity::Unverified,
            record_updated_at: past(&record, now),
            tools_first_at: record.tells_tools.then_some(now),
            tools_last_at: record.tells_tools.then_some(now),
            first_seen_at: now,
            changed_at: now,
            entry: text(record.entry)?,
        });
        Ok(())
    }

    fn note(&mut self, server: Uuid, at: DateTime<Utc>, kind: &str, what: String) {
        let id = Uuid::now_v7();
        self.changes.push(CatalogueChange {
            id,
            server_id: server,
            at,
            kind: kind.to_owned(),
            what,
        });
    }
}

/// Whether a record from `origin` may take the place of what stands.
fn may_replace(
    stored: &CatalogueServer,
    origin: &str,
    record: &Record,
    now: DateTime<Utc>,
) -> bool {
    let older = match (past(record, now), stored.record_updated_at) {
        (Some(new), Some(old)) => new < old,
        _ => false,
    };
    let from_file = !origin.starts_with("http") && stored.origin.starts_with("http");
    let less_proven = stored.is_proven && record.entry.identity == Identity::Unverified;
    !older && !from_file && !less_proven
}

async fn update(
    conn: &mut Conn<'_>,
    origin: &str,
    mut stored: CatalogueServer,
    record: Record,
    batch: &mut Batch,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    let replace = may_replace(&stored, origin, &record, now);
    let tells = record.tells_tools.then(|| record.entry.tools.clone());
    if !replace && tells.is_none() {
        batch.kept.refused += 1;
        return Ok(());
    }
    let updated = past(&record, now);
    let new = if replace { Some((text(record.entry.clone())?, record.entry)) } else { None };
    let mut changed = false;
    if let Some((new, record)) = new.filter(|(new, _)| *new != stored.entry) {
        for what in differences(&entry(&stored)?, &record) {
            batch.note(stored.id, now, "record", what);
        }
        stored.origin = origin.to_owned();
        stored.is_deleted = record.lifecycle == Some(Lifecycle::Deleted);
        stored.is_proven = record.identity != Identity::Unverified;
        stored.record_updated_at = updated;
        stored.entry = new;
        changed = true;
    }
    if let Some(tools) = tells {
        changed |= update_tools(conn, &mut stored, &tools, batch, now).await?;
    }
    if changed {
        stored.changed_at = now;
        batch.kept.changed += 1;
    } else {
        batch.kept.unchanged += 1;
    }
    Ok(catalogue::update_server(conn, &stored).await?)
}

async fn update_tools(
    conn: &mut Conn<'_>,
    stored: &mut CatalogueServer,
    tools: &[ToolDefinition],
    batch: &mut Batch,
    now: DateTime<Utc>,
) -> Result<bool, ControlError> {
    let first = stored.tools_first_at.is_none();
    stored.tools_first_at.get_or_insert(now);
    stored.tools_last_at = Some(now);
    let before = catalogue::tools(conn, stored.id).await?;
    let mut known: HashMap<&str, &CatalogueTool> =
        before.iter().map(|tool| (tool.name.as_str(), tool)).collect();
    let names: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut changes = 0;
    for (place, definition) in tools.iter().enumerate() {
        let new = row(stored.id, place, definition)?;
        match known.remove(new.name.as_str()) {
            Some(old) if old.definition == new.definition => continue,
            Some(_) => {
                catalogue::remove_tool(conn, stored.id, &new.name).await?;
                batch.note(stored.id, now, "changed", new.name.clone());
            }
            None if !first => batch.note(stored.id, now, "added", new.name.clone()),
            None => {}
        }
        batch.tools.push(new);
        changes += 1;
    }
    for gone in before.iter().filter(|tool| !names.contains(tool.name.as_str())) {
        catalogue::remove_tool(conn, stored.id, &gone.name).await?;
        batch.note(stored.id, now, "removed", gone.name.clone());
        changes += 1;
    }
    batch.kept.tools += changes;
    Ok(changes > 0)
}

/// What a reader wants to know of a changed record, in a few words each.
fn differences(old: &ServerEntry, new: &ServerEntry) -> Vec<String> {
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let mut found = Vec::new();
    if old.version != new.version {
        found.push(format!("version {} became {}", shown(&old.version), shown(&new.version)));
    }
    if let (true, Some(state)) = (old.lifecycle != new.lifecycle, new.lifecycle) {
        found.push(format!("it is {state} now"));
    }
    if old.upstream_url != new.upstream_url {
        found.push(format!("its address became {}", shown(&new.upstream_url)));
    }
    if old.repository != new.repository {
        found.push(format!("its code moved to {}", shown(&new.repository)));
    }
    if old.identity != new.identity {
        found.push(format!("who publishes it is {} now", new.identity));
    }
    if found.is_empty() {
        found.push("its words changed".to_owned());
    }
    found
}
