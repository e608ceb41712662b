//! Takes back a press of the button, as long as nobody changed the policy since.

use sluice_domain::PolicyId;
use sluice_store::policies;

use super::TRIES;
use crate::codes;
use crate::policies::PolicyForm;
use crate::{Control, ControlError, PolicyManager, PolicyView, Viewer};

/// How the notes of versions begin that the button saved.
pub(super) const PRESSED: &str = "Recommended rule of ";

/// What became of a policy whose last press was taken back.
#[derive(Debug, Clone, PartialEq)]
pub enum Undone {
    /// It says what it said before, in a version of its own.
    Back(PolicyView),
    /// The press had made it, so it is gone.
    Deleted,
    /// That was done already.
    Already(PolicyView),
}

fn undone(version: i64) -> String {
    format!("Undid version {version}, a press of the button")
}

impl Control {
    /// Whether a policy's newest version is a press that can be taken back.
    pub async fn can_undo(
        &self,
        viewer: &Viewer,
        policy: &PolicyView,
    ) -> Result<bool, ControlError> {
        let newest = self.policy_version(viewer, policy.id, policy.version).await?;
        Ok(newest.note.starts_with(PRESSED))
    }

    /// Takes back the press that saved this version. Several at once take it back once.
    pub async fn undo_recommended(
        &self,
        manager: &PolicyManager,
        id: PolicyId,
        version: i64,
    ) -> Result<Undone, ControlError> {
        for _ in 0..TRIES {
            match self.try_undo(manager, id, version).await {
                // Somebody else pressed or saved in this moment: look again.
                Err(ControlError::Stale { .. }) => {}
                Err(ControlError::NotFound(what)) => {
                    // Another one deleted it; its versions stay readable.
                    let gone = self.policy_version(manager, id, 1).await;
                    let pressed = gone.is_ok_and(|first| first.note.starts_with(PRESSED));
                    let undone = version == 1 && pressed;
                    return if undone {
                        Ok(Undone::Deleted)
                    } else {
                        Err(ControlError::NotFound(what))
                    };
                }
                done => return done,
            }
        }
        Err(ControlError::Unavailable("the policy, which many are changing at once,"))
    }

    async fn try_undo(
        &self,
        manager: &PolicyManager,
        id: PolicyId,
        version: i64,
    ) -> Result<Undone, ControlError> {
        let policy = self.policy(manager, id).await?;
        let newest = self.policy_version(manager, id, policy.version).await?;
        if policy.version == version + 1 && newest.note == undone(version) {
            return Ok(Undone::Already(policy));
        }
        if policy.version != version || !newest.note.starts_with(PRESSED) {
            return Err(ControlError::Conflict {
                code: codes::NOT_THE_LAST_PRESS,
                pointer: None,
                detail: format!(
                    "version {version} is not a press of the button, or is not the newest version any more; \
                     go back to an earlier one under Versions"
                ),
            });
        }
        if version == 1 {
            self.delete_policy(manager, id, Some(version)).await?;
            return Ok(Undone::Deleted);
        }
        let mut tx = self.read_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        let before = policies::find_version(conn, manager.workspace, id, version - 1).await?;
        tx.commit().await?;
        let document = before.ok_or(ControlError::NotFound("version"))?.document;
        let form = PolicyForm { name: None, document, note: undone(version) };
        Ok(Undone::Back(self.save_policy(manager, id, Some(version), form).await?.policy))
    }
}
