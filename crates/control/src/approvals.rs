//! Approvals: parked calls and the people who decide them.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sluice_domain::{
    ApprovalId, ApprovalStatus, CallId, Category, GrantId, PolicyId, REDACTED, Role, ServerId,
    Severity, UserId, looks_secret, names_secret,
};
use sluice_limits::Demand;
use sluice_store::approvals::{self, Approval, ApprovalFilter, Decision, Verdict};
use sluice_store::{Conn, grants, users};
use sluice_vault::Place;

use crate::audit::{self, Event};
use crate::page::{Page, PageOf};
use crate::{Control, ControlError, PolicyManager, Viewer, text};

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
    pub approvers: Vec<String>,
    /// How many people must approve.
    pub quorum: i64,
    /// Whether this caller may decide it now.
    pub may_decide: bool,
    pub created_at: DateTime<Utc>,
    pub hold_until: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
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
}

/// What came of deciding.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    pub approval: ApprovalView,
    /// How many more must approve; 0: it is decided.
    pub missing: i64,
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
        let mut tx = self.read().await?;
        let conn = &mut tx.conn();
        let found = approvals::list(conn, viewer.workspace, filter, after, limit).await?;
        let mut own = Vec::new();
        for approval in &found {
            if is_own(conn, viewer, approval).await? {
                own.push(approval.id);
            }
        }
        tx.commit().await?;
        let view = |approval: Approval| {
            let own = own.contains(&approval.id);
            self.approval_view(viewer, approval, own, now)
        };
        let mut page = page.cut(found, |a| a.id).map(view);
        // One whose time is over is no longer pending, even before the next sweep says so.
        page.items.retain(|approval| filter.status.is_none_or(|status| status == approval.status));
        Ok(page)
    }

    /// How many wait for a person.
    pub async fn pending_approvals(&self, viewer: &Viewer) -> Result<i64, ControlError> {
        let now = self.now();
        let mut tx = self.read().await?;
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
        let mut tx = self.read().await?;
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
        let mut tx = self.read().await?;
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
            });
        }
        tx.commit().await?;
        Ok(all)
    }

    fn approval_view(
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
            may_decide: open && !own && is_approver(viewer, &approval.approvers),
            arguments: self.shown_arguments(viewer, &approval),
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
            approvers: approval.approvers,
            quorum: approval.quorum,
            created_at: approval.created_at,
            hold_until: approval.hold_until,
            expires_at: approval.expires_at,
            decided_at: approval.decided_at,
            decided_by: approval.decided_by,
            note: approval.note,
            run_at: approval.run_at,
            run_call: approval.run_call_id,
            finished_at: approval.finished_at,
        }
    }

    /// Sealed arguments that do not open are told in the log and shown as gone.
    fn shown_arguments(&self, viewer: &Viewer, approval: &Approval) -> Option<Value> {
        let sealed = approval.sealed_arguments.as_deref()?;
        let place = Place::approval_arguments(viewer.workspace, approval.id);
        let opened = self.inner.vault.open(place, sealed);
        match opened.map(|text| serde_json::from_slice(&text)) {
            Ok(Ok(value)) => Some(masked(value)),
            Ok(Err(_)) => None,
            Err(error) => {
                tracing::error!(approval = %approval.id, %error, "Could not open an approval's arguments");
                None
            }
        }
    }

    /// Approves or refuses a parked call.
    pub async fn decide(
        &self,
        manager: &PolicyManager,
        id: ApprovalId,
        approve: bool,
        note: &str,
    ) -> Result<Decided, ControlError> {
        let note = text::note("/note", note).map_err(|fault| ControlError::Invalid(vec![fault]))?;
        let (workspace, now) = (manager.workspace, self.now());
        let mut tx = self.begin().await?;
        let conn = &mut tx.conn();
        let found = approvals::find(conn, workspace, id).await?;
        let approval = found.ok_or(ControlError::NotFound("approval"))?;
        let grant = grants::find(conn, workspace, approval.grant_id).await?;
        let owner = grant.and_then(|grant| grant.created_by);
        may_decide(manager, &approval, owner)?;
        let by = Decision { user_id: manager.actor.user, approve, note, at: now };
        let verdict = approvals::decide(conn, workspace, id, by).await?;
        let (approval, missing) = match verdict.ok_or(ControlError::NotFound("approval"))? {
            Verdict::Decided(approval) => (approval, 0),
            Verdict::MoreNeeded { approval, missing } => (approval, missing),
            Verdict::AlreadyYours(_) => {
                tx.rollback().await?;
                let detail = "you approved this already; somebody else must approve it too";
                return Err(conflict("already_yours", detail.to_owned()));
            }
            Verdict::TooLate(approval) => {
                let by = match approval.decided_by {
                    Some(user) => users::find(conn, user).await?.map(|user| user.email),
                    None => None,
                };
                // At once: the row's lock would keep a sweep from seeing it.
                tx.rollback().await?;
                return Err(too_late(&approval, by.as_deref()));
            }
        };
        let action = if approve { "approval.approve" } else { "approval.deny" };
        let (text, what) =
            (id.to_string(), json!({"grant": approval.grant_label, "missing": missing}));
        let event = Event::new(action, ("approval", &text, &approval.tool)).after(&what);
        audit::record(conn, workspace, &manager.actor, event, now).await?;
        tx.commit().await?;
        if approval.status == ApprovalStatus::Denied {
            self.give_back(workspace, approval.reservation, approval.demands.as_deref()).await;
        }
        Ok(Decided { approval: self.approval_view(manager, approval, false, now), missing })
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

fn conflict(code: &'static str, detail: String) -> ControlError {
    ControlError::Conflict { code, pointer: None, detail }
}

fn too_late(approval: &Approval, by: Option<&str>) -> ControlError {
    let who = by.unwrap_or("somebody");
    let at = approval.decided_at.map(|at| at.format(" on %Y-%m-%d at %H:%M UTC").to_string());
    let at = at.unwrap_or_default();
    let detail = match approval.status {
        ApprovalStatus::Denied => format!("{who} refused this{at}"),
        ApprovalStatus::Pending | ApprovalStatus::Expired => {
            "nobody decided in time; it expired".to_owned()
        }
        _ => format!("{who} approved this{at}"),
    };
    conflict("already_decided", detail)
}

/// Whether the policy's list of approvers names the caller. Nobody below a policy manager decides.
fn is_approver(viewer: &Viewer, approvers: &[String]) -> bool {
    let named = |approver: &String| match approver.split_once(':') {
        Some(("role", role)) => {
            role.parse::<Role>().is_ok_and(|needed| viewer.role.at_least(needed))
        }
        Some(("member", email)) => email.to_lowercase() == viewer.actor.email.to_lowercase(),
        _ => false,
    };
    viewer.role.at_least(Role::PolicyManager)
        && (approvers.is_empty() || approvers.iter().any(named))
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

fn may_decide(
    manager: &PolicyManager,
    approval: &Approval,
    grant_owner: Option<UserId>,
) -> Result<(), ControlError> {
    let refused =
        |code, detail: &'static str| Err(ControlError::Forbidden { code, detail: detail.into() });
    if !is_approver(manager, &approval.approvers) {
        return refused("not_an_approver", "the policy names other people to decide this");
    }
    if !approval.self_allowed && grant_owner == Some(manager.actor.user) {
        return refused("own_grant", "you made this grant, so somebody else must decide");
    }
    Ok(())
}

/// Values that are secrets by name or form are masked; the rest stays readable.
fn masked(value: Value) -> Value {
    match value {
        Value::String(text) if looks_secret(&text) => REDACTED.into(),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| {
                let secret = names_secret(&name) && !value.is_null();
                let value = if secret { REDACTED.into() } else { masked(value) };
                (name, value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let value = json!({
            "api_key": "AAAA", "n": 1, "list": ["ghp_abc", "x"], "nested": {"Password": "p", "ok": "hello"},
            "session": null,
        });
        let expected = json!({
            "api_key": "[redacted]", "n": 1, "list": ["[redacted]", "x"],
            "nested": {"Password": "[redacted]", "ok": "hello"}, "session": null,
        });
        assert_eq!(masked(value), expected);
    }
}
