//! Policies: documents checked before anything is written, and compared part by part.

use sluice_domain::{ObjectKind, PolicyKind};
use sluice_policy::{KnownTool, ProblemSeverity, check, diff};
use sluice_store::policies::Policy;

use super::super::current::{CurrentServer, policy_state};
use super::super::step::Step;
use super::super::wanted::{WantedPolicy, WantedServer, key};
use super::{Action, Item, PlannedChange, Planner, field};
use crate::codes::{self, ProblemCode};
use crate::policies::known_tools;
use crate::{ControlError, Fault, PolicyForm};

/// The name under which a policy is remembered.
pub(super) fn path(server: &str, policy: &str) -> String {
    format!("{}/{}", key(server), key(policy))
}

impl Planner<'_> {
    pub(super) async fn policies(
        &mut self,
        wanted: &WantedServer,
        found: Option<&CurrentServer>,
    ) -> Result<(), ControlError> {
        let known = match found {
            Some(found) if found.row.tools_read => {
                let mut tx = self.control.read().await?;
                let workspace = self.admin.workspace;
                let known = known_tools(&mut tx.conn(), workspace, found.row.id).await?;
                tx.commit().await?;
                Some(known)
            }
            _ => None,
        };
        self.one_button(wanted, found);
        for policy in &wanted.policies {
            let row = found.and_then(|found| self.find_policy(wanted, policy, found));
            if let Some(row) = row {
                self.named.insert(row.id.uuid());
            }
            let item = self.policy(&wanted.name.value, policy, row, known.as_deref());
            self.items.push(item);
        }
        Ok(())
    }

    fn find_policy<'f>(
        &self,
        server: &WantedServer,
        wanted: &WantedPolicy,
        found: &'f CurrentServer,
    ) -> Option<&'f Policy> {
        let name = &wanted.name.value;
        found.policy(name).or_else(|| {
            let path = path(&server.name.value, name);
            let left = self.current.applied(ObjectKind::Policy, &path)?;
            let row = found.policies.iter().find(|row| row.id.uuid() == left.object_id)?;
            let taken = server.policies.iter().any(|one| key(&one.name.value) == key(&row.name));
            (!taken).then_some(row)
        })
    }

    fn policy(
        &mut self,
        server: &str,
        wanted: &WantedPolicy,
        row: Option<&Policy>,
        known: Option<&[KnownTool]>,
    ) -> Item {
        let (name, text) = (&wanted.name.value, &wanted.document.text);
        let kind = ObjectKind::Policy;
        let mut shown = PlannedChange::new(Action::Unchanged, kind, Some(server), name);
        if row.is_none_or(|row| row.document != *text) {
            self.check_document(wanted, known, &mut shown);
        }
        let remember = Some((path(server, name), policy_state(name, text)));
        let form = PolicyForm {
            name: Some(name.clone()),
            document: text.clone(),
            note: self.note(wanted),
        };
        let Some(row) = row else {
            shown.action = Action::Create;
            shown.drift = self.deleted(kind, &path(server, name));
            let step = Step::CreatePolicy { server: key(server), kind: wanted.kind, form };
            return Item { shown, step, object: None, remember };
        };
        let object = Some(row.id.uuid());
        if row.name == *name && row.document == *text {
            return Item { shown, step: Step::Nothing, object, remember };
        }
        shown.action = Action::Update;
        if row.name != *name {
            shown.fields.push(field("name", Some(row.name.as_str()), Some(name.as_str())));
        }
        if row.document != *text {
            shown.document = diff(&row.document, text).unwrap_or_default();
            if shown.document.is_empty() {
                shown.notes.push("only the layout of the document's text changes".to_owned());
            }
        }
        let state = policy_state(&row.name, &row.document);
        shown.drift = self.drift(kind, row.id.uuid(), &state);
        let step = Step::SavePolicy { server: key(server), id: row.id, version: row.version, form };
        Item { shown, step, object, remember }
    }

    /// Errors refuse the whole plan; what is odd is told with it.
    fn check_document(
        &mut self,
        wanted: &WantedPolicy,
        known: Option<&[KnownTool]>,
        shown: &mut PlannedChange,
    ) {
        let document = &wanted.document;
        for problem in check(&document.text, known).problems {
            let place = format!("line {}, column {}", problem.line, problem.column);
            if problem.severity == ProblemSeverity::Warning {
                shown.notes.push(format!("{place}: {}", problem.message));
                continue;
            }
            let fault = Fault::new(
                problem.pointer.clone(),
                ProblemCode::of(problem.code),
                problem.message.clone(),
            );
            let fault = Fault { suggestion: problem.suggestion.clone(), ..fault };
            self.faults.push(if let Some(file) = &document.file {
                let (line, column) = (Some(problem.line), Some(problem.column));
                Fault { file: Some(file.clone()), line, column, ..fault }
            } else {
                let detail = format!("{place} of the document: {}", problem.message);
                document.place.adopt(Fault { detail, ..fault })
            });
        }
    }

    fn note(&self, wanted: &WantedPolicy) -> String {
        if !self.options.note.is_empty() {
            return self.options.note.clone();
        }
        match &wanted.document.file {
            Some(file) => format!("Applied from {file}"),
            None => "Applied from workspace.yaml".to_owned(),
        }
    }

    /// A server has one policy of the button.
    fn one_button(&mut self, wanted: &WantedServer, found: Option<&CurrentServer>) {
        let mut other = found
            .and_then(|found| found.policies.iter().find(|row| row.kind == PolicyKind::Button))
            .map(|row| row.name.clone());
        for policy in wanted.policies.iter().filter(|policy| policy.kind == PolicyKind::Button) {
            let name = &policy.name.value;
            match &other {
                Some(other) if key(other) != key(name) => {
                    let detail = format!(
                        "`{other}` is this server's policy of the button already; there is one"
                    );
                    self.faults.push(policy.name.place.fault(codes::SECOND_BUTTON, detail));
                }
                _ => other = Some(name.clone()),
            }
        }
    }
}
