//! The button: a tool's recommended rule goes into a policy, alone or with the recommended rules of
//! the server's other tools. Shown before it is saved, and pressing twice changes nothing more.

mod merge;
mod undo;

pub use undo::Undone;

use chrono::{DateTime, Utc};
use sluice_domain::{PolicyId, PolicyKind, ServerId, ToolState};
use sluice_policy::{Change, RuleSentence, compile, diff, sentences};
use sluice_risk::recommended;
use sluice_store::policies::{self, Policy};
use sluice_store::{Conn, StoreError, tools, workspaces};

use self::merge::{MergeError, Others, merge};
use crate::codes;
use crate::policies::{fault, note_policy, version};
use crate::{Control, ControlError, PolicyManager, PolicyView, Viewer};

/// What becomes of the server's other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestOf {
    /// What the policy names already stays; everything else is denied.
    #[default]
    Deny,
    /// Tools that the policy does not name yet get their recommended rule.
    Recommended,
}

/// What the button was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Apply {
    /// `None`: the server's policy of this button, made if missing.
    pub policy: Option<PolicyId>,
    pub rest: RestOf,
}

/// What applying a rule would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The policy that would change; `None`: a new one.
    pub policy: Option<PolicyId>,
    pub policy_name: String,
    /// Its version now; 0 for a new one.
    pub version: i64,
    pub before: Option<String>,
    pub after: String,
    /// False: the document says all of it already.
    pub changed: bool,
    /// The tool's rule in one sentence.
    pub sentence: String,
    /// The whole document in sentences.
    pub sentences: Vec<RuleSentence>,
    /// Part by part; empty for a new policy.
    pub changes: Vec<Change>,
}

/// What applying a rule changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    pub policy: PolicyView,
    /// The policy was made.
    pub created: bool,
    pub preview: Preview,
}

/// What the button's policy is called.
const BUTTON_NAME: &str = "Recommended rules";
/// Presses at the same moment that wait for each other this often at most.
const TRIES: u32 = 10;

/// The policy as it stands, and as it would be.
struct Step {
    found: Option<Policy>,
    preview: Preview,
}

impl Control {
    /// Says what applying the tool's recommended rule would change. Saves nothing.
    pub async fn preview_recommended(
        &self,
        viewer: &Viewer,
        server: ServerId,
        tool: &str,
        apply: Apply,
    ) -> Result<Preview, ControlError> {
        self.server_row(viewer, server).await?;
        let mut tx = self.read_in(viewer.workspace).await?;
        let step = next(&mut tx.conn(), viewer, server, tool, apply).await?;
        tx.commit().await?;
        Ok(step.preview)
    }

    /// Applies the tool's recommended rule. Several presses at once apply it once.
    pub async fn apply_recommended(
        &self,
        manager: &PolicyManager,
        server: ServerId,
        tool: &str,
        apply: Apply,
    ) -> Result<Applied, ControlError> {
        self.server_row(manager, server).await?;
        for _ in 0..TRIES {
            match self.try_apply(manager, server, tool, apply).await {
                // Somebody else pressed or saved in this moment: look again.
                Err(
                    ControlError::Stale { .. }
                    | ControlError::Conflict {
                        code: codes::BUTTON_TAKEN | codes::NAME_TAKEN, ..
                    },
                ) => {}
                done => return done,
            }
        }
        Err(ControlError::Unavailable("the policy, which many are changing at once,"))
    }

    async fn try_apply(
        &self,
        manager: &PolicyManager,
        server: ServerId,
        tool: &str,
        apply: Apply,
    ) -> Result<Applied, ControlError> {
        let now = self.now();
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        let Step { found, preview } = next(conn, manager, server, tool, apply).await?;
        if let (Some(policy), false) = (&found, preview.changed) {
            return Ok(Applied { policy: policy.clone(), created: false, preview });
        }
        let policy =
            self.write_rule(conn, manager, server, tool, found.as_ref(), &preview, now).await?;
        note_policy(conn, manager, "policy.apply_recommended", found.as_ref(), &policy, now)
            .await?;
        tx.commit().await?;
        tracing::info!(workspace = %manager.workspace, %server, tool, "Applied a recommended rule");
        Ok(Applied { policy, created: found.is_none(), preview })
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `try_apply`, with what it knows")]
    async fn write_rule(
        &self,
        conn: &mut Conn<'_>,
        manager: &PolicyManager,
        server: ServerId,
        tool: &str,
        found: Option<&Policy>,
        preview: &Preview,
        now: DateTime<Utc>,
    ) -> Result<Policy, ControlError> {
        let workspace = manager.workspace;
        let note = format!("{}`{tool}`", undo::PRESSED);
        let new = version(&preview.after, manager.actor.maker(), &note);
        if let Some(before) = found {
            let expected = Some(before.version);
            let saved =
                policies::save_version(conn, workspace, before.id, expected, new, now).await?;
            return saved.ok_or(ControlError::NotFound("policy"));
        }
        let bound = self.settings().bounds.policies;
        if workspaces::counts(conn, workspace).await?.policies >= bound {
            return Err(ControlError::full("policies", bound));
        }
        let (name, kind) = (preview.policy_name.as_str(), PolicyKind::Button);
        match policies::create(conn, workspace, server, name, kind, new, now).await {
            Err(StoreError::Conflict { constraint }) if constraint == "policies_button" => {
                Err(ControlError::Conflict {
                    code: codes::BUTTON_TAKEN,
                    pointer: None,
                    detail: "the button was pressed in this moment".to_owned(),
                })
            }
            made => Ok(made?),
        }
    }
}

/// Reads what the change depends on, and works it out.
async fn next(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
    server: ServerId,
    tool: &str,
    apply: Apply,
) -> Result<Step, ControlError> {
    let workspace = viewer.workspace;
    let all = tools::list(conn, workspace, server).await?;
    let live: Vec<_> = all.iter().filter(|tool| tool.state != ToolState::Gone).collect();
    let this = live.iter().find(|one| one.name == tool).ok_or(ControlError::NotFound("tool"))?;
    let found = match apply.policy {
        Some(id) => Some(
            policies::find(conn, workspace, id)
                .await?
                .filter(|policy| policy.server_id == server)
                .ok_or_else(unknown_policy)?,
        ),
        None => policies::find_button(conn, workspace, server).await?,
    };
    let rule = recommended(tool, this.category);
    let others: Vec<_> = live
        .iter()
        .filter(|other| other.name != tool)
        .map(|other| (other.name.as_str(), other.category))
        .collect();
    let others = match apply.rest {
        RestOf::Deny => Others::Denied,
        RestOf::Recommended => Others::Recommended(&others),
    };
    let before = found.as_ref().map(|policy| policy.document.clone());
    let after = merge(before.as_deref(), tool, &rule.fragment, &others).map_err(unmergeable)?;
    let policy_name = match &found {
        Some(policy) => policy.name.clone(),
        None => free_name(conn, viewer, server).await?,
    };
    let preview = Preview {
        policy: found.as_ref().map(|policy| policy.id),
        policy_name,
        version: found.as_ref().map_or(0, |policy| policy.version),
        changed: before.as_ref() != Some(&after),
        sentence: rule.sentence,
        sentences: compile(&after).map(|after| sentences(after.document())).unwrap_or_default(),
        changes: before.as_ref().and_then(|before| diff(before, &after).ok()).unwrap_or_default(),
        before,
        after,
    };
    Ok(Step { found, preview })
}

fn unknown_policy() -> ControlError {
    ControlError::invalid("/policy_id", codes::UNKNOWN_POLICY, "this server has no such policy")
}

/// The button's name, or the first numbered one that no policy of the server has.
async fn free_name(
    conn: &mut Conn<'_>,
    viewer: &Viewer,
    server: ServerId,
) -> Result<String, ControlError> {
    let mut name = BUTTON_NAME.to_owned();
    let mut number = 2;
    while policies::find_by_name(conn, viewer.workspace, server, &name).await?.is_some() {
        name = format!("{BUTTON_NAME} {number}");
        number += 1;
    }
    Ok(name)
}

fn unmergeable(error: MergeError) -> ControlError {
    match error {
        MergeError::Conflict(problems) => {
            let faults: Vec<_> = problems.iter().map(fault).collect();
            let first = faults.first().map(|fault| fault.detail.clone()).unwrap_or_default();
            ControlError::Conflict {
                code: codes::RULE_CONFLICTS,
                pointer: None,
                detail: format!(
                    "the recommended rule does not fit this policy: {first}; edit the policy by hand"
                ),
            }
        }
        MergeError::Other(words) => ControlError::internal(words),
    }
}
