//! Carries a plan out, step by step. A step that fails ends the run; what was done stays, is told,
//! and is found done by the next run.

use std::collections::BTreeMap;

use secrecy::SecretString;
use sluice_domain::{GrantId, ObjectKind, PolicyId, ServerId};
use sluice_store::configuration;
use uuid::Uuid;

use super::current::Current;
use super::plan::{Action, Item, Plan, Summary};
use super::step::Step;
use super::wanted::key;
use crate::audit::{self, Event};
use crate::codes;
use crate::{Admin, Control, ControlError, GrantForm, Granted};

/// A grant that was just made; its token is shown this once.
#[derive(Debug, Clone)]
pub struct NewGrantToken {
    pub server: String,
    pub server_id: ServerId,
    pub proxy_url: String,
    pub label: String,
    pub grant_id: GrantId,
    pub token: SecretString,
}

/// Takes a token the moment it is made; a grant whose token cannot be kept is revoked again.
pub type KeepToken<'a> = &'a mut (dyn FnMut(&NewGrantToken) -> std::io::Result<()> + Send);

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub summary: Summary,
    /// What did not go well and stands in nobody's way, such as a server that does not answer.
    pub warnings: Vec<String>,
}

/// A run that stopped on its way.
#[derive(Debug, thiserror::Error)]
#[error("{at}: {error}")]
pub struct Halted {
    /// The object at which it stopped.
    pub at: String,
    /// Objects that were made, changed or deleted before.
    pub done: usize,
    #[source]
    pub error: ControlError,
}

/// Ids by key, of what is there and what was made on the way.
struct Ids {
    servers: BTreeMap<String, (ServerId, String)>,
    policies: BTreeMap<(ServerId, String), PolicyId>,
}

/// A run of a plan.
struct Run<'a> {
    control: &'a Control,
    admin: &'a Admin,
    ids: Ids,
    keep: KeepToken<'a>,
    warnings: Vec<String>,
}

impl Control {
    /// Carries the plan out. What changed since it was made stops it.
    pub async fn apply_configuration(
        &self,
        admin: &Admin,
        plan: Plan,
        keep: KeepToken<'_>,
    ) -> Result<Done, Halted> {
        let summary = plan.summary();
        let start = |error| Halted { at: "the configuration".to_owned(), done: 0, error };
        if let Some(refusal) = plan.refusal() {
            return Err(start(refusal));
        }
        let current = self.current(admin).await.map_err(start)?;
        let ids = Ids::of(&current, &plan);
        let mut run = Run { control: self, admin, ids, keep, warnings: Vec::new() };
        let mut done = 0;
        for item in plan.items {
            let at = item.shown.title();
            let changes =
                matches!(item.shown.action, Action::Create | Action::Update | Action::Delete);
            let stepped = run.item(&current, item, plan.options.remember).await;
            stepped.map_err(|error| Halted { at, done, error: explained(error) })?;
            done += usize::from(changes);
        }
        if done > 0 {
            let at = "the admin audit log".to_owned();
            let noted = self.note_applied(admin, summary).await;
            noted.map_err(|error| Halted { at, done, error })?;
        }
        Ok(Done { summary, warnings: run.warnings })
    }

    async fn note_applied(&self, admin: &Admin, summary: Summary) -> Result<(), ControlError> {
        let mut tx = self.begin_in(admin.workspace).await?;
        let conn = &mut tx.conn();
        let what = serde_json::json!({
            "created": summary.create, "updated": summary.update, "deleted": summary.delete,
        });
        let id = admin.workspace.to_string();
        let object = ("workspace", id.as_str(), admin.workspace_name.as_str());
        let event = Event::new("configuration.apply", object).after(&what);
        audit::record(conn, admin.workspace, &admin.actor, event, self.now()).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// Somebody was at work at the same time.
fn explained(error: ControlError) -> ControlError {
    match error {
        ControlError::Stale { .. } => ControlError::Conflict {
            code: codes::CHANGED_MEANWHILE,
            pointer: None,
            detail: "somebody changed it while this was applied; look at the plan again".to_owned(),
        },
        other => other,
    }
}

impl Ids {
    fn of(current: &Current, plan: &Plan) -> Self {
        let (mut servers, mut policies) = (BTreeMap::new(), BTreeMap::new());
        for server in &current.servers {
            let id = server.row.id;
            servers.insert(key(&server.row.name), (id, server.row.name.clone()));
            for policy in &server.policies {
                policies.insert((id, key(&policy.name)), policy.id);
            }
        }
        // A server that is renamed on the way is asked for by its new name.
        for item in plan.items.iter().filter(|item| item.shown.kind == ObjectKind::Server) {
            if let Some(object) = item.object {
                let name = item.shown.name.clone();
                servers.insert(key(&name), (ServerId::from_uuid(object), name));
            }
        }
        Self { servers, policies }
    }

    fn server(&self, key: &str) -> Result<(ServerId, String), ControlError> {
        self.servers.get(key).cloned().ok_or(ControlError::NotFound("server"))
    }

    fn policy(
        &self,
        server: ServerId,
        key: Option<&str>,
    ) -> Result<Option<PolicyId>, ControlError> {
        let Some(key) = key else { return Ok(None) };
        let found = self.policies.get(&(server, key.to_owned())).copied();
        found.map(Some).ok_or(ControlError::NotFound("policy"))
    }
}

async fn workspace(control: &Control, admin: &Admin, step: Step) -> Result<(), ControlError> {
    let Step::Workspace { name, gone, new, provider, escalate_after } = step else { return Ok(()) };
    if let Some(name) = name {
        control.rename_workspace(admin, &name).await?;
    }
    for id in gone {
        control.remove_join_domain(admin, id).await?;
    }
    for (domain, role) in new {
        control.add_join_domain(admin, &domain, role).await?;
    }
    if let Some(provider) = provider {
        control.require_provider(admin, provider.as_deref()).await?;
    }
    if let Some(after) = escalate_after {
        control.set_escalation(admin, after).await?;
    }
    Ok(())
}

impl Run<'_> {
    async fn item(
        &mut self,
        current: &Current,
        item: Item,
        remember: bool,
    ) -> Result<(), ControlError> {
        let Item { shown, step, object, remember: state } = item;
        let gone = matches!(shown.action, Action::Delete) || matches!(step, Step::Forget(..));
        let made = self.step(step).await?;
        let object = made.or(object);
        if !remember {
            return Ok(());
        }
        match (object, state) {
            (Some(object), _) if gone => {
                forget(self.control, self.admin, (shown.kind, object)).await
            }
            (Some(object), Some((path, state))) => {
                let what = (shown.kind, object);
                remember_as(self.control, self.admin, current, what, &path, &state).await
            }
            _ => Ok(()),
        }
    }

    /// Does the step; gives the object that was made, or is forgotten.
    async fn step(&mut self, step: Step) -> Result<Option<Uuid>, ControlError> {
        let (control, admin) = (self.control, self.admin);
        match step {
            Step::Nothing => {}
            Step::Forget(object) => return Ok(Some(object)),
            step @ Step::Workspace { .. } => workspace(control, admin, step).await?,
            Step::Connect(form) => {
                let connected = control.connect(admin, *form).await?;
                let (id, name) = (connected.server.id, connected.server.name);
                if let Err(failure) = connected.read {
                    let words =
                        format!("server {name}: its tools were not read: {}", failure.words);
                    self.warnings.push(words);
                }
                self.ids.servers.insert(key(&name), (id, name));
                return Ok(Some(id.uuid()));
            }
            Step::EditServer(id, revision, patch) => {
                control.edit_server(admin, id, Some(revision), *patch).await?;
            }
            Step::CreatePolicy { server, kind, form } => {
                let (server, _) = self.ids.server(&server)?;
                let saved = control.create_policy_of(admin, server, kind, form).await?.policy;
                self.ids.policies.insert((server, key(&saved.name)), saved.id);
                return Ok(Some(saved.id.uuid()));
            }
            Step::SavePolicy { server, id, version, form } => {
                let (server, _) = self.ids.server(&server)?;
                let saved = control.save_policy(admin, id, Some(version), form).await?.policy;
                self.ids.policies.insert((server, key(&saved.name)), id);
            }
            Step::CreateGrant { server, form, policy } => {
                return self.create_grant(&server, form, policy.as_deref()).await.map(Some);
            }
            Step::EditGrant { server, id, revision, mut patch, policy } => {
                let (server, _) = self.ids.server(&server)?;
                patch.policy = Some(self.ids.policy(server, policy.as_deref())?);
                control.edit_grant(admin, id, Some(revision), patch).await?;
            }
            Step::RevokeGrant(id) => control.revoke_grant(admin, id).await?,
            Step::DeletePolicy(id, version) => {
                control.delete_policy(admin, id, Some(version)).await?;
            }
            Step::DeleteServer(id, revision) => {
                control.delete_server(admin, id, Some(revision)).await?;
            }
        }
        Ok(None)
    }

    async fn create_grant(
        &mut self,
        server: &str,
        form: GrantForm,
        policy: Option<&str>,
    ) -> Result<Uuid, ControlError> {
        let (server_id, server) = self.ids.server(server)?;
        let policy = self.ids.policy(server_id, policy)?;
        let form = GrantForm { policy, ..form };
        let Granted { grant, token } =
            self.control.create_grant(self.admin, server_id, form).await?;
        let made = NewGrantToken {
            server,
            server_id,
            proxy_url: self.control.proxy_url(server_id),
            label: grant.label,
            grant_id: grant.id,
            token,
        };
        if let Err(error) = (self.keep)(&made) {
            // Nobody has the token: such a grant would only be in the way of the next try.
            self.control.revoke_grant(self.admin, grant.id).await?;
            return Err(ControlError::Conflict {
                code: codes::TOKEN_NOT_KEPT,
                pointer: None,
                detail: format!("its token could not be kept ({error}), so it was revoked again"),
            });
        }
        Ok(grant.id.uuid())
    }
}

/// Notes how the object is left, unless that is known.
async fn remember_as(
    control: &Control,
    admin: &Admin,
    current: &Current,
    (kind, object): (ObjectKind, Uuid),
    path: &str,
    state: &str,
) -> Result<(), ControlError> {
    let workspace = admin.workspace;
    let known = current.left(kind, object);
    // Under the current key: so a run after a rotation leaves nothing to the old one.
    let digest = control.sign_state(workspace, kind, state);
    if known.is_some_and(|known| known.path == path && known.digest == digest) {
        return Ok(());
    }
    let mut tx = control.begin_in(admin.workspace).await?;
    let (conn, now) = (&mut tx.conn(), control.now());
    configuration::put(conn, workspace, (kind, object), path, &digest, now).await?;
    Ok(tx.commit().await?)
}

async fn forget(
    control: &Control,
    admin: &Admin,
    what: (ObjectKind, Uuid),
) -> Result<(), ControlError> {
    let mut tx = control.begin_in(admin.workspace).await?;
    configuration::forget(&mut tx.conn(), admin.workspace, what).await?;
    Ok(tx.commit().await?)
}
