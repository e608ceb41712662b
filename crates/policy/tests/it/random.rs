//! Choices from a seed, or from the bytes of a fuzzer.

/// Where choices come from.
enum Source {
    /// A small generator (splitmix64).
    Seed(u64),
    /// A byte a choice, as a fuzzer changes them; then always the first choice.
    Bytes(std::vec::IntoIter<u8>),
}

/// Chooses; the same seed or the same bytes give the same documents everywhere.
pub(crate) struct Random(Source);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Source::Seed(seed))
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(Source::Bytes(Vec::from(bytes).into_iter()))
    }

    fn next(&mut self) -> u64 {
        match &mut self.0 {
            Source::Bytes(bytes) => bytes.next().unwrap_or(0).into(),
            Source::Seed(state) => {
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                z ^ (z >> 31)
            }
        }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).expect("small")).expect("small")
    }

    pub(crate) fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    pub(crate) fn pick_number(&mut self, list: &[u32]) -> u32 {
        list[self.below(list.len())]
    }

    pub(crate) fn many<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}
