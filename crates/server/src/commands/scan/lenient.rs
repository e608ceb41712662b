//! JSON as clients take it: with comments, and commas before a closing bracket. Both become blanks, so that
//! places stay where they were.

/// The text as strict JSON of the same length.
pub(super) fn strict(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let (mut at, mut comma) = (0, None);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(&bytes, at);
                comma = None;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let end = end_of_comment(&bytes, at);
                blank(&mut bytes[at..end]);
                at = end;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    // Only whole comments and ASCII were changed, so this is still UTF-8.
    String::from_utf8(bytes).unwrap_or_default()
}

/// Behind the closing quote.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start + 2..];
    let length = if bytes[start + 1] == b'/' {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|two| two == b"*/").map(|at| at + 2)
    };
    length.map_or(bytes.len(), |length| start + 2 + length)
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn comments_and_last_commas_are_blanks() {
        let text = "{ // one\n \"a\": \"// no\\\" /* no */\", /* two\n */ \"b\": [1, 2,],\n \"ä\": {},\n}\n// end";
        let strict = strict(text);
        assert_eq!(strict.len(), text.len());
        let value: Value = serde_json::from_str(&strict).expect("JSON");
        assert_eq!(value, json!({"a": "// no\" /* no */", "b": [1, 2], "ä": {}}));
    }

    #[test]
    fn what_has_no_end_ends() {
        for text in ["\"", "\"\\", "/*", "/* ä", "//", "{\"a\": 1, ", "/", ""] {
            assert_eq!(strict(text).len(), text.len(), "{text}");
        }
    }
}
