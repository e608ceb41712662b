//! Base 62 of fixed length, most significant digit first.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends the `length` last digits of the big-endian number `bytes`.
pub(crate) fn push(out: &mut String, bytes: &[u8], length: usize) {
    let mut number = bytes.to_vec();
    let mut digits = vec![0_u8; length];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[divide(&mut number)];
    }
    out.extend(digits.into_iter().map(char::from));
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
