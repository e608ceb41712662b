//! JSON-RPC ids as raw text: a string or an integer, never re-typed.

use crate::text;

/// More than any client sends; keeps ids that are remembered small.
const MAX_RAW_LEN: usize = 1_024;

/// The raw JSON text of a valid id: a string (with its quotes) or an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawId<'a>(&'a str);

impl<'a> RawId<'a> {
    /// Accepts strings and integers; null, fractions and exponents are not ids in MCP.
    pub fn parse(raw: &'a str) -> Option<Self> {
        let integer = || {
            let digits = raw.strip_prefix('-').unwrap_or(raw);
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        };
        (raw.len() <= MAX_RAW_LEN && (raw.starts_with('"') || integer())).then_some(Self(raw))
    }

    /// The text as it was written.
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// A text that is equal exactly for equal ids: `"a"` and `"\u0061"` are one, `1` and `"1"` are two.
    pub fn key(self) -> String {
        if self.0.starts_with('"') {
            return text::string_value(self.0)
                .map_or_else(|| self.0.to_owned(), |s| format!("s{s}"));
        }
        format!("n{}", if self.0 == "-0" { "0" } else { self.0 })
    }

    /// Whether both name the same request.
    pub fn same(self, other: RawId<'_>) -> bool {
        self.0 == other.0 || self.key() == other.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_strings_and_integers() {
        for raw in ["1", "0", "-1", "\"\"", "\"1\"", "9223372036854775808", "\"é\""] {
            assert!(RawId::parse(raw).is_some(), "{raw}");
        }
        for raw in ["null", "1.0", "1e2", "true", "{}", "[]", "", "-"] {
            assert!(RawId::parse(raw).is_none(), "{raw}");
        }
    }

    #[test]
    fn equal_ids_may_be_written_differently_but_types_never_mix() {
        let id = |raw| RawId::parse(raw).expect("valid");
        assert!(id("\"ü\"").same(id("\"\\u00fc\"")));
        assert!(!id("1").same(id("\"1\"")));
        assert!(!id("\"n1\"").same(id("1")));
    }
}
