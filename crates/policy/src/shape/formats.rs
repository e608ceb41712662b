//! The strings that have a grammar. Each stands twice, as a pattern for the
//! JSON Schema and as a check with words; a test holds the two together.

use std::str::FromStr;

use sluice_domain::Window;

use super::Format;
use super::ranges::range;
use crate::path::{self, Path};
use crate::suggest::nearest;

const WINDOW_WORDS: &[&str] = &["second", "minute", "hour", "day", "week", "month"];

pub(super) static WINDOW: Format = Format {
    what: "a window",
    code: "bad_window",
    pattern: || format!("^{}$", window_pattern()),
    check: |text| Window::from_str(text).map(drop).map_err(|error| error.to_string()),
    suggest: suggest_window,
};

fn window_pattern() -> String {
    format!("(?:{}|{})", WINDOW_WORDS.join("|"), length_pattern(1, u64::from(Window::MAX_SECONDS)))
}

/// `90s`, `15m`, `6h`, `2d` between so many seconds.
fn length_pattern(low: u64, high: u64) -> String {
    let units = [("s", 1_u64), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let parts = units.iter().filter_map(|(unit, size)| {
        let (low, high) = (low.div_ceil(*size), high / size);
        (low <= high).then(|| format!("{}{unit}", range(low, high)))
    });
    format!("(?:{})", parts.collect::<Vec<_>>().join("|"))
}

fn suggest_window(text: &str) -> Option<String> {
    let plain = text.trim().to_lowercase();
    if let Some(word) = nearest(&plain, WINDOW_WORDS.iter().copied()) {
        return Some(word.to_owned());
    }
    let digits: String = plain.chars().take_while(char::is_ascii_digit).collect();
    let unit = plain[digits.len()..].trim().chars().next().unwrap_or('s');
    let meant = if digits.is_empty() { plain } else { format!("{digits}{unit}") };
    (meant != text && Window::from_str(&meant).is_ok()).then_some(meant)
}

pub(super) static RATE: Format = Format {
    what: "a rate",
    code: "bad_rate",
    pattern: || format!("^(?:0|[1-9][0-9]{{0,14}})/{}$", window_pattern()),
    check: |text| {
        let (count, window) = text
            .split_once('/')
            .ok_or("a rate is a number, `/` and a window, as in `10/minute`")?;
        let plain = count == "0" || !count.starts_with('0');
        if count.is_empty()
            || count.len() > 15
            || !plain
            || !count.bytes().all(|b| b.is_ascii_digit())
        {
            return Err("before `/` comes a whole number of at most 15 digits".to_owned());
        }
        (WINDOW.check)(window)
    },
    suggest: |text| {
        let (count, window) = text.split_once('/')?;
        let meant = format!("{}/{}", count.trim(), suggest_window(window)?);
        (RATE.check)(&meant).is_ok().then_some(meant)
    },
};

const fn no_suggestion(_: &str) -> Option<String> {
    None
}

pub(super) static COUNTER: Format = Format {
    what: "a counter's name",
    code: "bad_counter",
    pattern: || "^[a-z0-9_.-]{1,64}$".to_owned(),
    check: |text| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b);
        if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(());
        }
        Err("a counter's name is 1 to 64 characters of a-z, 0-9, `_`, `.` and `-`".to_owned())
    },
    suggest: |text| {
        let meant = crate::short_forms::counter_characters(text);
        (COUNTER.check)(&meant).is_ok().then_some(meant)
    },
};

pub(super) static RULE_NAME: Format = Format {
    what: "a rule's name",
    code: "bad_name",
    pattern: || "^[a-z0-9][a-z0-9_-]{0,63}$".to_owned(),
    check: |text| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
        let starts = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if starts && text.len() <= 64 && text.bytes().all(fits) {
            return Ok(());
        }
        Err("a rule's name is 1 to 64 characters of a-z, 0-9, `_` and `-`, starting with a letter or digit".to_owned())
    },
    suggest: |text| {
        let meant = text.trim().to_lowercase().replace([' ', '.'], "-");
        (RULE_NAME.check)(&meant).is_ok().then_some(meant)
    },
};

pub(super) static PATH: Format = Format {
    what: "a path",
    code: "bad_path",
    pattern: path::pattern,
    check: |text| Path::parse(text).map(drop),
    suggest: Path::suggest,
};

pub(super) static ARGUMENT_PATH: Format = Format {
    what: "the path of one argument",
    code: "bad_path",
    pattern: path::argument_pattern,
    check: |text| match Path::parse(text)? {
        Path::Context(_) => Err("only an argument can be counted, as in `args.amount`".to_owned()),
        path if path.has_each() => Err("`[*]` names many values; one is counted".to_owned()),
        Path::Arguments(_) => Ok(()),
    },
    suggest: |text| {
        let meant = Path::suggest(text)?;
        (ARGUMENT_PATH.check)(&meant).is_ok().then_some(meant)
    },
};

/// Seconds of `50s`, `30m`, `6h`, `7d`.
pub(crate) fn duration_seconds(text: &str) -> Option<u32> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    let plain = digits == "0" || !digits.starts_with('0');
    if !plain || digits.len() > 7 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u32>().ok()?.checked_mul(unit)
}

fn check_duration(text: &str, low: u32, high: u32, words: &str) -> Result<(), String> {
    match duration_seconds(text) {
        Some(seconds) if (low..=high).contains(&seconds) => Ok(()),
        Some(_) => Err(format!("it must be from {words}")),
        None => Err("a length of time is a whole number and s, m, h or d, as in `50s`".to_owned()),
    }
}

const HOLD_MAX: u32 = 600;
const EXPIRES_MAX: u32 = 7 * 86_400;

pub(super) static HOLD: Format = Format {
    what: "a length of time",
    code: "bad_duration",
    pattern: || format!("^(?:0[smhd]|{})$", length_pattern(1, u64::from(HOLD_MAX))),
    check: |text| check_duration(text, 0, HOLD_MAX, "0s to 10m"),
    suggest: no_suggestion,
};

pub(super) static EXPIRES: Format = Format {
    what: "a length of time",
    code: "bad_duration",
    pattern: || format!("^{}$", length_pattern(60, u64::from(EXPIRES_MAX))),
    check: |text| check_duration(text, 60, EXPIRES_MAX, "1m to 7d"),
    suggest: no_suggestion,
};

pub(super) static APPROVER: Format = Format {
    what: "an approver",
    code: "bad_approver",
    pattern: || {
        r"^(?:role:(?:admin|policy_manager)|member:[^ \t\r\n@]{1,64}@[^ \t\r\n@]{1,255})$"
            .to_owned()
    },
    check: |text| {
        if text == "role:admin" || text == "role:policy_manager" {
            return Ok(());
        }
        if text == "role:viewer" {
            return Err("a viewer may not decide approvals".to_owned());
        }
        let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | '@');
        let long = |part: &str, most| (1..=most).contains(&part.chars().count());
        match text.strip_prefix("member:").and_then(|address| address.split_once('@')) {
            Some((name, host))
                if long(name, 64) && long(host, 255) && !name.contains(blank) && !host.contains(blank) =>
            {
                Ok(())
            }
            _ => Err("an approver is `role:admin`, `role:policy_manager` or `member:` and an e-mail address".to_owned()),
        }
    },
    suggest: |text| {
        let roles = ["role:admin", "role:policy_manager"];
        if let Some(role) = nearest(text, roles)
            .or_else(|| roles.into_iter().find(|r| r.ends_with(&format!(":{text}"))))
        {
            return Some(role.to_owned());
        }
        let meant = format!("member:{}", text.trim());
        (APPROVER.check)(&meant).is_ok().then_some(meant)
    },
};

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    thread_local! {
        static PATTERNS: RefCell<HashMap<usize, regex::Regex>> = RefCell::new(HashMap::new());
    }

    fn agree(format: &'static Format, text: &str) {
        PATTERNS.with_borrow_mut(|patterns| {
            let key = std::ptr::from_ref(format).addr();
            let pattern = patterns
                .entry(key)
                .or_insert_with(|| regex::Regex::new(&(format.pattern)()).expect("a pattern"));
            assert_eq!(pattern.is_match(text), (format.check)(text).is_ok(), "{format:?} {text:?}");
        });
    }

    #[test]
    fn lengths_at_their_bounds() {
        for text in [
            "1s", "2678400s", "2678401s", "44640m", "44641m", "744h", "745h", "31d", "32d", "0s",
            "0m", "600s", "601s", "10m", "11m", "59s", "60s", "1m", "604800s", "604801s", "10080m",
            "10081m", "168h", "169h", "7d", "8d", "0d", "01s", "1h", "minute", "Minute", "s", "",
        ] {
            for format in [&WINDOW, &HOLD, &EXPIRES] {
                agree(format, text);
            }
            agree(&RATE, &format!("10/{text}"));
        }
    }

    #[test]
    fn slips_are_understood() {
        for (text, meant) in
            [("minutes", "minute"), ("90 s", "90s"), ("60sec", "60s"), ("Day", "day")]
        {
            assert_eq!(suggest_window(text).as_deref(), Some(meant), "{text}");
        }
        assert_eq!((RATE.suggest)("10/min"), None);
        assert_eq!((RATE.suggest)("10 / minuts").as_deref(), Some("10/minute"));
        assert_eq!((APPROVER.suggest)("admin").as_deref(), Some("role:admin"));
        assert_eq!(
            (APPROVER.suggest)("ann@example.com").as_deref(),
            Some("member:ann@example.com")
        );
    }

    proptest! {
        #[test]
        fn patterns_and_checks_agree(number in 0_u64..3_000_000, unit in "[smhdx]", word in "[a-zA-Z0-9_. @:/-]{0,9}") {
            for format in [&WINDOW, &HOLD, &EXPIRES] {
                agree(format, &format!("{number}{unit}"));
            }
            agree(&RATE, &format!("{number}/{word}"));
            agree(&RATE, &format!("{word}/{number}{unit}"));
            for format in [&COUNTER, &RULE_NAME, &APPROVER] {
                agree(format, &word);
            }
            agree(&APPROVER, &format!("member:{word}"));
            agree(&APPROVER, &format!("role:{word}"));
        }
    }
}
