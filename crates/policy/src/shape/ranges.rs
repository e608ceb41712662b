//! Regular expressions for ranges of whole numbers without leading zeros.

/// Matches exactly the decimal texts of `low..=high`.
pub(super) fn range(low: u64, high: u64) -> String {
    let mut parts = Vec::new();
    let mut from = low;
    while from <= high {
        let to = block_end(from, high);
        parts.push(block(from, to));
        from = to + 1;
    }
    format!("(?:{})", parts.join("|"))
}

/// The end of the largest block from `from` whose last digits run from 0 to 9 freely.
fn block_end(from: u64, high: u64) -> u64 {
    let mut size = 1;
    while from > 0 && from.is_multiple_of(size * 10) && from + size * 10 - 1 <= high {
        size *= 10;
    }
    // Within a block, the digit before the free ones may rise to 9.
    let digit = from / size % 10;
    let mut to = from + size - 1;
    for _ in digit..9 {
        if to + size <= high {
            to += size;
        }
    }
    to
}

fn block(from: u64, to: u64) -> String {
    let (from, to) = (from.to_string(), to.to_string());
    let mut out = String::new();
    for (a, b) in from.chars().zip(to.chars()) {
        if a == b {
            out.push(a);
        } else {
            out.extend(['[', a, '-', b, ']']);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_range_matches() {
        for (low, high) in [(0, 10), (1, 31), (60, 1234), (1, 744), (7, 7), (0, 999), (99, 101)] {
            let pattern = regex::Regex::new(&format!("^{}$", range(low, high))).expect("a pattern");
            for number in 0..3_000_u64 {
                let inside = (low..=high).contains(&number);
                assert_eq!(pattern.is_match(&number.to_string()), inside, "{number} {low} {high}");
            }
            assert!(!pattern.is_match("00") && !pattern.is_match("01"));
        }
    }
}
