//! The workspace itself: its name, and the e-mail domains whose people may join.

use serde_json::{Value, json};
use sluice_domain::{ObjectKind, Role};

use super::super::step::Step;
use super::super::walk::At;
use super::super::wanted::Wanted;
use super::{Action, Drift, Item, PlannedChange, Planner, field};
use crate::ControlError;

/// The domains as they are shown and compared.
fn shown<'a>(domains: impl Iterator<Item = (&'a str, Role)>) -> Value {
    domains.map(|(domain, role)| json!({"domain": domain, "role": role})).collect()
}

/// What is remembered of the workspace: files that say nothing of domains leave them alone.
fn state(name: &str, domains: Option<&Value>) -> String {
    domains.map_or_else(|| name.to_owned(), |domains| format!("{name}\n{domains}"))
}

impl Planner<'_> {
    pub(super) async fn workspace(&mut self, wanted: &Wanted) -> Result<(), ControlError> {
        if wanted.name.is_none() && wanted.join_domains.is_none() {
            return Ok(());
        }
        let (kind, id) = (ObjectKind::Workspace, self.admin.workspace.uuid());
        let was = &self.current.name;
        let name = wanted.name.as_ref().map_or(was, |name| &name.value);
        let have =
            shown(self.current.join_domains.iter().map(|one| (one.domain.as_str(), one.role)));
        let want = wanted
            .join_domains
            .as_ref()
            .map(|all| shown(all.iter().map(|(domain, role)| (domain.value.as_str(), *role))));
        let mut change = PlannedChange::new(Action::Unchanged, kind, None, name);
        // An import fills a workspace that has its own name.
        let keeps = !self.options.remember && !self.options.overwrite;
        let renamed = was != name && !keeps;
        if renamed {
            change.fields.push(field("name", Some(was.as_str()), Some(name.as_str())));
        }
        let (gone, new) = self.domains(wanted, keeps).await?;
        let moved = !gone.is_empty() || !new.is_empty();
        if moved {
            change.fields.push(field("join_domains", Some(have.clone()), want.clone()));
        }
        let mut step = Step::Nothing;
        if renamed || moved {
            change.action = Action::Update;
            change.drift = self.workspace_drift(was, &have);
            step = Step::Workspace { name: renamed.then(|| name.clone()), gone, new };
        }
        let remember = Some((String::new(), state(name, want.as_ref())));
        self.items.push(Item { shown: change, step, object: Some(id), remember });
        Ok(())
    }

    /// Every workspace has some name: taking over one that was never applied harms nobody.
    fn workspace_drift(&self, name: &str, domains: &Value) -> Option<Drift> {
        let (kind, id) = (ObjectKind::Workspace, self.admin.workspace.uuid());
        self.current.left(kind, id)?;
        let with = self.drift(kind, id, &state(name, Some(domains)));
        with.and_then(|_| self.drift(kind, id, &state(name, None)))
    }

    /// The domains that go, and those that come; what may not come is noted. An import only adds.
    async fn domains(
        &mut self,
        wanted: &Wanted,
        only_adds: bool,
    ) -> Result<(Vec<sluice_domain::JoinDomainId>, Vec<(String, Role)>), ControlError> {
        let Some(all) = &wanted.join_domains else { return Ok((Vec::new(), Vec::new())) };
        let have = &self.current.join_domains;
        let gone = have.iter().filter(|one| {
            let same = |(domain, role): &(At<String>, Role)| {
                domain.value == one.domain && *role == one.role
            };
            !only_adds && !all.iter().any(same)
        });
        let gone = gone.map(|one| one.id).collect();
        let mut new = Vec::new();
        for (domain, role) in all {
            let named = have.iter().find(|one| one.domain == domain.value);
            if named.is_some_and(|one| only_adds || one.role == *role) {
                continue;
            }
            let fault = self.control.join_domain_fault(self.admin, &domain.value).await?;
            if let Some(fault) = fault {
                self.faults.push(domain.place.adopt(fault));
            }
            new.push((domain.value.clone(), *role));
        }
        Ok((gone, new))
    }
}
