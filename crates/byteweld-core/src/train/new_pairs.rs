//! The pairs that appear in one step, while they are counted and their positions collected.

use std::ops::Range;

use hashbrown::HashTable;

use super::pairs::Pair;
use super::slots;
use super::tokens::EDGE;
use crate::error::Result;
use crate::reserve::{failed, filled, reserve};

/// The index of a pair that is not tracked.
pub(super) const NOT_KEPT: u32 = u32::MAX;

/// How often a pair occurs in a part of the text.
#[derive(Clone, Copy)]
pub(super) struct PairTotal {
    /// Occurrences, weighted by the counts of their pre-tokens.
    pub(super) count: u64,
    /// Occurrences in the slots, unweighted.
    pub(super) occurrences: u32,
    /// The pair's index among the new pairs of this step, or `NOT_KEPT`.
    pub(super) new_pair: u32,
}

impl Default for PairTotal {
    fn default() -> Self {
        PairTotal { count: 0, occurrences: 0, new_pair: NOT_KEPT }
    }
}

impl PairTotal {
    pub(super) fn add(&mut self, count: u64) {
        self.count += count;
        self.occurrences += 1;
    }
}

/// A pair that will be tracked from now on.
pub(super) struct NewPair {
    pub(super) pair: Pair,
    pub(super) count: u64,
    pub(super) positions: Vec<u32>,
}

/// Totals of all pairs in a part of the text, in order of first lookup.
pub(super) struct PairTotals {
    /// The slots of the part.
    pub(super) range: Range<usize>,
    pub(super) totals: Vec<(Pair, PairTotal)>,
    /// Indices into `totals` by pair: a direct-mapped table for pairs of single bytes (at first
    /// there are no others), a hash table for all other pairs.
    of_bytes: Vec<u32>,
    of_others: HashTable<u32>,
}

impl PairTotals {
    pub(super) fn new(range: Range<usize>) -> Result<Self> {
        let of_bytes = filled(u32::MAX, 256 * 256)?;
        Ok(PairTotals { range, totals: Vec::new(), of_bytes, of_others: HashTable::new() })
    }

    /// The total of a pair, inserted as zero if it is new.
    #[inline]
    pub(super) fn total(&mut self, pair: Pair) -> Result<&mut PairTotal> {
        let index = match byte_pair_index(pair) {
            Some(cell) if self.of_bytes[cell] != u32::MAX => self.of_bytes[cell],
            _ => self.index(pair)?,
        };
        Ok(&mut self.totals[index as usize].1)
    }

    /// The index of a pair's total, which is inserted if missing.
    fn index(&mut self, pair: Pair) -> Result<u32> {
        reserve(&mut self.totals, 1)?;
        // There are at most as many pairs as slots, so 32 bits suffice.
        let next = self.totals.len() as u32;
        let index = if let Some(cell) = byte_pair_index(pair) {
            self.of_bytes[cell] = next;
            next
        } else {
            let totals = &self.totals;
            let reserved = self.of_others.try_reserve(1, |&index| totals[index as usize].0.hash());
            reserved.map_err(|_| failed::<u32>(totals.len()))?;
            let found = self.of_others.entry(
                pair.hash(),
                |&index| totals[index as usize].0 == pair,
                |&index| totals[index as usize].0.hash(),
            );
            *found.or_insert(next).get()
        };
        if index == next {
            self.totals.push((pair, PairTotal::default()));
        }
        Ok(index)
    }

    /// Sets the totals of byte pairs, given by cell; cells with an edge are ignored.
    pub(super) fn add_bytes(&mut self, totals: &[PairTotal]) -> Result<()> {
        for (left, right) in (0..EDGE).flat_map(|left| (0..EDGE).map(move |right| (left, right))) {
            let pair = Pair { left, right };
            let total = totals[slots::byte_pair_cell(pair)];
            if total.occurrences > 0 {
                *self.total(pair)? = total;
            }
        }
        Ok(())
    }

    /// The index of each byte pair's new pair, by cell.
    pub(super) fn new_pairs_of_bytes(&self) -> Result<Vec<u32>> {
        let mut new_pairs = filled(NOT_KEPT, slots::BYTE_PAIR_CELLS)?;
        for (pair, total) in &self.totals {
            new_pairs[slots::byte_pair_cell(*pair)] = total.new_pair;
        }
        Ok(new_pairs)
    }

    /// Adds the totals of another part.
    pub(super) fn absorb(&mut self, other: &PairTotals) -> Result<()> {
        for (pair, theirs) in &other.totals {
            let total = self.total(*pair)?;
            total.count += theirs.count;
            total.occurrences += theirs.occurrences;
        }
        Ok(())
    }

    /// The number of occurrences in this part, for each of the new pairs.
    pub(super) fn sizes(&self, new_pairs: usize) -> Result<Vec<u32>> {
        let mut sizes = filled(0, new_pairs)?;
        for (_, total) in &self.totals {
            if let Some(size) = sizes.get_mut(total.new_pair as usize) {
                *size = total.occurrences;
            }
        }
        Ok(sizes)
    }
}

/// The index of a pair of single bytes in the direct-mapped table.
#[inline]
fn byte_pair_index(pair: Pair) -> Option<usize> {
    (pair.left < 256 && pair.right < 256).then_some((pair.left << 8 | pair.right) as usize)
}
