//! The security log's queue: bounded in rows and in memory, never in anybody's way.
//!
//! The first attempt of a kind from a place is a row at once. What follows of it is counted, and becomes
//! one row when the next minute begins. Beyond so many places a minute, the others are counted together.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluice_domain::metrics::{self, Log};
use sluice_domain::{CallId, GrantId, SecurityEvent, SecurityKind, WorkspaceId};
use sluice_proxy::SecurityLog;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long repeats are counted before they become a row.
const TOGETHER: Duration = Duration::from_mins(1);
/// Places that are told apart in that time.
const PLACES: usize = 500;
/// Where the others come from.
const OTHERS: &str = "(other places)";

#[derive(Debug, PartialEq, Eq, Hash, Clone)]
struct Place {
    kind: SecurityKind,
    whose: Option<(WorkspaceId, GrantId)>,
    address: String,
}

/// See the module's head. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct SecurityQueue {
    rows: mpsc::Sender<SecurityEvent>,
    repeats: Arc<Mutex<HashMap<Place, Option<SecurityEvent>>>>,
}

impl SecurityQueue {
    pub(crate) fn new(rows: mpsc::Sender<SecurityEvent>) -> Self {
        Self { rows, repeats: Arc::default() }
    }

    /// Rows that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.rows.max_capacity() - self.rows.capacity()
    }

    /// How many may wait.
    pub(crate) fn capacity(&self) -> usize {
        self.rows.max_capacity()
    }

    fn send(&self, event: SecurityEvent) {
        if self.rows.try_send(event).is_err() {
            metrics::LOG_LOST.add([Log::Security as usize], 1);
        }
    }

    /// Makes rows of what was counted, and begins to count anew.
    fn count_anew(&self) {
        let counted = std::mem::take(&mut *self.repeats.lock());
        for repeated in counted.into_values().flatten() {
            self.send(repeated);
        }
    }

    /// Makes rows of repeats every minute, until `stop` and then once more.
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let stopped = tokio::select! {
                () = stop.cancelled() => true,
                () = tokio::time::sleep(TOGETHER) => false,
            };
            self.count_anew();
            if stopped {
                return;
            }
        }
    }
}

impl SecurityLog for SecurityQueue {
    fn record(&self, mut event: SecurityEvent) {
        let whose = event.workspace.zip(event.grant);
        let mut place = Place { kind: event.kind, whose, address: event.address.clone() };
        let mut repeats = self.repeats.lock();
        if repeats.len() >= PLACES && !repeats.contains_key(&place) {
            place = Place { kind: event.kind, whose: None, address: OTHERS.to_owned() };
            event = SecurityEvent {
                address: OTHERS.to_owned(),
                workspace: None,
                grant: None,
                detail: String::new(),
                ..event
            };
        }
        let Some(repeated) = repeats.get_mut(&place) else {
            repeats.insert(place, None);
            drop(repeats);
            self.send(event);
            return;
        };
        let times = repeated.as_ref().map_or(0, |before| before.times);
        // The newest says when and where; its row has an id of its own, as the first one's is taken.
        *repeated = Some(SecurityEvent { id: CallId::new(), times: times + 1, ..event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: SecurityKind, address: &str) -> SecurityEvent {
        SecurityEvent {
            id: CallId::new(),
            at: chrono::DateTime::UNIX_EPOCH,
            kind,
            workspace: None,
            grant: None,
            address: address.to_owned(),
            detail: "/mcp/x".to_owned(),
            times: 1,
        }
    }

    fn taken(rows: &mut mpsc::Receiver<SecurityEvent>) -> Vec<(SecurityKind, String, i64)> {
        let mut all: Vec<_> = std::iter::from_fn(|| rows.try_recv().ok())
            .map(|row| (row.kind, row.address, row.times))
            .collect();
        all.sort_by(|a, b| a.1.cmp(&b.1));
        all
    }

    #[test]
    fn the_first_is_a_row_at_once_and_repeats_are_one_row_with_their_number() {
        let (sender, mut rows) = mpsc::channel(10);
        let queue = SecurityQueue::new(sender);
        for _ in 0..1_000 {
            queue.record(event(SecurityKind::BadToken, "192.0.2.1"));
        }
        queue.record(event(SecurityKind::BadToken, "192.0.2.2"));
        let (bad, first, second) = (SecurityKind::BadToken, "192.0.2.1", "192.0.2.2");
        let at_once = [(bad, first.to_owned(), 1), (bad, second.to_owned(), 1)];
        assert_eq!(taken(&mut rows), at_once);
        queue.count_anew();
        assert_eq!(taken(&mut rows), [(bad, first.to_owned(), 999)]);
        queue.count_anew();
        assert_eq!(taken(&mut rows), []);
        queue.record(event(bad, first));
        assert_eq!(taken(&mut rows), at_once[..1]);
    }

    #[test]
    fn a_flood_from_everywhere_is_bounded_and_counted_whole() {
        let (sender, mut rows) = mpsc::channel(10_000);
        let queue = SecurityQueue::new(sender);
        let from = |number: usize| format!("2001:db8::{number:x}");
        for number in 0..5_000 {
            queue.record(event(SecurityKind::BadToken, &from(number)));
        }
        queue.count_anew();
        let rows = taken(&mut rows);
        assert!(rows.len() <= PLACES + 2, "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.2).sum::<i64>(), 5_000, "none is forgotten");
        assert!(rows.iter().any(|row| row.1 == OTHERS));
    }

    #[tokio::test]
    async fn what_was_counted_at_the_stop_is_not_lost() {
        let (sender, mut rows) = mpsc::channel(10);
        let queue = SecurityQueue::new(sender);
        queue.record(event(SecurityKind::ForeignOrigin, "a"));
        queue.record(event(SecurityKind::ForeignOrigin, "a"));
        let stop = CancellationToken::new();
        stop.cancel();
        queue.run(stop).await;
        assert_eq!(taken(&mut rows).len(), 2);
    }
}
