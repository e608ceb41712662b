//! What happened to a parked call, who saw it, and how earlier ones like it were decided.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sluice_domain::{ApprovalEventKind, ApprovalId, GrantId, WorkspaceId};
use sluice_store::approvals::{self, ApprovalEvent};
use tokio::sync::broadcast;

use crate::audit::{self, Event};
use crate::{Control, ControlError, Viewer};

/// How earlier calls of the same tool by the same grant were decided.
pub type PastDecisions = approvals::Past;

/// What a page that is open learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalNews {
    /// An approval of this workspace changed.
    Changed(WorkspaceId),
    /// This process stops.
    Stop,
}

/// One thing that happened to a parked call.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalEventView {
    pub at: DateTime<Utc>,
    pub kind: ApprovalEventKind,
    /// The person's address; empty where it happened by itself.
    pub who: String,
    pub detail: Value,
}

impl From<ApprovalEvent> for ApprovalEventView {
    fn from(event: ApprovalEvent) -> Self {
        Self { at: event.at, kind: event.kind, who: event.who, detail: event.detail }
    }
}

impl Control {
    /// What happened to a parked call, oldest first.
    pub async fn approval_history(
        &self,
        viewer: &Viewer,
        id: ApprovalId,
    ) -> Result<Vec<ApprovalEventView>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let found = approvals::events(&mut tx.conn(), viewer.workspace, id).await?;
        tx.commit().await?;
        Ok(found.into_iter().map(ApprovalEventView::from).collect())
    }

    /// Notes that a member has opened a parked call; the first time it stands in the audit log.
    pub async fn approval_shown(
        &self,
        viewer: &Viewer,
        id: ApprovalId,
    ) -> Result<(), ControlError> {
        let (workspace, user, now) = (viewer.workspace, viewer.actor.user, self.now());
        let kind = ApprovalEventKind::Shown;
        let mut tx = self.read_in(viewer.workspace).await?;
        let events = approvals::events(&mut tx.conn(), workspace, id).await?;
        tx.commit().await?;
        if events.is_empty() || events.iter().any(|e| e.kind == kind && e.user_id == Some(user)) {
            return Ok(());
        }
        let mut tx = self.begin_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let found = approvals::find(conn, workspace, id).await?;
        let approval = found.ok_or(ControlError::NotFound("approval"))?;
        if approvals::note_once(conn, workspace, id, kind, user, now).await? {
            let what = json!({"grant": approval.grant_label, "way": viewer.actor.way()});
            let text = id.to_string();
            let event = Event::new("approval.show", ("approval", &text, &approval.tool));
            audit::record(conn, workspace, &viewer.actor, event.after(&what), now).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// How calls of this tool by this grant were decided before the given one.
    pub async fn approval_past(
        &self,
        viewer: &Viewer,
        grant: GrantId,
        tool: &str,
        before: ApprovalId,
    ) -> Result<PastDecisions, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let past = approvals::past(conn, viewer.workspace, grant, tool, before).await?;
        tx.commit().await?;
        Ok(past)
    }

    /// Passes on that an approval of this workspace changed, wherever: to pages that are open, and
    /// to whoever sends messages.
    pub fn approval_changed(&self, workspace: WorkspaceId) {
        // Nobody may be looking.
        let _ = self.inner.approval_news.send(ApprovalNews::Changed(workspace));
        self.inner.outgoing.notify_one();
    }

    /// What changes from now on.
    pub fn approval_news(&self) -> broadcast::Receiver<ApprovalNews> {
        self.inner.approval_news.subscribe()
    }

    /// Lets pages that wait for news go, because this process stops.
    pub fn end_streams(&self) {
        let _ = self.inner.approval_news.send(ApprovalNews::Stop);
    }
}
