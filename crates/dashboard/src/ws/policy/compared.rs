//! What a version does to calls of the log that the one before it did not, in words and call by call.

use askama::Template;
use chrono::{DateTime, Utc};
use sluice_control::{ChangedTrial, Compared};
use sluice_domain::{Code, Outcome};
use sluice_policy::{SimulatedCall, SimulatedOutcome};

use super::trials::Stopped;
use crate::filters;
use crate::ui::text::count;

/// A call that the two versions treat differently.
#[derive(Debug)]
struct Changed {
    href: String,
    at: DateTime<Utc>,
    tool: String,
    grant: String,
    before: Outcome,
    after: Outcome,
    rule: String,
}

/// Two versions on the newest calls of the log.
#[derive(Debug, Template)]
#[template(path = "ws/policy_compared.html")]
pub(crate) struct OutcomesChanged {
    headline: String,
    notes: Vec<String>,
    stopped: Stopped,
    rows: Vec<Changed>,
    more: usize,
}

impl askama::filters::HtmlSafe for OutcomesChanged {}

/// Changed calls that are listed.
const LISTED: usize = 50;

impl OutcomesChanged {
    /// `logs`: where the log's calls are.
    pub(crate) fn new(compared: Compared, logs: &str) -> Self {
        let stopped = Stopped::new(&compared.rules, &compared.grants);
        let (headline, notes) = (headline(&compared), notes(&compared));
        let more = compared.changed.len().saturating_sub(LISTED);
        let rows = compared.changed.into_iter().take(LISTED).map(|one| row(one, logs)).collect();
        Self { headline, notes, stopped, rows, more }
    }
}

fn outcome(call: &SimulatedCall) -> Outcome {
    match call.outcome {
        SimulatedOutcome::Approve => Outcome::Waiting,
        SimulatedOutcome::Deny if call.code == Some(Code::RateLimited) => Outcome::Limited,
        SimulatedOutcome::Deny => Outcome::Denied,
        // A call that cannot be told is not among those that changed.
        SimulatedOutcome::Allow | SimulatedOutcome::CannotTell => Outcome::Allowed,
    }
}

fn row(one: ChangedTrial, logs: &str) -> Changed {
    let (before, after) = (outcome(&one.before), outcome(&one.after));
    let rule = if after == Outcome::Allowed { one.before.rule } else { one.after.rule };
    Changed {
        href: format!("{logs}/{}", one.call),
        at: one.at,
        tool: one.tool,
        grant: one.grant,
        before,
        after,
        rule,
    }
}

fn headline(compared: &Compared) -> String {
    if compared.total == 0 {
        return "There are no calls to compare on yet.".to_owned();
    }
    format!(
        "Of the server's last {} this version stops {} that the one before let through, and lets \
         {} through that it stopped.",
        count(compared.total, "call", None),
        compared.stricter,
        compared.looser
    )
}

fn notes(compared: &Compared) -> Vec<String> {
    let mut notes = Vec::new();
    let moved = compared.changed.len() - compared.stricter - compared.looser;
    if moved > 0 {
        let calls = count(moved, "call", None);
        notes.push(format!("{calls} would be parked instead of refused, or the other way round."));
    }
    if compared.cannot_tell > 0 {
        let calls = count(compared.cannot_tell, "call", None);
        notes.push(format!(
            "Of {calls} it cannot be told: the log does not keep the arguments that a rule asks for."
        ));
    }
    notes
}
