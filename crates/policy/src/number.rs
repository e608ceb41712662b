//! Exact comparison of JSON numbers on their decimal text, at any size and
//! scale: nothing is expanded, so `1e999999999` costs as little as `1`.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A JSON number: sign, significant digits, and the power of ten of the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal<'a> {
    negative: bool,
    /// From the first to the last digit that is not zero, maybe with the point between; empty for zero.
    digits: Cow<'a, str>,
    /// The power of ten of the first digit.
    lead: Power,
}

/// A power of ten: nearly always small.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Power {
    Small(i64),
    /// Beyond 17 digits: sign and digits without leading zeros.
    Huge(bool, String),
}

/// Exponents of up to this many digits are added as integers.
const SMALL_DIGITS: usize = 17;
const SMALL_BOUND: u64 = 100_000_000_000_000_000;

impl<'a> Decimal<'a> {
    /// Reads a JSON number; any other text gives some number, and never a panic.
    pub fn read(text: &'a str) -> Self {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, "0"),
        };
        let is_digit = |c: char| c.is_ascii_digit() && c != '0';
        let (Some(first), Some(last)) = (mantissa.find(is_digit), mantissa.rfind(is_digit)) else {
            return Self { negative: false, digits: Cow::Borrowed(""), lead: Power::Small(0) };
        };
        let point = mantissa.find('.').unwrap_or(mantissa.len());
        // 123.4: the 1 stands at 10^2; 0.05: the 5 stands at 10^-2.
        let shift = if first < point {
            i64::try_from(point - first).unwrap_or(i64::MAX) - 1
        } else {
            -i64::try_from(first - point).unwrap_or(i64::MAX)
        };
        let digits = Cow::Borrowed(&mantissa[first..=last]);
        Self { negative, digits, lead: Power::read(exponent).plus(shift) }
    }

    /// The same, standing alone.
    pub fn into_owned(self) -> Decimal<'static> {
        Decimal {
            negative: self.negative,
            digits: Cow::Owned(self.digits.into_owned()),
            lead: self.lead,
        }
    }

    fn figures(&self) -> impl Iterator<Item = u8> + '_ {
        self.digits.bytes().filter(|byte| *byte != b'.')
    }

    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Numeric order.
    pub fn compare(&self, other: &Decimal<'_>) -> Ordering {
        let by_sign = self.sign().cmp(&other.sign());
        if by_sign != Ordering::Equal || self.sign() == 0 {
            return by_sign;
        }
        let size = self.lead.compare(&other.lead).then_with(|| self.figures().cmp(other.figures()));
        if self.negative { size.reverse() } else { size }
    }

    /// One text for every way to write the same number.
    pub fn canonical(&self, out: &mut String) {
        if self.digits.is_empty() {
            out.push('0');
            return;
        }
        if self.negative {
            out.push('-');
        }
        out.extend(self.figures().map(char::from));
        out.push('e');
        match &self.lead {
            Power::Small(power) => out.push_str(&power.to_string()),
            Power::Huge(negative, digits) => {
                out.push_str(if *negative { "-" } else { "" });
                out.push_str(digits);
            }
        }
    }

    /// Whether the number has no part below one.
    pub fn is_whole(&self) -> bool {
        let count = i64::try_from(self.figures().count()).unwrap_or(i64::MAX);
        match &self.lead {
            Power::Small(lead) => count == 0 || *lead >= count - 1,
            Power::Huge(negative, _) => count == 0 || !negative,
        }
    }

    /// Whether the number is a whole multiple of `divisor`, exactly; none where that cannot be told: the
    /// divisor is not above zero or has more than 36 digits, or an exponent has more than 17.
    pub fn is_multiple_of(&self, divisor: &Decimal<'_>) -> Option<bool> {
        let (modulus, power) = divisor.small()?;
        if self.digits.is_empty() {
            return Some(true);
        }
        let Power::Small(lead) = self.lead else { return None };
        let count = i64::try_from(self.figures().count()).ok()?;
        // Both as whole numbers of the same power of ten.
        let Ok(zeros) = u64::try_from(lead.checked_sub(count - 1)?.checked_sub(power)?) else {
            // The last digit of the one stands below all digits of the other.
            return Some(false);
        };
        let times_ten = |rest: u128, digit: u128| (rest * 10 + digit) % modulus;
        let rest = self.figures().fold(0, |rest, digit| times_ten(rest, u128::from(digit - b'0')));
        Some(multiply(rest, ten_to(zeros, modulus), modulus) == 0)
    }

    /// The number as digits and a power of ten, where it is above zero and has few digits.
    fn small(&self) -> Option<(u128, i64)> {
        let Power::Small(lead) = self.lead else { return None };
        let count = self.figures().count();
        if self.negative || count == 0 || count > MODULUS_DIGITS {
            return None;
        }
        let number =
            self.figures().fold(0_u128, |number, digit| number * 10 + u128::from(digit - b'0'));
        Some((number, lead.checked_sub(i64::try_from(count - 1).ok()?)?))
    }

    /// The number, where it is whole and fits.
    pub fn as_u64(&self) -> Option<u64> {
        let Power::Small(lead) = self.lead else { return None };
        if self.digits.is_empty() {
            return Some(0);
        }
        if self.negative || !self.is_whole() || lead > 19 {
            return None;
        }
        let mut value: u64 = 0;
        let mut figures = self.figures();
        for _ in 0..=lead {
            let digit = u64::from(figures.next().unwrap_or(b'0') - b'0');
            value = value.checked_mul(10)?.checked_add(digit)?;
        }
        Some(value)
    }
}

/// A divisor of so many digits can be multiplied by ten within 128 bits.
const MODULUS_DIGITS: usize = 36;

/// Ten to a power, by a modulus.
fn ten_to(mut power: u64, modulus: u128) -> u128 {
    let (mut out, mut factor) = (1 % modulus, 10 % modulus);
    while power > 0 {
        if power % 2 == 1 {
            out = multiply(out, factor, modulus);
        }
        factor = multiply(factor, factor, modulus);
        power /= 2;
    }
    out
}

/// `a` times `b` by a modulus of at most [`MODULUS_DIGITS`] digits, which fits twice into 128 bits.
fn multiply(mut a: u128, mut b: u128, modulus: u128) -> u128 {
    let mut out = 0;
    while b > 0 {
        if b % 2 == 1 {
            out = (out + a) % modulus;
        }
        a = (a + a) % modulus;
        b /= 2;
    }
    out
}

impl Power {
    fn read(text: &str) -> Self {
        Self::read_digits(text.starts_with('-'), text.trim_start_matches(['+', '-']))
    }

    fn read_digits(negative: bool, digits: &str) -> Self {
        let digits = digits.trim_start_matches('0');
        if digits.len() > SMALL_DIGITS {
            return Self::Huge(negative, digits.to_owned());
        }
        let size: i64 = digits.parse().unwrap_or(0);
        Self::Small(if negative { -size } else { size })
    }

    /// Adds a shift, which is at most the length of a text.
    fn plus(self, shift: i64) -> Self {
        match self {
            Self::Small(power) => {
                let sum = power.saturating_add(shift);
                if sum.unsigned_abs() < SMALL_BOUND {
                    return Self::Small(sum);
                }
                Self::Huge(sum < 0, sum.unsigned_abs().to_string())
            }
            Self::Huge(negative, digits) => {
                let up = (shift < 0) == negative;
                Self::read_digits(negative, &add(&digits, shift.unsigned_abs(), up))
            }
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(a), Self::Small(b)) => a.cmp(b),
            (Self::Small(_), Self::Huge(negative, _)) => {
                if *negative {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (Self::Huge(..), Self::Small(_)) => other.compare(self).reverse(),
            (Self::Huge(a, x), Self::Huge(b, y)) => match (a, b) {
                (false, true) => Ordering::Greater,
                (true, false) => Ordering::Less,
                (false, false) => x.len().cmp(&y.len()).then_with(|| x.cmp(y)),
                (true, true) => y.len().cmp(&x.len()).then_with(|| y.cmp(x)),
            },
        }
    }
}

/// `digits` plus or minus `amount`, in decimal text. `digits` is by far the larger.
fn add(digits: &str, amount: u64, up: bool) -> String {
    let mut out: Vec<u8> = digits.bytes().collect();
    let mut carry = amount;
    for digit in out.iter_mut().rev() {
        if carry == 0 {
            break;
        }
        let (value, step) = (u64::from(*digit - b'0'), carry % 10);
        carry /= 10;
        let next = if up {
            carry += u64::from(value + step > 9);
            (value + step) % 10
        } else {
            carry += u64::from(value < step);
            (value + 10 - step) % 10
        };
        *digit = b'0' + u8::try_from(next).unwrap_or(0);
    }
    let text = String::from_utf8(out).unwrap_or_default();
    if carry > 0 { format!("{carry}{text}") } else { text.trim_start_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(a: &str, b: &str) -> Ordering {
        let (x, y) = (Decimal::read(a), Decimal::read(b));
        assert_eq!(x.compare(&y), y.compare(&x).reverse(), "{a} and {b}");
        let canonical = |number: &Decimal<'_>| {
            let mut out = String::new();
            number.canonical(&mut out);
            out
        };
        let same = canonical(&x) == canonical(&y);
        assert_eq!(same, x.compare(&y) == Ordering::Equal, "{a} and {b}");
        x.compare(&y)
    }

    #[test]
    fn equal_numbers_are_equal_however_written() {
        for (a, b) in [
            ("1e2", "100.0"),
            ("100", "100.0"),
            ("0.1", "0.10"),
            ("-0", "0"),
            ("0e9", "0.000"),
            ("1E+400", "10e399"),
            ("123.456", "123456e-3"),
            ("0.00012", "1.2e-4"),
            ("1e0000000000000000000000007", "10000000"),
            ("1e99999999999999999999", "10e99999999999999999998"),
            ("0.1e100000000000000000000", "1e99999999999999999999"),
            ("0.1e100000000000000000", "1e99999999999999999"),
            ("10e99999999999999999", "1e100000000000000000"),
            ("100e-99999999999999999999", "1e-99999999999999999997"),
        ] {
            assert_eq!(order(a, b), Ordering::Equal, "{a} = {b}");
        }
    }

    #[test]
    fn near_numbers_are_told_apart() {
        for (small, large) in [
            ("18446744073709551616", "18446744073709551617"),
            ("9007199254740992", "9007199254740993"),
            ("0.1", "0.10000000000000000000000000001"),
            ("-2", "-1"),
            ("-1e400", "1e-400"),
            ("1e400", "1.0000001e400"),
            ("9e399", "1e400"),
            ("0", "1e-999999999999999999999"),
            ("-1e999999999999999999999", "0"),
            ("1e99999999999999999998", "1e99999999999999999999"),
            ("1e-99999999999999999999", "1e-99999999999999999998"),
            ("99", "100"),
            ("5", "5.01"),
            ("1e17", "1e999999999999999999999999"),
        ] {
            assert_eq!(order(small, large), Ordering::Less, "{small} < {large}");
        }
    }

    #[test]
    fn multiples_are_told_exactly() {
        let multiple = |a: &str, b: &str| Decimal::read(a).is_multiple_of(&Decimal::read(b));
        for (number, divisor) in [
            ("0", "7"),
            ("1.1", "0.1"),
            ("0.3", "0.1"),
            ("19.99", "0.01"),
            ("-4.5", "1.5"),
            ("1e400", "3e-2"),
            ("3e399", "3"),
            ("9007199254740993", "3"),
            ("123456789012345678901234567890", "10"),
            ("1e99999999999999999", "8"),
            ("1e-10", "1e-11"),
            ("75e-1", "2.50"),
            ("0", "1e-9"),
        ] {
            let expected = !matches!((number, divisor), ("1e400", _));
            assert_eq!(multiple(number, divisor), Some(expected), "{number} of {divisor}");
        }
        for (number, divisor) in [
            ("1.05", "0.1"),
            ("9007199254740992", "3"),
            ("9007199254740993", "2"),
            ("123456789012345678901234567891", "10"),
            ("1e-11", "1e-10"),
            ("0.1", "3"),
            ("1e99999999999999999", "7"),
            ("1", "1e300"),
        ] {
            assert_eq!(multiple(number, divisor), Some(false), "{number} of {divisor}");
        }
        for (number, divisor) in [
            ("1", "0"),
            ("1", "-2"),
            ("1e999999999999999999999", "3"),
            ("1", "1e-999999999999999999999"),
            ("1", "1234567890123456789012345678901234567"),
        ] {
            assert_eq!(multiple(number, divisor), None, "{number} of {divisor}");
        }
    }

    #[test]
    fn whole_numbers_are_known() {
        for (text, whole) in [
            ("1e2", Some(100)),
            ("100.0", Some(100)),
            ("0.5", None),
            ("-1", None),
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("12e1", Some(120)),
            ("1e400", None),
        ] {
            assert_eq!(Decimal::read(text).as_u64(), whole, "{text}");
        }
    }
}
