//! Policies: writing, versions, going back. What is stored is the text that was sent.

use chrono::{DateTime, Utc};
use serde_json::json;
use sluice_domain::{PolicyId, PolicyKind, ServerId, ToolState, UserId, WorkspaceId};
use sluice_policy::{Checked, KnownTool, Problem, ProblemSeverity, check};
use sluice_store::policies::{self, NewVersion, Policy, PolicyDeletion, PolicyVersion};
use sluice_store::{Conn, StoreError, tools, workspaces};

use crate::audit::{self, Event};
use crate::codes::{self, ProblemCode};
use crate::error::Faults;
use crate::page::{Page, PageOf};
use crate::{Control, ControlError, Fault, PolicyManager, Viewer, text};

/// A policy with its newest document, as text.
pub type PolicyView = Policy;
/// One version, as text.
pub type VersionView = PolicyVersion;

/// What a new policy is made of, or a new version of one.
#[derive(Debug, Clone, Default)]
pub struct PolicyForm {
    /// For an edit: `None` keeps the name.
    pub name: Option<String>,
    /// JSON text, kept as it is.
    pub document: String,
    /// Why, for the list of versions.
    pub note: String,
}

/// A saved policy, and what is odd about its document.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedPolicy {
    pub policy: PolicyView,
    pub warnings: Vec<Problem>,
    /// False if the document already said exactly this: no version was made.
    pub changed: bool,
}

/// A problem of a document as a fault of what was sent.
pub(crate) fn fault(problem: &Problem) -> Fault {
    Fault {
        line: Some(problem.line),
        column: Some(problem.column),
        suggestion: problem.suggestion.clone(),
        ..Fault::new(
            format!("/document{}", problem.pointer),
            ProblemCode::of(problem.code),
            problem.message.clone(),
        )
    }
}

/// What a document's problems are as warnings, or why it cannot be saved.
fn warnings_of(checked: Checked, faults: &mut Faults) -> Vec<Problem> {
    for problem in &checked.problems {
        if problem.severity == ProblemSeverity::Error {
            faults.push(fault(problem));
        }
    }
    checked.problems
}

/// The server's tools as the checker wants them.
pub(crate) async fn known_tools(
    conn: &mut Conn<'_>,
    workspace: WorkspaceId,
    server: ServerId,
) -> Result<Vec<KnownTool>, ControlError> {
    let rows = tools::list(conn, workspace, server).await?;
    let live = rows.iter().filter(|tool| tool.state != ToolState::Gone);
    live.map(|row| {
        let definition = crate::tools::definition(row)?;
        Ok(KnownTool { name: definition.name, input_schema: definition.input_schema })
    })
    .collect()
}

impl Control {
    /// The policies of a server (`None`: of all), newest first.
    pub async fn policies(
        &self,
        viewer: &Viewer,
        server: Option<ServerId>,
        page: Page<PolicyId>,
    ) -> Result<PageOf<PolicyView, PolicyId>, ControlError> {
        if let Some(server) = server {
            self.server_row(viewer, server).await?;
        }
        let mut tx = self.read_in(viewer.workspace).await?;
        let (after, limit) = (page.after, page.one_more());
        let found = policies::list(&mut tx.conn(), viewer.workspace, server, after, limit).await?;
        tx.commit().await?;
        Ok(page.cut(found, |policy| policy.id))
    }

    /// One policy with its newest document.
    pub async fn policy(&self, viewer: &Viewer, id: PolicyId) -> Result<PolicyView, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let policy = policies::find(&mut tx.conn(), viewer.workspace, id).await?;
        tx.commit().await?;
        policy.ok_or(ControlError::NotFound("policy"))
    }

    /// The versions, newest first.
    pub async fn policy_versions(
        &self,
        viewer: &Viewer,
        id: PolicyId,
        page: Page<i64>,
    ) -> Result<PageOf<VersionView, i64>, ControlError> {
        self.policy(viewer, id).await?;
        let mut tx = self.read_in(viewer.workspace).await?;
        let (below, limit) = (page.after, page.one_more());
        let found = policies::versions(&mut tx.conn(), viewer.workspace, id, below, limit).await?;
        tx.commit().await?;
        Ok(page.cut(found, |version| version.version))
    }

    /// One version, of a deleted policy too: the log names it.
    pub async fn policy_version(
        &self,
        viewer: &Viewer,
        id: PolicyId,
        version: i64,
    ) -> Result<VersionView, ControlError> {
        let mut tx = self.read_in(viewer.workspace).await?;
        let found = policies::find_version(&mut tx.conn(), viewer.workspace, id, version).await?;
        tx.commit().await?;
        found.ok_or(ControlError::NotFound("version"))
    }

    /// Says everything that is wrong or odd about a document for a server. Saves nothing.
    pub async fn check_document(
        &self,
        viewer: &Viewer,
        server: ServerId,
        document: &str,
    ) -> Result<Checked, ControlError> {
        self.server_row(viewer, server).await?;
        let mut tx = self.read_in(viewer.workspace).await?;
        let known = known_tools(&mut tx.conn(), viewer.workspace, server).await?;
        tx.commit().await?;
        Ok(check(document, Some(&known)))
    }

    /// Makes a policy.
    pub async fn create_policy(
        &self,
        manager: &PolicyManager,
        server: ServerId,
        form: PolicyForm,
    ) -> Result<SavedPolicy, ControlError> {
        self.create_policy_of(manager, server, PolicyKind::Custom, form).await
    }

    /// Makes a policy of either kind.
    pub(crate) async fn create_policy_of(
        &self,
        manager: &PolicyManager,
        server: ServerId,
        kind: PolicyKind,
        form: PolicyForm,
    ) -> Result<SavedPolicy, ControlError> {
        let checked = self.check_document(manager, server, &form.document).await?;
        let mut faults = Faults::default();
        let name = text::name("/name", form.name.as_deref().unwrap_or_default());
        let name = faults.take(name).unwrap_or_default();
        let note = faults.take(text::note("/note", &form.note)).unwrap_or_default();
        let warnings = warnings_of(checked, &mut faults);
        faults.check()?;
        let bound = self.settings().bounds.policies;
        let now = self.now();
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        if workspaces::counts(conn, manager.workspace).await?.policies >= bound {
            return Err(ControlError::full("policies", bound));
        }
        let first = version(&form.document, manager.actor.maker(), &note);
        let workspace = manager.workspace;
        let policy = policies::create(conn, workspace, server, &name, kind, first, now).await?;
        note_policy(conn, manager, "policy.create", None, &policy, now).await?;
        tx.commit().await?;
        Ok(SavedPolicy { policy, warnings, changed: true })
    }

    /// Saves a new version of a policy that still is at `expected` (`None`: whatever is there).
    pub async fn save_policy(
        &self,
        manager: &PolicyManager,
        id: PolicyId,
        expected: Option<i64>,
        form: PolicyForm,
    ) -> Result<SavedPolicy, ControlError> {
        let before = self.policy(manager, id).await?;
        if expected.is_some_and(|expected| expected != before.version) {
            return Err(ControlError::Stale { current: before.version });
        }
        let checked = self.check_document(manager, before.server_id, &form.document).await?;
        let mut faults = Faults::default();
        let name =
            form.name.map(|name| faults.take(text::name("/name", &name)).unwrap_or_default());
        let note = faults.take(text::note("/note", &form.note)).unwrap_or_default();
        let warnings = warnings_of(checked, &mut faults);
        faults.check()?;
        let new = version(&form.document, manager.actor.maker(), &note);
        let (policy, changed) =
            self.write_version(manager, &before, expected, name.as_deref(), new).await?;
        Ok(SavedPolicy { policy, warnings, changed })
    }

    /// Writes what is new: a version, a name, or neither.
    async fn write_version(
        &self,
        manager: &PolicyManager,
        before: &Policy,
        expected: Option<i64>,
        name: Option<&str>,
        new: NewVersion<'_>,
    ) -> Result<(Policy, bool), ControlError> {
        let (workspace, id, now) = (manager.workspace, before.id, self.now());
        let renamed = name.filter(|name| *name != before.name);
        let same = new.document == before.document;
        if same && renamed.is_none() {
            return Ok((before.clone(), false));
        }
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        if let Some(name) = renamed {
            policies::rename(conn, workspace, id, name, now).await?;
        }
        let saved = if same {
            policies::find(conn, workspace, id).await?
        } else {
            policies::save_version(conn, workspace, id, expected, new, now).await?
        };
        let policy = saved.ok_or(ControlError::NotFound("policy"))?;
        note_policy(conn, manager, "policy.update", Some(before), &policy, now).await?;
        tx.commit().await?;
        Ok((policy, !same))
    }

    /// Makes an earlier version the newest again, as a version of its own.
    pub async fn roll_back(
        &self,
        manager: &PolicyManager,
        id: PolicyId,
        expected: Option<i64>,
        to: i64,
    ) -> Result<SavedPolicy, ControlError> {
        self.policy(manager, id).await?;
        let mut tx = self.read_in(manager.workspace).await?;
        let found = policies::find_version(&mut tx.conn(), manager.workspace, id, to).await?;
        tx.commit().await?;
        let Some(old) = found else {
            let detail = format!("this policy has no version {to}");
            return Err(ControlError::invalid("/version", codes::UNKNOWN_VERSION, detail));
        };
        let note = format!("Rolled back to version {to}");
        let form = PolicyForm { name: None, document: old.document, note };
        self.save_policy(manager, id, expected, form).await
    }

    /// Deletes a policy that no live grant has.
    pub async fn delete_policy(
        &self,
        manager: &PolicyManager,
        id: PolicyId,
        expected: Option<i64>,
    ) -> Result<(), ControlError> {
        let before = self.policy(manager, id).await?;
        if expected.is_some_and(|expected| expected != before.version) {
            return Err(ControlError::Stale { current: before.version });
        }
        let now = self.now();
        let mut tx = self.begin_in(manager.workspace).await?;
        let conn = &mut tx.conn();
        match policies::delete(conn, manager.workspace, id, now).await? {
            PolicyDeletion::Done => {}
            PolicyDeletion::Absent => return Err(ControlError::NotFound("policy")),
            PolicyDeletion::InUse(grants) => return Err(in_use(grants)),
        }
        note_policy(conn, manager, "policy.delete", Some(&before), &before, now).await?;
        tx.commit().await?;
        Ok(())
    }
}

fn in_use(grants: i64) -> ControlError {
    let grants =
        if grants == 1 { "1 grant has".to_owned() } else { format!("{grants} grants have") };
    ControlError::Conflict {
        code: codes::IN_USE,
        pointer: None,
        detail: format!("{grants} this policy; give them another one, or revoke them, first"),
    }
}

pub(crate) fn version<'a>(
    document: &'a str,
    author: Option<UserId>,
    note: &'a str,
) -> NewVersion<'a> {
    NewVersion { document, author, note }
}

/// Adds the admin event; documents stand in the versions, so the event names those.
pub(crate) async fn note_policy(
    conn: &mut Conn<'_>,
    manager: &PolicyManager,
    action: &str,
    before: Option<&Policy>,
    policy: &Policy,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let what = |policy: &Policy| json!({"name": policy.name, "version": policy.version, "server_id": policy.server_id});
    let (was, is) = (before.map(what), what(policy));
    let id = policy.id.to_string();
    let event = Event {
        action,
        object: ("policy", &id, &policy.name),
        before: was.as_ref(),
        after: (action != "policy.delete").then_some(&is),
    };
    audit::record(conn, manager.workspace, &manager.actor, event, now).await
}
