//! Exact decimal amounts for limits: at most 15 digits before and 9 after the
//! point. Money never passes through binary floats.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SCALE: i128 = 1_000_000_000;
const MAX_WHOLE_DIGITS: i64 = 15;
const MAX_FRACTION_DIGITS: i64 = 9;

/// A decimal of at most 15 digits before and 9 after the point, exact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Amount(i128);

/// Why a text is not an [`Amount`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not a JSON number.
    #[error("not a decimal number")]
    NotANumber,
    /// More digits than are kept exactly.
    #[error("more than 15 digits before or 9 after the point")]
    TooLong,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One call.
    pub const ONE: Self = Self(SCALE);

    /// A whole amount.
    pub const fn whole(units: u32) -> Self {
        Self(units as i128 * SCALE)
    }

    /// The amount in billionths.
    pub const fn billionths(self) -> i128 {
        self.0
    }

    /// From billionths, as counters keep it.
    pub const fn from_billionths(billionths: i128) -> Self {
        Self(billionths)
    }

    /// Below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The sum; cannot overflow for any number of amounts a counter can hold.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, which may be negative.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Splits a JSON number (RFC 8259 section 6) into sign, digits and the power of ten of the last digit.
fn split(text: &str) -> Option<(bool, String, i64)> {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (mantissa, ""),
    };
    let digits_only = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || leading_zero || !digits_only(whole) || !digits_only(fraction) {
        return None;
    }
    let exponent = match exponent {
        None => 0,
        Some(text) => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            if digits.is_empty() || !digits_only(digits) {
                return None;
            }
            let size = digits.trim_start_matches('0');
            // Far beyond any bound below; kept small so that it cannot overflow.
            let size: i64 = if size.len() > 9 { 1_000_000_000 } else { size.parse().unwrap_or(0) };
            if text.starts_with('-') { -size } else { size }
        }
    };
    let fraction_len = i64::try_from(fraction.len()).ok()?;
    Some((negative, format!("{whole}{fraction}"), exponent - fraction_len))
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (negative, digits, mut power) = split(text).ok_or(AmountError::NotANumber)?;
        let significant = digits.trim_start_matches('0');
        let trimmed = significant.trim_end_matches('0');
        if trimmed.is_empty() {
            return Ok(Self::ZERO);
        }
        power +=
            i64::try_from(significant.len() - trimmed.len()).map_err(|_| AmountError::TooLong)?;
        let count = i64::try_from(trimmed.len()).map_err(|_| AmountError::TooLong)?;
        if power < -MAX_FRACTION_DIGITS || count + power > MAX_WHOLE_DIGITS {
            return Err(AmountError::TooLong);
        }
        let value: i128 = trimmed.parse().map_err(|_| AmountError::TooLong)?;
        let shift = u32::try_from(power + MAX_FRACTION_DIGITS).map_err(|_| AmountError::TooLong)?;
        let billionths = value * 10_i128.pow(shift);
        Ok(Self(if negative { -billionths } else { billionths }))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.unsigned_abs();
        let (whole, fraction) = (size / SCALE.unsigned_abs(), size % SCALE.unsigned_abs());
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write!(f, "{whole}")?;
        if fraction > 0 {
            write!(f, ".{}", format!("{fraction:09}").trim_end_matches('0'))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Amount({self})")
    }
}

impl Serialize for Amount {
    /// As a JSON number with exactly the digits of the amount.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::Number::from_str(&self.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        number.to_string().parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly() {
        let table = [
            ("0", "0"),
            ("-0", "0"),
            ("1e2", "100"),
            ("100.0", "100"),
            ("0.000000001", "0.000000001"),
            ("1.10", "1.1"),
            ("999999999999999.999999999", "999999999999999.999999999"),
            ("-12.5E+1", "-125"),
            ("10e-10", "0.000000001"),
            ("0e999999999999", "0"),
        ];
        for (text, shown) in table {
            assert_eq!(
                text.parse::<Amount>().map(|a| a.to_string()),
                Ok(shown.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_kept_exactly_is_refused() {
        for text in ["1e15", "0.0000000001", "1e-10", "1234567890123456", "1e999999999999"] {
            assert_eq!(text.parse::<Amount>(), Err(AmountError::TooLong), "{text}");
        }
        for text in ["", "-", "01", "1.", ".5", "1e", "+1", "NaN", "1_0", " 1", "0x1", "1e+"] {
            assert_eq!(text.parse::<Amount>(), Err(AmountError::NotANumber), "{text}");
        }
    }

    #[test]
    fn json_keeps_the_digits() {
        let amount: Amount = serde_json::from_str("999999999999999.000000001").expect("fits");
        assert_eq!(
            serde_json::to_string(&amount).expect("serialises"),
            "999999999999999.000000001"
        );
    }
}
