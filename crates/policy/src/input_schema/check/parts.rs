//! Members of objects and items of arrays, each against its own schema.

use serde_json::Value;

use super::Truth::{self, No, Unknown, Yes};
use super::{Run, Seen, TOO_MUCH};
use crate::input_schema::node::{Contains, Members, NodeId};
use crate::input_schema::words::{self, Step};

impl Run<'_> {
    pub(super) fn required(&mut self, names: &[String], value: &Value) -> Truth {
        let Value::Object(members) = value else { return Yes };
        if !self.step(names.len()) {
            return Unknown(TOO_MUCH);
        }
        let missing = names.iter().find(|name| !members.contains_key(*name));
        if let Some(name) = missing
            && self.quiet == 0
            && self.problem.is_none()
        {
            let what = format!("must have a member `{}`", words::cut(name));
            self.problem = Some(words::sentence(&self.path, &what));
        }
        Truth::of(missing.is_none())
    }

    pub(super) fn members(&mut self, all: &Members, value: &Value, seen: &mut Seen) -> Truth {
        let Value::Object(members) = value else { return Yes };
        let mut truth = Yes;
        for (name, value) in members {
            let step = || Step::Member(name.clone());
            let mut found = Yes;
            let mut others = Yes;
            if let Some(node) = all.named.get(name) {
                others = No;
                found = self.below(*node, value, step);
            }
            for (pattern, node) in &all.patterns {
                match self.matches(pattern.as_ref(), name) {
                    Yes => {
                        others = No;
                        found = found.and(self.below(*node, value, step));
                    }
                    Unknown(why) => {
                        others = others.and(Unknown(why));
                        found = found.and(Unknown(why));
                    }
                    No => {}
                }
            }
            if let (Some(node), Yes) = (all.additional, others) {
                found = found.and(self.below(node, value, step));
            }
            if self.schema.tracks && (others == No || all.additional.is_some()) {
                seen.members.insert(name.clone());
            }
            seen.unsure |= matches!(others, Unknown(_));
            truth = truth.and(found);
            if truth == No {
                return No;
            }
        }
        truth
    }

    pub(super) fn names(&mut self, node: NodeId, value: &Value) -> Truth {
        let Value::Object(members) = value else { return Yes };
        members.keys().fold(Yes, |truth, name| match truth {
            No => No,
            truth => {
                let text = Value::String(name.clone());
                truth.and(self.below(node, &text, || Step::Member(name.clone())))
            }
        })
    }

    pub(super) fn items(
        &mut self,
        prefix: &[NodeId],
        rest: Option<NodeId>,
        value: &Value,
        seen: &mut Seen,
    ) -> Truth {
        let Value::Array(items) = value else { return Yes };
        let mut truth = Yes;
        for (at, item) in items.iter().enumerate() {
            let Some(node) = prefix.get(at).copied().or(rest) else { break };
            truth = truth.and(self.below(node, item, || Step::Item(at)));
            if truth == No {
                return No;
            }
        }
        if self.schema.tracks {
            seen.all_items |= rest.is_some();
            seen.items.extend(0..prefix.len().min(items.len()));
        }
        truth
    }

    pub(super) fn contains(
        &mut self,
        contains: &Contains,
        value: &Value,
        seen: &mut Seen,
    ) -> Truth {
        let Value::Array(items) = value else { return Yes };
        let (mut fit, mut perhaps, mut why) = (0_u64, 0_u64, "");
        self.quiet += 1;
        for (at, item) in items.iter().enumerate() {
            match self.below(contains.node, item, || Step::Item(at)) {
                Yes => {
                    fit += 1;
                    if self.schema.tracks && contains.marks {
                        seen.items.insert(at);
                    }
                }
                Unknown(reason) => {
                    (perhaps, why) = (perhaps + 1, reason);
                    seen.unsure |= contains.marks;
                }
                No => {}
            }
        }
        self.quiet -= 1;
        let most = contains.most.unwrap_or(u64::MAX);
        if fit + perhaps < contains.least || fit > most {
            No
        } else if fit >= contains.least && fit + perhaps <= most {
            Yes
        } else {
            Unknown(why)
        }
    }

    pub(super) fn unseen_members(&mut self, node: NodeId, value: &Value, seen: &mut Seen) -> Truth {
        let Value::Object(members) = value else { return Yes };
        let mut truth = Yes;
        for (name, value) in members {
            if seen.all_members || seen.members.contains(name) {
                continue;
            }
            let found = self.rest(node, value, seen, || Step::Member(name.clone()));
            truth = truth.and(found);
            if truth == No {
                return No;
            }
        }
        seen.all_members = true;
        truth
    }

    pub(super) fn unseen_items(&mut self, node: NodeId, value: &Value, seen: &mut Seen) -> Truth {
        let Value::Array(items) = value else { return Yes };
        let mut truth = Yes;
        for (at, item) in items.iter().enumerate() {
            if seen.all_items || seen.items.contains(&at) {
                continue;
            }
            let found = self.rest(node, item, seen, || Step::Item(at));
            truth = truth.and(found);
            if truth == No {
                return No;
            }
        }
        seen.all_items = true;
        truth
    }

    /// A schema on a part that no other keyword has looked at, unless that cannot be told.
    fn rest(
        &mut self,
        node: NodeId,
        value: &Value,
        seen: &Seen,
        step: impl FnOnce() -> Step,
    ) -> Truth {
        self.quiet += usize::from(seen.unsure);
        let found = self.below(node, value, step);
        self.quiet -= usize::from(seen.unsure);
        match found {
            No if seen.unsure => Unknown("what its parts look at cannot be told"),
            found => found,
        }
    }
}
