//! A table of merges that grows while it is used, for recovering merges one by one.
//!
//! Most lookups miss, so a much smaller filter is consulted first.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::pairs::{NO_RANK, Pair, Ranks, Slot, hash_pair, pack_pair};
use crate::cpu::{advise_huge_pages, prefetch};

/// Bits of the filter per slot, as a power of two.
const FILTER_BITS: u32 = 3;

/// Pairs whose ranks are the ids that they make. Linear probing, with a load factor of at most 4/5.
pub(super) struct GrowingPairTable {
    slots: Vec<Slot>,
    /// A pair whose bit is not set is absent.
    filter: Vec<u64>,
    used: usize,
    /// A hash is shifted right by this to give a slot.
    shift: u32,
    /// Random for every table, so that no vocabulary can be built to collide.
    seed: u64,
}

impl GrowingPairTable {
    /// An empty table with capacity for this many pairs.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let bits = (capacity + capacity / 4).next_power_of_two().trailing_zeros().max(6);
        let mut slots = Vec::with_capacity(1 << bits);
        advise_huge_pages(slots.spare_capacity_mut());
        slots.resize(1 << bits, Slot::EMPTY);
        let seed = RandomState::default().hash_one(capacity);
        let filter = vec![0; 1 << (bits + FILTER_BITS - 6)];
        Self { slots, filter, used: 0, shift: 64 - bits, seed }
    }

    /// Adds a pair. A repeated pair keeps its lowest rank.
    pub(super) fn insert(&mut self, left: u32, right: u32, rank: u32) {
        self.insert_slot(Slot { pair: pack_pair(left, right), rank });
    }

    fn insert_slot(&mut self, new: Slot) {
        if self.used * 5 >= self.slots.len() * 4 {
            let larger = Self::with_capacity(self.slots.len());
            let smaller = std::mem::replace(self, larger);
            for slot in smaller.slots.into_iter().filter(|slot| slot.rank != NO_RANK) {
                self.insert_slot(slot);
            }
        }
        let hash = hash_pair(new.pair, self.seed);
        let (index, bit) = self.filter_bit(hash);
        self.filter[index] |= bit;
        let index = self.find(new.pair, hash);
        let slot = &mut self.slots[index];
        self.used += usize::from(slot.rank == NO_RANK);
        if new.rank < slot.rank {
            *slot = new;
        }
    }

    /// Prefetches the slot of a pair that may be inserted soon.
    #[inline]
    pub(super) fn prefetch(&self, left: u32, right: u32) {
        let hash = hash_pair(pack_pair(left, right), self.seed);
        prefetch(&self.slots, (hash >> self.shift) as usize);
    }

    /// The index into the filter and the bit of a hash.
    #[inline]
    fn filter_bit(&self, hash: u64) -> (usize, u64) {
        let bit = (hash >> (self.shift - FILTER_BITS)) as usize;
        (bit / 64, 1 << (bit % 64))
    }

    /// The slot of a pair, or the empty slot where it belongs.
    #[inline]
    fn find(&self, pair: Pair, hash: u64) -> usize {
        let mut index = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[index];
            if slot.pair == pair || slot.rank == NO_RANK {
                return index;
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
    }
}

impl Ranks for GrowingPairTable {
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        let pair = pack_pair(left, right);
        let hash = hash_pair(pair, self.seed);
        let (index, bit) = self.filter_bit(hash);
        if self.filter[index] & bit == 0 {
            return NO_RANK;
        }
        self.slots[self.find(pair, hash)].rank
    }

    #[inline]
    fn result(&self, rank: u32) -> u32 {
        rank
    }
}

#[cfg(test)]
mod tests;
