//! Pre-tokens that are whole tokens: bytes to id in one look.
//!
//! Nearly all pre-tokens of ordinary text are tokens, and nearly all of those are short. A token of up to 15
//! bytes is packed with its length into one 128-bit key that stands in the table itself, so a look costs one
//! or two cache lines instead of a walk through hash, id, offsets and bytes. Longer tokens are found by hash.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::pairs::{AHEAD, NONE};
use crate::decode::Tokens;
use crate::huge::advise;
use crate::prefetch::prefetch;

/// The longest token that fits a key.
const SHORT: usize = 15;

pub(super) struct WholeTokens {
    /// Open addressing, at most half full; an empty slot has key 0, which no token has.
    keys: Vec<u128>,
    ids: Vec<u32>,
    /// Ids of tokens that do not fit a key.
    long: HashTable<u32>,
    /// Seeded anew for every table, so that no vocabulary can be made to collide.
    hasher: RandomState,
}

impl WholeTokens {
    /// The table of some tokens.
    pub(super) fn new(ids: &[u32], tokens: &Tokens) -> Self {
        let slots = (ids.len() * 2).next_power_of_two().max(2);
        let keys = vec![0; slots];
        advise(&keys);
        let mut table = Self {
            keys,
            ids: vec![NONE; slots],
            long: HashTable::new(),
            hasher: RandomState::default(),
        };
        for (at, &id) in ids.iter().enumerate() {
            let later = ids.get(at + AHEAD).and_then(|&id| pack(tokens.get(id)?));
            if let Some(key) = later {
                let slot = table.hasher.hash_one(key) as usize & (slots - 1);
                prefetch(&table.keys, slot);
                prefetch(&table.ids, slot);
            }
            let token = tokens.get(id).unwrap_or_default();
            match pack(token) {
                Some(key) => {
                    let slot = table.slot(key);
                    table.keys[slot] = key;
                    table.ids[slot] = id;
                }
                None => {
                    let Self { long, hasher, .. } = &mut table;
                    let hash = |id: &u32| hasher.hash_one(tokens.get(*id).unwrap_or_default());
                    long.insert_unique(hash(&id), id, hash);
                }
            }
        }
        table
    }

    pub(super) fn get(&self, pretoken: &[u8], tokens: &Tokens) -> Option<u32> {
        match pack(pretoken) {
            Some(key) => {
                let slot = self.slot(key);
                (self.keys[slot] == key).then(|| self.ids[slot])
            }
            None => {
                let hash = self.hasher.hash_one(pretoken);
                self.long.find(hash, |&id| tokens.get(id) == Some(pretoken)).copied()
            }
        }
    }

    /// The slot that holds a key, or the empty one where it would be.
    fn slot(&self, key: u128) -> usize {
        let mask = self.keys.len() - 1;
        let mut slot = self.hasher.hash_one(key) as usize & mask;
        while self.keys[slot] != 0 && self.keys[slot] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

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
mod tests {
    use super::{SHORT, pack};

    #[test]
    fn a_key_is_the_bytes_and_their_length() {
        let bytes: Vec<u8> = (1..=16).collect();
        assert_eq!(pack(&[]), None);
        assert_eq!(pack(&bytes), None);
        for length in 1..=SHORT {
            let mut expected = [0; 16];
            expected[..length].copy_from_slice(&bytes[..length]);
            expected[15] = length as u8;
            assert_eq!(pack(&bytes[..length]), Some(u128::from_le_bytes(expected)));
        }
    }
}
