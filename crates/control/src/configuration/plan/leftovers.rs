//! What was applied once and no file names now: it stays, or goes where pruning is asked for. What
//! nobody applied is never touched, and keeps alive what it hangs on.

use sluice_domain::ObjectKind;
use sluice_store::configuration::AppliedObject;
use sluice_store::grants::Grant;
use sluice_store::policies::Policy;
use uuid::Uuid;

use super::super::current::{CurrentServer, policy_state};
use super::super::step::Step;
use super::super::walk::Place;
use super::{Action, Item, PlannedChange, Planner};

use crate::codes;

impl Planner<'_> {
    pub(super) fn leftovers(&mut self) {
        let current = self.current;
        if !self.options.remember {
            return;
        }
        for left in &current.applied {
            if self.named.contains(&left.object_id) || left.kind == ObjectKind::Workspace {
                continue;
            }
            let item = match left.kind {
                ObjectKind::Workspace => continue,
                ObjectKind::Server => self.left_server(left),
                ObjectKind::Policy => self.left_policy(left),
                ObjectKind::Grant => self.left_grant(left),
            };
            self.items.push(item.unwrap_or_else(|| gone(left)));
        }
    }

    fn leftover(
        &self,
        kind: ObjectKind,
        server: Option<&str>,
        name: &str,
        object: Uuid,
        state: &str,
        step: Step,
    ) -> Item {
        let mut shown = PlannedChange::new(Action::Orphan, kind, server, name);
        if !self.options.prune {
            return Item { shown, step: Step::Nothing, object: Some(object), remember: None };
        }
        shown.action = Action::Delete;
        shown.drift = self.drift(kind, object, state);
        Item { shown, step, object: Some(object), remember: None }
    }

    fn left_server(&mut self, left: &AppliedObject) -> Option<Item> {
        let server = self.current.servers.iter().find(|one| one.row.id.uuid() == left.object_id)?;
        let row = &server.row;
        let own = self.made_by_hand(server);
        if self.options.prune && own > 0 {
            let detail = format!(
                "the server `{}` is no longer in the files, but {own} of its policies and grants \
                 were never applied; delete them by hand first, or keep the server in the files",
                row.name
            );
            self.faults.push(Place::top().fault(codes::NOT_ONLY_OURS, detail));
        }
        let step = Step::DeleteServer(row.id, row.revision);
        let (id, state) = (row.id.uuid(), server.state());
        Some(self.leftover(ObjectKind::Server, None, &row.name, id, &state, step))
    }

    /// How much of the server nobody applied and no file names.
    fn made_by_hand(&self, server: &CurrentServer) -> usize {
        let policies = server.policies.iter().map(|policy| (ObjectKind::Policy, policy.id.uuid()));
        let grants = server.grants.iter().map(|grant| (ObjectKind::Grant, grant.id.uuid()));
        let by_hand = |(kind, id): &(ObjectKind, Uuid)| {
            self.current.left(*kind, *id).is_none() && !self.named.contains(id)
        };
        policies.chain(grants).filter(by_hand).count()
    }

    fn left_policy(&mut self, left: &AppliedObject) -> Option<Item> {
        let mut all = self
            .current
            .servers
            .iter()
            .flat_map(|server| server.policies.iter().map(move |policy| (server, policy)));
        let (server, policy) = all.find(|(_, policy)| policy.id.uuid() == left.object_id)?;
        if self.options.prune {
            let users = self.stay_with(server, policy);
            if !users.is_empty() {
                let detail = format!(
                    "the policy `{}` of `{}` is no longer in the files, but the grants {} have it",
                    policy.name,
                    server.row.name,
                    users.join(", ")
                );
                self.faults.push(Place::top().fault(codes::IN_USE, detail));
            }
        }
        let state = policy_state(&policy.name, &policy.document);
        let step = Step::DeletePolicy(policy.id, policy.version);
        let (id, name) = (policy.id.uuid(), policy.name.as_str());
        let server = Some(server.row.name.as_str());
        Some(self.leftover(ObjectKind::Policy, server, name, id, &state, step))
    }

    /// The grants that will still have the policy when all else is done.
    fn stay_with(&self, server: &CurrentServer, policy: &Policy) -> Vec<String> {
        let stays = |grant: &&Grant| {
            let id = grant.id.uuid();
            let moved = self.items.iter().any(|item| {
                item.object == Some(id)
                    && item.shown.fields.iter().any(|change| change.field == "policy")
            });
            let pruned =
                self.current.left(ObjectKind::Grant, id).is_some() && !self.named.contains(&id);
            grant.policy_id == Some(policy.id) && !moved && !pruned
        };
        let named = server.grants.iter().filter(stays).map(|grant| format!("`{}`", grant.label));
        named.take(5).collect()
    }

    fn left_grant(&self, left: &AppliedObject) -> Option<Item> {
        let mut all = self
            .current
            .servers
            .iter()
            .flat_map(|server| server.grants.iter().map(move |grant| (server, grant)));
        let (server, grant) = all.find(|(_, grant)| grant.id.uuid() == left.object_id)?;
        let state = server.grant_state(grant);
        let step = Step::RevokeGrant(grant.id);
        let (id, label) = (grant.id.uuid(), grant.label.as_str());
        let server = Some(server.row.name.as_str());
        Some(self.leftover(ObjectKind::Grant, server, label, id, &state, step))
    }
}

/// Applied once, gone since, and no file asks for it: nothing is left to mind.
fn gone(left: &AppliedObject) -> Item {
    let mut shown = PlannedChange::new(Action::Unchanged, left.kind, None, &left.path);
    shown.notes.push("gone already".to_owned());
    let step = Step::Forget(left.object_id);
    Item { shown, step, object: None, remember: None }
}
