//! Merges several short sequences, interleaved.
//!
//! A merge has to wait for the ranks of its two new pairs. While one sequence waits, the others
//! merge, which hides the latency of memory.

use super::pairs::{NO_RANK, PairTable};
use super::short::ShortMerge;
use crate::cpu::{self, Work};

/// Number of sequences that are merged at once.
pub(crate) const LANES: usize = 16;

/// Up to [`LANES`] sequences that are merged together.
#[derive(Default)]
pub(crate) struct Interleaved {
    lanes: Vec<ShortMerge>,
    used: usize,
}

impl Interleaved {
    /// Adds a sequence of at most [`MAX_SHORT_IDS`](super::MAX_SHORT_IDS) ids. Returns its lane, or
    /// `None` if all are used.
    pub(crate) fn add(&mut self, ids: impl Iterator<Item = u32>) -> Option<usize> {
        if self.lanes.is_empty() {
            self.lanes.resize_with(LANES, ShortMerge::default);
        }
        let lane = self.used;
        self.lanes.get_mut(lane)?.start(ids);
        self.used += 1;
        Some(lane)
    }

    /// Merges all sequences, passes each to `done` with its lane as soon as it is merged, and
    /// clears all lanes.
    pub(crate) fn merge(&mut self, pairs: &PairTable, done: impl FnMut(usize, &ShortMerge)) {
        let lanes = &mut self.lanes[..std::mem::take(&mut self.used)];
        cpu::run(MergeAll { lanes, pairs, done });
    }
}

struct MergeAll<'a, F> {
    lanes: &'a mut [ShortMerge],
    pairs: &'a PairTable,
    done: F,
}

impl<T, F: FnMut(usize, &ShortMerge)> Work<T> for MergeAll<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, _: T) {
        // The first `left` of these are not merged yet.
        let mut order: [usize; LANES] = std::array::from_fn(|lane| lane);
        let mut left = self.lanes.len();
        for lane in &mut *self.lanes {
            lane.rank_all(self.pairs);
        }
        while left > 0 {
            let mut turn = 0;
            while turn < left {
                let number = order[turn];
                let lane = &mut self.lanes[number];
                if lane.merge_next(self.pairs, NO_RANK) {
                    turn += 1;
                } else {
                    (self.done)(number, lane);
                    left -= 1;
                    order[turn] = order[left];
                }
            }
            for &number in &order[..left] {
                self.lanes[number].rank_pending(self.pairs);
            }
        }
    }
}

#[cfg(test)]
mod tests;
