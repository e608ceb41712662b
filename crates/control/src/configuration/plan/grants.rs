//! Grants: their policies must be there or come with them. A token is never part of a plan.

use chrono::{DateTime, SecondsFormat, Utc};
use sluice_domain::ObjectKind;
use sluice_store::grants::Grant;

use super::super::current::{CurrentServer, grant_state};
use super::super::step::Step;
use super::super::wanted::{WantedGrant, WantedServer, key};
use super::policies::path;
use super::{Action, FieldChange, Item, PlannedChange, Planner, field};
use crate::api_tokens::in_future;
use crate::codes;
use crate::{GrantForm, GrantPatch};

impl Planner<'_> {
    pub(super) fn grants(&mut self, wanted: &WantedServer, found: Option<&CurrentServer>) {
        for grant in &wanted.grants {
            let row = found.and_then(|found| self.find_grant(wanted, grant, found));
            if let Some(row) = row {
                self.named.insert(row.id.uuid());
            }
            self.check_policy(wanted, found, grant);
            self.check_time(grant, row);
            let item = match (row, found) {
                (Some(row), Some(found)) => self.known_grant(wanted, grant, found, row),
                _ => self.new_grant(wanted, grant),
            };
            self.items.push(item);
        }
    }

    fn find_grant<'f>(
        &self,
        server: &WantedServer,
        wanted: &WantedGrant,
        found: &'f CurrentServer,
    ) -> Option<&'f Grant> {
        let label = &wanted.label.value;
        let same = |row: &&Grant| key(&row.label) == key(label);
        found.grants.iter().find(same).or_else(|| {
            let path = path(&server.name.value, label);
            let left = self.current.applied(ObjectKind::Grant, &path)?;
            let row = found.grants.iter().find(|row| row.id.uuid() == left.object_id)?;
            let taken = server.grants.iter().any(|one| key(&one.label.value) == key(&row.label));
            (!taken).then_some(row)
        })
    }

    fn check_policy(
        &mut self,
        server: &WantedServer,
        found: Option<&CurrentServer>,
        grant: &WantedGrant,
    ) {
        let Some(policy) = &grant.policy else { return };
        let name = &policy.value;
        let wanted = server.policies.iter().map(|one| one.name.value.as_str());
        let stored = found.iter().flat_map(|found| &found.policies).map(|one| one.name.as_str());
        let all: Vec<&str> = wanted.chain(stored).collect();
        if all.iter().any(|one| key(one) == key(name)) {
            return;
        }
        let meant = sluice_policy::nearest(name, all);
        let server = &server.name.value;
        let mut fault = policy.place.fault(
            codes::UNKNOWN_POLICY,
            match meant {
                Some(meant) => {
                    format!("`{server}` has no policy `{name}`; did you mean `{meant}`?")
                }
                None => format!("`{server}` has no policy `{name}`"),
            },
        );
        fault.suggestion = meant.map(str::to_owned);
        self.faults.push(fault);
    }

    /// An end that has passed is a mistake, unless the grant has it already.
    fn check_time(&mut self, grant: &WantedGrant, row: Option<&Grant>) {
        let Some(at) = &grant.expires_at else { return };
        if row.is_some_and(|row| row.expires_at == Some(at.value)) {
            return;
        }
        if let Err(fault) = in_future("", Some(at.value), self.control.now()) {
            self.faults.push(at.place.adopt(fault));
        }
    }

    fn new_grant(&self, server: &WantedServer, wanted: &WantedGrant) -> Item {
        let (server, label) = (&server.name.value, &wanted.label.value);
        let kind = ObjectKind::Grant;
        let mut shown = PlannedChange::new(Action::Create, kind, Some(server), label);
        shown.fields = new_fields(wanted);
        if wanted.policy.is_none() {
            shown.notes.push("without a policy every call is refused".to_owned());
        }
        shown.drift = self.deleted(kind, &path(server, label));
        let form = GrantForm {
            label: label.clone(),
            policy: None,
            expires_at: wanted.expires_at.as_ref().map(|at| at.value),
            observe: wanted.observe,
            networks: wanted.networks.clone(),
        };
        let policy = wanted.policy.as_ref().map(|policy| key(&policy.value));
        let step = Step::CreateGrant { server: key(server), form, policy };
        let remember = Some((path(server, label), state(wanted)));
        Item { shown, step, object: None, remember }
    }

    fn known_grant(
        &self,
        server: &WantedServer,
        wanted: &WantedGrant,
        found: &CurrentServer,
        row: &Grant,
    ) -> Item {
        let label = &wanted.label.value;
        let kind = ObjectKind::Grant;
        let name = &server.name.value;
        let mut shown = PlannedChange::new(Action::Unchanged, kind, Some(name), label);
        shown.fields = differences(wanted, found, row);
        let mut step = Step::Nothing;
        if !shown.fields.is_empty() {
            shown.action = Action::Update;
            shown.drift = self.drift(kind, row.id.uuid(), &found.grant_state(row));
            let expires_at = wanted.expires_at.as_ref().map(|at| at.value);
            let patch = GrantPatch {
                label: (row.label != *label).then(|| label.clone()),
                policy: None,
                expires_at: (row.expires_at != expires_at).then_some(expires_at),
                observe: (row.observe != wanted.observe).then_some(wanted.observe),
                networks: (row.networks != wanted.networks).then(|| wanted.networks.clone()),
            };
            let policy = wanted.policy.as_ref().map(|policy| key(&policy.value));
            step = Step::EditGrant {
                server: key(name),
                id: row.id,
                revision: row.revision,
                patch,
                policy,
            };
        }
        let remember = Some((path(name, label), state(wanted)));
        Item { shown, step, object: Some(row.id.uuid()), remember }
    }
}

fn state(wanted: &WantedGrant) -> String {
    let policy = wanted.policy.as_ref().map(|policy| policy.value.as_str());
    let at = wanted.expires_at.as_ref().map(|at| at.value.timestamp_micros());
    grant_state(&wanted.label.value, policy, at, wanted.observe, &wanted.networks)
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn new_fields(wanted: &WantedGrant) -> Vec<FieldChange> {
    let nothing = None::<&str>;
    let mut fields = Vec::new();
    if let Some(policy) = &wanted.policy {
        fields.push(field("policy", nothing, Some(policy.value.as_str())));
    }
    if let Some(at) = &wanted.expires_at {
        fields.push(field("expires_at", nothing, Some(time(at.value))));
    }
    if wanted.observe {
        fields.push(field("observe", nothing, Some(true)));
    }
    if !wanted.networks.is_empty() {
        fields.push(field("networks", nothing, Some(wanted.networks.clone())));
    }
    fields
}

fn differences(wanted: &WantedGrant, found: &CurrentServer, row: &Grant) -> Vec<FieldChange> {
    let mut fields = Vec::new();
    let label = &wanted.label.value;
    if row.label != *label {
        fields.push(field("label", Some(row.label.as_str()), Some(label.as_str())));
    }
    let (was, is) = (
        found.policy_name(row.policy_id),
        wanted.policy.as_ref().map(|policy| policy.value.as_str()),
    );
    if was.map(key) != is.map(key) {
        fields.push(field("policy", was, is));
    }
    let expires_at = wanted.expires_at.as_ref().map(|at| at.value);
    if row.expires_at != expires_at {
        fields.push(field("expires_at", row.expires_at.map(time), expires_at.map(time)));
    }
    if row.observe != wanted.observe {
        fields.push(field("observe", Some(row.observe), Some(wanted.observe)));
    }
    if row.networks != wanted.networks {
        let (was, is) = (row.networks.clone(), wanted.networks.clone());
        fields.push(field("networks", Some(was), Some(is)));
    }
    fields
}
