//! What lists that passed by showed agents: tools that the gateway's own reads do not find, or find to be
//! as they were reviewed.

use chrono::{DateTime, TimeDelta, Utc};
use sluice_domain::{ChangeKind, ServerId, ToolState, WorkspaceId};

use super::find;
use super::read::{MAX_NAME_BYTES, ReadChanges, ReadTool, add, compare};
use crate::conn::execute;
use crate::{Conn, StoreError, changes, servers};

/// Tools that agents alone know of, for one server; a server must not be able to fill the store.
const MAX_TOOLS: i64 = 4_000;
/// How often it is noted that the same is shown again.
const NOTED_EVERY: TimeDelta = TimeDelta::minutes(5);

/// Notes the definitions that agents were shown, and says what they change; `None` if there is no such
/// server, or its tools were never read: then nothing was reviewed that could differ.
pub async fn note_shown(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
    shown: &[ReadTool],
    now: DateTime<Utc>,
) -> Result<Option<ReadChanges>, StoreError> {
    let row = servers::lock(conn, workspace, server).await?;
    if !row.is_some_and(|row| row.tools_read) {
        return Ok(None);
    }
    let mut report = ReadChanges::default();
    let mut touched = false;
    let mut known = super::count(conn, workspace, server).await?;
    for tool in shown {
        let name = &tool.definition.name;
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
            report.ignored += 1;
            continue;
        }
        match find(conn, workspace, server, name).await? {
            None if known >= MAX_TOOLS => report.ignored += 1,
            None => {
                add(conn, (workspace, server), tool, &mut report, now).await?;
                known += 1;
                touched = true;
            }
            Some(old) => {
                let fresh = old.shown_at.is_some_and(|at| now - at < NOTED_EVERY);
                let same = old.hash == tool.hash && old.state != ToolState::Gone;
                if fresh && same {
                    report.unchanged += 1;
                    continue;
                }
                touched |= compare(conn, &old, tool, &mut report, now).await?;
            }
        }
        let sql = "UPDATE tools SET shown_at = $4
                   WHERE workspace_id = $1 AND server_id = $2 AND name = $3";
        execute!(conn, sql, workspace, server, name, now)?;
    }
    if touched {
        changes::append(conn, workspace, ChangeKind::Tools, server.uuid(), now).await?;
    }
    Ok(Some(report))
}
