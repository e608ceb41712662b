//! A slow, obvious counter to compare with: it keeps every charge for ever.

use std::time::Duration;

use chrono::{DateTime, Datelike, Months, NaiveTime, TimeDelta, Utc};
use sluice_domain::{Amount, ReservationId, Reset, Window};
use sluice_limits::{CounterKey, Demand};

#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub(crate) id: ReservationId,
    pub(crate) key: CounterKey,
    pub(crate) at: DateTime<Utc>,
    pub(crate) amount: Amount,
    pub(crate) given_back: bool,
}

/// Every charge there ever was.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) charges: Vec<Charge>,
    pub(crate) void: Vec<ReservationId>,
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
    fn counting(&self, key: &CounterKey, now: DateTime<Utc>) -> Vec<&Charge> {
        let of_key = self.charges.iter().filter(|charge| charge.key == *key && !charge.given_back);
        of_key.filter(|charge| ends(key, charge.at) > now).collect()
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
        let mut moments: Vec<_> = self
            .counting(&demand.key, now)
            .iter()
            .map(|charge| ends(&demand.key, charge.at))
            .collect();
        moments.sort_unstable();
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
        if self.charges.iter().any(|charge| charge.id == id) {
            return true;
        }
        let granted = demands.iter().all(|demand| self.fits(demand, now));
        if granted {
            self.charges.extend(demands.iter().map(|demand| Charge {
                id,
                key: demand.key.clone(),
                at: now,
                amount: demand.amount,
                given_back: false,
            }));
        }
        granted
    }

    pub(crate) fn refund(&mut self, id: ReservationId) {
        for charge in self.charges.iter_mut().filter(|charge| charge.id == id) {
            charge.given_back = true;
        }
        self.void.push(id);
    }

    pub(crate) fn rebook(
        &mut self,
        old: ReservationId,
        new: ReservationId,
        demands: &[Demand],
        now: DateTime<Utc>,
    ) -> bool {
        let (charges, void) = (self.charges.clone(), self.void.clone());
        self.refund(old);
        let granted = self.reserve(new, demands, now);
        if !granted {
            (self.charges, self.void) = (charges, void);
        }
        granted
    }

    /// The promise, checked after the fact and without buckets: no window-long span holds more than `max`.
    pub(crate) fn check_promise(&self, key: &CounterKey, max: Amount) {
        let window = TimeDelta::seconds(i64::from(key.window.seconds()));
        let of_key: Vec<_> =
            self.charges.iter().filter(|charge| charge.key == *key && !charge.given_back).collect();
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
            let recent = self.charges.iter().filter(|charge| {
                charge.key == demand.key && !charge.given_back && charge.at > now - span
            });
            let total = sum(recent.map(|charge| charge.amount)).saturating_add(demand.amount);
            total > demand.max
        })
    }
}

pub(crate) fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    amounts.fold(Amount::ZERO, Amount::saturating_add)
}
