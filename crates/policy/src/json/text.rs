//! Strings of JSON text: as written, and what they mean.

use std::borrow::Cow;

/// A string as written between its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) raw: &'a str,
    pub(crate) escaped: bool,
}

impl<'a> Text<'a> {
    /// The characters meant. Only for text that `Lexer::string` accepted.
    pub(crate) fn decode(self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }

    /// Whether it means these characters.
    pub(crate) fn means(self, text: &str) -> bool {
        if self.escaped { self.decode() == text } else { self.raw == text }
    }

    /// Whether both mean the same characters, whatever their escapes.
    pub(crate) fn same(self, other: Text<'_>) -> bool {
        if self.escaped || other.escaped {
            self.decode() == other.decode()
        } else {
            self.raw == other.raw
        }
    }
}

fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let letter = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or("");
        match letter {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let (character, used) = unicode(rest.as_bytes());
                out.push(character);
                rest = rest.get(used..).unwrap_or("");
            }
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    out
}

/// The character of `XXXX` or `XXXX\uYYYY`, and how many bytes it took.
fn unicode(bytes: &[u8]) -> (char, usize) {
    let first = hex4(bytes).unwrap_or(0);
    if let Some(character) = char::from_u32(first) {
        return (character, 4);
    }
    let second = bytes.get(6..).and_then(hex4).unwrap_or(0);
    let code = 0x1_0000 + ((first.wrapping_sub(0xD800)) << 10) + (second.wrapping_sub(0xDC00));
    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10)
}

pub(super) fn hex4(bytes: &[u8]) -> Option<u32> {
    bytes.get(..4)?.iter().try_fold(0, |sum, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(sum * 16 + digit)
    })
}
