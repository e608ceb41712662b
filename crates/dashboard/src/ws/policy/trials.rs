//! What a document would have done to calls of the log, in words, and which calls would have gone
//! otherwise.

use askama::Template;
use chrono::{DateTime, Utc};
use sluice_control::{Trial, Trials};
use sluice_domain::{Code, Outcome};
use sluice_policy::{Tally, Verdict};

use crate::filters;
use crate::ui::text::{count, number};

/// A verdict as the outcome that it leads to.
pub(crate) fn outcome(verdict: Verdict, code: Code) -> Outcome {
    match verdict {
        Verdict::Forward => Outcome::Allowed,
        Verdict::Deny if code == Code::RateLimited => Outcome::Limited,
        Verdict::Deny => Outcome::Denied,
        Verdict::Hide => Outcome::Hidden,
        Verdict::Approve => Outcome::Waiting,
    }
}

/// A call that would go otherwise than it did.
#[derive(Debug)]
struct Changed {
    href: String,
    at: DateTime<Utc>,
    tool: String,
    was: Outcome,
    is: Outcome,
    code: Code,
    rule: String,
}

/// A document tried on the newest calls of the log.
#[derive(Debug, Template)]
#[template(path = "ws/policy_trials.html")]
pub(crate) struct OnLog {
    headline: String,
    notes: Vec<String>,
    stopped: Stopped,
    rows: Vec<Changed>,
    more: usize,
}

impl askama::filters::HtmlSafe for OnLog {}

/// Which rules stop calls, and whose: the most frequent of each.
#[derive(Debug, Template)]
#[template(path = "ws/policy_stopped.html")]
pub(crate) struct Stopped {
    rules: Vec<Tally>,
    grants: Vec<Tally>,
}

impl askama::filters::HtmlSafe for Stopped {}

impl Stopped {
    pub(crate) fn new(rules: &[Tally], grants: &[Tally]) -> Self {
        let most = |of: &[Tally]| of.iter().take(TALLIED).cloned().collect();
        Self { rules: most(rules), grants: most(grants) }
    }

    fn said(tally: &Tally) -> String {
        count(tally.calls, "call", None)
    }
}

/// Rules and grants that are listed.
const TALLIED: usize = 5;

/// Changed calls that are listed.
const LISTED: usize = 50;

impl OnLog {
    /// `logs`: where the log's calls are.
    pub(crate) fn new(trials: &Trials, logs: &str) -> Self {
        let mut rows: Vec<Changed> = trials
            .trials
            .iter()
            .filter(|trial| trial.changed)
            .filter_map(|trial| changed(trial, logs))
            .collect();
        let more = rows.len().saturating_sub(LISTED);
        rows.truncate(LISTED);
        let stopped = Stopped::new(&trials.rules, &trials.grants);
        Self { headline: headline(trials), notes: notes(trials), stopped, rows, more }
    }
}

fn changed(trial: &Trial, logs: &str) -> Option<Changed> {
    let (id, was, _) = trial.logged?;
    Some(Changed {
        href: format!("{logs}/{id}"),
        at: trial.at,
        tool: trial.tool.clone(),
        was,
        is: outcome(trial.decision.verdict, trial.decision.code),
        code: trial.decision.code,
        rule: trial.decision.rule.clone(),
    })
}

/// What cannot be told is counted as nothing else.
fn headline(trials: &Trials) -> String {
    let all = trials.trials.len();
    if all == 0 {
        return "There are no calls to try it on yet.".to_owned();
    }
    let of_all = if all == 1 {
        "the last call".to_owned()
    } else {
        format!("the last {}", count(all, "call", None))
    };
    let number = |value: usize| number(i64::try_from(value).unwrap_or(i64::MAX));
    format!(
        "Of {of_all} it would refuse {}, park {} for a person, and let {} through.",
        number(trials.refused),
        number(trials.parked),
        number(trials.allowed),
    )
}

fn notes(trials: &Trials) -> Vec<String> {
    let mut notes = Vec::new();
    if trials.trials.is_empty() {
        return notes;
    }
    if trials.trials.iter().any(|trial| trial.decision.observed) {
        notes.push(
            "The policy only observes: all of them would go through, and the log would tell."
                .to_owned(),
        );
    }
    if trials.cannot_tell > 0 {
        notes.push(format!(
            "Of {} it cannot be told: the log does not keep the arguments that a rule asks for.",
            count(trials.cannot_tell, "call", None)
        ));
    }
    notes.push(match trials.changed {
        0 => "None of the calls that it can tell would go otherwise than it did.".to_owned(),
        1 => "1 call would go otherwise than it did.".to_owned(),
        many => format!("{} would go otherwise than they did.", count(many, "call", None)),
    });
    notes
}

#[cfg(test)]
mod tests {
    use sluice_domain::CallId;
    use sluice_policy::{Arguments, CallInput, compile};

    use super::*;

    fn trial(document: &str, cannot_tell: bool, changed: bool) -> Trial {
        let now = DateTime::UNIX_EPOCH;
        let policy = compile(document).expect("a document");
        let mut decision = policy.decide(&CallInput::new("<run>", Arguments::EMPTY, now));
        decision.cannot_tell = cannot_tell;
        let logged = Some((CallId::new(), Outcome::Allowed, Code::Allowed));
        let (tool, grant) = ("<run>".to_owned(), "<b>".to_owned());
        Trial { tool, grant, at: now, decision, logged, changed }
    }

    fn sum(trials: Vec<Trial>) -> Trials {
        let meant = |wanted| trials.iter().filter(|trial| trial.meant() == Some(wanted)).count();
        Trials {
            allowed: meant(Verdict::Forward),
            refused: meant(Verdict::Deny),
            parked: meant(Verdict::Approve),
            rules: Tally::of(["(default deny)"].into_iter()),
            grants: Tally::of(["<b>"].into_iter()),
            changed: trials.iter().filter(|trial| trial.changed).count(),
            cannot_tell: trials.iter().filter(|trial| trial.decision.cannot_tell).count(),
            trials,
        }
    }

    const DENY: &str = r#"{"version":"1","default":"deny"}"#;
    const ALLOW: &str = r#"{"version":"1","default":"allow"}"#;

    #[test]
    fn what_cannot_be_told_is_counted_as_nothing_else() {
        let trials = sum(vec![
            trial(DENY, false, true),
            trial(DENY, true, false),
            trial(ALLOW, false, false),
        ]);
        let html = OnLog::new(&trials, "/w/a/logs").to_string();
        assert!(
            html.contains(
                "Of the last 3 calls it would refuse 1, park 0 for a person, and let 1 through."
            ),
            "{html}"
        );
        assert!(html.contains("Of 1 call it cannot be told"), "{html}");
        assert!(html.contains("1 call would go otherwise"), "{html}");
        assert!(html.contains("href=\"/w/a/logs/") && html.contains("(default deny)"), "{html}");
        assert!(html.contains("(default deny)</code> 1 call"), "{html}");
        assert!(
            !html.contains("<run>") && !html.contains("<b>1") && html.contains("&#60;b&#62;"),
            "{html}"
        );
    }

    #[test]
    fn a_policy_that_observes_says_what_it_would_do() {
        let observe = r#"{"version":"1","default":"deny","mode":"observe"}"#;
        let html = OnLog::new(&sum(vec![trial(observe, false, false)]), "").to_string();
        assert!(html.contains("refuse 1") && html.contains("only observes"), "{html}");
        assert!(OnLog::new(&sum(Vec::new()), "").to_string().contains("no calls to try it on"));
    }
}
