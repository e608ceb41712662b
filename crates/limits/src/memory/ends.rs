//! When what is remembered ends.

use std::collections::{BTreeMap, VecDeque};

use sluice_domain::{ReservationId, WorkspaceId};

use crate::span::SECOND;

/// When reservations end, to the second. Most end in the order in which they were made, some ten thousand in
/// a second: a heap of all of them would cost each call more than its counters do.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeMap<i64, VecDeque<(WorkspaceId, ReservationId)>>);

impl Ends {
    pub(super) fn push(&mut self, until: i64, whose: (WorkspaceId, ReservationId)) {
        // Rounded up: what is taken out has ended.
        self.0.entry(until.div_euclid(SECOND) + 1).or_default().push_back(whose);
    }

    /// The one that ends first.
    pub(super) fn pop(&mut self) -> Option<(WorkspaceId, ReservationId)> {
        let mut first = self.0.first_entry()?;
        let whose = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        whose
    }

    /// One that has ended.
    pub(super) fn pop_ended(&mut self, now: i64) -> Option<(WorkspaceId, ReservationId)> {
        let (second, _) = self.0.first_key_value()?;
        (*second <= now.div_euclid(SECOND)).then(|| self.pop()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_first_comes_first_and_nothing_before_its_end() {
        let mut ends = Ends::default();
        let workspace = WorkspaceId::new();
        let [late, early, next] = [(); 3].map(|()| (workspace, ReservationId::new()));
        ends.push(90 * SECOND + 1, late);
        ends.push(60 * SECOND, early);
        ends.push(60 * SECOND + 999_999, next);
        assert_eq!(ends.pop_ended(60 * SECOND), None);
        assert_eq!(ends.pop_ended(61 * SECOND), Some(early));
        assert_eq!(ends.pop_ended(61 * SECOND), Some(next));
        assert_eq!(ends.pop_ended(90 * SECOND), None);
        assert_eq!(ends.pop(), Some(late));
        assert_eq!((ends.pop(), ends.0.len()), (None, 0));
    }

    #[test]
    fn times_before_1970_are_no_exception() {
        let mut ends = Ends::default();
        let one = (WorkspaceId::new(), ReservationId::new());
        ends.push(-1, one);
        assert_eq!(ends.pop_ended(-2), None);
        assert_eq!(ends.pop_ended(0), Some(one));
    }
}
