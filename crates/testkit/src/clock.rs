//! A clock that stands still until a test moves it.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

/// The time as the test says it is; clones share it.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<Mutex<DateTime<Utc>>>);

impl TestClock {
    /// A clock that shows `rfc3339`, for example `2026-11-30T23:59:59.9Z`.
    pub fn at(rfc3339: &str) -> Self {
        let now = DateTime::parse_from_rfc3339(rfc3339).expect("the test writes an RFC 3339 time");
        Self(Arc::new(Mutex::new(now.with_timezone(&Utc))))
    }

    /// What the clock shows.
    pub fn now(&self) -> DateTime<Utc> {
        *self.0.lock()
    }

    /// Moves the clock by `by`, also backwards.
    pub fn advance(&self, by: TimeDelta) {
        *self.0.lock() += by;
    }

    /// Sets the clock.
    pub fn set(&self, to: DateTime<Utc>) {
        *self.0.lock() = to;
    }

    /// The clock as the function that the crates take.
    pub fn function(&self) -> Arc<dyn Fn() -> DateTime<Utc> + Send + Sync> {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_and_functions_show_the_same_time() {
        let clock = TestClock::at("2026-11-30T23:59:59Z");
        let function = clock.function();
        clock.clone().advance(TimeDelta::seconds(1));
        assert_eq!(function(), TestClock::at("2026-12-01T00:00:00Z").now());
    }
}
