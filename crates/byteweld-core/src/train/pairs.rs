//! The pairs that may yet be merged: how often each occurs and where.

use hashbrown::HashTable;

use super::tokens::Token;

/// Two tokens that stand next to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) left: Token,
    pub(super) right: Token,
}

impl Pair {
    pub(super) fn new(left: Token, right: Token) -> Self {
        Pair { left, right }
    }

    /// Multiplies and folds, so that the low and the high bits depend on both tokens. Hash tables
    /// here are never looped over and the keys are our own small numbers, so neither order nor
    /// attack matters.
    pub(super) fn hash(self) -> u64 {
        let key = u64::from(self.left) << 32 | u64::from(self.right);
        let product = u128::from(key) * 0x9E37_79B9_7F4A_7C15;
        (product >> 64) as u64 ^ product as u64
    }
}

struct Known {
    pair: Pair,
    count: u64,
    /// Slots where the left token starts, ascending. Complete from the start; later some of them no
    /// longer hold the pair.
    places: Box<[u32]>,
}

/// The known pairs.
#[derive(Default)]
pub(super) struct Pairs {
    known: HashTable<Known>,
}

impl Pairs {
    /// The count of a pair; 0 if it is not known or no longer.
    pub(super) fn count(&self, pair: Pair) -> u64 {
        self.known.find(pair.hash(), |known| known.pair == pair).map_or(0, |known| known.count)
    }

    /// Adds a pair that is not there yet.
    pub(super) fn insert(&mut self, pair: Pair, count: u64, places: Vec<u32>) {
        let known = Known { pair, count, places: places.into_boxed_slice() };
        self.known.insert_unique(pair.hash(), known, |known| known.pair.hash());
    }

    /// Lowers the count of a pair, if it is known, and drops it if that is now below `floor`.
    pub(super) fn lower(&mut self, pair: Pair, by: u64, floor: u64) {
        if let Ok(mut entry) = self.known.find_entry(pair.hash(), |known| known.pair == pair) {
            entry.get_mut().count -= by;
            if entry.get().count < floor {
                entry.remove();
            }
        }
    }

    /// Removes a pair in order to merge it, and gives its places.
    pub(super) fn take(&mut self, pair: Pair) -> Vec<u32> {
        match self.known.find_entry(pair.hash(), |known| known.pair == pair) {
            Ok(entry) => entry.remove().0.places.into_vec(),
            Err(_) => Vec::new(),
        }
    }
}
