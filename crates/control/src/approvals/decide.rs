//! Deciding: who may, once, and what the others learn.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sluice_domain::{ApprovalEventKind, ApprovalId, ApprovalStatus, Role, UserId};
use sluice_store::approvals::{self, Approval, Decision, NewEvent, Reach, Verdict};
use sluice_store::{Conn, grants, users};

use super::Decided;
use super::exceptions::{MAX_USES, checked_allow};
use crate::access::Proof;
use crate::audit::{self, Event};
use crate::codes::{self, ProblemCode};
use crate::error::Faults;
use crate::throttle::after;
use crate::{Control, ControlError, PolicyManager, Viewer, text};

/// What a person wants done with a parked call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub approve: bool,
    pub note: String,
    /// With an approval: for how long the same call passes without asking.
    pub allow: Option<TimeDelta>,
}

impl Choice {
    /// To run it, once.
    pub fn approve(note: &str) -> Self {
        Self { approve: true, note: note.to_owned(), allow: None }
    }

    /// To refuse it.
    pub fn deny(note: &str) -> Self {
        Self { approve: false, note: note.to_owned(), allow: None }
    }
}

impl Control {
    /// Approves or refuses a parked call.
    pub async fn decide(
        &self,
        manager: &PolicyManager,
        id: ApprovalId,
        choice: &Choice,
    ) -> Result<Decided, ControlError> {
        let by = checked(manager, choice, self.now())?;
        let (workspace, now, approve) = (manager.workspace, by.at, by.approve);
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        let found = approvals::find(conn, workspace, id).await?;
        let approval = found.ok_or(ControlError::NotFound("approval"))?;
        let grant = grants::find(conn, workspace, approval.grant_id).await?;
        let owner = grant.and_then(|grant| grant.created_by);
        may_decide(manager, &approval, owner)?;
        let verdict = approvals::decide(conn, workspace, id, by.clone()).await?;
        let (approval, missing) = match verdict.ok_or(ControlError::NotFound("approval"))? {
            Verdict::Decided(approval) => (approval, 0),
            Verdict::MoreNeeded { approval, missing } => (approval, missing),
            Verdict::AlreadyYours(_) => {
                tx.rollback().await?;
                let detail = "you approved this already; somebody else must approve it too";
                return Err(conflict(codes::ALREADY_YOURS, detail.to_owned()));
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
        use_link_up(conn, manager, now).await?;
        let excepted_until = if approve && missing == 0 {
            excepted(conn, manager, &approval, now).await?
        } else {
            None
        };
        record(conn, manager, &approval, &by, missing, excepted_until).await?;
        tx.commit().await?;
        self.inner.outgoing.notify_one();
        if approval.status == ApprovalStatus::Denied {
            self.give_back(workspace, approval.reservation, approval.demands.as_deref()).await;
        }
        let approval = self.approval_view(manager, approval, false, now);
        Ok(Decided { approval, missing, excepted_until })
    }
}

fn checked(
    manager: &PolicyManager,
    choice: &Choice,
    now: DateTime<Utc>,
) -> Result<Decision, ControlError> {
    let mut faults = Faults::default();
    let note = faults.take(text::note("/note", &choice.note)).unwrap_or_default();
    let allow = faults.take(checked_allow("/allow_for", choice)).flatten();
    faults.check()?;
    Ok(Decision {
        user_id: manager.actor.user,
        approve: choice.approve,
        note,
        at: now,
        allow_s: allow.map(|allow| allow.num_seconds()),
    })
}

/// A link decides once, whatever else its person may still do.
async fn use_link_up(
    conn: &mut Conn<'_>,
    manager: &PolicyManager,
    now: DateTime<Utc>,
) -> Result<(), ControlError> {
    let Proof::Link(link) = manager.actor.proof else { return Ok(()) };
    if approvals::use_link(conn, manager.workspace, link, now).await? {
        return Ok(());
    }
    Err(conflict(
        codes::LINK_USED,
        "this link was used already; sign in to see what became of it".to_owned(),
    ))
}

/// Makes the exception that all who approved agree on, if they do.
async fn excepted(
    conn: &mut Conn<'_>,
    manager: &PolicyManager,
    approval: &Approval,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, ControlError> {
    let decisions = approvals::decisions(conn, manager.workspace, approval.id).await?;
    let wishes: Option<Vec<i64>> =
        decisions.iter().filter(|one| one.approve).map(|one| one.allow_s).collect();
    let shortest = wishes.and_then(|wishes| wishes.into_iter().min());
    let Some(allow) = shortest.and_then(TimeDelta::try_seconds) else { return Ok(None) };
    let expires_at = after(now, allow);
    let reach = Reach { by: manager.actor.user, expires_at, max_uses: MAX_USES };
    let id = approvals::create_exception(conn, manager.workspace, approval, reach, now).await?;
    let detail = json!({"exception": id, "until": expires_at});
    let event = NewEvent::of(ApprovalEventKind::Excepted).by(manager.actor.user).with(&detail);
    approvals::note(conn, manager.workspace, approval.id, event, now).await?;
    Ok(Some(expires_at))
}

async fn record(
    conn: &mut Conn<'_>,
    manager: &PolicyManager,
    approval: &Approval,
    by: &Decision,
    missing: i64,
    excepted_until: Option<DateTime<Utc>>,
) -> Result<(), ControlError> {
    let action = if by.approve { "approval.approve" } else { "approval.deny" };
    let id = approval.id.to_string();
    let what = json!({
        "grant": approval.grant_label, "missing": missing, "note": by.note,
        "way": manager.actor.way(), "excepted_until": excepted_until,
    });
    let event = Event::new(action, ("approval", &id, &approval.tool)).after(&what);
    Ok(audit::record(conn, manager.workspace, &manager.actor, event, by.at).await?)
}

pub(super) fn conflict(code: ProblemCode, detail: String) -> ControlError {
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
    conflict(codes::ALREADY_DECIDED, detail)
}

/// Whether the policy's list of approvers names the viewer.
pub(crate) fn names(viewer: &Viewer, approvers: &[String]) -> bool {
    is_approver(viewer.role, &viewer.actor.email, approvers)
}

/// Whether the policy's list of approvers names a member. Nobody below a policy manager decides.
pub(crate) fn is_approver(role: Role, email: &str, approvers: &[String]) -> bool {
    let named = |approver: &String| match approver.split_once(':') {
        Some(("role", named)) => named.parse::<Role>().is_ok_and(|needed| role.at_least(needed)),
        Some(("member", named)) => named.to_lowercase() == email.to_lowercase(),
        _ => false,
    };
    role.at_least(Role::PolicyManager) && (approvers.is_empty() || approvers.iter().any(named))
}

fn may_decide(
    manager: &PolicyManager,
    approval: &Approval,
    grant_owner: Option<UserId>,
) -> Result<(), ControlError> {
    let refused =
        |code, detail: &'static str| Err(ControlError::Forbidden { code, detail: detail.into() });
    if !names(manager, &approval.approvers) {
        return refused(codes::NOT_AN_APPROVER, "the policy names other people to decide this");
    }
    if !approval.self_allowed && grant_owner == Some(manager.actor.user) {
        return refused(codes::OWN_GRANT, "you made this grant, so somebody else must decide");
    }
    Ok(())
}
