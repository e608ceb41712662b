//! The admin audit log as the operator checks it: every chain, against itself and against a hash
//! that was noted elsewhere.

use sluice_domain::WorkspaceId;
use sluice_store::{admin_events, workspaces};

use super::Operator;
use crate::audit::hex;
use crate::codes;
use crate::{ControlError, EventView};

/// Events that are read in one go.
const PIECE: i64 = 500;

/// What was found of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// The workspace's slug; none of the chain of what belongs to no workspace.
    pub workspace: Option<String>,
    pub state: ChainState,
}

/// Whether a chain is as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainState {
    /// Every event follows the one before. `head` is the newest event's hash, in hex.
    Whole { events: u64, head: String },
    /// Which event does not fit, in words.
    Broken(String),
}

impl Operator {
    /// Checks the chain of a workspace, or all. `head` is a hash that was noted earlier, and must
    /// still be that of one of the events.
    pub async fn verify_audit(
        &self,
        workspace: Option<&str>,
        head: Option<&str>,
    ) -> Result<Vec<ChainReport>, ControlError> {
        let mut chains = Vec::new();
        if let Some(slug) = workspace {
            chains.push((Some(self.find_workspace(slug).await?), Some(slug.to_owned())));
        } else {
            chains.push((None, None));
            chains.extend(self.all_workspaces().await?);
        }
        let mut reports = Vec::new();
        for (id, workspace) in chains {
            let state = self.verify_chain(id, head).await?;
            reports.push(ChainReport { workspace, state });
        }
        Ok(reports)
    }

    async fn all_workspaces(
        &self,
    ) -> Result<Vec<(Option<WorkspaceId>, Option<String>)>, ControlError> {
        let mut all: Vec<(Option<WorkspaceId>, Option<String>)> = Vec::new();
        loop {
            let after = all.last().and_then(|(id, _)| *id);
            let mut tx = self.db.read().await?;
            let page = workspaces::list_all(&mut tx.conn(), after, PIECE).await?;
            tx.commit().await?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page.into_iter().map(|one| (Some(one.id), Some(one.slug))));
        }
    }

    async fn verify_chain(
        &self,
        workspace: Option<WorkspaceId>,
        head: Option<&str>,
    ) -> Result<ChainState, ControlError> {
        let mut tx = self.db.read().await?;
        let conn = &mut tx.conn();
        let chain = match admin_events::verify(conn, workspace).await? {
            Ok(chain) => chain,
            Err(broken) => return Ok(ChainState::Broken(broken.to_string())),
        };
        if let Some(head) = head {
            let noted = unhex(head).ok_or_else(|| {
                let detail = "this is no hash of an event: 64 hexadecimal digits";
                ControlError::invalid("/head", codes::BAD_HASH, detail)
            })?;
            if admin_events::find_by_hash(conn, workspace, &noted).await?.is_none() {
                let words = "no event has the hash that was noted: events were cut off at the end, \
                             or written anew";
                return Ok(ChainState::Broken(words.to_owned()));
            }
        }
        // Older events may have been removed only where that is told.
        if chain.events > 0 && chain.first_seq != 1 {
            let words = format!("the events before {} are missing", chain.first_seq);
            return Ok(ChainState::Broken(words));
        }
        tx.commit().await?;
        Ok(ChainState::Whole { events: chain.events, head: hex(&chain.head) })
    }

    /// The workspace that has this slug.
    pub async fn find_workspace(&self, slug: &str) -> Result<WorkspaceId, ControlError> {
        let mut tx = self.db.read().await?;
        let found = workspaces::find_by_slug(&mut tx.conn(), slug).await?;
        tx.commit().await?;
        Ok(found.ok_or(ControlError::NotFound("workspace"))?.id)
    }

    /// Some of a workspace's events after a number, oldest first.
    pub async fn audit_after(
        &self,
        workspace: WorkspaceId,
        seq: i64,
    ) -> Result<Vec<EventView>, ControlError> {
        let mut tx = self.db.read_in(workspace).await?;
        let found = admin_events::after(&mut tx.conn(), Some(workspace), seq, PIECE).await?;
        tx.commit().await?;
        Ok(found.into_iter().map(EventView::from).collect())
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect()
}
