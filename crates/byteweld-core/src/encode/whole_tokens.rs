//! Pre-tokens that are whole tokens: a hash table from a token's bytes to its id.
//!
//! A slot holds an id and, in the bits above it, a part of the token's hash. The bytes are compared
//! only if that part matches, so the table is small, and most misses end there.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::cpu::{advise_huge_pages, prefetch};
use crate::decode::TokenTable;
use crate::packed::pack;

/// While the table is filled, slots are prefetched this many insertions ahead.
const LOOKAHEAD: usize = 16;

const EMPTY: u32 = u32::MAX;

pub(super) struct WholeTokens {
    /// Linear probing, with a load factor of at most 1/2.
    slots: Vec<u32>,
    /// The bits of a slot that are the id.
    id_mask: u32,
    /// A hash is shifted right by this to give a slot.
    shift: u32,
    /// Seeded for every table, so that no vocabulary can be built to collide.
    hasher: RandomState,
}

/// A lookup that has been started: the hash of a pre-token.
#[derive(Clone, Copy)]
pub(super) struct Probe(u64);

impl WholeTokens {
    /// The table of some tokens.
    pub(super) fn new(ids: &[u32], tokens: &TokenTable) -> Self {
        let bits = (ids.len() * 2).next_power_of_two().trailing_zeros().max(1);
        let mut slots = Vec::with_capacity(1 << bits);
        advise_huge_pages(slots.spare_capacity_mut());
        slots.resize(1 << bits, EMPTY);
        // One bit more than the ids need, so that no slot in use looks empty.
        let end = ids.iter().max().map_or(0, |&id| id.saturating_add(1));
        let id_mask = u32::MAX.checked_shr(end.leading_zeros()).unwrap_or(0);
        let hasher = RandomState::default();
        let mut table = Self { slots, id_mask, shift: u64::BITS - bits, hasher };
        for (at, &id) in ids.iter().enumerate() {
            if let Some(later) = ids.get(at + LOOKAHEAD).and_then(|&id| tokens.get(id)) {
                table.start(later);
            }
            let hash = table.hash(tokens.get(id).unwrap_or_default());
            let mut slot = (hash >> table.shift) as usize;
            while table.slots[slot] != EMPTY {
                slot = (slot + 1) & (table.slots.len() - 1);
            }
            table.slots[slot] = id | hash as u32 & !table.id_mask;
        }
        table
    }

    /// The id of the token with these bytes.
    pub(super) fn get(&self, pretoken: &[u8], tokens: &TokenTable) -> Option<u32> {
        self.finish(self.start(pretoken), pretoken, tokens)
    }

    /// Starts a lookup by prefetching the slot of a pre-token.
    #[inline]
    pub(super) fn start(&self, pretoken: &[u8]) -> Probe {
        let hash = self.hash(pretoken);
        prefetch(&self.slots, (hash >> self.shift) as usize);
        Probe(hash)
    }

    /// Finishes the lookup of a pre-token.
    pub(super) fn finish(&self, probe: Probe, pretoken: &[u8], tokens: &TokenTable) -> Option<u32> {
        let Probe(hash) = probe;
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let found = self.slots[slot];
            if found == EMPTY {
                return None;
            }
            let id = found & self.id_mask;
            if (found ^ hash as u32) & !self.id_mask == 0 && tokens.get(id) == Some(pretoken) {
                return Some(id);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        match pack(bytes) {
            Some(key) => self.hasher.hash_one(key),
            None => self.hasher.hash_one(bytes),
        }
    }
}
