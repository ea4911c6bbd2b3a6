//! The pairs that may yet be merged: how often each occurs and where.

use hashbrown::HashTable;

use super::tokens::Token;

/// Two tokens that stand next to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) left: Token,
    pub(super) right: Token,
}

struct Known {
    pair: Pair,
    count: u64,
    /// Slots where the left token starts, ascending. Complete from the start; later some of them no
    /// longer hold the pair.
    places: Box<[u32]>,
}

/// All pairs worth keeping.
pub(super) struct Pairs {
    /// At least 1.
    min_count: u64,
    known: HashTable<Known>,
}

impl Pairs {
    pub(super) fn new(min_count: u64) -> Self {
        Pairs { min_count, known: HashTable::new() }
    }

    /// The count of a pair; 0 if it is not known or no longer.
    pub(super) fn count(&self, pair: Pair) -> u64 {
        self.known.find(hash(pair), |known| known.pair == pair).map_or(0, |known| known.count)
    }

    /// Adds a pair that is not there yet.
    pub(super) fn insert(&mut self, pair: Pair, count: u64, places: Vec<u32>) {
        let known = Known { pair, count, places: places.into_boxed_slice() };
        self.known.insert_unique(hash(pair), known, |known| hash(known.pair));
    }

    /// Lowers the count of a pair, if it is known, and drops it if it can no longer be merged.
    pub(super) fn lower(&mut self, pair: Pair, by: u64) {
        if let Ok(mut entry) = self.known.find_entry(hash(pair), |known| known.pair == pair) {
            entry.get_mut().count -= by;
            if entry.get().count < self.min_count {
                entry.remove();
            }
        }
    }

    /// Removes a pair in order to merge it, and gives its places.
    pub(super) fn take(&mut self, pair: Pair) -> Vec<u32> {
        match self.known.find_entry(hash(pair), |known| known.pair == pair) {
            Ok(entry) => entry.remove().0.places.into_vec(),
            Err(_) => Vec::new(),
        }
    }
}

/// Multiplies and folds, so that the low and the high bits depend on both tokens. The table is never
/// looped over and its keys are our own small numbers, so neither order nor attack matters.
fn hash(pair: Pair) -> u64 {
    let key = u64::from(pair.left) << 32 | u64::from(pair.right);
    let product = u128::from(key) * 0x9E37_79B9_7F4A_7C15;
    (product >> 64) as u64 ^ product as u64
}
