//! A slow, obvious counter to compare with: it keeps every charge for ever.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Datelike, Months, NaiveTime, TimeDelta, Utc};
use sluice_domain::{Amount, ReservationId, Reset, Window};
use sluice_limits::{CounterKey, Demand};

#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub(crate) id: ReservationId,
    pub(crate) at: DateTime<Utc>,
    pub(crate) ends: DateTime<Utc>,
    pub(crate) amount: Amount,
    pub(crate) given_back: bool,
}

/// Every charge there ever was.
#[derive(Debug, Default, Clone)]
pub(crate) struct Reference {
    charges: HashMap<CounterKey, Vec<Charge>>,
    charged: HashSet<ReservationId>,
    void: HashSet<ReservationId>,
}

/// When a charge counts no more, told from the words of the contract.
pub(crate) fn ends(key: &CounterKey, at: DateTime<Utc>) -> DateTime<Utc> {
    let window = TimeDelta::seconds(i64::from(key.window.seconds()));
    match key.reset {
        // A whole window after the end of its twentieth.
        Reset::Sliding => {
            let twentieth = window.num_microseconds().expect("fits") / 20;
            let late = at.timestamp_micros().rem_euclid(twentieth);
            at + window + TimeDelta::microseconds(twentieth - late)
        }
        Reset::Calendar if key.window == Window::Month => {
            let first = at.date_naive().with_day(1).expect("months have a first");
            (first + Months::new(1)).and_time(NaiveTime::MIN).and_utc()
        }
        Reset::Calendar => {
            let monday: DateTime<Utc> = "1970-01-05T00:00:00Z".parse().expect("a time");
            let since = (at - monday).num_microseconds().expect("fits");
            let length = window.num_microseconds().expect("fits");
            monday + TimeDelta::microseconds((since.div_euclid(length) + 1) * length)
        }
    }
}

impl Reference {
    /// Charges of a counter that were not given back.
    fn of(&self, key: &CounterKey) -> impl Iterator<Item = &Charge> {
        self.charges.get(key).into_iter().flatten().filter(|charge| !charge.given_back)
    }

    fn counting(&self, key: &CounterKey, now: DateTime<Utc>) -> Vec<&Charge> {
        self.of(key).filter(|charge| charge.ends > now).collect()
    }

    /// Whether the id was charged or given back before.
    pub(crate) fn knows(&self, id: ReservationId) -> bool {
        self.void.contains(&id) || self.charged.contains(&id)
    }

    pub(crate) fn used(&self, key: &CounterKey, now: DateTime<Utc>) -> Amount {
        sum(self.counting(key, now).into_iter().map(|charge| charge.amount))
    }

    fn fits(&self, demand: &Demand, now: DateTime<Utc>) -> bool {
        self.used(&demand.key, now).saturating_add(demand.amount) <= demand.max
    }

    /// How long until a demand fits, if nothing else happens.
    pub(crate) fn wait(&self, demand: &Demand, now: DateTime<Utc>) -> Option<Duration> {
        if demand.amount > demand.max || self.fits(demand, now) {
            return None;
        }
        let mut moments: Vec<_> =
            self.counting(&demand.key, now).iter().map(|charge| charge.ends).collect();
        moments.sort_unstable();
        moments.dedup();
        let first = moments.into_iter().find(|&moment| self.fits(demand, moment))?;
        (first - now).to_std().ok()
    }

    /// The verdict, and what becomes of the charges.
    pub(crate) fn reserve(
        &mut self,
        id: ReservationId,
        demands: &[Demand],
        now: DateTime<Utc>,
    ) -> bool {
        if self.void.contains(&id) {
            return false;
        }
        if self.knows(id) {
            return true;
        }
        let granted = demands.iter().all(|demand| self.fits(demand, now));
        if granted {
            self.charged.insert(id);
            for demand in demands {
                let (amount, ends) = (demand.amount, ends(&demand.key, now));
                let charge = Charge { id, at: now, ends, amount, given_back: false };
                self.charges.entry(demand.key.clone()).or_default().push(charge);
            }
        }
        granted
    }

    pub(crate) fn refund(&mut self, id: ReservationId) {
        for charge in self.charges.values_mut().flatten().filter(|charge| charge.id == id) {
            charge.given_back = true;
        }
        self.void.insert(id);
    }

    pub(crate) fn rebook(
        &mut self,
        old: ReservationId,
        new: ReservationId,
        demands: &[Demand],
        now: DateTime<Utc>,
    ) -> bool {
        let before = self.clone();
        self.refund(old);
        let granted = self.reserve(new, demands, now);
        if !granted {
            *self = before;
        }
        granted
    }

    /// The promise, checked after the fact and without buckets: no window-long span holds more than `max`.
    pub(crate) fn check_promise(&self, key: &CounterKey, max: Amount) {
        let window = TimeDelta::seconds(i64::from(key.window.seconds()));
        let of_key: Vec<_> = self.of(key).collect();
        for last in &of_key {
            let span = of_key.iter().filter(|c| c.at <= last.at && c.at > last.at - window);
            let total = sum(span.map(|charge| charge.amount));
            assert!(total <= max, "{total} of {max} in the {window} before {}", last.at);
        }
    }

    /// The price: whoever is refused had at least that much in the last window and a twentieth.
    pub(crate) fn is_refused_rightly(&self, demands: &[Demand], now: DateTime<Utc>) -> bool {
        demands.iter().any(|demand| {
            let window = TimeDelta::seconds(i64::from(demand.key.window.seconds()));
            let span = window + window / 20;
            let recent = self.of(&demand.key).filter(|charge| charge.at > now - span);
            let total = sum(recent.map(|charge| charge.amount)).saturating_add(demand.amount);
            total > demand.max
        })
    }
}

pub(crate) fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    amounts.fold(Amount::ZERO, Amount::saturating_add)
}
