//! Approvals: parked calls and the people who decide them.

mod arguments;
mod decide;
mod exceptions;
mod history;
mod links;

pub use decide::Choice;
pub(crate) use decide::is_approver;
pub use exceptions::{ExceptionState, ExceptionView, MAX_ALLOW};
pub use history::{ApprovalEventView, ApprovalNews, PastDecisions};
pub use links::{LinkView, OpenLink};
pub use sluice_store::approvals::InboxKey;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sluice_domain::{
    ApprovalId, ApprovalStatus, CallId, Category, GrantId, PolicyId, ServerId, Severity, UserId,
};
use sluice_limits::Demand;
use sluice_store::approvals::{self, Approval, ApprovalFilter};
use sluice_store::{Conn, grants, users};

use crate::page::{Page, PageOf};
use crate::{Control, ControlError, Viewer};

/// What is shown of a session's id.
const SESSION_SHOWN: usize = 8;

/// A parked call as a member sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalView {
    pub id: ApprovalId,
    pub status: ApprovalStatus,
    pub server: ServerId,
    pub tool: String,
    pub category: Option<Category>,
    pub severity: Option<Severity>,
    /// With secrets masked; `None` once they were wiped.
    pub arguments: Option<Value>,
    pub grant: GrantId,
    pub grant_label: String,
    /// The call that asked first.
    pub call: CallId,
    pub policy: PolicyId,
    pub policy_version: i64,
    pub rule: String,
    pub client_name: Option<String>,
    /// The first characters of the session that asked.
    pub session: Option<String>,
    pub approvers: Vec<String>,
    /// How many people must approve.
    pub quorum: i64,
    /// Whether this caller may decide it now.
    pub may_decide: bool,
    pub created_at: DateTime<Utc>,
    pub hold_until: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// When others were told, because nobody had decided.
    pub escalated_at: Option<DateTime<Utc>>,
    pub decided_at: Option<DateTime<Utc>>,
    pub decided_by: Option<UserId>,
    pub note: Option<String>,
    pub run_at: Option<DateTime<Utc>>,
    pub run_call: Option<CallId>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Which approvals a list shows.
#[derive(Debug, Clone, Default)]
pub struct ApprovalsOf {
    pub status: Option<ApprovalStatus>,
    pub server: Option<ServerId>,
    pub grant: Option<GrantId>,
    pub tool: Option<String>,
}

/// One person's word on a parked call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionView {
    pub user: UserId,
    pub email: String,
    pub approve: bool,
    pub note: String,
    pub at: DateTime<Utc>,
    /// For how long the person would let the same call pass.
    pub allow: Option<TimeDelta>,
}

/// What came of deciding.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    pub approval: ApprovalView,
    /// How many more must approve; 0: it is decided.
    pub missing: i64,
    /// The same call passes until then.
    pub excepted_until: Option<DateTime<Utc>>,
}

impl Control {
    /// The approvals, newest first.
    pub async fn approvals(
        &self,
        viewer: &Viewer,
        filter: &ApprovalsOf,
        page: Page<ApprovalId>,
    ) -> Result<PageOf<ApprovalView, ApprovalId>, ControlError> {
        let filter = ApprovalFilter {
            status: filter.status,
            server: filter.server,
            grant: filter.grant,
            tool: filter.tool.as_deref(),
        };
        let (now, after, limit) = (self.now(), page.after, page.one_more());
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let found = approvals::list(conn, viewer.workspace, filter, after, limit).await?;
        let own = own_of(conn, viewer, &found).await?;
        tx.commit().await?;
        let mut page = page.cut(found, |a| a.id).map(|approval| {
            let own = own.contains(&approval.id);
            self.approval_view(viewer, approval, own, now)
        });
        // One whose time is over is no longer pending, even before the next sweep says so.
        page.items.retain(|approval| filter.status.is_none_or(|status| status == approval.status));
        Ok(page)
    }

    /// What waits for a person, the riskiest first and of those the oldest.
    pub async fn inbox(
        &self,
        viewer: &Viewer,
        page: Page<InboxKey>,
    ) -> Result<PageOf<ApprovalView, InboxKey>, ControlError> {
        let now = self.now();
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let (workspace, limit) = (viewer.workspace, page.one_more());
        let found = approvals::inbox(conn, workspace, page.after, limit, now).await?;
        let own = own_of(conn, viewer, &found).await?;
        tx.commit().await?;
        let key = |approval: &Approval| InboxKey { rank: rank(approval.severity), id: approval.id };
        Ok(page.cut(found, key).map(|approval| {
            let own = own.contains(&approval.id);
            self.approval_view(viewer, approval, own, now)
        }))
    }

    /// How many wait for a person.
    pub async fn pending_approvals(&self, viewer: &Viewer) -> Result<i64, ControlError> {
        let now = self.now();
        let mut tx = self.read_in(viewer.workspace).await?;
        let count = approvals::count_pending(&mut tx.conn(), viewer.workspace, None, now).await?;
        tx.commit().await?;
        Ok(count)
    }

    /// One approval.
    pub async fn approval(
        &self,
        viewer: &Viewer,
        id: ApprovalId,
    ) -> Result<ApprovalView, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let found = approvals::find(&mut tx.conn(), viewer.workspace, id).await?;
        let approval = found.ok_or(ControlError::NotFound("approval"))?;
        let own = is_own(&mut tx.conn(), viewer, &approval).await?;
        tx.commit().await?;
        Ok(self.approval_view(viewer, approval, own, self.now()))
    }

    /// Who said what of it, oldest first.
    pub async fn decisions(
        &self,
        viewer: &Viewer,
        id: ApprovalId,
    ) -> Result<Vec<DecisionView>, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let mut all = Vec::new();
        for decision in approvals::decisions(conn, viewer.workspace, id).await? {
            let user = users::find(conn, decision.user_id).await?;
            all.push(DecisionView {
                user: decision.user_id,
                email: user.map(|user| user.email).unwrap_or_default(),
                approve: decision.approve,
                note: decision.note,
                at: decision.at,
                allow: decision.allow_s.and_then(TimeDelta::try_seconds),
            });
        }
        tx.commit().await?;
        Ok(all)
    }

    pub(crate) fn approval_view(
        &self,
        viewer: &Viewer,
        approval: Approval,
        own: bool,
        now: DateTime<Utc>,
    ) -> ApprovalView {
        let over = approval.status == ApprovalStatus::Pending && approval.expires_at <= now;
        let status = if over { ApprovalStatus::Expired } else { approval.status };
        let open = status == ApprovalStatus::Pending && !viewer.suspended;
        ApprovalView {
            may_decide: open && !own && decide::names(viewer, &approval.approvers),
            arguments: self.arguments(viewer, &approval).map(arguments::masked),
            id: approval.id,
            status,
            server: approval.server_id,
            tool: approval.tool,
            category: approval.category,
            severity: approval.severity,
            grant: approval.grant_id,
            grant_label: approval.grant_label,
            call: approval.call_id,
            policy: approval.policy_id,
            policy_version: approval.policy_version,
            rule: approval.rule,
            client_name: approval.client_name,
            session: approval.session.map(|id| id.chars().take(SESSION_SHOWN).collect()),
            approvers: approval.approvers,
            quorum: approval.quorum,
            created_at: approval.created_at,
            hold_until: approval.hold_until,
            expires_at: approval.expires_at,
            escalated_at: approval.escalated_at,
            decided_at: approval.decided_at,
            decided_by: approval.decided_by,
            note: approval.note,
            run_at: approval.run_at,
            run_call: approval.run_call_id,
            finished_at: approval.finished_at,
        }
    }

    /// Gives back what a parked call was charged. A refund that is late is made up by the counters.
    pub(crate) async fn give_back(
        &self,
        workspace: sluice_domain::WorkspaceId,
        reservation: Option<sluice_domain::ReservationId>,
        demands: Option<&str>,
    ) {
        let Some(reservation) = reservation else { return };
        let demands: Vec<Demand> =
            demands.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        if let Err(error) = self.inner.counters.refund(workspace, reservation, &demands).await {
            tracing::warn!(%workspace, %error, "A parked call's charge is given back later");
        }
    }
}

/// The store's order of severities in an inbox.
const fn rank(severity: Option<Severity>) -> i64 {
    match severity {
        Some(Severity::Critical) => 0,
        Some(Severity::High) => 1,
        Some(Severity::Medium) => 2,
        Some(Severity::Low) => 3,
        None => 4,
    }
}

/// Which of these the viewer may not decide, as the maker of the grant.
async fn own_of(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
    found: &[Approval],
) -> Result<Vec<ApprovalId>, ControlError> {
    let mut own = Vec::new();
    for approval in found {
        if is_own(conn, viewer, approval).await? {
            own.push(approval.id);
        }
    }
    Ok(own)
}

/// Whether the viewer made the grant, and the policy wants somebody else to decide.
async fn is_own(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
    approval: &Approval,
) -> Result<bool, ControlError> {
    if approval.self_allowed {
        return Ok(false);
    }
    let grant = grants::find(conn, viewer.workspace, approval.grant_id).await?;
    Ok(grant.and_then(|grant| grant.created_by) == Some(viewer.actor.user))
}
