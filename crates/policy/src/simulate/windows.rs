//! Exact counters for the past: every charge is kept with its time.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use sluice_domain::{Amount, Charge, Reset, Scope, Window};

use super::RecordedCall;

/// Whether a call's charges fit.
pub(super) enum Taken {
    Yes,
    /// The rule that refuses.
    No(String),
    /// They fit in what is known, but calls before it could not be told.
    Doubtful,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    counter: String,
    window: Window,
    reset: Reset,
    scope: Scope,
    owner: String,
}

#[derive(Debug, Default)]
struct Counter {
    charges: VecDeque<(DateTime<Utc>, Amount)>,
    sum: Amount,
    doubtful: bool,
}

/// The counters of one simulation.
#[derive(Debug, Default)]
pub(super) struct Counters {
    by_key: HashMap<Key, Counter>,
}

fn key(charge: &Charge, call: &RecordedCall) -> Key {
    let owner = match (charge.scope, &call.session) {
        (Scope::Session, Some(session)) => format!("{}/{session}", call.grant),
        (Scope::Grant | Scope::Session, _) => call.grant.clone(),
        (Scope::Server | Scope::Workspace, _) => String::new(),
    };
    Key {
        counter: charge.counter.clone(),
        window: charge.window,
        reset: charge.reset,
        scope: charge.scope,
        owner,
    }
}

impl Counters {
    /// All charges or none.
    pub(super) fn take(&mut self, charges: &[Charge], call: &RecordedCall) -> Taken {
        let mut doubtful = false;
        for charge in charges {
            let counter = self.by_key.entry(key(charge, call)).or_default();
            counter.expire(charge, call.at);
            if counter.sum.saturating_add(charge.amount) > charge.max {
                return Taken::No(charge.rule.clone());
            }
            doubtful |= counter.doubtful;
        }
        for charge in charges {
            let counter = self.by_key.entry(key(charge, call)).or_default();
            if doubtful {
                counter.doubtful = true;
            } else {
                counter.sum = counter.sum.saturating_add(charge.amount);
                counter.charges.push_back((call.at, charge.amount));
            }
        }
        if doubtful { Taken::Doubtful } else { Taken::Yes }
    }

    /// A call that may or may not have been charged.
    pub(super) fn doubt(&mut self, charges: &[Charge], call: &RecordedCall) {
        for charge in charges {
            self.by_key.entry(key(charge, call)).or_default().doubtful = true;
        }
    }
}

impl Counter {
    fn expire(&mut self, charge: &Charge, now: DateTime<Utc>) {
        let start = match charge.reset {
            Reset::Calendar => calendar_start(charge.window, now),
            Reset::Sliding => now - TimeDelta::seconds(i64::from(charge.window.seconds())),
        };
        while let Some((at, amount)) = self.charges.front().copied() {
            let gone = if charge.reset == Reset::Calendar { at < start } else { at <= start };
            if !gone {
                break;
            }
            self.charges.pop_front();
            self.sum = self.sum.saturating_sub(amount);
        }
    }
}

/// The last UTC border: weeks on Monday, months on the first, lengths from the epoch.
fn calendar_start(window: Window, now: DateTime<Utc>) -> DateTime<Utc> {
    let day = now
        .with_hour(0)
        .and_then(|t| t.with_minute(0))
        .and_then(|t| t.with_second(0))
        .and_then(|t| t.with_nanosecond(0))
        .unwrap_or(now);
    match window {
        Window::Week => day - TimeDelta::days(i64::from(now.weekday().num_days_from_monday())),
        Window::Month => day.with_day(1).unwrap_or(day),
        _ => {
            let seconds = i64::from(window.seconds());
            let start = now.timestamp().div_euclid(seconds) * seconds;
            DateTime::from_timestamp(start, 0).unwrap_or(now)
        }
    }
}
