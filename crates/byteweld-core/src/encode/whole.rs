//! Pre-tokens that are whole tokens: bytes to id in one look.
//!
//! A slot of the table is the id of a token and a few bits of its hash. Only where those are right are the
//! token's bytes looked at. So the table is small, and a look for what is no token ends there.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::pairs::NONE;
use crate::decode::TokenTable;
use crate::huge::advise;
use crate::prefetch::prefetch;

/// While the table is made, so many insertions later a slot will have come from memory.
const AHEAD: usize = 16;

pub(super) struct WholeTokens {
    /// Open addressing, at most half full: an id and, above it, bits of the hash; [`NONE`] if empty.
    slots: Vec<u32>,
    id_mask: u32,
    /// How far a hash is shifted down to a slot.
    shift: u32,
    /// Seeded anew for every table, so that no vocabulary can be made to collide.
    hasher: RandomState,
}

impl WholeTokens {
    /// The table of some tokens.
    pub(super) fn new(ids: &[u32], tokens: &TokenTable) -> Self {
        let bits = (ids.len() * 2).next_power_of_two().trailing_zeros().max(1);
        let mut slots = Vec::with_capacity(1 << bits);
        advise(slots.spare_capacity_mut());
        slots.resize(1 << bits, NONE);
        // One bit more than the ids need, so that no slot that is used looks empty.
        let most = ids.iter().max().map_or(0, |&id| id.saturating_add(1));
        let id_mask = u32::MAX.checked_shr(most.leading_zeros()).unwrap_or(0);
        let hasher = RandomState::default();
        let mut table = Self { slots, id_mask, shift: u64::BITS - bits, hasher };
        for (at, &id) in ids.iter().enumerate() {
            if let Some(later) = ids.get(at + AHEAD).and_then(|&id| tokens.get(id)) {
                prefetch(&table.slots, (table.hash(later) >> table.shift) as usize);
            }
            let hash = table.hash(tokens.get(id).unwrap_or_default());
            let mut slot = (hash >> table.shift) as usize;
            while table.slots[slot] != NONE {
                slot = (slot + 1) & (table.slots.len() - 1);
            }
            table.slots[slot] = id | hash as u32 & !table.id_mask;
        }
        table
    }

    /// The id of the token that a pre-token is.
    pub(super) fn get(&self, pretoken: &[u8], tokens: &TokenTable) -> Option<u32> {
        let hash = self.hash(pretoken);
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let found = self.slots[slot];
            if found == NONE {
                return None;
            }
            let id = found & self.id_mask;
            if (found ^ hash as u32) & !self.id_mask == 0 && tokens.get(id) == Some(pretoken) {
                return Some(id);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Asks for the memory where a pre-token is looked for.
    pub(super) fn ask_for(&self, pretoken: &[u8]) {
        prefetch(&self.slots, (self.hash(pretoken) >> self.shift) as usize);
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        match pack(bytes) {
            Some(key) => self.hasher.hash_one(key),
            None => self.hasher.hash_one(bytes),
        }
    }
}

/// The longest token that is hashed in one step.
const SHORT: usize = 15;

/// The bytes and, on top, their length; `None` if they do not fit or there are none.
fn pack(bytes: &[u8]) -> Option<u128> {
    let length = bytes.len();
    let key = match length {
        1..=3 => {
            let (first, middle, last) = (bytes[0], bytes[length / 2], bytes[length - 1]);
            u128::from(first)
                | u128::from(middle) << (8 * (length / 2))
                | u128::from(last) << (8 * (length - 1))
        }
        // Two overlapping reads: the bytes that both see are the same.
        4..=7 => {
            let (start, end) = (bytes.first_chunk::<4>()?, bytes.last_chunk::<4>()?);
            u128::from(u32::from_le_bytes(*start))
                | u128::from(u32::from_le_bytes(*end)) << (8 * (length - 4))
        }
        8..=SHORT => {
            let (start, end) = (bytes.first_chunk::<8>()?, bytes.last_chunk::<8>()?);
            u128::from(u64::from_le_bytes(*start))
                | u128::from(u64::from_le_bytes(*end)) << (8 * (length - 8))
        }
        _ => return None,
    };
    Some(key | (length as u128) << 120)
}

#[cfg(test)]
mod tests;
