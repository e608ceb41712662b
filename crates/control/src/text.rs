//! What people may call things: bounded, in one Unicode form, without invisible tricks.

use chrono::TimeDelta;
use unicode_normalization::UnicodeNormalization;

use crate::Fault;
use crate::codes::{self, ProblemCode};

/// Characters of a name or label at most.
pub const MAX_NAME_CHARS: usize = 80;
/// Characters of a note at most.
pub const MAX_NOTE_CHARS: usize = 2_000;
const MAX_EMAIL_BYTES: usize = 254;
const MAX_LOCAL_BYTES: usize = 64;

/// A name of something: one line, trimmed, NFC.
pub(crate) fn name(pointer: &str, text: &str) -> Result<String, Fault> {
    let text = line(pointer, text, MAX_NAME_CHARS)?;
    if text.is_empty() {
        return Err(Fault::new(pointer, codes::REQUIRED, "give it a name"));
    }
    Ok(text)
}

/// One line of at most `max` characters, which may be empty.
pub(crate) fn line(pointer: &str, text: &str, max: usize) -> Result<String, Fault> {
    let text: String = text.trim().nfc().collect();
    if text.chars().count() > max {
        let detail = format!("it is longer than {max} characters");
        return Err(Fault::new(pointer, codes::TOO_LONG, detail));
    }
    if let Some(odd) = text.chars().find(|c| is_hidden(*c)) {
        return Err(hidden(pointer, odd));
    }
    Ok(text)
}

/// Several lines of at most [`MAX_NOTE_CHARS`].
pub(crate) fn note(pointer: &str, text: &str) -> Result<String, Fault> {
    let text: String = text.trim().nfc().collect();
    if text.chars().count() > MAX_NOTE_CHARS {
        let detail = format!("it is longer than {MAX_NOTE_CHARS} characters");
        return Err(Fault::new(pointer, codes::TOO_LONG, detail));
    }
    match text.chars().find(|c| is_hidden(*c) && !matches!(c, '\n' | '\r' | '\t')) {
        Some(odd) => Err(hidden(pointer, odd)),
        None => Ok(text),
    }
}

/// A length of time as people write it: `90s`, `15m`, `1h`, `2d`.
pub fn span(pointer: &str, text: &str) -> Result<TimeDelta, Fault> {
    let text = text.trim();
    let at = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let seconds = match unit.trim() {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        _ => None,
    };
    let whole = digits.parse::<i64>().ok().zip(seconds).and_then(|(n, unit)| n.checked_mul(unit));
    whole.and_then(TimeDelta::try_seconds).ok_or_else(|| {
        let shown: String = text.chars().take(20).collect();
        let detail =
            format!("`{shown}` is no length of time; write one such as 90s, 15m, 1h or 2d");
        Fault::new(pointer, codes::BAD_DURATION, detail)
    })
}

fn hidden(pointer: &str, odd: char) -> Fault {
    let detail = format!("it contains the invisible character U+{:04X}", u32::from(odd));
    Fault::new(pointer, codes::INVISIBLE_CHARACTER, detail)
}

/// Controls, line separators, marks that turn the direction of text, and characters of no width.
/// Joiners stay: scripts and emoji need them.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// An e-mail address, as typed but trimmed. Only its form is checked.
pub(crate) fn email(pointer: &str, text: &str) -> Result<String, Fault> {
    let text = text.trim();
    let fault = |code: ProblemCode, detail: &str| Err(Fault::new(pointer, code, detail));
    if text.is_empty() {
        return fault(codes::REQUIRED, "give your e-mail address");
    }
    if text.len() > MAX_EMAIL_BYTES {
        return fault(codes::TOO_LONG, "an e-mail address has at most 254 characters");
    }
    let good = text.rsplit_once('@').is_some_and(|(local, domain)| {
        (1..=MAX_LOCAL_BYTES).contains(&local.len())
            && local.bytes().all(|b| b.is_ascii_graphic() && !b"@()<>[]\\,;:\"".contains(&b))
            && is_domain(domain)
    });
    if good {
        Ok(text.to_owned())
    } else {
        fault(codes::BAD_EMAIL, "this is not an e-mail address; one looks like ann@example.com")
    }
}

pub(crate) fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    domain.split('.').all(label)
}

const MAX_SLUG_CHARS: usize = 40;
/// Words that pages use in the place of a workspace.
const RESERVED: [&str; 6] = ["new", "admin", "api", "settings", "join", "account"];

/// The address form of a name: lower-case ASCII letters, digits and single hyphens.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.nfkd().filter(|c| !('\u{300}'..='\u{36f}').contains(c)) {
        if slug.len() >= MAX_SLUG_CHARS {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    match slug {
        "" => "workspace".to_owned(),
        word if RESERVED.contains(&word) => format!("{word}-workspace"),
        word => word.to_owned(),
    }
}

/// A workspace's slug that somebody wrote: it must be its own address form.
pub(crate) fn written_slug(pointer: &str, text: &str) -> Result<String, Fault> {
    let good = !text.is_empty() && slug(text) == text;
    if good {
        return Ok(text.to_owned());
    }
    let detail =
        "an address has 1 to 40 lower-case letters, digits and single hyphens between them";
    Err(Fault::new(pointer, codes::BAD_SLUG, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_bounded_and_visible() {
        assert_eq!(
            name("/name", "  Cafe\u{301} \u{1F469}\u{200d}\u{1F4BB} ").as_deref(),
            Ok("Café 👩‍💻")
        );
        assert_eq!(
            name("/name", "<img src=x onerror=alert(1)>").as_deref(),
            Ok("<img src=x onerror=alert(1)>")
        );
        for (text, code) in [
            ("", "required"),
            (" \u{a0}\t", "required"),
            ("a\u{202e}b", "invisible_character"),
            ("a\u{200b}", "invisible_character"),
            ("a\nb", "invisible_character"),
            ("a\u{0}b", "invisible_character"),
            (&"x".repeat(81), "too_long"),
        ] {
            assert_eq!(name("/name", text).expect_err(text).code, code, "{text:?}");
        }
        assert_eq!(name("/name", &"ä".repeat(80)).map(|n| n.chars().count()), Ok(80));
    }

    #[test]
    fn addresses_have_a_form() {
        for good in
            ["ann@example.com", "Ann.B+x@Example.test", "a@localhost", "!#$%&'*/=?^_`{|}~-@x.y"]
        {
            assert_eq!(email("/email", &format!(" {good} ")).as_deref(), Ok(good));
        }
        let long = format!("{}@example.com", "a".repeat(65));
        for bad in [
            "ann",
            "@example.com",
            "ann@",
            "a b@c.d",
            "ann@exa mple.com",
            "ann@-x.com",
            "ann@x..com",
            "\u{430}nn@example.com",
            "ann@ex\u{202e}ample.com",
            "a@b@c",
            "ann@[127.0.0.1]",
            "a\r\nb@c.d",
            &long,
        ] {
            assert_eq!(email("/email", bad).expect_err(bad).code, "bad_email", "{bad}");
        }
    }

    #[test]
    fn lengths_of_time_have_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), (" 1h ", 3_600), ("2d", 172_800)] {
            assert_eq!(span("/x", text), Ok(TimeDelta::seconds(seconds)), "{text}");
        }
        for bad in ["", "1", "h", "1w", "-1h", "1.5h", "99999999999999999999s", "9999999999999999d"]
        {
            assert_eq!(span("/x", bad).expect_err(bad).code, "bad_duration", "{bad}");
        }
    }

    #[test]
    fn slugs_are_made_from_names() {
        for (name, expected) in [
            ("Acme, Inc.", "acme-inc"),
            ("Zürich Straße", "zurich-stra-e"),
            ("北京", "workspace"),
            ("  --  ", "workspace"),
            ("New", "new-workspace"),
            ("a".repeat(60).as_str(), "a".repeat(40).as_str()),
        ] {
            assert_eq!(slug(name), expected);
        }
        assert!(written_slug("/slug", "acme-inc").is_ok());
        for bad in ["", "Acme", "a--b", "-a", "a-", "new", "a/b", "..", "é"] {
            assert!(written_slug("/slug", bad).is_err(), "{bad}");
        }
    }
}
