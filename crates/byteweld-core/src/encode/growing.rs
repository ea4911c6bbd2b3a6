//! Pairs of ids that come one by one, and are asked for in between: while merges are recovered.
//!
//! Most that are asked for are not there. So before the table stands a filter that is much smaller.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::pairs::{EMPTY, NONE, Pair, Ranks, Slot, hash_of, pair_of};
use crate::huge::advise;
use crate::prefetch::prefetch;

/// For each slot, so many bits of the filter, as a power of two.
const FILTER_BITS: u32 = 3;

/// Pairs whose ranks are the ids that they make. Open addressing, at most four fifths full.
pub(super) struct GrowingPairs {
    slots: Vec<Slot>,
    /// A pair whose bit is not set is not there.
    filter: Vec<u64>,
    used: usize,
    /// How far a hash is shifted down to a slot.
    shift: u32,
    /// Drawn anew for every table, so that no vocabulary can be made to collide.
    seed: u64,
}

impl GrowingPairs {
    /// An empty table with room for so many pairs.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let bits = (capacity + capacity / 4).next_power_of_two().trailing_zeros().max(6);
        let mut slots = Vec::with_capacity(1 << bits);
        advise(slots.spare_capacity_mut());
        slots.resize(1 << bits, EMPTY);
        let seed = RandomState::default().hash_one(capacity);
        let filter = vec![0; 1 << (bits + FILTER_BITS - 6)];
        Self { slots, filter, used: 0, shift: 64 - bits, seed }
    }

    /// Adds a pair; if it is there already, the lower rank stays.
    pub(super) fn insert(&mut self, left: u32, right: u32, rank: u32) {
        self.put(Slot { pair: pair_of(left, right), rank });
    }

    fn put(&mut self, new: Slot) {
        if self.used * 5 >= self.slots.len() * 4 {
            let larger = Self::with_capacity(self.slots.len());
            let smaller = std::mem::replace(self, larger);
            for slot in smaller.slots.into_iter().filter(|slot| slot.rank != NONE) {
                self.put(slot);
            }
        }
        let hash = hash_of(new.pair, self.seed);
        let (word, bit) = self.bit(hash);
        self.filter[word] |= bit;
        let place = self.place(new.pair, hash);
        let slot = &mut self.slots[place];
        self.used += usize::from(slot.rank == NONE);
        if new.rank < slot.rank {
            *slot = new;
        }
    }

    /// Asks for the slot of a pair that will be added soon.
    #[inline]
    pub(super) fn ask_for(&self, left: u32, right: u32) {
        let hash = hash_of(pair_of(left, right), self.seed);
        prefetch(&self.slots, (hash >> self.shift) as usize);
    }

    /// The word of the filter and, in it, the bit of a hash.
    #[inline]
    fn bit(&self, hash: u64) -> (usize, u64) {
        let bit = (hash >> (self.shift - FILTER_BITS)) as usize;
        (bit / 64, 1 << (bit % 64))
    }

    /// Where a pair is, or the empty slot where it would be.
    #[inline]
    fn place(&self, pair: Pair, hash: u64) -> usize {
        let mut place = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            if slot.pair == pair || slot.rank == NONE {
                return place;
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }
}

impl Ranks for GrowingPairs {
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        let pair = pair_of(left, right);
        let hash = hash_of(pair, self.seed);
        let (word, bit) = self.bit(hash);
        if self.filter[word] & bit == 0 {
            return NONE;
        }
        self.slots[self.place(pair, hash)].rank
    }

    #[inline]
    fn made(&self, rank: u32) -> u32 {
        rank
    }
}

#[cfg(test)]
mod tests;
