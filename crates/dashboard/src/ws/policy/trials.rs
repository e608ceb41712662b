//! What a document would have done to calls of the log, in words, and which calls would have gone
//! otherwise.

use askama::Template;
use chrono::{DateTime, Utc};
use sluice_control::{Trial, Trials};
use sluice_domain::{Code, Outcome};
use sluice_policy::Verdict;

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
    rows: Vec<Changed>,
    more: usize,
}

impl askama::filters::HtmlSafe for OnLog {}

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
        Self { headline: headline(trials), notes: notes(trials), rows, more }
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

/// What the document itself says of the call, also where it only observes.
fn meant(trial: &Trial) -> Verdict {
    trial.decision.would_be.unwrap_or(trial.decision.verdict)
}

/// What cannot be told is counted as nothing else.
fn headline(trials: &Trials) -> String {
    let all = trials.trials.len();
    if all == 0 {
        return "There are no calls to try it on yet.".to_owned();
    }
    let of = |wanted: &[Verdict]| {
        trials
            .trials
            .iter()
            .filter(|trial| !trial.decision.cannot_tell && wanted.contains(&meant(trial)))
            .count()
    };
    let refused = of(&[Verdict::Deny, Verdict::Hide]);
    let of_all = if all == 1 {
        "the last call".to_owned()
    } else {
        format!("the last {}", count(all, "call", None))
    };
    let number = |value: usize| number(i64::try_from(value).unwrap_or(i64::MAX));
    format!(
        "Of {of_all} it would refuse {}, park {} for a person, and let {} through.",
        number(refused),
        number(of(&[Verdict::Approve])),
        number(of(&[Verdict::Forward])),
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
        Trial { tool: "<run>".to_owned(), at: now, decision, logged, changed }
    }

    fn sum(trials: Vec<Trial>) -> Trials {
        Trials {
            allowed: 0,
            refused: 0,
            parked: 0,
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
        assert!(!html.contains("<run>"), "{html}");
    }

    #[test]
    fn a_policy_that_observes_says_what_it_would_do() {
        let observe = r#"{"version":"1","default":"deny","mode":"observe"}"#;
        let html = OnLog::new(&sum(vec![trial(observe, false, false)]), "").to_string();
        assert!(html.contains("refuse 1") && html.contains("only observes"), "{html}");
        assert!(OnLog::new(&sum(Vec::new()), "").to_string().contains("no calls to try it on"));
    }
}
