//! Reading JSON text without building values: unescaping, and walking the
//! members of a text that [`crate::scan`] has found to be JSON.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use crate::scan;

/// The value of a JSON string given with its quotes; none if it is not a string or holds a lone surrogate.
pub fn string_value(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    unescape(inner)
}

/// Resolves the escapes of a string's inside.
pub(crate) fn unescape(inner: &str) -> Option<Cow<'_, str>> {
    let Some(first) = inner.find('\\') else { return Some(Cow::Borrowed(inner)) };
    let mut out = String::with_capacity(inner.len());
    out.push_str(&inner[..first]);
    let mut rest = &inner[first..];
    while let Some(after) = rest.strip_prefix('\\') {
        let kind = *after.as_bytes().first()?;
        let mut used = 1;
        out.push(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (c, len) = unicode(after.get(1..)?)?;
                used += len;
                c
            }
            _ => return None,
        });
        rest = after.get(used..)?;
        let next = rest.find('\\').unwrap_or(rest.len());
        out.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Some(Cow::Owned(out))
}

/// Four hex digits, or a surrogate pair; how many bytes after the `u` it took.
fn unicode(text: &str) -> Option<(char, usize)> {
    let high = hex4(text)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Some((char::from_u32(high)?, 4));
    }
    let low = hex4(text.get(4..)?.strip_prefix("\\u")?)?;
    if !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))?, 10))
}

pub(crate) fn hex4(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Where a value stands in its text.
pub(crate) type Span = Range<usize>;

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The end of the string whose opening quote stands at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut depth = 0_usize;
    loop {
        match *bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth == 0 => {
                let literal =
                    |b: &u8| !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                at += bytes[at..].iter().take_while(|b| literal(b)).count();
            }
            _ => at += 1,
        }
        if depth == 0 {
            return (at > start).then_some(at);
        }
    }
}

/// The members of an object as (name inside its quotes, value), in order, duplicates kept.
pub(crate) fn members(text: &str, object: Span) -> Vec<(&str, Span)> {
    member_spans(text, object).into_iter().map(|(name, value)| (&text[name], value)).collect()
}

/// Where the members of an object stand: names inside their quotes, and values.
pub(crate) fn member_spans(text: &str, object: Span) -> Vec<(Span, Span)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    if bytes.get(object.start) != Some(&b'{') {
        return out;
    }
    let mut at = object.start + 1;
    loop {
        at = skip_space(bytes, at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        if at >= object.end || bytes.get(at) != Some(&b'"') {
            return out;
        }
        let Some(name_end) = string_end(bytes, at) else { return out };
        let name = at + 1..name_end - 1;
        at = skip_space(bytes, name_end);
        if bytes.get(at) != Some(&b':') {
            return out;
        }
        let start = skip_space(bytes, at + 1);
        let Some(end) = value_end(bytes, start) else { return out };
        out.push((name, start..end));
        at = end;
    }
}

/// The elements of an array, in order.
pub(crate) fn elements(text: &str, array: Span) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    if bytes.get(array.start) != Some(&b'[') {
        return out;
    }
    let mut at = array.start + 1;
    loop {
        at = skip_space(bytes, at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        if at >= array.end || bytes.get(at).is_none_or(|b| *b == b']') {
            return out;
        }
        let Some(end) = value_end(bytes, at) else { return out };
        out.push(at..end);
        at = end;
    }
}

/// The whole text's one value, without space around it.
pub(crate) fn whole(text: &str) -> Span {
    let start = skip_space(text.as_bytes(), 0);
    start..text.trim_end_matches([' ', '\t', '\n', '\r']).len().max(start)
}

/// The raw text of the last member `name` of the object `text`, which must be JSON.
pub fn member_text<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    members(text, whole(text))
        .into_iter()
        .rev()
        .find(|(key, _)| unescape(key).is_some_and(|key| key == name))
        .map(|(_, span)| &text[span])
}

/// The raw texts of the elements of the array `text`, which must be JSON.
pub fn element_texts(text: &str) -> Vec<&str> {
    elements(text, whole(text)).into_iter().map(|span| &text[span]).collect()
}

/// The raw texts of a batch's messages; none if it is no list in JSON.
pub fn batch_texts(data: &[u8]) -> Option<Vec<&str>> {
    let text = std::str::from_utf8(data).ok().filter(|text| scan::is_json(text))?;
    text.as_bytes().get(whole(text).start).filter(|first| **first == b'[')?;
    Some(element_texts(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_a_list_in_json() {
        let texts = batch_texts(b" [{\"a\":[1]} , 2,\n[]] ");
        assert_eq!(texts, Some(vec!["{\"a\":[1]}", "2", "[]"]));
        assert_eq!(batch_texts(b"[]"), Some(Vec::new()));
        for odd in [b"{}".as_slice(), b"[1", b"[1] x", b"[\xff]", b"", b"[1,]"] {
            assert_eq!(batch_texts(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn escapes_are_resolved_as_json_says() {
        assert_eq!(string_value(r#""na\u006de""#).as_deref(), Some("name"));
        assert_eq!(string_value(r#""\ud83d\ude00\/\n""#).as_deref(), Some("😀/\n"));
        assert_eq!(string_value(r#""plain é""#).as_deref(), Some("plain é"));
        for odd in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\x""#, r#""\u12""#, "1"]
        {
            assert_eq!(string_value(odd), None, "{odd}");
        }
    }

    #[test]
    fn members_and_elements_keep_their_text() {
        let text = r#" { "a" : [1.0, "x,]}" , {"b":1E2}], "a\u0062":null,"a":-0 } "#;
        assert_eq!(member_text(text, "a"), Some("-0"));
        assert_eq!(member_text(text, "ab"), Some("null"));
        let array = members(text, whole(text))[0].1.clone();
        assert_eq!(element_texts(&text[array]), ["1.0", "\"x,]}\"", "{\"b\":1E2}"]);
        assert_eq!(element_texts("[]"), Vec::<&str>::new());
        assert_eq!(member_text("{}", "a"), None);
    }

    #[test]
    fn broken_text_ends_the_walk_quietly() {
        for text in
            ["{", "{\"a", "{\"a\":", "{\"a\":}", "[1,", "[\"", "{\"a\":1 \"b\":2}", "[,,]", ""]
        {
            let _ = member_text(text, "a");
            let _ = element_texts(text);
        }
    }
}
