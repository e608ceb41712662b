//! What a workspace and its members set about notices.

use chrono::TimeDelta;
use serde_json::json;
use sluice_store::{outbox, workspaces};

use crate::audit::{self, Event};
use crate::codes;
use crate::{Admin, Control, ControlError, Fault, Viewer};

/// The longest that a call may wait before others are told.
pub const MAX_ESCALATION: TimeDelta = TimeDelta::days(7);
const MIN_ESCALATION: TimeDelta = TimeDelta::minutes(1);

/// How notices stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeSettings {
    /// After how long admins are told of a call that nobody decided; `None`: never.
    pub escalate_after: Option<TimeDelta>,
    /// The operator set mail up.
    pub mail: bool,
    /// The caller gets mail about calls that wait for them.
    pub wants_mail: bool,
}

/// How long a call may wait before others are told, if it may be that long.
pub(crate) fn checked_escalation(pointer: &str, after: TimeDelta) -> Result<TimeDelta, Fault> {
    if (MIN_ESCALATION..=MAX_ESCALATION).contains(&after) {
        return Ok(after);
    }
    let detail = "give 1 minute to 7 days, or nothing for never";
    Err(Fault::new(pointer, codes::OUT_OF_RANGE, detail))
}

impl Control {
    /// How notices stand, for this member.
    pub async fn notice_settings(&self, viewer: &Viewer) -> Result<NoticeSettings, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        let after = workspaces::escalate_after(conn, viewer.workspace).await?;
        let wants = outbox::wants_mail(conn, viewer.workspace, viewer.actor.user).await?;
        tx.commit().await?;
        Ok(NoticeSettings {
            escalate_after: after.and_then(TimeDelta::try_seconds),
            mail: self.can_mail(),
            wants_mail: wants.unwrap_or(false),
        })
    }

    /// Sets after how long admins are told of a call that nobody decided, for calls that are parked
    /// from now on.
    pub async fn set_escalation(
        &self,
        admin: &Admin,
        after: Option<TimeDelta>,
    ) -> Result<(), ControlError> {
        if let Some(after) = after {
            let checked = checked_escalation("/escalate_after", after);
            checked.map_err(|fault| ControlError::Invalid(vec![fault]))?;
        }
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let before = json!({"seconds": workspaces::escalate_after(conn, admin.workspace).await?});
        let seconds = after.map(|after| after.num_seconds());
        workspaces::set_escalate_after(conn, admin.workspace, seconds).await?;
        let (id, after) = (admin.workspace.to_string(), json!({"seconds": seconds}));
        let event =
            Event::new("workspace.set_escalation", ("workspace", &id, &admin.workspace_name));
        let event = event.before(&before).after(&after);
        audit::record(conn, admin.workspace, &admin.actor, event, now).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Sets whether the caller gets mail about calls that wait for them.
    pub async fn set_wants_mail(&self, viewer: &Viewer, wants: bool) -> Result<(), ControlError> {
        let (workspace, user) = (viewer.workspace, viewer.actor.user);
        let mut tx = self.begin_in(viewer.workspace).await?;
        let conn = &mut tx.conn();
        outbox::set_wants_mail(conn, workspace, user, wants).await?;
        let (id, after) = (user.to_string(), json!({"mail_approvals": wants}));
        let event = Event::new("member.set_mail", ("member", &id, &viewer.actor.email));
        audit::record(conn, workspace, &viewer.actor, event.after(&after), self.now()).await?;
        tx.commit().await?;
        Ok(())
    }
}
