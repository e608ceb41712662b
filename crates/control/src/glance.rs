//! What a workspace should look at: refusals by reason, dangerous tools in use, definitions that
//! changed or look poisoned, who is active.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sluice_domain::{GrantId, ServerId, ToolId};
use sluice_store::calls::{self, Breakdown, DaySpan, Reason, ToolUse};
use sluice_store::grants;
use sluice_store::tools::{self, Attention};

use crate::page::{Page, PageOf};
use crate::tools::view;
use crate::{Control, ControlError, ToolView, Viewer};

/// Rows of [`Glance::risky`] and [`Glance::busiest`].
const TOOLS: i64 = 8;

/// Calls that [`Control::grant_did`] looks at.
const DID: i64 = 1_000;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Glance {
    /// The most frequent first.
    pub reasons: Vec<Reason>,
    /// Tools of severity High and Critical that were called.
    pub risky: Vec<ToolUse>,
    /// The tools that were called most.
    pub busiest: Vec<ToolUse>,
    /// Live grants that were used since the given time.
    pub active: i64,
    /// Definitions that nobody reviewed since they changed.
    pub to_review: i64,
    /// Definitions that look poisoned.
    pub poisoned: i64,
}

/// What a list of servers says of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerGlance {
    /// When an agent last used it.
    pub last_use: Option<DateTime<Utc>>,
    pub to_review: i64,
    pub poisoned: i64,
}

impl Control {
    /// The state of a workspace in what needs a look; `since` is when a grant counts as active.
    pub async fn glance(
        &self,
        viewer: &Viewer,
        days: DaySpan,
        since: DateTime<Utc>,
    ) -> Result<Glance, ControlError> {
        let workspace = viewer.workspace;
        let mut tx = self.read_in(workspace).await?;
        let conn = &mut tx.conn();
        let reasons = calls::reasons(conn, workspace, days).await?;
        let (busiest, risky) = calls::tools_used(conn, workspace, days, TOOLS).await?;
        let active = grants::count_used(conn, workspace, since).await?;
        let to_review = tools::count_attention(conn, workspace, Attention::Review).await?;
        let poisoned = tools::count_attention(conn, workspace, Attention::Poisoned).await?;
        tx.commit().await?;
        let sum = |counts: Vec<tools::ToLookAt>| counts.iter().map(|count| count.tools).sum();
        let (to_review, poisoned) = (sum(to_review), sum(poisoned));
        Ok(Glance { reasons, risky, busiest, active, to_review, poisoned })
    }

    /// What a grant did: its newest tool calls (`DID` of them) by tool and outcome.
    pub async fn grant_did(
        &self,
        viewer: &Viewer,
        grant: GrantId,
    ) -> Result<Vec<Breakdown>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let did = calls::did_lately(&mut tx.conn(), viewer.workspace, grant, DID).await?;
        tx.commit().await?;
        Ok(did)
    }

    /// When each server was last used, and how many of its tools need a look.
    pub async fn servers_glance(
        &self,
        viewer: &Viewer,
    ) -> Result<HashMap<ServerId, ServerGlance>, ControlError> {
        let workspace = viewer.workspace;
        let mut tx = self.read_in(workspace).await?;
        let conn = &mut tx.conn();
        let uses = grants::last_uses(conn, workspace).await?;
        let review = tools::count_attention(conn, workspace, Attention::Review).await?;
        let poisoned = tools::count_attention(conn, workspace, Attention::Poisoned).await?;
        tx.commit().await?;
        let mut all: HashMap<ServerId, ServerGlance> = HashMap::new();
        for used in uses {
            all.entry(used.server_id).or_default().last_use = Some(used.at);
        }
        for count in review {
            all.entry(count.server_id).or_default().to_review = count.tools;
        }
        for count in poisoned {
            all.entry(count.server_id).or_default().poisoned = count.tools;
        }
        Ok(all)
    }

    /// The tools of all servers that need a look, with their server.
    pub async fn tools_to_look_at(
        &self,
        viewer: &Viewer,
        why: Attention,
        page: Page<ToolId>,
    ) -> Result<PageOf<(ServerId, ToolView), ToolId>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let found =
            tools::list_attention(conn, viewer.workspace, why, page.after, page.one_more()).await?;
        tx.commit().await?;
        let page = page.cut(found, |tool| tool.id);
        let shown = page.items.into_iter().map(|tool| Ok((tool.server_id, view(tool)?)));
        Ok(PageOf { items: shown.collect::<Result<_, ControlError>>()?, next: page.next })
    }
}
