//! The trace of a decision: every step that was looked at. It holds numbers only; the words they
//! stand for are the policy's, written once and shared by all of its traces.

mod json;
mod texts;

use std::sync::Arc;

use crate::decision::{Found, StepKind, StepResult, Truth};
use crate::item::Item;
use crate::op::Op;

use texts::{ConditionText, RuleText, Written, number};
pub(crate) use texts::{Number, Texts};

#[derive(Debug, Clone, Copy)]
struct Step {
    kind: StepKind,
    result: StepResult,
    rule: Option<Number>,
    /// Where its conditions end; they start where those of the step before end.
    conditions: u32,
}

#[derive(Debug, Clone, Copy)]
struct Tested {
    condition: Number,
    result: Truth,
    found: Option<Found>,
}

/// Every step of a decision, in order, and what was compared in it.
#[derive(Clone, Default)]
pub struct Trace {
    texts: Option<Arc<Texts>>,
    steps: Vec<Step>,
    conditions: Vec<Tested>,
    /// Values as JSON text, by the index of their condition; only where the caller asked for values.
    values: Vec<(usize, String)>,
}

/// One line of "why?".
#[derive(Clone, Copy)]
pub struct TraceStep<'t> {
    trace: &'t Trace,
    step: &'t Step,
    /// Of its first condition.
    first: usize,
}

/// How one condition came out.
#[derive(Clone, Copy)]
pub struct ConditionTrace<'t> {
    trace: &'t Trace,
    tested: &'t Tested,
    index: usize,
}

impl Trace {
    pub(crate) fn new(texts: &Arc<Texts>, steps: usize, conditions: usize) -> Self {
        Self {
            texts: Some(texts.clone()),
            steps: Vec::with_capacity(steps),
            conditions: Vec::with_capacity(conditions),
            values: Vec::new(),
        }
    }

    /// A step; the conditions that were told since the last one are its own.
    pub(crate) fn step(&mut self, kind: StepKind, rule: Option<Number>, result: StepResult) {
        let conditions = number(self.conditions.len());
        self.steps.push(Step { kind, result, rule, conditions });
    }

    /// What was compared, for the step that follows.
    pub(crate) fn condition(
        &mut self,
        condition: Number,
        result: Truth,
        item: &Item<'_>,
        show: bool,
    ) {
        if show && let Some(value) = item.text() {
            self.values.push((self.conditions.len(), value));
        }
        self.conditions.push(Tested { condition, result, found: item.found() });
    }

    /// The conditions that no step has yet.
    pub(crate) fn pending(&self) -> impl Iterator<Item = ConditionTrace<'_>> {
        let first = self.steps.last().map_or(0, |step| step.conditions);
        self.tested(first as usize, self.conditions.len())
    }

    /// A charge turned out to be one that can never be made.
    pub(crate) fn refuse_limit(&mut self, rule: Number) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.rule == Some(rule)) {
            step.result = StepResult::Refused;
        }
    }

    /// How many steps.
    pub const fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing was looked at: there was no policy.
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// A step by its place.
    pub fn get(&self, index: usize) -> Option<TraceStep<'_>> {
        let step = self.steps.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.steps.get(before));
        let first = before.map_or(0, |before| before.conditions as usize);
        Some(TraceStep { trace: self, step, first })
    }

    /// The step that settled it.
    pub fn last(&self) -> Option<TraceStep<'_>> {
        self.get(self.steps.len().checked_sub(1)?)
    }

    /// The steps in order.
    pub fn iter(&self) -> impl Iterator<Item = TraceStep<'_>> {
        (0..self.steps.len()).filter_map(|index| self.get(index))
    }

    fn tested(&self, first: usize, end: usize) -> impl Iterator<Item = ConditionTrace<'_>> {
        let list = self.conditions.get(first..end).unwrap_or_default();
        let numbered = (first..).zip(list);
        numbered.map(|(index, tested)| ConditionTrace { trace: self, tested, index })
    }
}

impl<'t> TraceStep<'t> {
    /// Which step.
    pub const fn kind(self) -> StepKind {
        self.step.kind
    }

    /// How it came out.
    pub const fn result(self) -> StepResult {
        self.step.result
    }

    /// JSON Pointer of the rule, where it is one.
    pub fn rule(self) -> Option<&'t str> {
        self.rule_text().map(|rule| &*rule.pointer)
    }

    /// What was compared, in order; a rule stops at its first condition that settles it.
    pub fn conditions(self) -> impl Iterator<Item = ConditionTrace<'t>> {
        self.trace.tested(self.first, self.step.conditions as usize)
    }

    fn rule_text(self) -> Option<&'t RuleText> {
        self.trace.texts.as_ref()?.rules.get(self.step.rule? as usize)
    }
}

impl<'t> ConditionTrace<'t> {
    /// JSON Pointer of the condition.
    pub fn pointer(self) -> &'t str {
        self.written().map_or("", |written| &written.pointer)
    }

    /// Where its value was looked for.
    pub fn path(self) -> &'t str {
        self.written().map_or("", |written| &written.path)
    }

    /// How it compares.
    pub fn op(self) -> Option<Op> {
        self.text().map(|text| text.comparison.op)
    }

    /// `at most 100`: what it asks for, in words.
    pub fn wanted(self) -> &'t str {
        self.written().map_or("", |written| &written.wanted)
    }

    /// Whether it holds.
    pub const fn result(self) -> Truth {
        self.tested.result
    }

    /// Type and size of what was found; `None`: nothing was there.
    pub const fn found(self) -> Option<Found> {
        self.tested.found
    }

    /// The value's JSON text, only where the caller asked for values.
    pub fn value(self) -> Option<&'t str> {
        let values = &self.trace.values;
        let at = values.binary_search_by_key(&self.index, |(index, _)| *index).ok()?;
        values.get(at).map(|(_, value)| value.as_str())
    }

    /// Which of its rule's conditions it is, or stands in.
    pub(crate) fn top(self) -> Option<usize> {
        let inside = self.text()?.inside.strip_prefix("/conditions/")?;
        inside.split('/').next()?.parse().ok()
    }

    fn text(self) -> Option<&'t ConditionText> {
        self.trace.texts.as_ref()?.conditions.get(self.tested.condition as usize)
    }

    fn written(self) -> Option<&'t Written> {
        self.text().map(ConditionText::written)
    }
}
