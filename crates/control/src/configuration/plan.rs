//! What applying files would do: every object that they name beside what stands, and the steps that
//! lead from one to the other. Nothing is written here.

mod grants;
mod leftovers;
mod policies;
mod servers;
mod workspace;

use std::collections::BTreeSet;

use sluice_domain::ObjectKind;
use sluice_policy::Change;
use uuid::Uuid;

use super::current::Current;
use super::step::Step;
use super::template::Secrets;
use super::walk::Place;
use super::wanted::Wanted;
use crate::codes;
use crate::error::Faults;
use crate::{Admin, Control, ControlError};

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Create,
    Update,
    Delete,
    Unchanged,
    /// It was applied once and no file names it now; it stays, unless pruning is asked for.
    Orphan,
}

/// Why an object is not touched unless that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drift {
    /// Somebody changed it since it was applied.
    ChangedByHand,
    /// Somebody deleted it since it was applied.
    DeletedByHand,
    /// It was never applied, and is different.
    NeverApplied,
    /// It is there and different, and an import only adds.
    Exists,
}

impl Drift {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::ChangedByHand => "changed by hand since it was applied",
            Self::DeletedByHand => "deleted by hand since it was applied",
            Self::NeverApplied => "exists, was never applied, and is different",
            Self::Exists => "exists, and is different",
        }
    }
}

/// A field that differs. Secrets are masked.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FieldChange {
    pub field: String,
    pub before: Option<serde_json::Value>,
    pub after: Option<serde_json::Value>,
}

/// What is done to one object.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PlannedChange {
    pub action: Action,
    pub kind: ObjectKind,
    /// The server that it belongs to; none of a server and of the workspace.
    pub server: Option<String>,
    pub name: String,
    pub fields: Vec<FieldChange>,
    /// What changes in a policy's document, part by part.
    pub document: Vec<Change>,
    pub drift: Option<Drift>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

impl PlannedChange {
    pub(super) fn new(action: Action, kind: ObjectKind, server: Option<&str>, name: &str) -> Self {
        Self {
            action,
            kind,
            server: server.map(str::to_owned),
            name: name.to_owned(),
            fields: Vec::new(),
            document: Vec::new(),
            drift: None,
            notes: Vec::new(),
        }
    }

    /// `policy sandbox / read only`.
    pub fn title(&self) -> String {
        match &self.server {
            Some(server) => format!("{} {server} / {}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }
}

/// What was asked for besides the files.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command")]
pub struct Options {
    /// Delete what was applied earlier and no file names now.
    pub prune: bool,
    /// Change what is different without having been applied so.
    pub overwrite: bool,
    /// Somebody takes the tokens of new grants.
    pub take_tokens: bool,
    /// Take over into what `apply` minds; off for an import.
    pub remember: bool,
    /// Why, for the policies' versions.
    pub note: String,
}

/// One object and the way to what it should be.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) shown: PlannedChange,
    pub(super) step: Step,
    /// The object, where there is one already.
    pub(super) object: Option<Uuid>,
    /// Its name under which it is remembered, and its state once it is as it should be.
    pub(super) remember: Option<(String, String)>,
}

/// What applying would do.
#[derive(Debug)]
pub struct Plan {
    pub(super) items: Vec<Item>,
    pub(super) options: Options,
    /// Objects that no file names and that were never applied; they stay as they are.
    pub unmanaged: usize,
}

/// How many objects there are of each action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Summary {
    pub create: usize,
    pub update: usize,
    pub delete: usize,
    pub unchanged: usize,
    pub orphan: usize,
}

impl Plan {
    /// Object by object, in the order in which they are made.
    pub fn changes(&self) -> impl Iterator<Item = &PlannedChange> {
        let shown = |item: &&Item| !matches!(item.step, Step::Forget(..));
        self.items.iter().filter(shown).map(|item| &item.shown)
    }

    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for change in self.changes() {
            match change.action {
                Action::Create => summary.create += 1,
                Action::Update => summary.update += 1,
                Action::Delete => summary.delete += 1,
                Action::Unchanged => summary.unchanged += 1,
                Action::Orphan => summary.orphan += 1,
            }
        }
        summary
    }

    /// Whether the files say what is there already.
    pub fn is_empty(&self) -> bool {
        let Summary { create, update, delete, .. } = self.summary();
        create + update + delete == 0
    }

    /// Why it will not be applied as it is.
    pub fn refusal(&self) -> Option<ControlError> {
        let drifted: Vec<_> = self
            .changes()
            .filter_map(|change| Some(format!("{} ({})", change.title(), change.drift?.words())))
            .collect();
        let conflict = |code, detail| Some(ControlError::Conflict { code, pointer: None, detail });
        if !drifted.is_empty() && !self.options.overwrite {
            let more = drifted.len().saturating_sub(5);
            let mut list = drifted[..drifted.len() - more].join("; ");
            if more > 0 {
                list = format!("{list}; and {more} more");
            }
            let detail = format!(
                "not as the files left it: {list}. Nothing was changed. Put it into the files, or \
                 say that the files win"
            );
            return conflict(codes::DRIFT, detail);
        }
        let grants = self
            .changes()
            .filter(|change| change.kind == ObjectKind::Grant && change.action == Action::Create)
            .count();
        if grants > 0 && !self.options.take_tokens {
            let detail = format!(
                "{grants} new grants get tokens, which are shown once: say where they go. Nothing \
                 was changed"
            );
            return conflict(codes::TOKENS_WANTED, detail);
        }
        None
    }
}

/// Works the plan out.
pub(super) struct Planner<'a> {
    control: &'a Control,
    admin: &'a Admin,
    current: &'a Current,
    secrets: &'a Secrets,
    options: &'a Options,
    faults: Faults,
    items: Vec<Item>,
    /// Objects that the files name.
    named: BTreeSet<Uuid>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        control: &'a Control,
        admin: &'a Admin,
        current: &'a Current,
        secrets: &'a Secrets,
        options: &'a Options,
        faults: Faults,
    ) -> Self {
        let (items, named) = (Vec::new(), BTreeSet::new());
        Self { control, admin, current, secrets, options, faults, items, named }
    }

    /// The plan, or everything that is wrong.
    pub(super) async fn plan(mut self, wanted: &Wanted) -> Result<Plan, ControlError> {
        self.workspace(wanted).await?;
        for server in &wanted.servers {
            self.server(server, wanted).await?;
        }
        self.leftovers();
        self.bounds();
        self.faults.check()?;
        self.items.sort_by_key(|item| item.step.phase());
        let unmanaged = unmanaged(self.current, &self.named);
        Ok(Plan { items: self.items, options: self.options.clone(), unmanaged })
    }

    /// Whether the object is as it was left when it was applied.
    fn drift(&self, kind: ObjectKind, object: Uuid, state: &str) -> Option<Drift> {
        if !self.options.remember {
            return Some(Drift::Exists);
        }
        let Some(left) = self.current.left(kind, object) else { return Some(Drift::NeverApplied) };
        let same = self.control.is_signed_state(self.admin.workspace, kind, state, &left.digest);
        (!same).then_some(Drift::ChangedByHand)
    }

    /// Whether an object that is missing was applied once and deleted by hand.
    fn deleted(&self, kind: ObjectKind, path: &str) -> Option<Drift> {
        let known = self.current.applied(kind, path).is_some();
        (known && self.options.remember).then_some(Drift::DeletedByHand)
    }

    /// So many of each as there may be.
    fn bounds(&mut self) {
        let bounds = self.control.settings().bounds.clone();
        let (have, kinds) = (
            self.current.counts.clone(),
            [ObjectKind::Server, ObjectKind::Policy, ObjectKind::Grant],
        );
        let of = |kind: ObjectKind| match kind {
            ObjectKind::Server => ("servers", have.servers, have.limits.servers_or(bounds.servers)),
            ObjectKind::Policy => ("policies", have.policies, bounds.policies),
            ObjectKind::Grant => ("live grants", have.grants, have.limits.grants_or(bounds.grants)),
            ObjectKind::Workspace => ("workspaces", 1, 1),
        };
        for kind in kinds {
            let (what, have, bound) = of(kind);
            let count = |action: Action| {
                let same = |item: &&Item| item.shown.kind == kind && item.shown.action == action;
                i64::try_from(self.items.iter().filter(same).count()).unwrap_or(i64::MAX)
            };
            let (made, gone) = (count(Action::Create), count(Action::Delete));
            if made > 0 && have.saturating_add(made) - gone > bound {
                let detail = format!(
                    "with these there would be more than {bound} {what}, which is the most there can be"
                );
                self.faults.push(Place::top().fault(codes::TOO_MANY, detail));
            }
        }
    }
}

/// How much of the workspace neither a file nor an earlier apply names.
fn unmanaged(current: &Current, named: &BTreeSet<Uuid>) -> usize {
    let known =
        |id: &Uuid| named.contains(id) || current.applied.iter().any(|one| one.object_id == *id);
    let ids = current.servers.iter().flat_map(|server| {
        let policies = server.policies.iter().map(|policy| policy.id.uuid());
        let grants = server.grants.iter().map(|grant| grant.id.uuid());
        [server.row.id.uuid()].into_iter().chain(policies).chain(grants)
    });
    ids.filter(|id| !known(id)).count()
}

/// A field that differs.
fn field<B, A>(name: impl Into<String>, before: Option<B>, after: Option<A>) -> FieldChange
where
    B: Into<serde_json::Value>,
    A: Into<serde_json::Value>,
{
    FieldChange { field: name.into(), before: before.map(Into::into), after: after.map(Into::into) }
}
