//! Randomness from the operating system, and words made of it.

use secrecy::SecretString;
use subtle::ConstantTimeEq;

use crate::base62;

/// Random bytes.
///
/// # Panics
/// When the operating system's random source fails, which leaves nothing safe to go on with.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system's random source works");
    bytes
}

/// 32 random bytes as 43 letters and digits, for what another service is to give back unchanged.
pub fn random_word() -> SecretString {
    let mut word = String::with_capacity(43);
    base62::push(&mut word, &random::<32>(), 43);
    SecretString::from(word)
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn words_differ_and_are_compared_whole() {
        let (a, b) = (random_word(), random_word());
        let (a, b) = (a.expose_secret(), b.expose_secret());
        assert_eq!(a.len(), 43);
        assert!(same(a, a) && !same(a, b) && !same(a, &a[1..]) && same("", ""));
    }
}
