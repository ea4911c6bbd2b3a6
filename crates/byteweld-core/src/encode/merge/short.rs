//! Merges one short sequence, in steps that can be interleaved with those of other sequences.
//!
//! Every step scans the ranks of all pairs: quadratic, and the fastest way at the length of most
//! pre-tokens. The only branch that depends on the ids ends the merging; any other would be
//! mispredicted often, at the cost of a whole step. A merge creates two pairs, whose ranks take
//! long to come from memory. So a step ends by prefetching them, and they are read before the next.

use super::pairs::{NO_ID, NO_RANK, PairTable, Probe, Ranks};

/// Positions, one per bit of a `u64`.
const POSITIONS: usize = 64;

/// The longest sequence: there is an empty position at each end.
pub(crate) const MAX_SHORT_IDS: usize = POSITIONS - 2;

/// Ranks are scanned in rows of this many.
const ROW: usize = 16;

/// The rank of a pair and, in the low bits, its position: the lowest is the pair to merge. As an
/// `f64` between 2^52 and 2^53 it is exact, and every processor compares several `f64` at once.
type RankedPosition = f64;

#[inline(always)]
const fn pack(rank: u32, position: usize) -> RankedPosition {
    f64::from_bits((52 + 1023) << 52 | (rank as u64) << 6 | position as u64)
}

#[inline(always)]
fn unpack(ranked: RankedPosition) -> (u32, usize) {
    ((ranked.to_bits() >> 6) as u32, ranked.to_bits() as usize % POSITIONS)
}

const UNRANKED: [RankedPosition; POSITIONS] = {
    let mut unranked = [0.0; POSITIONS];
    let mut position = 0;
    while position < POSITIONS {
        unranked[position] = pack(NO_RANK, position);
        position += 1;
    }
    unranked
};

/// A sequence that is being merged. Ids keep their positions; a merge clears that of its right
/// part. The positions before the first id and after the last one hold [`NO_ID`], so that every id
/// has two neighbors.
pub(crate) struct ShortMerge {
    ids: [u32; POSITIONS],
    /// By position: the rank of the pair that starts there.
    ranks: [RankedPosition; POSITIONS],
    /// Number of ids at the start.
    length: usize,
    /// The set of positions in use, as bits; both ends included.
    in_use: u64,
    /// The new pairs of the last merge, with their positions.
    pending: [(u32, Probe); 2],
}

impl Default for ShortMerge {
    fn default() -> Self {
        Self {
            ids: [NO_ID; POSITIONS],
            ranks: UNRANKED,
            length: 0,
            in_use: 0,
            pending: [(0, Probe::EMPTY); 2],
        }
    }
}

impl ShortMerge {
    /// Starts with at most [`MAX_SHORT_IDS`] ids.
    #[inline]
    pub(super) fn start(&mut self, ids: impl Iterator<Item = u32>) {
        let mut length = 0;
        for (slot, id) in self.ids[1..=MAX_SHORT_IDS].iter_mut().zip(ids) {
            *slot = id;
            length += 1;
        }
        self.length = length;
        self.in_use = (4u64 << length).wrapping_sub(1);
        self.ids[length + 1] = NO_ID;
    }

    /// Looks up the ranks of all pairs.
    #[inline(always)]
    pub(super) fn rank_all(&mut self, pairs: &PairTable) {
        let unranked = &UNRANKED.as_chunks::<ROW>().0[..self.rows()];
        for (row, unranked) in self.ranks.as_chunks_mut::<ROW>().0.iter_mut().zip(unranked) {
            *row = *unranked;
        }
        let (mut position, mut left) = (1, self.ids[1]);
        for &right in &self.ids[2..=self.length.max(1)] {
            self.ranks[position % POSITIONS] = pack(pairs.rank(left, right), position);
            (position, left) = (position + 1, right);
        }
    }

    /// Number of rows in use.
    #[inline(always)]
    fn rows(&self) -> usize {
        (self.length + 2).div_ceil(ROW)
    }

    /// Reads the ranks of the pairs that the last merge created. Interleaved sequences all do this
    /// before any of them merges: loading vectors right after storing parts of them is slow.
    #[inline(always)]
    pub(super) fn rank_pending(&mut self, pairs: &PairTable) {
        for (position, probe) in self.pending {
            let position = position as usize % POSITIONS;
            self.ranks[position] = pack(pairs.finish(probe), position);
        }
    }

    /// Merges the pair with the lowest rank below `limit`, the leftmost among equals. Returns
    /// whether there was one.
    #[inline(always)]
    pub(super) fn merge_next(&mut self, pairs: &PairTable, limit: u32) -> bool {
        let (rank, at) = unpack(self.lowest(pack(limit, 0)));
        if at == 0 {
            return false; // no pair starts there: the lowest is the limit
        }
        let after = self.in_use & u64::MAX << 1 << at;
        let right = after.trailing_zeros() as usize % POSITIONS;
        let next = (after & after.wrapping_sub(1)).trailing_zeros() as usize % POSITIONS;
        let previous = (self.in_use & ((1 << at) - 1) | 1).ilog2() as usize;
        let id = pairs.result(rank);
        self.ids[at] = id;
        self.in_use &= !(1 << right);
        self.ranks[right] = UNRANKED[right];
        let with_next = pairs.start(id, self.ids[next]);
        let with_previous = pairs.start(self.ids[previous], id);
        self.pending = [(at as u32, with_next), (previous as u32, with_previous)];
        true
    }

    /// The lowest of `limit` and all pairs.
    #[inline(always)]
    fn lowest(&self, limit: RankedPosition) -> RankedPosition {
        let lower = |a: RankedPosition, b: RankedPosition| if a < b { a } else { b };
        let mut lowest = [limit; 4];
        for row in &self.ranks.as_chunks::<ROW>().0[..self.rows()] {
            for four in row.as_chunks::<4>().0 {
                for (lowest, ranked) in lowest.iter_mut().zip(four) {
                    *lowest = lower(*ranked, *lowest);
                }
            }
        }
        let [a, b, c, d] = lowest;
        lower(lower(a, b), lower(c, d))
    }

    /// Whether the result is this id alone.
    pub(crate) fn is_one(&self, id: u32) -> bool {
        self.in_use.count_ones() == 3 && self.ids[1] == id
    }

    /// Replaces the contents of `into` by the ids.
    #[inline(always)]
    pub(crate) fn write_ids(&self, into: &mut Vec<u32>) {
        into.clear();
        let mut left = self.in_use & self.in_use.wrapping_sub(1); // without the position before
        while left & left.wrapping_sub(1) != 0 {
            into.push(self.ids[left.trailing_zeros() as usize % POSITIONS]);
            left &= left - 1;
        }
    }
}

/// Merges at most [`MAX_SHORT_IDS`] ids in place, using only merges of a rank below `limit`.
pub(crate) fn merge_short(ids: &mut Vec<u32>, pairs: &PairTable, limit: u32) {
    let mut merge = ShortMerge::default();
    merge.start(ids.iter().copied());
    merge.rank_all(pairs);
    while merge.merge_next(pairs, limit) {
        merge.rank_pending(pairs);
    }
    merge.write_ids(ids);
}
