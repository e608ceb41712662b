//! The one place that reads the clock.

use std::sync::Arc;

use chrono::{DateTime, SubsecRound as _, Utc};

/// The time, cut to microseconds: PostgreSQL keeps no more.
#[expect(clippy::disallowed_methods, reason = "the binary is where time comes from")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

/// The clock as the function that the crates take.
pub(crate) fn function() -> Arc<dyn Fn() -> DateTime<Utc> + Send + Sync> {
    Arc::new(now)
}
