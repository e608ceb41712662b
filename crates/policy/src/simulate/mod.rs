//! A policy tried on calls that were recorded: what it would have done to
//! them, and what another version would have done differently. Where the log
//! does not keep what a rule needs the answer is "cannot tell".

mod windows;

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use serde::Serialize;
use sluice_domain::Code;

use crate::arguments::Arguments;
use crate::call::{CallInput, Settings, ToolFacts};
use crate::compile::CompiledPolicy;
use crate::decision::{Decision, Verdict};
use crate::input_schema::InputSchema;

use windows::Counters;

/// A call of the past, with what the log keeps of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    pub at: DateTime<Utc>,
    pub tool: String,
    pub facts: ToolFacts,
    /// JSON text, maybe with marks for what was not kept (see [`recorded`](crate::recorded)); `None`: nothing was kept.
    pub arguments: Option<String>,
    /// What tells grants apart; counters of scope `grant` go by it.
    pub grant: String,
    pub grant_label: String,
    pub session: Option<String>,
    pub client_name: Option<String>,
}

/// The server that the calls went to.
#[derive(Debug, Default)]
pub struct PastServer {
    pub settings: Settings,
    /// The pinned input schemas, by tool; of a tool without one anything fits.
    pub schemas: HashMap<String, InputSchema>,
}

/// What would have become of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SimulatedOutcome {
    Allow,
    Deny,
    Approve,
    /// The log does not keep what a rule needs.
    CannotTell,
}

/// One call's outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SimulatedCall {
    /// Position in the list of calls.
    pub index: usize,
    pub outcome: SimulatedOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
}

/// How often something happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// A rule's pointer, a grant's label or a tool's name.
    pub name: String,
    pub calls: usize,
}

/// What a policy would have done to a list of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Simulation {
    pub total: usize,
    pub allowed: usize,
    pub refused: usize,
    pub parked: usize,
    pub cannot_tell: usize,
    /// Rules that would have refused or parked, the most frequent first.
    pub rules: Vec<Tally>,
    /// Grants whose calls would have been refused or parked.
    pub grants: Vec<Tally>,
    /// Tools whose calls would have been refused or parked.
    pub tools: Vec<Tally>,
    /// In the order of the list.
    pub calls: Vec<SimulatedCall>,
}

/// Tries a policy on calls. Limits are counted anew in the order of time, exactly. An `observe` mode
/// of the policy is looked through: what it would refuse counts as refused.
pub fn simulate(
    policy: &CompiledPolicy,
    calls: &[RecordedCall],
    server: &PastServer,
) -> Simulation {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|index| calls[*index].at);
    let mut counters = Counters::default();
    let mut results: Vec<Option<SimulatedCall>> = vec![None; calls.len()];
    for index in order {
        results[index] = Some(one(policy, index, &calls[index], server, &mut counters));
    }
    summary(calls, results.into_iter().flatten().collect())
}

fn one(
    policy: &CompiledPolicy,
    index: usize,
    call: &RecordedCall,
    server: &PastServer,
    counters: &mut Counters,
) -> SimulatedCall {
    let nothing = crate::recorded::mark(crate::decision::ValueKind::Object);
    let text = call.arguments.as_deref().unwrap_or(&nothing);
    let told = |outcome, code, rule| SimulatedCall { index, outcome, code, rule };
    let Ok(arguments) = Arguments::recorded(text) else {
        return told(SimulatedOutcome::CannotTell, None, String::new());
    };
    let schema = server.schemas.get(&call.tool);
    let input = CallInput {
        facts: call.facts,
        settings: server.settings,
        schema_problem: &|| schema?.problem_of(&arguments),
        grant_label: &call.grant_label,
        client_name: call.client_name.as_deref(),
        ..CallInput::new(&call.tool, arguments, call.at)
    };
    let decision = policy.decide(&input);
    if decision.cannot_tell {
        counters.doubt(&decision.charges, call);
        return told(SimulatedOutcome::CannotTell, None, String::new());
    }
    let outcome = outcome_of(&decision);
    if outcome == SimulatedOutcome::Deny {
        return told(outcome, Some(decision.code), decision.rule);
    }
    match counters.take(&decision.charges, call) {
        windows::Taken::Yes => told(outcome, Some(decision.code), decision.rule),
        windows::Taken::No(rule) => told(SimulatedOutcome::Deny, Some(Code::RateLimited), rule),
        windows::Taken::Doubtful => told(SimulatedOutcome::CannotTell, None, String::new()),
    }
}

/// What the decision says, or under `observe` would have said.
fn outcome_of(decision: &Decision) -> SimulatedOutcome {
    match decision.would_be.unwrap_or(decision.verdict) {
        Verdict::Forward => SimulatedOutcome::Allow,
        Verdict::Approve => SimulatedOutcome::Approve,
        Verdict::Deny | Verdict::Hide => SimulatedOutcome::Deny,
    }
}

fn summary(calls: &[RecordedCall], results: Vec<SimulatedCall>) -> Simulation {
    let count = |outcome| results.iter().filter(|call| call.outcome == outcome).count();
    let stopped = || {
        results.iter().filter(|call| {
            matches!(call.outcome, SimulatedOutcome::Deny | SimulatedOutcome::Approve)
        })
    };
    Simulation {
        total: results.len(),
        allowed: count(SimulatedOutcome::Allow),
        refused: count(SimulatedOutcome::Deny),
        parked: count(SimulatedOutcome::Approve),
        cannot_tell: count(SimulatedOutcome::CannotTell),
        rules: Tally::of(stopped().map(|call| call.rule.as_str())),
        grants: Tally::of(
            stopped().filter_map(|call| Some(calls.get(call.index)?.grant_label.as_str())),
        ),
        tools: Tally::of(stopped().filter_map(|call| Some(calls.get(call.index)?.tool.as_str()))),
        calls: results,
    }
}

impl Tally {
    /// How often each name occurs, the most frequent first.
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> Vec<Self> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in names {
            *counts.entry(name).or_default() += 1;
        }
        let tally = |(name, calls): (&str, usize)| Self { name: name.to_owned(), calls };
        let mut out: Vec<Self> = counts.into_iter().map(tally).collect();
        out.sort_by_key(|tally| std::cmp::Reverse(tally.calls));
        out
    }
}

/// A call that two versions treat differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedCall {
    pub index: usize,
    pub before: SimulatedCall,
    pub after: SimulatedCall,
}

/// Two versions on the same calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub before: Simulation,
    pub after: Simulation,
    /// Refused or parked by the new version alone.
    pub stricter: usize,
    /// Let through by the new version alone.
    pub looser: usize,
    /// At least one of the two cannot be told.
    pub cannot_tell: usize,
    /// Calls whose outcome differs, in the order of the list.
    pub changed: Vec<ChangedCall>,
}

/// What a new version of a policy changes for calls of the past.
pub fn compare(
    before: &CompiledPolicy,
    after: &CompiledPolicy,
    calls: &[RecordedCall],
    server: &PastServer,
) -> Comparison {
    let (before, after) = (simulate(before, calls, server), simulate(after, calls, server));
    let (mut stricter, mut looser, mut cannot_tell) = (0, 0, 0);
    let mut changed = Vec::new();
    for (old, new) in before.calls.iter().zip(&after.calls) {
        let told = |call: &SimulatedCall| call.outcome != SimulatedOutcome::CannotTell;
        if !told(old) || !told(new) {
            cannot_tell += 1;
            continue;
        }
        if old.outcome != new.outcome {
            let allowed = |call: &SimulatedCall| call.outcome == SimulatedOutcome::Allow;
            stricter += usize::from(allowed(old));
            looser += usize::from(allowed(new));
            changed.push(ChangedCall { index: old.index, before: old.clone(), after: new.clone() });
        }
    }
    Comparison { before, after, stricter, looser, cannot_tell, changed }
}
