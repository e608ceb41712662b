//! Limits as they cross from `policy` to `limits`: windows, scopes and charges.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Amount;
use crate::words::words;

words!(
    /// Whose calls a counter counts together.
    Scope, "scope" {
        /// One agent token.
        Grant = "grant",
        /// One MCP session of a grant; the grant where there is none.
        Session = "session",
        /// Every grant of one server.
        Server = "server",
        /// Every server of the workspace.
        Workspace = "workspace",
    }
);

words!(
    /// When a window starts anew.
    Reset, "reset" {
        /// No more than `max` in any window-long span.
        Sliding = "sliding",
        /// At UTC borders; weeks on Monday.
        Calendar = "calendar",
    }
);

words!(
    /// What becomes of a call whose counters cannot be reached.
    OnUnavailable, "on_unavailable" {
        Deny = "deny",
        Allow = "allow",
    }
);

/// A span of time that a counter covers: a named one, or a length of 1 s to 31 d.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Window {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    /// 31 days when sliding, the calendar month when `calendar`.
    Month,
    /// A length in whole seconds, kept with the unit that was written.
    Length {
        count: u32,
        unit: char,
    },
}

/// Why a text is not a [`Window`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Neither a named window nor a length.
    #[error(
        "not second, minute, hour, day, week, month, or a length such as \"90s\", \"15m\", \"6h\", \"2d\""
    )]
    Unreadable,
    /// Shorter than 1 s or longer than 31 d.
    #[error("a window is from 1 s to 31 d long")]
    OutOfRange,
}

impl Window {
    /// The longest window, 31 days.
    pub const MAX_SECONDS: u32 = 31 * 86_400;

    /// Whole seconds that the window spans when sliding.
    pub const fn seconds(self) -> u32 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
            Self::Month => Self::MAX_SECONDS,
            Self::Length { count, unit } => count * unit_seconds(unit),
        }
    }

    /// A length of `count` seconds, as the short form `"window": 60` gives it.
    pub fn from_seconds(count: u32) -> Result<Self, WindowError> {
        length(u64::from(count), 's')
    }
}

const fn unit_seconds(unit: char) -> u32 {
    match unit {
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => 1,
    }
}

fn length(count: u64, unit: char) -> Result<Window, WindowError> {
    let seconds = count.saturating_mul(u64::from(unit_seconds(unit)));
    if seconds == 0 || seconds > u64::from(Window::MAX_SECONDS) {
        return Err(WindowError::OutOfRange);
    }
    let count = u32::try_from(count).map_err(|_| WindowError::OutOfRange)?;
    Ok(Window::Length { count, unit })
}

impl FromStr for Window {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        Ok(match text {
            "second" => Self::Second,
            "minute" => Self::Minute,
            "hour" => Self::Hour,
            "day" => Self::Day,
            "week" => Self::Week,
            "month" => Self::Month,
            _ => {
                let unit = text
                    .chars()
                    .last()
                    .filter(|c| "smhd".contains(*c))
                    .ok_or(WindowError::Unreadable)?;
                let digits = &text[..text.len() - 1];
                let plain = !digits.is_empty()
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && !(digits.len() > 1 && digits.starts_with('0'));
                if !plain {
                    return Err(WindowError::Unreadable);
                }
                return length(digits.parse().map_err(|_| WindowError::OutOfRange)?, unit);
            }
        })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Length { count, unit } => return write!(f, "{count}{unit}"),
        })
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What one limit asks of one call: charge `amount` to a counter unless that would pass `max`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// JSON Pointer of the limit in the policy document.
    pub rule: String,
    /// The counter's name.
    pub counter: String,
    pub scope: Scope,
    pub window: Window,
    pub reset: Reset,
    pub max: Amount,
    pub amount: Amount,
    /// The argument that `amount` was read from; `None`: each call counts 1.
    pub increment_from: Option<String>,
    pub on_unavailable: OnUnavailable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_and_shown_as_written() {
        for (text, seconds) in [
            ("second", 1),
            ("month", 2_678_400),
            ("90s", 90),
            ("15m", 900),
            ("6h", 21_600),
            ("31d", 2_678_400),
        ] {
            let window: Window = text.parse().expect(text);
            assert_eq!((window.seconds(), window.to_string().as_str()), (seconds, text));
        }
        for text in ["0s", "32d", "99999999999999999999s"] {
            assert_eq!(text.parse::<Window>(), Err(WindowError::OutOfRange), "{text}");
        }
        for text in ["", "s", "1.5h", "-1s", "1w", "01s", "1 s", "Minute", "60", "1é"] {
            assert_eq!(text.parse::<Window>(), Err(WindowError::Unreadable), "{text}");
        }
    }
}
