//! The pairs that one step makes, while their places are being gathered.

use super::pairs::Pair;

/// The number of a pair that is not kept.
pub(super) const UNKEPT: u32 = u32::MAX;

/// How often a pair occurs.
#[derive(Clone, Copy)]
pub(super) struct Total {
    /// Occurrences, each counted as often as its pretoken.
    pub(super) count: u64,
    /// Occurrences in the slots.
    pub(super) places: u32,
    /// The pair's number among the births of this step, or `UNKEPT`.
    pub(super) birth: u32,
}

impl Default for Total {
    fn default() -> Self {
        Total { count: 0, places: 0, birth: UNKEPT }
    }
}

impl Total {
    pub(super) fn add(&mut self, count: u64) {
        self.count += count;
        self.places += 1;
    }
}

/// A new pair.
pub(super) struct Birth {
    pub(super) pair: Pair,
    pub(super) count: u64,
    pub(super) places: Vec<u32>,
}
