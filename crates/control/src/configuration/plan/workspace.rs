//! The workspace itself: its name, the e-mail domains whose people may join, and its settings.

use serde_json::{Value, json};
use sluice_domain::{ObjectKind, Role};

use super::super::export::span;
use super::super::step::Step;
use super::super::walk::At;
use super::super::wanted::Wanted;
use super::{Action, Drift, Item, PlannedChange, Planner, field};
use crate::ControlError;

/// The domains as they are shown and compared.
fn shown<'a>(domains: impl Iterator<Item = (&'a str, Role)>) -> Value {
    domains.map(|(domain, role)| json!({"domain": domain, "role": role})).collect()
}

fn provider(issuer: Option<&str>) -> Value {
    json!(issuer.unwrap_or("none"))
}

fn escalation(seconds: Option<i64>) -> Value {
    json!(seconds.map_or_else(|| "never".to_owned(), span))
}

/// What the file may say besides the name.
const PARTS: [&str; 3] = ["join_domains", "required_provider", "escalate_after"];

/// The parts as they are, or as the file wants them; `None`: it says nothing of that one.
type Parts = [Option<Value>; 3];

/// What is remembered of the workspace: what the files say nothing of is left alone.
fn state(name: &str, parts: &Parts) -> String {
    let mut state = name.to_owned();
    for (part, value) in PARTS.iter().zip(parts) {
        let Some(value) = value else { continue };
        // Domains alone are remembered without their name, as they were before there was more.
        let part = if *part == "join_domains" { "" } else { part };
        state = format!("{state}\n{part}{value}");
    }
    state
}

impl Planner<'_> {
    pub(super) async fn workspace(&mut self, wanted: &Wanted) -> Result<(), ControlError> {
        let have = self.have();
        // A provider is named by its name or its address, and remembered by the address.
        let issuer = wanted.provider.as_ref().map(|one| self.issuer(one.value.as_deref()));
        let want: Parts = [
            wanted
                .join_domains
                .as_ref()
                .map(|all| shown(all.iter().map(|(domain, role)| (domain.value.as_str(), *role)))),
            issuer.as_ref().map(|issuer| provider(issuer.as_deref())),
            wanted
                .escalate_after
                .as_ref()
                .map(|one| escalation(one.value.map(|after| after.num_seconds()))),
        ];
        if wanted.name.is_none() && want.iter().all(Option::is_none) {
            return Ok(());
        }
        let (kind, id) = (ObjectKind::Workspace, self.admin.workspace.uuid());
        let was = &self.current.name;
        let name = wanted.name.as_ref().map_or(was, |name| &name.value);
        let mut change = PlannedChange::new(Action::Unchanged, kind, None, name);
        // An import fills a workspace that has its own name and settings.
        let keeps = !self.options.remember && !self.options.overwrite;
        let renamed = was != name && !keeps;
        if renamed {
            change.fields.push(field("name", Some(was.as_str()), Some(name.as_str())));
        }
        let (gone, new) = self.domains(wanted, keeps).await?;
        let differs = |at: usize| want[at].is_some() && want[at] != have[at];
        let asks = differs(1) && !(keeps && self.current.provider.is_some());
        let waits = differs(2) && !(keeps && self.current.escalate_after.is_some());
        let moved = [!gone.is_empty() || !new.is_empty(), asks, waits];
        for (at, part) in PARTS.iter().enumerate().filter(|(at, _)| moved[*at]) {
            change.fields.push(field(*part, have[at].clone(), want[at].clone()));
        }
        if asks {
            self.may_ask(wanted).await?;
        }
        let mut step = Step::Nothing;
        if renamed || moved.contains(&true) {
            change.action = Action::Update;
            change.drift = self.workspace_drift(was, &have);
            step = Step::Workspace {
                name: renamed.then(|| name.clone()),
                gone,
                new,
                provider: issuer.filter(|_| asks),
                escalate_after: wanted
                    .escalate_after
                    .as_ref()
                    .map(|one| one.value)
                    .filter(|_| waits),
            };
        }
        let remember = Some((String::new(), state(name, &want)));
        self.items.push(Item { shown: change, step, object: Some(id), remember });
        Ok(())
    }

    fn have(&self) -> Parts {
        let domains = self.current.join_domains.iter();
        [
            Some(shown(domains.map(|one| (one.domain.as_str(), one.role)))),
            Some(provider(self.current.provider.as_deref())),
            Some(escalation(self.current.escalate_after)),
        ]
    }

    fn issuer(&self, named: Option<&str>) -> Option<String> {
        let known = self.control.providers().iter().find(|one| Some(one.name.as_str()) == named);
        known.map(|one| one.issuer.clone()).or_else(|| named.map(str::to_owned))
    }

    /// Notes why the workspace cannot ask for the provider, if so.
    async fn may_ask(&mut self, wanted: &Wanted) -> Result<(), ControlError> {
        let Some(one) = &wanted.provider else { return Ok(()) };
        let Some(name) = &one.value else { return Ok(()) };
        if let Some(fault) = self.control.provider_fault(self.admin, name).await? {
            self.faults.push(one.place.adopt(fault));
        }
        Ok(())
    }

    /// Every workspace has some name: taking over one that was never applied harms nobody. What the
    /// files said of when they were applied is not known, so any choice of parts that fits is none.
    fn workspace_drift(&self, name: &str, have: &Parts) -> Option<Drift> {
        let (kind, id) = (ObjectKind::Workspace, self.admin.workspace.uuid());
        self.current.left(kind, id)?;
        let mut drift = None;
        for said in 0..1_u8 << PARTS.len() {
            let mut parts = have.clone();
            for (at, part) in parts.iter_mut().enumerate() {
                part.take_if(|_| said & (1 << at) == 0);
            }
            drift = Some(self.drift(kind, id, &state(name, &parts))?);
        }
        drift
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
