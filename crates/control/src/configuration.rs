//! A workspace's configuration as files: written down, compared with what stands, and applied. The
//! files hold servers, policies, grants by label and settings; never a secret, never a token.
//!
//! `wanted` reads the files, `current` what stands, `plan` compares, `execute` does the steps.

mod current;
mod execute;
mod export;
mod node;
mod plan;
mod step;
mod template;
mod walk;
mod wanted;

use std::collections::BTreeMap;

use sluice_domain::{ObjectKind, WorkspaceId};

pub use execute::{Done, Halted, KeepToken, NewGrantToken};
pub use export::Files;
pub use plan::{Action, Drift, FieldChange, Options, Plan, PlannedChange, Summary};
pub use template::{Reference, Secrets};
pub use wanted::{Needs, needs};

use self::plan::Planner;
use crate::error::Faults;
use crate::{Admin, Control, ControlError};

/// The name of the main file.
pub const MAIN: &str = "workspace.yaml";

impl Control {
    /// Says what applying the files would do, or everything that is wrong with them. Writes nothing.
    pub async fn plan_configuration(
        &self,
        admin: &Admin,
        files: &BTreeMap<String, String>,
        secrets: &Secrets,
        options: &Options,
    ) -> Result<Plan, ControlError> {
        let mut faults = Faults::default();
        let wanted = wanted::read(files, &mut faults);
        let current = self.current(admin).await?;
        Planner::new(self, admin, &current, secrets, options, faults).plan(&wanted).await
    }

    /// The mark of an object's state, which only holders of the master keys can make.
    pub(crate) fn sign_state(
        &self,
        workspace: WorkspaceId,
        kind: ObjectKind,
        state: &str,
    ) -> String {
        self.sign(PURPOSE, message(workspace, kind, state).as_bytes())
    }

    pub(crate) fn is_signed_state(
        &self,
        workspace: WorkspaceId,
        kind: ObjectKind,
        state: &str,
        digest: &str,
    ) -> bool {
        self.verify(PURPOSE, message(workspace, kind, state).as_bytes(), digest)
    }
}

const PURPOSE: &str = "applied configuration";

fn message(workspace: WorkspaceId, kind: ObjectKind, state: &str) -> String {
    format!("{workspace} {kind} {state}")
}
