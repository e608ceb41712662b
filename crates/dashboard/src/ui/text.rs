//! Numbers, plurals, times and sizes in words.

use chrono::{DateTime, Datelike, Utc};

use super::{Html, escape_into};

/// `12,345`.
pub(crate) fn number(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0 {
        out.push('−');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 tool`, `12 tools`; the plural is given where it is not the singular and an s.
pub(crate) fn count(value: usize, one: &str, many: Option<&str>) -> String {
    let shown = number(i64::try_from(value).unwrap_or(i64::MAX));
    match (value, many) {
        (1, _) => format!("1 {one}"),
        (_, Some(many)) => format!("{shown} {many}"),
        (_, None) => format!("{shown} {one}s"),
    }
}

/// `just now`, `2 min ago`, `in 3 h`, `14 Mar 2026`.
pub(crate) fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - at).num_seconds();
    let (size, past) = (seconds.abs(), seconds >= 0);
    let length = match size {
        0..45 => return if past { "just now".to_owned() } else { "in a moment".to_owned() },
        45..5_400 => format!("{} min", (size + 30) / 60),
        5_400..129_600 => format!("{} h", (size + 1_800) / 3_600),
        129_600..2_592_000 => format!("{} days", (size + 43_200) / 86_400),
        _ => return at.format("%-d %b %Y").to_string(),
    };
    if past { format!("{length} ago") } else { format!("in {length}") }
}

/// `30 Nov 2026, 09:30:12 UTC`.
pub(crate) fn exact(at: DateTime<Utc>) -> String {
    at.format("%-d %b %Y, %H:%M:%S UTC").to_string()
}

/// `Mon 30 Nov`.
pub(crate) fn day(at: DateTime<Utc>) -> String {
    format!("{} {}", at.weekday(), at.format("%-d %b"))
}

/// `840 µs`, `12.4 ms`, `1.32 s`.
pub(crate) fn micros(value: i64) -> String {
    match value {
        ..1_000 => format!("{value} µs"),
        1_000..1_000_000 => format!("{}.{} ms", value / 1_000, value % 1_000 / 100),
        _ => format!("{}.{:02} s", value / 1_000_000, value % 1_000_000 / 10_000),
    }
}

/// `512 B`, `3.4 KiB`.
pub(crate) fn bytes(value: i64) -> String {
    match value {
        ..1_024 => format!("{value} B"),
        1_024..1_048_576 => format!("{}.{} KiB", value / 1_024, value % 1_024 * 10 / 1_024),
        _ => format!("{}.{} MiB", value / 1_048_576, value % 1_048_576 * 10 / 1_048_576),
    }
}

/// Escapes a sentence and sets what stands between backticks as code.
pub(crate) fn ticks(sentence: &str) -> Html {
    let mut out = String::with_capacity(sentence.len() + 32);
    let pairs = sentence.matches('`').count() / 2 * 2;
    for (at, part) in sentence.split('`').enumerate() {
        match at {
            0 => {}
            _ if at > pairs => out.push('`'),
            _ if at % 2 == 1 => out.push_str("<code>"),
            _ => out.push_str("</code>"),
        }
        escape_into(&mut out, part);
    }
    Html(out)
}

/// Anybody's text on one line of Markdown: no mark in it means anything, and nothing that cannot be seen is left.
pub(crate) fn markdown_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in sluice_risk::catalogue::registry::clean(text, 20_000).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '[' | ']' | '#' | '|' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A moment as an element; script turns it into the reader's zone.
pub(crate) fn stamp(at: DateTime<Utc>) -> Html {
    Html(format!("<time datetime=\"{}\" class=\"nowrap\">{}</time>", iso(at), exact(at)))
}

/// A moment relative to `now`, with the exact time on hover.
pub(crate) fn stamp_ago(at: DateTime<Utc>, now: DateTime<Utc>) -> Html {
    Html(format!(
        "<time datetime=\"{}\" title=\"{}\" data-ago class=\"nowrap\">{}</time>",
        iso(at),
        exact(at),
        ago(at, now)
    ))
}

/// A moment to come, by the second while it is near, with the exact time on hover.
pub(crate) fn stamp_in(at: DateTime<Utc>, now: DateTime<Utc>) -> Html {
    let seconds = ((at - now).num_milliseconds().max(0) + 999) / 1_000;
    if seconds > 120 {
        return stamp_ago(at, now);
    }
    Html(format!(
        "<time datetime=\"{}\" title=\"{}\" data-ago class=\"nowrap\">in {seconds} s</time>",
        iso(at),
        exact(at)
    ))
}

/// RFC 3339 with a Z.
pub(crate) fn iso(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use chrono::{Duration, TimeZone};

    use super::*;

    #[test]
    fn numbers_and_plurals() {
        for (value, shown) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (-4_000, "−4,000")]
        {
            assert_eq!(number(value), shown);
        }
        assert_eq!(count(1, "tool", None), "1 tool");
        assert_eq!(count(0, "tool", None), "0 tools");
        assert_eq!(count(1_200, "policy", Some("policies")), "1,200 policies");
    }

    #[test]
    fn times_are_relative_until_a_month_is_over() {
        let now = Utc.with_ymd_and_hms(2026, 11, 30, 9, 0, 0).single().expect("a real time");
        for (seconds, shown) in [
            (3, "just now"),
            (120, "2 min ago"),
            (7_200, "2 h ago"),
            (3 * 86_400, "3 days ago"),
            (60 * 86_400, "1 Oct 2026"),
            (-300, "in 5 min"),
        ] {
            assert_eq!(ago(now - Duration::seconds(seconds), now), shown);
        }
        assert_eq!(exact(now), "30 Nov 2026, 09:00:00 UTC");
        let soon = stamp_in(now + Duration::milliseconds(41_001), now);
        assert!(soon.0.ends_with(">in 42 s</time>"), "{soon:?}");
        assert!(stamp_in(now + Duration::hours(3), now).0.ends_with(">in 3 h</time>"));
        assert!(stamp(now).0.contains("datetime=\"2026-11-30T09:00:00.000Z\""));
    }

    #[test]
    fn sizes_and_lengths_have_units() {
        assert_eq!(
            [micros(840), micros(12_420), micros(1_320_000)],
            ["840 µs", "12.4 ms", "1.32 s"]
        );
        assert_eq!([bytes(512), bytes(3_500), bytes(5_242_880)], ["512 B", "3.4 KiB", "5.0 MiB"]);
    }

    #[test]
    fn code_in_sentences_is_marked_and_everything_is_escaped() {
        assert_eq!(ticks("`a<b` may run").0, "<code>a&lt;b</code> may run");
        assert_eq!(ticks("one ` alone").0, "one ` alone");
        assert_eq!(ticks("`a` and ` alone").0, "<code>a</code> and ` alone");
    }
}
