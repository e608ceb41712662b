//! What a fresh read of a server's tools changes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{
    Category, ChangeKind, ServerId, Severity, ToolDefinition, ToolId, ToolState, WorkspaceId,
};

use super::{Tool, list};
use crate::column::json;
use crate::conn::execute;
use crate::{Conn, StoreError, changes, servers};

/// One tool as read and rated.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadTool {
    pub definition: ToolDefinition,
    /// [`super::fingerprint`] of the definition.
    pub hash: String,
    pub category: Category,
    pub severity: Severity,
    pub rating: serde_json::Value,
    pub findings: serde_json::Value,
    /// Hold it for review: it has findings, and the server's settings say so.
    pub hold: bool,
}

/// The names of what a read changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadChanges {
    /// The first read of this server: all was taken as reviewed.
    pub first: bool,
    pub added: Vec<String>,
    /// Another definition than at the read before.
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    pub unchanged: usize,
    /// Waiting for a person now, whenever they changed.
    pub held: Vec<String>,
    /// Left out, because their names are longer than [`MAX_NAME_BYTES`] or hold U+0000; they count
    /// as unknown.
    pub ignored: usize,
}

/// Longer tool names are not kept; the specification asks for 128 characters at most.
pub const MAX_NAME_BYTES: usize = 512;

/// How a tool stands after a read. A definition that was reviewed is current, whatever came
/// between; one that was not is changed, or held if it has signs of poison. At the first read
/// everything is reviewed but what is held.
pub(super) fn state(reviewed: Option<&str>, read: &ReadTool, first: bool) -> (ToolState, bool) {
    match reviewed {
        Some(hash) if hash == read.hash => (ToolState::Current, false),
        _ if read.hold => (ToolState::Held, false),
        None if first => (ToolState::Current, true),
        _ => (ToolState::Changed, false),
    }
}

/// For how long agents' word that a tool is another one than reviewed outweighs a read that finds it as
/// reviewed: a server may show the gateway what it likes.
const SHOWN_OTHERWISE_FOR: TimeDelta = TimeDelta::hours(1);
/// For how long a tool that only agents are shown stays without being shown again.
const SHOWN_ALONE_FOR: TimeDelta = TimeDelta::days(7);

fn shown_lately(old: &Tool, now: DateTime<Utc>, within: TimeDelta) -> bool {
    old.shown_at.is_some_and(|at| now - at < within)
}

/// Whether a read finds a tool as it was reviewed, while agents were shown another definition lately.
fn contradicts(old: &Tool, read: &ReadTool, now: DateTime<Utc>) -> bool {
    old.hash != read.hash
        && old.state != ToolState::Gone
        && old.reviewed_hash.as_ref() == Some(&read.hash)
        && shown_lately(old, now, SHOWN_OTHERWISE_FOR)
}

/// Stores a fresh read of the server's tools and says what changed; `None` if there is no such
/// server. Of two entries of one name the first counts. Ratings are renewed even where the
/// definition stayed. A tool that is gone and was never reviewed is forgotten.
pub async fn replace_read(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    read: &[ReadTool],
    now: DateTime<Utc>,
) -> Result<Option<ReadChanges>, StoreError> {
    let Some(row) = servers::lock(conn, workspace, server).await? else { return Ok(None) };
    let mut known: BTreeMap<String, Tool> = list(conn, workspace, server)
        .await?
        .into_iter()
        .map(|tool| (tool.name.clone(), tool))
        .collect();
    let mut report = ReadChanges { first: !row.tools_read, ..ReadChanges::default() };
    let mut names = BTreeSet::new();
    let mut touched = report.first;
    for tool in read {
        let name = &tool.definition.name;
        if name.len() > MAX_NAME_BYTES || name.contains('\0') {
            report.ignored += 1;
            continue;
        }
        if !names.insert(name.as_str()) {
            continue;
        }
        match known.remove(name) {
            None => {
                add(conn, (workspace, server), tool, &mut report, now).await?;
                touched = true;
            }
            Some(old) if contradicts(&old, tool, now) => {
                note(&mut report, old.state, name);
                report.unchanged += 1;
            }
            Some(old) => touched |= compare(conn, &old, tool, &mut report, now).await?,
        }
    }
    let left = known.into_values().filter(|tool| tool.state != ToolState::Gone);
    for old in left.filter(|tool| !shown_lately(tool, now, SHOWN_ALONE_FOR)) {
        remove(conn, &old, now).await?;
        report.removed.push(old.name);
        touched = true;
    }
    if touched {
        let sql = "UPDATE servers SET tools_read = TRUE WHERE workspace_id = $1 AND id = $2";
        execute!(conn, sql, workspace, server)?;
        changes::append(conn, workspace, ChangeKind::Tools, server.uuid(), now).await?;
    }
    Ok(Some(report))
}

pub(super) async fn add(
    conn: &mut Conn<'_>,
    place: (WorkspaceId, ServerId),
    read: &ReadTool,
    report: &mut ReadChanges,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let (state, pin) = state(None, read, report.first);
    let definition = json("tools.definition", &read.definition)?;
    execute!(
        conn,
        "INSERT INTO tools
             (id, workspace_id, server_id, name, definition, hash, reviewed_definition,
              reviewed_hash, reviewed_at, state, category, severity, rating, findings,
              first_seen_at, changed_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15)",
        ToolId::new(),
        place.0,
        place.1,
        &read.definition.name,
        &definition,
        &read.hash,
        pin.then_some(&definition),
        pin.then_some(&read.hash),
        pin.then_some(now),
        state,
        read.category,
        read.severity,
        json("tools.rating", &read.rating)?,
        json("tools.findings", &read.findings)?,
        now
    )?;
    note(report, state, &read.definition.name);
    report.added.push(read.definition.name.clone());
    Ok(())
}

/// Says whether anything of the tool is other than it was.
pub(super) async fn compare(
    conn: &mut Conn<'_>,
    old: &Tool,
    read: &ReadTool,
    report: &mut ReadChanges,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let (state, _) = state(old.reviewed_hash.as_deref(), read, false);
    let changed = old.hash != read.hash;
    let name = &read.definition.name;
    note(report, state, name);
    if old.state == ToolState::Gone {
        report.added.push(name.clone());
    } else if changed {
        report.changed.push(name.clone());
    } else {
        report.unchanged += 1;
    }
    let same = !changed
        && (old.state, old.category, old.severity) == (state, read.category, read.severity)
        && (&old.rating, &old.findings) == (&read.rating, &read.findings);
    if same {
        return Ok(false);
    }
    execute!(
        conn,
        "UPDATE tools SET definition = $3, hash = $4, state = $5, category = $6, severity = $7,
                rating = $8, findings = $9, changed_at = $10
         WHERE workspace_id = $1 AND id = $2",
        old.workspace_id,
        old.id,
        json("tools.definition", &read.definition)?,
        &read.hash,
        state,
        read.category,
        read.severity,
        json("tools.rating", &read.rating)?,
        json("tools.findings", &read.findings)?,
        if changed { now } else { old.changed_at }
    )?;
    Ok(true)
}

fn note(report: &mut ReadChanges, state: ToolState, name: &str) {
    if state == ToolState::Held {
        report.held.push(name.to_owned());
    }
}

async fn remove(conn: &mut Conn<'_>, old: &Tool, now: DateTime<Utc>) -> Result<(), StoreError> {
    let (workspace, id) = (old.workspace_id, old.id);
    if old.reviewed_hash.is_none() {
        execute!(conn, "DELETE FROM tools WHERE workspace_id = $1 AND id = $2", workspace, id)?;
        return Ok(());
    }
    let sql =
        "UPDATE tools SET state = 'gone', changed_at = $3 WHERE workspace_id = $1 AND id = $2";
    execute!(conn, sql, workspace, id, now)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(hash: &str, hold: bool) -> ReadTool {
        let definition = serde_json::from_str(r#"{"name":"t"}"#).expect("a definition");
        ReadTool {
            definition,
            hash: hash.to_owned(),
            category: Category::Read,
            severity: Severity::Low,
            rating: serde_json::Value::Null,
            findings: serde_json::Value::Null,
            hold,
        }
    }

    proptest! {
        #[test]
        fn only_what_was_reviewed_is_current(
            reviewed in proptest::option::of("[ab]"), now in "[ab]", hold: bool, first: bool,
        ) {
            let (state, pin) = state(reviewed.as_deref(), &read(&now, hold), first);
            let was_reviewed = reviewed.as_deref() == Some(now.as_str());
            prop_assert_eq!(state == ToolState::Current, was_reviewed || pin);
            prop_assert_eq!(pin, first && !hold && reviewed.is_none());
            prop_assert_eq!(state == ToolState::Held, hold && !was_reviewed);
        }
    }
}
