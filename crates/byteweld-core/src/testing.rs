//! Helpers for tests: the number of random cases, and deterministic random numbers.

use proptest::test_runner::Config;

/// The number of random cases: `base` times `BYTEWELD_EXAMPLES`, which the Python tests also use.
pub(crate) fn examples(base: u32) -> u32 {
    let factor = std::env::var("BYTEWELD_EXAMPLES").ok().and_then(|factor| factor.parse().ok());
    base * factor.unwrap_or(1)
}

/// A proptest configuration with `base` cases, scaled by [`examples`]. Failures are printed, not
/// written to files beside the sources.
pub(crate) fn cases(base: u32) -> Config {
    Config { cases: examples(base), failure_persistence: None, ..Config::default() }
}

/// A deterministic random number generator (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
