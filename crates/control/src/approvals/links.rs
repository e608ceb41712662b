//! Links by which one parked call can be decided: the id of a row, and our signature. A link that was
//! mailed to a person stands for that person, for this one decision; one that was posted to a channel
//! stands for nobody, and who opens it signs in.

use serde_json::Value;
use sluice_domain::{ApprovalId, ApprovalLinkId, UserId, WorkspaceId};
use sluice_store::approvals::{self, ApprovalLink};
use sluice_store::{Conn, users, workspaces};

use super::{ApprovalView, Choice, Decided};
use crate::access::Proof;
use crate::codes;
use crate::{Actor, Control, ControlError, PolicyManager};

const PURPOSE: &str = "approval-link";

/// A link that was opened, by somebody who may decide.
#[derive(Debug)]
pub struct OpenLink {
    pub manager: PolicyManager,
    pub approval: ApprovalId,
    link: ApprovalLink,
}

/// What a link's page shows.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkView {
    pub approval: ApprovalView,
    pub arguments: Option<Value>,
    pub workspace_name: String,
    /// Whose decision it would be.
    pub email: String,
    /// The link decides nothing any more.
    pub used: bool,
}

impl Control {
    /// Makes a link and gives its address. Without a person, whoever opens it signs in.
    pub(crate) async fn make_link(
        &self,
        conn: &mut Conn<'_>,
        workspace: WorkspaceId,
        approval: ApprovalId,
        user: Option<UserId>,
    ) -> Result<String, ControlError> {
        let link = approvals::create_link(conn, workspace, approval, user, self.now()).await?;
        let base = self.settings().public_url.as_str().trim_end_matches('/');
        let signature = self.sign(PURPOSE, &signed(link.id));
        Ok(format!("{base}/approve/{}.{signature}", link.id))
    }

    /// Opens a link: who it stands for, and whether that person may decide now. `signed_in` is who
    /// looks, which matters only for a link that stands for nobody.
    pub async fn open_link(
        &self,
        text: &str,
        signed_in: Option<&Actor>,
        address: &str,
    ) -> Result<OpenLink, ControlError> {
        let absent = || ControlError::NotFound("link; it may be cut off, or too old");
        let (id, signature) = text.split_once('.').ok_or_else(absent)?;
        let id: ApprovalLinkId = id.parse().map_err(|_| absent())?;
        if !self.verify(PURPOSE, &signed(id), signature) {
            return Err(absent());
        }
        let mut tx = self.read().await?;
        let conn = &mut tx.conn();
        let link = approvals::find_link(conn, id).await?.ok_or_else(absent)?;
        let workspace = workspaces::find(conn, link.workspace_id).await?.ok_or_else(absent)?;
        let user = match link.user_id {
            Some(user) => users::find(conn, user).await?.filter(|user| !user.disabled),
            None => None,
        };
        tx.commit().await?;
        let actor = match (link.user_id, user, signed_in) {
            (Some(_), Some(user), _) => Actor {
                user: user.id,
                email: user.email,
                name: user.name,
                proof: Proof::Link(id),
                address: address.to_owned(),
            },
            (Some(_), None, _) => return Err(absent()),
            (None, _, Some(actor)) => actor.clone(),
            (None, _, None) => {
                let detail = "sign in to decide this call";
                return Err(ControlError::Unauthenticated { code: codes::SIGN_IN, detail });
            }
        };
        let manager: PolicyManager = self.enter(&actor, &workspace.slug).await?;
        Ok(OpenLink { manager, approval: link.approval_id, link })
    }

    /// What an opened link's page shows. Opening decides nothing.
    pub async fn link_view(&self, open: &OpenLink) -> Result<LinkView, ControlError> {
        let manager = &open.manager;
        let approval = self.approval(manager, open.approval).await?;
        self.approval_shown(manager, open.approval).await?;
        Ok(LinkView {
            arguments: approval.arguments.clone(),
            approval,
            workspace_name: manager.workspace_name.clone(),
            email: manager.actor.email.clone(),
            used: open.link.user_id.is_some() && open.link.used_at.is_some(),
        })
    }

    /// Decides by an opened link. Who may is looked at again; a person's link decides once.
    pub async fn decide_by_link(
        &self,
        open: &OpenLink,
        choice: &Choice,
    ) -> Result<Decided, ControlError> {
        self.decide(&open.manager, open.approval, choice).await
    }
}

fn signed(id: ApprovalLinkId) -> Vec<u8> {
    id.to_string().into_bytes()
}
