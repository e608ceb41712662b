//! Time cut into buckets: which bucket a moment falls in, and when a bucket stops counting. Pure.

use chrono::{DateTime, Datelike, NaiveDate};
use serde::{Deserialize, Serialize};
use sluice_domain::{Reset, Window};

pub(crate) const SECOND: i64 = 1_000_000;
/// A sliding window is cut into this many buckets; one more is alive at any moment.
const SUB_BUCKETS: i64 = 20;
/// Calendar windows are counted from Monday, 5 January 1970, so that weeks begin on Mondays.
pub(crate) const FIRST_MONDAY: i64 = 4 * 86_400 * SECOND;

/// How a counter cuts time. All times are microseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Span {
    /// A bucket counts until every moment in it is a whole window ago: the promise holds in any
    /// window-long span, and a charge leaves at most one bucket late.
    Sliding { width: i64 },
    /// One bucket a window, dropped whole at the border.
    Fixed { length: i64 },
    /// The calendar month, UTC.
    Month,
}

impl Span {
    pub(crate) fn of(window: Window, reset: Reset) -> Self {
        let length = i64::from(window.seconds()) * SECOND;
        match (reset, window) {
            (Reset::Sliding, _) => Self::Sliding { width: length / SUB_BUCKETS },
            (Reset::Calendar, Window::Month) => Self::Month,
            (Reset::Calendar, _) => Self::Fixed { length },
        }
    }

    /// A short name that is equal for windows of equal meaning: `minute` and `60s` share a count.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Sliding { width } => format!("s{}", width * SUB_BUCKETS / SECOND),
            Self::Fixed { length } => format!("c{}", length / SECOND),
            Self::Month => "cm".to_owned(),
        }
    }

    /// The bucket of a moment.
    pub(crate) fn index(self, now: i64) -> i64 {
        match self {
            Self::Sliding { width } => now.div_euclid(width),
            Self::Fixed { length } => (now - FIRST_MONDAY).div_euclid(length),
            Self::Month => DateTime::from_timestamp_micros(now)
                .map_or(0, |at| i64::from(at.year()) * 12 + i64::from(at.month0())),
        }
    }

    /// How many buckets count at once, the current one included.
    pub(crate) const fn kept(self) -> i64 {
        match self {
            Self::Sliding { .. } => SUB_BUCKETS + 1,
            Self::Fixed { .. } | Self::Month => 1,
        }
    }

    /// The first moment at which a bucket counts no more.
    pub(crate) fn leaves_at(self, index: i64) -> i64 {
        match self {
            Self::Sliding { width } => (index + self.kept()) * width,
            Self::Fixed { length } => (index + 1) * length + FIRST_MONDAY,
            Self::Month => month_start(index + 1),
        }
    }
}

fn month_start(index: i64) -> i64 {
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) + 1);
    i32::try_from(year)
        .ok()
        .zip(u32::try_from(month).ok())
        .and_then(|(year, month)| NaiveDate::from_ymd_opt(year, month, 1))
        .and_then(|day| day.and_hms_opt(0, 0, 0))
        .map_or(i64::MAX, |at| at.and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<DateTime<chrono::Utc>>().expect(text).timestamp_micros()
    }

    #[test]
    fn calendar_borders_are_utc_and_weeks_begin_on_monday() {
        let table = [
            (Window::Minute, "2026-11-30T09:41:59.999999Z", "2026-11-30T09:42:00Z"),
            (Window::Hour, "2026-11-30T09:00:00Z", "2026-11-30T10:00:00Z"),
            (Window::Day, "2026-11-30T23:59:59.9Z", "2026-12-01T00:00:00Z"),
            (Window::Week, "2026-11-29T23:59:59Z", "2026-11-30T00:00:00Z"),
            (Window::Week, "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"),
            (Window::Month, "2028-02-29T12:00:00Z", "2028-03-01T00:00:00Z"),
            (Window::Month, "2026-12-31T23:59:59.999999Z", "2027-01-01T00:00:00Z"),
            (
                Window::Length { count: 15, unit: 'm' },
                "2026-11-30T09:44:00Z",
                "2026-11-30T09:45:00Z",
            ),
            (
                Window::Length { count: 7, unit: 'd' },
                "2026-12-01T00:00:00Z",
                "2026-12-07T00:00:00Z",
            ),
        ];
        for (window, now, border) in table {
            let span = Span::of(window, Reset::Calendar);
            assert_eq!(span.leaves_at(span.index(at(now))), at(border), "{window} at {now}");
            assert_eq!(span.index(at(border)), span.index(at(now)) + 1, "{window} at {border}");
        }
    }

    #[test]
    fn a_sliding_bucket_leaves_after_the_window_and_at_most_a_twentieth_late() {
        for window in
            [Window::Second, Window::Minute, Window::Month, Window::Length { count: 7, unit: 's' }]
        {
            let span = Span::of(window, Reset::Sliding);
            let length = i64::from(window.seconds()) * SECOND;
            for now in [0, 1, 49_999, 50_000, at("2026-11-30T09:41:59.999999Z")] {
                let leaves = span.leaves_at(span.index(now));
                assert!(
                    leaves - now > length && leaves - now <= length + length / 20,
                    "{window} {now}"
                );
                assert_eq!(span.index(leaves) - span.index(now), span.kept());
            }
        }
    }

    #[test]
    fn windows_of_equal_meaning_share_a_name() {
        let name = |text: &str, reset| Span::of(text.parse().expect(text), reset).name();
        assert_eq!(name("minute", Reset::Sliding), name("60s", Reset::Sliding));
        assert_eq!(name("month", Reset::Sliding), name("31d", Reset::Sliding));
        assert_ne!(name("month", Reset::Calendar), name("31d", Reset::Calendar));
        assert_ne!(name("day", Reset::Calendar), name("day", Reset::Sliding));
    }
}
