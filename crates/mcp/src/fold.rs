//! Member names that a lenient upstream would take for a reserved one
//! (case-insensitive matching, Unicode case folding, text cut at a NUL).

/// Reserved names of the envelope.
pub(crate) const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// Reserved names inside `params`.
pub(crate) const PARAMS: &[&str] = &[
    "name",
    "arguments",
    "_meta",
    "task",
    "uri",
    "inputResponses",
    "requestState",
    "taskId",
    "requestId",
];

/// Reserved names inside `params._meta`.
pub(crate) const META: &[&str] = &["io.modelcontextprotocol/protocolVersion", "progressToken"];

/// Upper then lower case, so that U+017F, U+212A, dotless i and ligatures end as ASCII.
fn folded(text: &str) -> String {
    text.chars()
        .map(half_width)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        // What lower-casing U+0130 leaves behind.
        .filter(|c| *c != '\u{307}')
        .collect()
}

/// Full-width forms fold to ASCII under compatibility normalisation.
fn half_width(c: char) -> char {
    match u32::from(c) {
        code @ 0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(c),
        _ => c,
    }
}

/// Whether `left` and `right` fold to the same text.
pub(crate) fn same_folded(left: &str, right: &str) -> bool {
    if left.is_ascii() && right.is_ascii() {
        return plain_part(left).eq_ignore_ascii_case(right);
    }
    folded(plain_part(left)) == folded(right)
}

/// What a reader that trims or stops at a NUL would see.
fn plain_part(text: &str) -> &str {
    text.split('\0').next().unwrap_or(text).trim()
}

/// Whether `name` is not one of `reserved` but would be read as one by a lenient parser.
pub(crate) fn impersonates(name: &str, reserved: &[&str]) -> bool {
    !reserved.contains(&name) && reserved.iter().any(|known| same_folded(name, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_of_reserved_names_are_found() {
        for name in ["Method", "PARAMS", "param\u{17f}", "İd", "ıd", "re\u{17f}ult", "id\0x", " id"]
        {
            assert!(impersonates(name, ENVELOPE), "{name:?}");
        }
        for name in ["tas\u{212a}", "Name", "_META", "reque\u{fb06}\u{ff33}tate", "ｎame", "NAME\0"]
        {
            assert!(impersonates(name, PARAMS), "{name:?}");
        }
    }

    #[test]
    fn reserved_names_and_others_are_not() {
        for name in ["id", "method", "ids", "vendor", "", "\0", "parаms"] {
            assert!(!impersonates(name, ENVELOPE), "{name:?}");
        }
    }
}
