//! One counter: what stands in its buckets, and the verdict for a charge. Pure; `lua/common.lua` is
//! the same in Lua.

use std::time::Duration;

use sluice_domain::Amount;

use crate::contract::Reading;
use crate::span::Span;

/// The charges that still count, by bucket, oldest first. At most [`Span::kept`] entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// Changes at a reset, so that what was charged before cannot be given back after.
    pub(crate) epoch: i64,
    pub(crate) filled: Vec<(i64, Amount)>,
}

impl Buckets {
    /// Reads what `lua/common.lua` stores; what is not a counter is an empty one.
    pub(crate) fn parse(stored: &str) -> Self {
        let (epoch, filled) = stored.split_once('|').unwrap_or_default();
        let bucket = |text: &str| {
            let mut parts = text.splitn(3, ':');
            let index = parts.next()?.parse().ok()?;
            let (whole, part) =
                (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
            Some((index, from_parts(i128::from(whole), i128::from(part))))
        };
        Self {
            epoch: epoch.parse().unwrap_or(0),
            filled: filled.split(' ').filter_map(bucket).collect(),
        }
    }

    /// Forgets what counts no more. What lies ahead of the clock was charged before the clock went
    /// back, and counts as charged now: so it counts no shorter than promised, and not for ever.
    pub(crate) fn settle(&mut self, span: Span, now: i64) {
        let current = span.index(now);
        let counts = |index: i64| current - span.kept() < index && index <= current;
        // In order: where the ends count, all does.
        if let (Some((first, _)), Some((last, _))) = (self.filled.first(), self.filled.last())
            && counts(*first)
            && counts(*last)
        {
            return;
        }
        let ahead = self
            .filled
            .iter()
            .filter(|(index, _)| *index > current)
            .fold(Amount::ZERO, |sum, (_, amount)| sum.saturating_add(*amount));
        self.filled.retain(|(index, _)| counts(*index));
        if ahead > Amount::ZERO {
            self.add(current, ahead);
        }
    }

    pub(crate) fn used(&self) -> Amount {
        self.filled.iter().fold(Amount::ZERO, |sum, (_, amount)| sum.saturating_add(*amount))
    }

    /// Charges the newest bucket.
    pub(crate) fn add(&mut self, index: i64, amount: Amount) {
        match self.filled.last_mut() {
            _ if amount <= Amount::ZERO => {}
            Some((last, held)) if *last == index => *held = held.saturating_add(amount),
            _ => self.filled.push((index, amount)),
        }
    }

    /// Gives `amount` back to the bucket it was charged to, if that still counts.
    pub(crate) fn take_back(&mut self, index: i64, amount: Amount) {
        // Where the clock went back, `settle` moved the charge to the newest bucket.
        let index = self.filled.last().map_or(index, |(last, _)| index.min(*last));
        if let Ok(at) = self.filled.binary_search_by_key(&index, |(index, _)| *index) {
            let left = self.filled[at].1.saturating_sub(amount);
            if left > Amount::ZERO {
                self.filled[at].1 = left;
            } else {
                self.filled.remove(at);
            }
        }
    }

    /// The first moment at which nothing counts any more.
    pub(crate) fn empties_at(&self, span: Span) -> Option<i64> {
        self.filled.last().map(|(index, _)| span.leaves_at(*index))
    }

    /// When enough of the oldest buckets have left for `amount` to fit under `max`.
    fn fits_at(&self, span: Span, max: Amount, amount: Amount) -> Option<i64> {
        let mut total = self.used().saturating_add(amount);
        self.filled.iter().find_map(|(index, held)| {
            total = total.saturating_sub(*held);
            (total <= max).then(|| span.leaves_at(*index))
        })
    }

    pub(crate) fn fits(&self, max: Amount, amount: Amount) -> bool {
        self.used().saturating_add(amount) <= max
    }

    /// How the counter stands towards `amount` more under `max`.
    pub(crate) fn reading(&self, span: Span, now: i64, max: Amount, amount: Amount) -> Reading {
        let used = self.used();
        let never = amount > max;
        let wait = if never || self.fits(max, amount) {
            None
        } else {
            self.fits_at(span, max, amount).map(|at| duration(at - now))
        };
        let resets_in = self.empties_at(span).map(|at| duration(at - now));
        Reading { used, remaining: left(max, used), wait, never, resets_in }
    }
}

pub(crate) fn left(max: Amount, used: Amount) -> Amount {
    max.saturating_sub(used).max(Amount::ZERO)
}

/// An amount as the scripts keep it: its whole part and billionths.
pub(crate) fn from_parts(whole: i128, part: i128) -> Amount {
    let billion = Amount::ONE.billionths();
    Amount::from_billionths(whole.saturating_mul(billion).saturating_add(part))
}

pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::SECOND;

    const MINUTE: Span = Span::Sliding { width: 3 * SECOND };

    fn amount(text: &str) -> Amount {
        text.parse().expect(text)
    }

    #[test]
    fn a_clock_that_goes_back_neither_frees_nor_locks() {
        let mut buckets = Buckets::default();
        let (later, now) = (1_000_000 * SECOND, 500 * SECOND);
        buckets.add(MINUTE.index(later), amount("4"));
        buckets.settle(MINUTE, now);
        assert_eq!(buckets.used(), amount("4"));
        let reading = buckets.reading(MINUTE, now, amount("4"), Amount::ONE);
        assert!(reading.wait.expect("waits") <= Duration::from_secs(63));
        buckets.take_back(MINUTE.index(later), amount("4"));
        assert_eq!(buckets.used(), Amount::ZERO);
    }

    #[test]
    fn what_is_stored_is_read_and_what_is_not_a_counter_is_empty() {
        let read = Buckets::parse("17|-3:1:500000000 4:999999999999999:999999999");
        assert_eq!(read.epoch, 17);
        assert_eq!(read.filled, [(-3, amount("1.5")), (4, amount("999999999999999.999999999"))]);
        for text in ["", "0|", "x", "|", "0|a:b:c", "0|1:2"] {
            assert_eq!(Buckets::parse(text), Buckets::default(), "{text}");
        }
    }

    #[test]
    fn the_wait_is_when_the_oldest_buckets_that_suffice_have_left() {
        let mut buckets = Buckets::default();
        for (second, held) in [(0, "1"), (10, "2"), (20, "3")] {
            buckets.add(MINUTE.index(second * SECOND), amount(held));
        }
        let now = 21 * SECOND;
        for (more, seconds) in [("1", Some(63)), ("3", Some(72)), ("4", Some(81)), ("0", None)] {
            let wait = buckets.reading(MINUTE, now, amount("6"), amount(more)).wait;
            assert_eq!(wait, seconds.map(|s| Duration::from_secs(s - 21)), "{more}");
        }
        let above = buckets.reading(MINUTE, now, amount("6"), amount("6.000000001"));
        assert!(above.never && above.wait.is_none());
    }
}
