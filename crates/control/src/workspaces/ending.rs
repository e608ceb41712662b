//! Deleting a workspace, which can be undone for a while; and handing one over.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sluice_domain::{Role, UserId, WorkspaceId};
use sluice_store::members::{self, MemberChange};
use sluice_store::workspaces;

use crate::accounts::login_only;
use crate::audit::{self, Event, record_operator};
use crate::catalogue::share;
use crate::codes;
use crate::members::changed;
use crate::throttle::after;
use crate::{Actor, Admin, Control, ControlError};

/// How long a deleted workspace can be restored; then everything it owned is erased.
pub const GRACE: TimeDelta = TimeDelta::days(14);
/// Log rows that are erased in one transaction.
const PIECE: i64 = 5_000;
/// Workspaces that are looked at in one go.
const BATCH: i64 = 100;

/// A deleted workspace that can be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedView {
    pub id: WorkspaceId,
    pub slug: String,
    pub name: String,
    pub deleted_at: DateTime<Utc>,
    /// When it is erased.
    pub erased_at: DateTime<Utc>,
}

impl Control {
    /// Deletes the workspace: its grants and API tokens stop at once, nobody can enter it, and after
    /// [`GRACE`] everything it owns is erased. `typed` must be its slug. Gives the time of the erasure.
    pub async fn delete_workspace(
        &self,
        admin: &Admin,
        typed: &str,
    ) -> Result<DateTime<Utc>, ControlError> {
        if typed.trim() != admin.slug {
            let detail = format!("type `{}`, the workspace's address, to delete it", admin.slug);
            return Err(ControlError::invalid("/confirm", codes::NOT_CONFIRMED, detail));
        }
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if !workspaces::delete(conn, admin.workspace, now).await? {
            return Err(ControlError::NotFound("workspace"));
        }
        share::take_back_all(conn, admin.workspace, now).await?;
        let erased_at = after(now, GRACE);
        let (id, what) = (admin.workspace.to_string(), json!({"erased_at": erased_at}));
        let event = Event::new("workspace.delete", ("workspace", &id, &admin.workspace_name));
        audit::record(conn, admin.workspace, &admin.actor, event.after(&what), now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %admin.workspace, "Deleted a workspace");
        Ok(erased_at)
    }

    /// The deleted workspaces that the caller can restore, newest first.
    pub async fn closed_workspaces(&self, actor: &Actor) -> Result<Vec<ClosedView>, ControlError> {
        let now = self.now();
        let mut tx = self.read().await?;
        let closed = workspaces::list_closed(&mut tx.conn(), actor.user).await?;
        tx.commit().await?;
        let view = |one: workspaces::ClosedWorkspace| ClosedView {
            id: one.id,
            slug: one.slug,
            name: one.name,
            deleted_at: one.deleted_at,
            erased_at: after(one.deleted_at, GRACE),
        };
        Ok(closed.into_iter().map(view).filter(|one| one.erased_at > now).collect())
    }

    /// Brings a deleted workspace back as it was; gives its slug.
    pub async fn restore_workspace(
        &self,
        actor: &Actor,
        id: WorkspaceId,
    ) -> Result<String, ControlError> {
        login_only(actor)?;
        let closed = self.closed_workspaces(actor).await?;
        let found = closed.into_iter().find(|one| one.id == id);
        let found = found.ok_or(ControlError::NotFound("deleted workspace"))?;
        let now = self.now();
        let mut tx = self.begin_in(id).await?;
        let conn = &mut tx.conn();
        if !workspaces::restore(conn, id, now - GRACE, now).await? {
            return Err(ControlError::NotFound("deleted workspace"));
        }
        let text = id.to_string();
        let event = Event::new("workspace.restore", ("workspace", &text, &found.name));
        audit::record(conn, id, actor, event, now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %id, "Restored a workspace");
        Ok(found.slug)
    }

    /// Hands the workspace to another member, who becomes an admin; the caller keeps `stay` as their
    /// role, or leaves where that is `None`. All of it happens, or nothing.
    pub async fn hand_over_workspace(
        &self,
        admin: &Admin,
        to: UserId,
        stay: Option<Role>,
    ) -> Result<(), ControlError> {
        login_only(&admin.actor)?;
        let own = admin.actor.user;
        if to == own {
            let detail = "this is you; choose another member";
            return Err(ControlError::invalid("/member", codes::IS_SELF, detail));
        }
        let now = self.now();
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        if members::role(conn, admin.workspace, to).await?.is_none() {
            let detail = "this person is no member; invite them first";
            return Err(ControlError::invalid("/member", codes::UNKNOWN_MEMBER, detail));
        }
        changed(members::set_role(conn, admin.workspace, to, Role::Admin, now).await?)?;
        let left: MemberChange = match stay {
            Some(role) => members::set_role(conn, admin.workspace, own, role, now).await?,
            None => members::remove(conn, admin.workspace, own, now).await?,
        };
        changed(left)?;
        workspaces::set_created_by(conn, admin.workspace, to).await?;
        let id = admin.workspace.to_string();
        let what = json!({"to": to, "own_role": stay});
        let event = Event::new("workspace.hand_over", ("workspace", &id, &admin.workspace_name));
        audit::record(conn, admin.workspace, &admin.actor, event.after(&what), now).await?;
        tx.commit().await?;
        tracing::info!(workspace = %admin.workspace, %to, "Handed a workspace over");
        Ok(())
    }

    /// Erases the workspaces whose grace is over, their logs in pieces; says how many.
    pub async fn erase_closed_workspaces(&self) -> Result<usize, ControlError> {
        let now = self.now();
        let until = now - GRACE;
        let mut tx = self.read().await?;
        let due = workspaces::closed_until(&mut tx.conn(), until, BATCH).await?;
        tx.commit().await?;
        let mut erased = 0;
        for one in due {
            loop {
                let mut tx = self.begin().await?;
                let rows = workspaces::erase_log(&mut tx.conn(), one.id, PIECE).await?;
                tx.commit().await?;
                if rows == 0 {
                    break;
                }
            }
            let mut tx = self.begin().await?;
            let conn = &mut tx.conn();
            if workspaces::erase(conn, one.id, until).await? {
                let id = one.id.to_string();
                let event = Event::new("workspace.erase", ("workspace", &id, &one.slug));
                record_operator(conn, None, event, now).await?;
                erased += 1;
            }
            tx.commit().await?;
        }
        Ok(erased)
    }
}
