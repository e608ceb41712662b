//! Patterns of JSON Schema, which are ECMAScript's, as regular expressions that run in linear time. What
//! has no exact counterpart (look-around, back references) is not translated.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

const MAX_PATTERN: usize = 4_096;
const MAX_COMPILED: usize = 256 * 1024;

/// White space and line ends, as ECMAScript's `\s` has them.
const SPACE: &str = r"\t\n\x0b\x0c\r\x20\xa0\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";

/// The pattern, ready to match with; none if it cannot be translated exactly.
pub(super) fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > MAX_PATTERN {
        return None;
    }
    let translated = translated(pattern)?;
    RegexBuilder::new(&translated)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build()
        .ok()
}

fn translated(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut out, false)?,
            '[' => class(&mut rest, &mut out)?,
            '.' => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '(' => group(&mut rest, &mut out)?,
            c => out.push(c),
        }
    }
    Some(out)
}

fn group(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    if rest.peek() != Some(&'?') {
        out.push('(');
        return Some(());
    }
    rest.next();
    match rest.next()? {
        ':' => out.push_str("(?:"),
        // `(?<name>`, but neither `(?<=` nor `(?<!`; names do not matter for matching.
        '<' if rest.peek().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '$')) => {
            rest.find(|c| *c == '>')?;
            out.push('(');
        }
        _ => return None,
    }
    Some(())
}

fn class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    // An empty class, or one of everything, has no counterpart.
    if rest.peek() == Some(&']') {
        return None;
    }
    loop {
        match rest.next()? {
            ']' => {
                out.push(']');
                return Some(());
            }
            '\\' => escape(rest, out, true)?,
            '-' => out.push('-'),
            // Meaningful inside a class here, and plain in ECMAScript.
            c @ ('[' | '&' | '~') => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
}

/// What follows a backslash.
fn escape(rest: &mut Peekable<Chars<'_>>, out: &mut String, in_class: bool) -> Option<()> {
    let set = |out: &mut String, set: &str| {
        let (open, close) = if in_class { ("", "") } else { ("[", "]") };
        out.extend([open, set, close]);
    };
    match rest.next()? {
        'd' => set(out, "0-9"),
        'D' => out.push_str("[^0-9]"),
        'w' => set(out, "0-9A-Za-z_"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => set(out, SPACE),
        'S' => out.extend(["[^", SPACE, "]"]),
        'b' if in_class => out.push_str(r"\x08"),
        'b' => out.push_str(r"(?-u:\b)"),
        'B' if !in_class => out.push_str(r"(?-u:\B)"),
        't' => out.push_str(r"\t"),
        'n' => out.push_str(r"\n"),
        'v' => out.push_str(r"\x0b"),
        'f' => out.push_str(r"\x0c"),
        'r' => out.push_str(r"\r"),
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => out.push_str(r"\x00"),
        'x' => literal(hex(rest, 2)?, out)?,
        'u' => literal(unicode(rest)?, out)?,
        c @ ('p' | 'P') => {
            let name = property(rest)?;
            out.extend(['\\', c, '{']);
            out.push_str(&name);
            out.push('}');
        }
        c if c.is_ascii_punctuation() => {
            out.push('\\');
            out.push(c);
        }
        // Back references, control letters, and what only lenient engines take.
        _ => return None,
    }
    Some(())
}

fn literal(code: u32, out: &mut String) -> Option<()> {
    out.push_str(&regex::escape(char::from_u32(code)?.encode_utf8(&mut [0; 4])));
    Some(())
}

fn hex(rest: &mut Peekable<Chars<'_>>, digits: usize) -> Option<u32> {
    let text: String = rest.by_ref().take(digits).collect();
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(&text, 16).ok().filter(|_| plain)
}

fn unicode(rest: &mut Peekable<Chars<'_>>) -> Option<u32> {
    if rest.next_if_eq(&'{').is_some() {
        let mut digits = String::new();
        loop {
            match rest.next()? {
                '}' => return u32::from_str_radix(&digits, 16).ok(),
                c if c.is_ascii_hexdigit() && digits.len() < 6 => digits.push(c),
                _ => return None,
            }
        }
    }
    let high = hex(rest, 4)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Some(high);
    }
    if rest.next()? != '\\' || rest.next()? != 'u' {
        return None;
    }
    let low = hex(rest, 4)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    Some(0x10000 + ((high - 0xD800) << 10) + low)
}

/// The name in `\p{…}`: one of the general categories or `Script=…`, which mean the same in both.
fn property(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    (rest.next()? == '{').then_some(())?;
    let name: String = rest.by_ref().take_while(|c| *c != '}').collect();
    let fine = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'='));
    (fine && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_ecmascript() {
        for (pattern, fits, not) in [
            (r"^\d+$", "123", "١٢٣"),
            (r"^\w+$", "a_1", "é"),
            (r"^\s$", "\u{feff}", "\u{85}"),
            (r"^\S$", "\u{85}", "\u{a0}"),
            ("^.$", "\u{1f600}", "\u{2028}"),
            (r"^[\w.-]+@[^\s@]+$", "a.b-c@d", "a b@c"),
            (r"^[\d\-x]+$", "1-x", "y"),
            (r"^\u0041\x42\u{43}\ud83d\ude00$", "ABC\u{1f600}", "ABC"),
            (r"^(?<year>\d{4})-(?:0[1-9]|1[0-2])$", "2026-11", "2026-13"),
            (r"^[[&&~~]+$", "[&~", "a"),
            (r"^\/a\.b\$\-$", "/a.b$-", "/axb$-"),
            (r"^\p{Lu}\P{Script=Greek}$", "Äb", "äb"),
            (r"\bfoo\b", "a foo b", "afoob"),
            (r"^[^\D]$", "5", "x"),
            ("^[A-Z]{2,3}$", "ABC", "ABCD"),
        ] {
            let regex = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(regex.is_match(fits), "{pattern} on {fits}");
            assert!(!regex.is_match(not), "{pattern} on {not}");
        }
    }

    #[test]
    fn what_has_no_exact_counterpart_is_not_translated() {
        for pattern in [
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)b",
            r"(a)\1",
            r"\k<n>",
            r"\cA",
            "[]",
            "[^]",
            r"\u{110000}",
            r"\ud800",
            "(",
            "(?i:a)",
            "a{",
            "(?P<n>a)",
            r"\p{",
            "*",
        ] {
            assert!(compile(pattern).is_none(), "{pattern}");
        }
        assert!(compile(&"a".repeat(5_000)).is_none());
        assert!(compile("(((a{100}){100}){100})").is_none());
    }
}
