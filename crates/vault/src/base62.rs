//! Base 62 of fixed length, most significant digit first.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends the `length` last digits of the big-endian number `bytes`.
pub(crate) fn push(out: &mut String, bytes: &[u8], length: usize) {
    if let Some(mut number) = small(bytes) {
        let mut digits = [b'0'; SMALL_DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[usize::try_from(number % 62).unwrap_or(0)];
            number /= 62;
        }
        // More digits than a small number can have are noughts.
        out.extend(std::iter::repeat_n('0', length.saturating_sub(SMALL_DIGITS)));
        let last = &digits[SMALL_DIGITS - length.min(SMALL_DIGITS)..];
        return out.extend(last.iter().copied().map(char::from));
    }
    let mut number = bytes.to_vec();
    let mut digits = vec![0_u8; length];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[divide(&mut number)];
    }
    out.extend(digits.into_iter().map(char::from));
}

/// Digits of the largest number of eight bytes.
const SMALL_DIGITS: usize = 11;

/// A number that the processor can divide by itself.
fn small(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Divides the big-endian number by 62 in place and gives the remainder.
fn divide(number: &mut [u8]) -> usize {
    let mut rest = 0_usize;
    for byte in number {
        let value = rest * 256 + usize::from(*byte);
        // `rest` is below 62, so the quotient is below 256.
        *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
        rest = value % 62;
    }
    rest
}

/// Whether the text has only base 62 digits.
pub(crate) fn is_base62(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers() {
        for (bytes, length, text) in [
            (&[0_u8][..], 2, "00"),
            (&[61], 1, "z"),
            (&[62], 2, "10"),
            (&[1, 0], 3, "048"),
            (&[0xff; 8], 11, "LygHa16AHYF"),
            (&[0xff; 8], 6, "16AHYF"),
            (&[0xff; 8], 13, "00LygHa16AHYF"),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 62], 2, "10"),
        ] {
            let mut out = String::new();
            push(&mut out, bytes, length);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn forty_three_digits_hold_thirty_two_bytes() {
        let mut number = [0xff_u8; 32];
        for _ in 0..43 {
            divide(&mut number);
        }
        assert_eq!(number, [0; 32]);
    }
}
