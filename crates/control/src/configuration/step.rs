//! The steps of a plan: each is one operation that a member could do as well, so that checks, admin
//! events and the change feed are the same.

use chrono::TimeDelta;
use sluice_domain::{GrantId, JoinDomainId, PolicyId, PolicyKind, Role, ServerId};
use uuid::Uuid;

use crate::{GrantForm, GrantPatch, PolicyForm, ServerForm, ServerPatch};

/// One step. Servers and policies are named by their keys: they may be made on the way.
#[derive(Debug)]
#[expect(clippy::option_option, reason = "a setting stays, goes or has a value")]
pub(super) enum Step {
    Nothing,
    /// The workspace's name, domains to take away, domains to add, and settings; each where it changes.
    Workspace {
        name: Option<String>,
        gone: Vec<JoinDomainId>,
        new: Vec<(String, Role)>,
        provider: Option<Option<String>>,
        escalate_after: Option<Option<TimeDelta>>,
    },
    Connect(Box<ServerForm>),
    EditServer(ServerId, i64, Box<ServerPatch>),
    CreatePolicy {
        server: String,
        kind: PolicyKind,
        form: PolicyForm,
    },
    SavePolicy {
        server: String,
        id: PolicyId,
        version: i64,
        form: PolicyForm,
    },
    CreateGrant {
        server: String,
        form: GrantForm,
        policy: Option<String>,
    },
    EditGrant {
        server: String,
        id: GrantId,
        revision: i64,
        patch: GrantPatch,
        policy: Option<String>,
    },
    RevokeGrant(GrantId),
    DeletePolicy(PolicyId, i64),
    DeleteServer(ServerId, i64),
    /// It is gone already, and is only forgotten.
    Forget(Uuid),
}

impl Step {
    /// Steps of a lower phase are done first: what is referred to before what refers to it, and the
    /// other way round when things go.
    pub(super) fn phase(&self) -> u8 {
        match self {
            Self::Nothing | Self::Workspace { .. } => 0,
            Self::Connect(_) | Self::EditServer(..) => 1,
            Self::CreatePolicy { .. } | Self::SavePolicy { .. } => 2,
            Self::CreateGrant { .. } | Self::EditGrant { .. } => 3,
            Self::RevokeGrant(_) => 4,
            Self::DeletePolicy(..) => 5,
            Self::DeleteServer(..) => 6,
            Self::Forget(..) => 7,
        }
    }
}
