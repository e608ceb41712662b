//! Who is calling, and what they may do in a workspace. [`Viewer`], [`PolicyManager`] and [`Admin`]
//! exist only after the check, and an operation asks for the one it needs: a forgotten check does
//! not compile. An admin passes for a policy manager, and either for a viewer.

use std::ops::Deref;

use sluice_domain::{
    ActorKind, ApiTokenId, ApprovalLinkId, LoginSessionId, Role, UserId, WorkspaceId,
};
use sluice_store::admin_events::ActorOf;
use uuid::Uuid;

use crate::ControlError;
use crate::codes;

/// How the caller proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Logged in, in a browser.
    Login(LoginSessionId),
    /// A REST token, good for one workspace.
    ApiToken { id: ApiTokenId, label: String, workspace: WorkspaceId, slug: String, role: Role },
    /// A link that was sent to the person, good for one approval.
    Link(ApprovalLinkId),
    /// Has the machine: a command on it, which only [`Operator`](crate::operator::Operator) lets in.
    Operator,
}

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub user: UserId,
    pub email: String,
    pub name: String,
    pub proof: Proof,
    /// The client's address, for the audit log.
    pub address: String,
}

impl Actor {
    /// The login session, if that is how the caller came in.
    pub fn login(&self) -> Option<LoginSessionId> {
        match self.proof {
            Proof::Login(id) => Some(id),
            Proof::ApiToken { .. } | Proof::Link(_) | Proof::Operator => None,
        }
    }

    /// The member who is noted as the maker of what this caller makes; the operator is none.
    pub fn maker(&self) -> Option<UserId> {
        match self.proof {
            Proof::Login(_) | Proof::ApiToken { .. } | Proof::Link(_) => Some(self.user),
            Proof::Operator => None,
        }
    }

    /// The id that idempotency keys and the audit log go by.
    pub fn id(&self) -> Uuid {
        match &self.proof {
            Proof::Login(_) | Proof::Link(_) | Proof::Operator => self.user.uuid(),
            Proof::ApiToken { id, .. } => id.uuid(),
        }
    }

    /// By what way the caller came in, for the record.
    pub fn way(&self) -> &'static str {
        match self.proof {
            Proof::Login(_) => "page",
            Proof::ApiToken { .. } => "api",
            Proof::Link(_) => "link",
            Proof::Operator => "command",
        }
    }

    /// Whoever runs a command on the machine. Belongs to no account: the nil id is nobody's.
    pub(crate) fn operator() -> Self {
        Self {
            user: UserId::from_uuid(Uuid::nil()),
            email: "operator".to_owned(),
            name: String::new(),
            proof: Proof::Operator,
            address: String::new(),
        }
    }

    pub(crate) fn for_audit(&self) -> ActorOf<'_> {
        let (kind, name) = match &self.proof {
            Proof::Login(_) | Proof::Link(_) => (ActorKind::User, &self.email),
            Proof::ApiToken { label, .. } => (ActorKind::ApiToken, label),
            Proof::Operator => (ActorKind::Operator, &self.email),
        };
        let id = self.maker().map(|_| self.id());
        ActorOf { kind, id, name, address: &self.address }
    }
}

/// A caller inside a workspace.
#[derive(Debug, Clone)]
pub struct Access {
    pub workspace: WorkspaceId,
    pub slug: String,
    pub workspace_name: String,
    /// Switched off by the operator: nothing can be changed.
    pub suspended: bool,
    pub role: Role,
    pub actor: Actor,
}

/// What an operation may ask for; only [`Control::enter`](crate::Control::enter) makes one.
pub trait Permission: Sized + sealed::Sealed {
    /// The role that is needed.
    const ROLE: Role;
    #[doc(hidden)]
    fn of(access: Access) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// May read.
#[derive(Debug, Clone)]
pub struct Viewer(Access);

/// May also write policies, attach them to grants and decide approvals.
#[derive(Debug, Clone)]
pub struct PolicyManager(Viewer);

/// May also change servers, credentials, grants, members, tokens and settings.
#[derive(Debug, Clone)]
pub struct Admin(PolicyManager);

impl Deref for Viewer {
    type Target = Access;
    fn deref(&self) -> &Access {
        &self.0
    }
}

impl Deref for PolicyManager {
    type Target = Viewer;
    fn deref(&self) -> &Viewer {
        &self.0
    }
}

impl Deref for Admin {
    type Target = PolicyManager;
    fn deref(&self) -> &PolicyManager {
        &self.0
    }
}

impl sealed::Sealed for Viewer {}
impl sealed::Sealed for PolicyManager {}
impl sealed::Sealed for Admin {}

impl Permission for Viewer {
    const ROLE: Role = Role::Viewer;
    fn of(access: Access) -> Self {
        Self(access)
    }
}

impl Permission for PolicyManager {
    const ROLE: Role = Role::PolicyManager;
    fn of(access: Access) -> Self {
        Self(Viewer::of(access))
    }
}

impl Permission for Admin {
    const ROLE: Role = Role::Admin;
    fn of(access: Access) -> Self {
        Self(PolicyManager::of(access))
    }
}

impl Access {
    /// Raises the caller to a permission, if the role allows it.
    pub fn require<P: Permission>(&self) -> Result<P, ControlError> {
        if !self.role.at_least(P::ROLE) {
            return Err(ControlError::role_too_low(P::ROLE));
        }
        if self.suspended && P::ROLE > Role::Viewer {
            return Err(ControlError::Forbidden {
                code: codes::WORKSPACE_SUSPENDED,
                detail: "this workspace is suspended by the operator; it can be read, not changed"
                    .into(),
            });
        }
        Ok(P::of(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(role: Role, suspended: bool) -> Access {
        let actor = Actor {
            user: UserId::new(),
            email: "a@example.test".to_owned(),
            name: String::new(),
            proof: Proof::Login(LoginSessionId::new()),
            address: String::new(),
        };
        Access {
            workspace: WorkspaceId::new(),
            slug: "w".to_owned(),
            workspace_name: "W".to_owned(),
            suspended,
            role,
            actor,
        }
    }

    #[test]
    fn each_role_gets_what_it_includes_and_no_more() {
        for (role, manager, admin) in [
            (Role::Viewer, false, false),
            (Role::PolicyManager, true, false),
            (Role::Admin, true, true),
        ] {
            let access = access(role, false);
            assert!(access.require::<Viewer>().is_ok());
            assert_eq!(access.require::<PolicyManager>().is_ok(), manager, "{role}");
            assert_eq!(access.require::<Admin>().is_ok(), admin, "{role}");
        }
    }

    #[test]
    fn a_suspended_workspace_is_read_only() {
        let access = access(Role::Admin, true);
        assert!(access.require::<Viewer>().is_ok());
        let refused = access.require::<Admin>().expect_err("read only");
        assert_eq!(refused.code(), "workspace_suspended");
    }
}
