//! Trying a document on calls before it is saved: calls that are made up, or those of the log.
//! Nothing is charged and nothing is forwarded. For made-up calls counters count as empty; for those
//! of the log limits are counted anew, in the order of time.

mod place;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sluice_domain::{CallId, CallRecord, Code, Outcome, ServerId};
use sluice_policy::{
    Arguments, ChangedCall, CompiledPolicy, Decision, RecordedCall, SimulatedCall,
    SimulatedOutcome, Simulation, SimulationComparison, Tally, Verdict, compare, compile, simulate,
};

use self::place::Place;
use crate::codes;
use crate::policies::fault;
use crate::{CallsOf, Control, ControlError, Fault, Viewer};

/// Calls of one trial at most.
pub const MAX_TRIALS: u32 = 1_000;

/// A call that is made up.
#[derive(Debug, Clone, Default)]
pub struct TrialCall {
    pub tool: String,
    /// JSON text of an object; `None`: no arguments.
    pub arguments: Option<String>,
    pub grant_label: String,
    pub client_name: Option<String>,
    /// `None`: now.
    pub at: Option<DateTime<Utc>>,
}

/// Which calls a document is tried on.
#[derive(Debug, Clone)]
pub enum TrialsOf {
    These(Vec<TrialCall>),
    /// The newest calls of the server's log that fit, at most so many.
    Log {
        filter: Box<CallsOf>,
        limit: u32,
    },
}

/// What would become of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub tool: String,
    /// The grant's label.
    pub grant: String,
    pub at: DateTime<Utc>,
    pub decision: Decision,
    /// For a call of the log: which, and what became of it.
    pub logged: Option<(CallId, Outcome, Code)>,
    /// It would go on now and did not then, or the other way round.
    pub changed: bool,
}

impl Trial {
    /// What the document itself says of the call, also where it only observes. None: it cannot be told.
    pub fn meant(&self) -> Option<Verdict> {
        let verdict = self.decision.would_be.unwrap_or(self.decision.verdict);
        (!self.decision.cannot_tell).then_some(verdict)
    }

    fn is_stopped(&self) -> bool {
        self.meant().is_some_and(|verdict| verdict != Verdict::Forward)
    }
}

/// What would become of all of them. A document that only observes is looked through.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    pub trials: Vec<Trial>,
    pub allowed: usize,
    pub refused: usize,
    pub parked: usize,
    pub changed: usize,
    /// The log does not keep what the rules ask for; counted as nothing else.
    pub cannot_tell: usize,
    /// Rules that would refuse or park, the most frequent first.
    pub rules: Vec<Tally>,
    /// Grants, by label, whose calls would be refused or parked.
    pub grants: Vec<Tally>,
}

/// How many calls a document lets through, refuses and parks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    pub allowed: usize,
    pub refused: usize,
    pub parked: usize,
    pub cannot_tell: usize,
}

/// A call of the log that two documents treat differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTrial {
    pub call: CallId,
    pub at: DateTime<Utc>,
    pub tool: String,
    /// The grant's label.
    pub grant: String,
    pub before: SimulatedCall,
    pub after: SimulatedCall,
}

/// Two documents on the same calls of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    pub total: usize,
    pub before: Sums,
    pub after: Sums,
    /// Refused or parked by the second alone.
    pub stricter: usize,
    /// Let through by the second alone.
    pub looser: usize,
    /// At least one of the two cannot be told; counted as nothing else.
    pub cannot_tell: usize,
    /// The rules of the changed calls: the second's where it stops them, else the first's.
    pub rules: Vec<Tally>,
    /// The grants of the changed calls, by label.
    pub grants: Vec<Tally>,
    /// The newest first.
    pub changed: Vec<ChangedTrial>,
}

impl Control {
    /// Says what would become of calls under a document.
    pub async fn simulate(
        &self,
        viewer: &Viewer,
        server: ServerId,
        document: &str,
        of: TrialsOf,
    ) -> Result<Trials, ControlError> {
        let row = self.server_row(viewer, server).await?;
        let tools = self.tool_rows(viewer, server).await?;
        let policy = compiled(document)?;
        let trials = match of {
            TrialsOf::These(calls) => {
                let named = calls.iter().map(|call| call.tool.as_str());
                these(&Place::new(&row, &tools, named)?, &policy, &calls, self.now())?
            }
            TrialsOf::Log { filter, limit } => {
                let filter = CallsOf { server: Some(server), ..*filter };
                let calls = self.newest_calls(viewer, &filter, limit.min(MAX_TRIALS)).await?;
                counted(&Place::new(&row, &tools, named(&calls))?, &policy, &calls)
            }
        };
        Ok(summed(trials))
    }

    /// Says what a second document would do otherwise than a first to the newest calls of the server's
    /// log, at most `limit` of those that fit.
    pub async fn compare(
        &self,
        viewer: &Viewer,
        server: ServerId,
        (before, after): (&str, &str),
        filter: CallsOf,
        limit: u32,
    ) -> Result<Compared, ControlError> {
        let row = self.server_row(viewer, server).await?;
        let tools = self.tool_rows(viewer, server).await?;
        let (before, after) = (compiled(before)?, compiled(after)?);
        let filter = CallsOf { server: Some(server), ..filter };
        let calls = self.newest_calls(viewer, &filter, limit.min(MAX_TRIALS)).await?;
        let place = Place::new(&row, &tools, named(&calls))?;
        let (calls, recorded) = place.recorded(&calls);
        Ok(compared(&calls, compare(&before, &after, &recorded, &place.past)))
    }
}

fn named(calls: &[CallRecord]) -> impl Iterator<Item = &str> {
    calls.iter().filter_map(|call| call.tool.as_deref())
}

fn compiled(document: &str) -> Result<CompiledPolicy, ControlError> {
    compile(document)
        .map_err(|problems| ControlError::Invalid(problems.iter().map(fault).collect()))
}

fn compared(calls: &[&CallRecord], found: SimulationComparison) -> Compared {
    let sums = |of: &Simulation| Sums {
        allowed: of.allowed,
        refused: of.refused,
        parked: of.parked,
        cannot_tell: of.cannot_tell,
    };
    let changed = |one: ChangedCall| {
        let call = calls.get(one.index)?;
        Some(ChangedTrial {
            call: call.id,
            at: call.at,
            tool: call.tool.clone().unwrap_or_default(),
            grant: call.grant_label.clone(),
            before: one.before,
            after: one.after,
        })
    };
    let (before, after) = (sums(&found.before), sums(&found.after));
    let changed: Vec<ChangedTrial> = found.changed.into_iter().filter_map(changed).collect();
    let rule = |one: &ChangedTrial| {
        let stops = one.after.outcome != SimulatedOutcome::Allow;
        if stops { one.after.rule.clone() } else { one.before.rule.clone() }
    };
    let rules: Vec<String> = changed.iter().map(rule).collect();
    Compared {
        total: calls.len(),
        before,
        after,
        stricter: found.stricter,
        looser: found.looser,
        cannot_tell: found.cannot_tell,
        rules: Tally::of(rules.iter().map(String::as_str)),
        grants: Tally::of(changed.iter().map(|one| one.grant.as_str())),
        changed,
    }
}

fn these(
    place: &Place<'_>,
    policy: &CompiledPolicy,
    calls: &[TrialCall],
    now: DateTime<Utc>,
) -> Result<Vec<Trial>, ControlError> {
    if calls.len() > usize::try_from(MAX_TRIALS).unwrap_or(usize::MAX) {
        let detail = format!("at most {MAX_TRIALS} calls are tried at once");
        return Err(ControlError::invalid("/calls", codes::TOO_MANY, detail));
    }
    let one = |(index, call): (usize, &TrialCall)| {
        let arguments = call.arguments.as_deref().map_or(Ok(Arguments::EMPTY), Arguments::parse);
        let arguments = arguments.map_err(|error| {
            let pointer = format!("/calls/{index}/arguments");
            ControlError::Invalid(vec![Fault::new(
                pointer,
                codes::BAD_ARGUMENTS,
                error.to_string(),
            )])
        })?;
        Ok(Trial {
            tool: call.tool.clone(),
            grant: call.grant_label.clone(),
            at: call.at.unwrap_or(now),
            decision: place.decide(policy, call, arguments, now, true),
            logged: None,
            changed: false,
        })
    };
    calls.iter().enumerate().map(one).collect()
}

/// The calls of the log under the document, with its limits.
fn counted(place: &Place<'_>, policy: &CompiledPolicy, calls: &[CallRecord]) -> Vec<Trial> {
    let (calls, recorded) = place.recorded(calls);
    let simulated = simulate(policy, &recorded, &place.past);
    let outcomes = simulated.calls.into_iter().map(|call| (call.index, call));
    let mut outcomes: HashMap<_, _> = outcomes.collect();
    let trials = calls.iter().zip(&recorded).enumerate();
    trials
        .map(|(index, (call, recorded))| {
            logged(place, policy, (*call, recorded), outcomes.remove(&index))
        })
        .collect()
}

fn logged(
    place: &Place<'_>,
    policy: &CompiledPolicy,
    (call, recorded): (&CallRecord, &RecordedCall),
    simulated: Option<SimulatedCall>,
) -> Trial {
    let made_up = TrialCall {
        tool: recorded.tool.clone(),
        arguments: None,
        grant_label: call.grant_label.clone(),
        client_name: call.client_name.clone(),
        at: Some(call.at),
    };
    let kept = call.arguments.as_deref().and_then(|text| Arguments::recorded(text).ok());
    let kept = kept.unwrap_or(Arguments::EMPTY);
    let mut decision = place.decide(policy, &made_up, kept, call.at, false);
    match simulated {
        Some(SimulatedCall { outcome: SimulatedOutcome::Deny, code: Some(code), rule, .. })
            if decision.verdict == Verdict::Forward =>
        {
            // The decision alone does not know the counters.
            decision.verdict = Verdict::Deny;
            decision.code = code;
            decision.rule = rule;
        }
        Some(SimulatedCall { outcome: SimulatedOutcome::CannotTell, .. }) => {
            decision.cannot_tell = true;
        }
        _ => {}
    }
    let (went_on, goes_on) =
        (call.outcome == Outcome::Allowed, decision.verdict == Verdict::Forward);
    // What failed on the way says nothing of a policy.
    let decided = !matches!(call.outcome, Outcome::Failed | Outcome::Rejected | Outcome::Waiting);
    Trial {
        tool: made_up.tool,
        grant: made_up.grant_label,
        at: call.at,
        changed: decided && !decision.cannot_tell && went_on != goes_on,
        decision,
        logged: Some((call.id, call.outcome, call.code)),
    }
}

fn summed(trials: Vec<Trial>) -> Trials {
    let count = |of: &dyn Fn(&Trial) -> bool| trials.iter().filter(|trial| of(trial)).count();
    let stopped = || trials.iter().filter(|trial| trial.is_stopped());
    let rules = Tally::of(stopped().map(|trial| trial.decision.rule.as_str()));
    let grants = stopped().map(|trial| trial.grant.as_str()).filter(|label| !label.is_empty());
    let grants = Tally::of(grants);
    Trials {
        rules,
        grants,
        allowed: count(&|trial| trial.meant() == Some(Verdict::Forward)),
        refused: count(&|trial| matches!(trial.meant(), Some(Verdict::Deny | Verdict::Hide))),
        parked: count(&|trial| trial.meant() == Some(Verdict::Approve)),
        changed: count(&|trial| trial.changed),
        cannot_tell: count(&|trial| trial.decision.cannot_tell),
        trials,
    }
}
