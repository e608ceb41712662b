//! Small text rules of the store: keys that compare without case, and patterns for `LIKE`.

/// The form in which names, labels and addresses must be unique.
pub(crate) fn key(text: &str) -> String {
    text.trim().to_lowercase()
}

/// A `LIKE` pattern (with `ESCAPE '\'`) for "contains `text`", where nothing in `text` is a wildcard.
pub(crate) fn contains(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// How many rows a list may give: SQLite reads a negative limit as none.
pub(crate) fn rows(limit: i64) -> i64 {
    limit.clamp(0, 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_only_characters() {
        assert_eq!(contains(r"50%_\x"), r"%50\%\_\\x%");
    }

    #[test]
    fn keys_ignore_case_and_outer_blanks() {
        assert_eq!(key(" Ann.B@Example.TEST "), "ann.b@example.test");
        assert_eq!(key("ÄRGER"), key("ärger"));
    }
}
