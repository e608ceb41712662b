//! Trying a document on calls before it is saved: calls that are made up, or those of the log.
//! Nothing is charged and nothing is forwarded. For made-up calls counters count as empty; for those
//! of the log limits are counted anew, in the order of time.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sluice_domain::{CallId, CallRecord, Code, Outcome, ServerId, ToolState};
use sluice_policy::{
    Arguments, CallInput, CompiledPolicy, Decision, RecordedCall, Settings, SimulatedCall,
    SimulatedOutcome, ToolFacts, Verdict, compile, simulate,
};
use sluice_store::servers::Server;
use sluice_store::tools::Tool;

use crate::policies::fault;
use crate::{CallsOf, Control, ControlError, Fault, Page, Viewer};

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
    pub at: DateTime<Utc>,
    pub decision: Decision,
    /// For a call of the log: which, and what became of it.
    pub logged: Option<(CallId, Outcome, Code)>,
    /// It would go on now and did not then, or the other way round.
    pub changed: bool,
}

/// What would become of all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    pub trials: Vec<Trial>,
    pub allowed: usize,
    pub refused: usize,
    pub parked: usize,
    pub changed: usize,
    /// The log does not keep what the rules ask for.
    pub cannot_tell: usize,
}

struct Place<'a> {
    policy: CompiledPolicy,
    server: &'a Server,
    tools: HashMap<&'a str, &'a Tool>,
}

impl Place<'_> {
    fn facts(&self, tool: &str) -> ToolFacts {
        match self.tools.get(tool) {
            Some(tool) => ToolFacts {
                known: tool.state != ToolState::Gone,
                changed: tool.state == ToolState::Changed,
                held: tool.state == ToolState::Held,
                category: Some(tool.category),
                severity: Some(tool.severity),
            },
            // Before the first read nothing is known, and nothing is refused for it here.
            None if !self.server.tools_read => ToolFacts::KNOWN,
            None => ToolFacts::UNKNOWN,
        }
    }

    fn decide(
        &self,
        call: &TrialCall,
        arguments: Arguments<'_>,
        now: DateTime<Utc>,
        show_values: bool,
    ) -> Decision {
        self.policy.decide(&CallInput {
            facts: self.facts(&call.tool),
            settings: Settings::from(&self.server.settings),
            grant_label: &call.grant_label,
            client_name: call.client_name.as_deref(),
            show_values,
            ..CallInput::new(&call.tool, arguments, call.at.unwrap_or(now))
        })
    }
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
        let policy = compile(document)
            .map_err(|problems| ControlError::Invalid(problems.iter().map(fault).collect()))?;
        let tools = tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
        let place = Place { policy, server: &row, tools };
        let trials = match of {
            TrialsOf::These(calls) => these(&place, &calls, self.now())?,
            TrialsOf::Log { filter, limit } => {
                let filter = CallsOf { server: Some(server), ..*filter };
                let page = Page::first(limit.min(MAX_TRIALS));
                let calls = self.calls(viewer, &filter, page).await?.items;
                counted(&place, &calls)
            }
        };
        Ok(summed(trials))
    }
}

fn these(
    place: &Place<'_>,
    calls: &[TrialCall],
    now: DateTime<Utc>,
) -> Result<Vec<Trial>, ControlError> {
    if calls.len() > usize::try_from(MAX_TRIALS).unwrap_or(usize::MAX) {
        let detail = format!("at most {MAX_TRIALS} calls are tried at once");
        return Err(ControlError::invalid("/calls", "too_many", detail));
    }
    let one = |(index, call): (usize, &TrialCall)| {
        let arguments = call.arguments.as_deref().map_or(Ok(Arguments::EMPTY), Arguments::parse);
        let arguments = arguments.map_err(|error| {
            let pointer = format!("/calls/{index}/arguments");
            ControlError::Invalid(vec![Fault::new(pointer, "bad_arguments", error.to_string())])
        })?;
        Ok(Trial {
            tool: call.tool.clone(),
            at: call.at.unwrap_or(now),
            decision: place.decide(call, arguments, now, true),
            logged: None,
            changed: false,
        })
    };
    calls.iter().enumerate().map(one).collect()
}

/// The calls of the log under the document, with its limits.
fn counted(place: &Place<'_>, calls: &[CallRecord]) -> Vec<Trial> {
    let recorded = |call: &CallRecord| {
        let tool = call.tool.clone()?;
        Some(RecordedCall {
            at: call.at,
            facts: place.facts(&tool),
            tool,
            arguments: call.arguments.clone(),
            grant: call.grant.to_string(),
            grant_label: call.grant_label.clone(),
            session: call.session.clone(),
            client_name: call.client_name.clone(),
        })
    };
    let (calls, recorded): (Vec<_>, Vec<_>) =
        calls.iter().filter_map(|call| Some((call, recorded(call)?))).unzip();
    let simulated = simulate(&place.policy, &recorded, Settings::from(&place.server.settings));
    let outcomes = simulated.calls.into_iter().map(|call| (call.index, call));
    let mut outcomes: HashMap<_, _> = outcomes.collect();
    let trials = calls.iter().zip(&recorded).enumerate();
    trials
        .map(|(index, (call, recorded))| logged(place, call, recorded, outcomes.remove(&index)))
        .collect()
}

fn logged(
    place: &Place<'_>,
    call: &CallRecord,
    recorded: &RecordedCall,
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
    let mut decision = place.decide(&made_up, kept.unwrap_or(Arguments::EMPTY), call.at, false);
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
        at: call.at,
        changed: decided && !decision.cannot_tell && went_on != goes_on,
        decision,
        logged: Some((call.id, call.outcome, call.code)),
    }
}

fn summed(trials: Vec<Trial>) -> Trials {
    let count = |of: &dyn Fn(&Trial) -> bool| trials.iter().filter(|trial| of(trial)).count();
    Trials {
        allowed: count(&|trial| trial.decision.verdict == Verdict::Forward),
        refused: count(&|trial| matches!(trial.decision.verdict, Verdict::Deny | Verdict::Hide)),
        parked: count(&|trial| trial.decision.verdict == Verdict::Approve),
        changed: count(&|trial| trial.changed),
        cannot_tell: count(&|trial| trial.decision.cannot_tell),
        trials,
    }
}
