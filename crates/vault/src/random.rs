//! Randomness from the operating system.

/// Random bytes.
///
/// # Panics
/// When the operating system's random source fails, which leaves nothing safe to go on with.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system's random source works");
    bytes
}
