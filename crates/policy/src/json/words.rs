//! Eight bytes at a time: where a string's plain characters end.

const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
const SPACES: u64 = u64::from_ne_bytes([0x20; 8]);

/// The high bit of every byte that is zero; exact up to the lowest of them.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Bytes at the front that are no quote, backslash or control character, eight at a time.
#[inline]
pub(super) fn plain(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(SPACES) & !word & HIGHS;
        let odd = control | zeros(word ^ QUOTES) | zeros(word ^ BACKSLASHES);
        if odd != 0 {
            return index * 8 + (odd.trailing_zeros() / 8) as usize;
        }
    }
    let tail = rest.iter().take_while(|byte| !matches!(byte, 0..0x20 | b'"' | b'\\')).count();
    words.len() * 8 + tail
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::Lexer;

    #[test]
    fn every_odd_byte_is_found_wherever_it_stands() {
        for byte in 0..=255_u8 {
            for at in 0..20 {
                let mut bytes = [b'a'; 20];
                bytes[at] = byte;
                let odd = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(plain(&bytes), if odd { at } else { 20 }, "{byte} at {at}");
            }
        }
    }

    /// JSON of everything that a quick step could stumble over.
    fn json() -> impl Strategy<Value = String> {
        let text = r#"([ a-z\[\]{}:,é\u{1F600}]|\\\\|\\"|\\u005d){0,12}"#;
        let leaf = prop_oneof![
            text.prop_map(|text| format!("\"{text}\"")),
            Just("-1.5e3".to_owned()),
            Just("null".to_owned()),
            Just(" [] ".to_owned()),
            Just("{}".to_owned()),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let pairs = prop::collection::vec((text, inner.clone()), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6)
                    .prop_map(|items| format!("[{}]", items.join(", "))),
                pairs.prop_map(|pairs| {
                    let pairs = pairs.into_iter().map(|(key, value)| format!("\"{key}\":{value}"));
                    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn the_quick_step_ends_where_the_careful_one_does(value in json(), rest in "[\\]},: a\"]{0,12}") {
            let text = format!("{value},{rest}");
            let (mut quick, mut careful) = (Lexer::new(&text), Lexer::new(&text));
            careful.skip(0).expect("JSON");
            quick.pass().expect("JSON");
            // The quick one does not look at what follows a number, so blanks count for neither.
            prop_assert_eq!(text[..quick.at].trim_end(), text[..careful.at].trim_end());
        }
    }
}
