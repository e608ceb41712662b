//! The words of the contract: what is asked of the counters and what they answer.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sluice_domain::{Amount, Charge, GrantId, Reset, Scope, Window};

/// Where the counters in process read the time.
pub type Clock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Which counter: two limits with equal keys share one count, whatever their `max` is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CounterKey {
    /// The counter's name in the policy.
    pub counter: String,
    pub window: Window,
    pub reset: Reset,
    pub scope: Scope,
    /// Id of the grant, server or workspace that `scope` counts together; of a session [`session_owner`].
    pub owner: String,
}

/// The owner of a session's counters. It begins with the grant, so that a grant's sessions can be found.
pub fn session_owner(grant: GrantId, session: &str) -> String {
    format!("{grant}/{session}")
}

/// One limit's question: may `amount` more be charged without passing `max`?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    pub key: CounterKey,
    pub max: Amount,
    pub amount: Amount,
}

impl Demand {
    /// A policy's charge on the counter of `owner`.
    pub fn new(charge: &Charge, owner: impl Into<String>) -> Self {
        Self {
            key: CounterKey {
                counter: charge.counter.clone(),
                window: charge.window,
                reset: charge.reset,
                scope: charge.scope,
                owner: owner.into(),
            },
            max: charge.max,
            amount: charge.amount,
        }
    }
}

/// The verdict on all demands of a call together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// True: every counter is charged. False: none is.
    pub granted: bool,
    /// One per demand, in the order asked.
    pub readings: Vec<Reading>,
}

impl Reserved {
    /// Index of the demand to blame for a refusal: one that never fits, else the one with the longest wait.
    pub fn blamed(&self) -> Option<usize> {
        let weight = |reading: &Reading| (reading.never, reading.wait);
        (0..self.readings.len())
            .filter(|&i| self.readings[i].never || self.readings[i].wait.is_some())
            // The first of equals, as in the document.
            .rev()
            .max_by_key(|&i| weight(&self.readings[i]))
    }
}

/// How a counter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What counts now, this call's charge included if it was granted.
    pub used: Amount,
    /// `max` less `used`, never below zero.
    pub remaining: Amount,
    /// How long until the amount fits, if nobody else charges; `None`: it fits now, or never will.
    pub wait: Option<Duration>,
    /// The amount is above `max`: waiting cannot help.
    pub never: bool,
    /// How long until the counter is empty, if nobody charges; `None`: it is empty.
    pub resets_in: Option<Duration>,
}
