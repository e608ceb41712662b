//! Where to go after signing in: only ever a page of this site.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const QUERY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// The text if it is the path of a page here. Browsers read `\` as `/` and drop control characters
/// and so would make another site of `/\evil.example`.
pub(crate) fn local(next: &str) -> Option<&str> {
    let plain = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= 2_000
        && next.bytes().all(|b| b > 0x20 && b < 0x7f && b != b'\\');
    plain.then_some(next)
}

/// `page?next=…`, or the page alone where there is nowhere to go on to.
pub(crate) fn carry(page: &str, next: Option<&str>) -> String {
    match next {
        Some(next) => format!("{page}?next={}", encode(next)),
        None => page.to_owned(),
    }
}

/// Percent-encodes a value for a query or one segment of a path; `/` stays.
pub(crate) fn encode(value: &str) -> String {
    utf8_percent_encode(value, QUERY).to_string()
}

/// Percent-encodes one segment of a path, `/` as well.
pub(crate) fn segment(value: &str) -> String {
    utf8_percent_encode(value, NON_ALPHANUMERIC)
        .to_string()
        .replace("%2E", ".")
        .replace("%2D", "-")
        .replace("%5F", "_")
        .replace("%7E", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_site_are_gone_to() {
        for good in ["/", "/start?server=a&tool=b%20c", "/w/acme/"] {
            assert_eq!(local(good), Some(good));
        }
        let long = format!("/{}", "a".repeat(2_000));
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a\r\nSet-Cookie: x",
            "\t//evil.example",
            "/ä",
            &long,
        ] {
            assert_eq!(local(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_choice_survives_being_carried() {
        let page = carry("/login", Some("/start?server=a&tool=b%20c"));
        assert_eq!(page, "/login?next=/start%3Fserver%3Da%26tool%3Db%2520c");
    }
}
