//! Text that was encoded so that people would not read it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

const SHORTEST: usize = 40;

/// The first run of letters and digits that decodes to a sentence.
pub(super) fn find(text: &str) -> Option<&str> {
    if text.len() < SHORTEST {
        return None;
    }
    runs(text).find(|run| reads_as_words(run)).map(|run| crate::text::cut(run, 80))
}

fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_' | '\\' | '%'))
    })
    .filter(|run| run.len() >= SHORTEST)
}

fn reads_as_words(run: &str) -> bool {
    decode(run).is_some_and(|bytes| is_prose(&bytes))
}

fn decode(run: &str) -> Option<Vec<u8>> {
    if let Some(bytes) = hex(run) {
        return Some(bytes);
    }
    // A JSON web token's head, as examples show it.
    if run.starts_with("eyJ") {
        return None;
    }
    let run = run.trim_end_matches('=');
    STANDARD_NO_PAD.decode(run).or_else(|_| URL_SAFE_NO_PAD.decode(run)).ok()
}

/// Plain, `\x41` or `%41` hexadecimal.
fn hex(run: &str) -> Option<Vec<u8>> {
    let digits: String = run.replace("\\x", "").replace('%', "");
    if digits.len() < SHORTEST || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect()
}

/// Letters in words with blanks between them.
fn is_prose(bytes: &[u8]) -> bool {
    let plain = bytes.iter().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t' | b'\r'));
    let blanks = bytes.iter().filter(|b| b.is_ascii_whitespace()).count();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    plain && blanks >= 2 && letters * 10 >= bytes.len() * 7
}
