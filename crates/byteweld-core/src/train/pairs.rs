//! The pairs that may still be merged, each with its count and positions.

use hashbrown::HashTable;

use super::tokens::Token;
use crate::error::Result;
use crate::hash::MULTIPLIER;
use crate::reserve::failed;

/// Two adjacent tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) left: Token,
    pub(super) right: Token,
}

impl Pair {
    pub(super) fn new(left: Token, right: Token) -> Self {
        Pair { left, right }
    }

    /// Multiplies and folds, so that the low and high bits depend on both tokens. No result depends
    /// on the iteration order of a hash table, and the keys are internal token numbers, so hash
    /// flooding does not matter either.
    pub(super) fn hash(self) -> u64 {
        let key = u64::from(self.left) << 32 | u64::from(self.right);
        let product = u128::from(key) * u128::from(MULTIPLIER);
        (product >> 64) as u64 ^ product as u64
    }
}

struct PairEntry {
    pair: Pair,
    count: u64,
    /// Slots where the left token starts, ascending. The list never grows; over time, some
    /// positions no longer hold the pair.
    positions: Box<[u32]>,
}

/// The tracked pairs.
#[derive(Default)]
pub(super) struct PairTable {
    entries: HashTable<PairEntry>,
}

impl PairTable {
    /// The count of a pair; 0 if it is not tracked.
    pub(super) fn count(&self, pair: Pair) -> u64 {
        self.entries.find(pair.hash(), |entry| entry.pair == pair).map_or(0, |entry| entry.count)
    }

    /// The number of tracked pairs.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All tracked pairs and their counts, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Pair, u64)> {
        self.entries.iter().map(|entry| (entry.pair, entry.count))
    }

    /// Adds a pair that is not tracked yet.
    pub(super) fn insert(&mut self, pair: Pair, count: u64, positions: Vec<u32>) -> Result<()> {
        let hash = |entry: &PairEntry| entry.pair.hash();
        self.entries.try_reserve(1, hash).map_err(|_| failed::<PairEntry>(self.entries.len()))?;
        let entry = PairEntry { pair, count, positions: positions.into_boxed_slice() };
        self.entries.insert_unique(pair.hash(), entry, hash);
        Ok(())
    }

    /// Lowers the count of a pair, if it is tracked, and removes it if it falls below `floor`.
    pub(super) fn lower(&mut self, pair: Pair, by: u64, floor: u64) {
        if let Ok(mut entry) = self.entries.find_entry(pair.hash(), |entry| entry.pair == pair) {
            entry.get_mut().count -= by;
            if entry.get().count < floor {
                entry.remove();
            }
        }
    }

    /// Removes a pair and returns its positions.
    pub(super) fn take(&mut self, pair: Pair) -> Vec<u32> {
        match self.entries.find_entry(pair.hash(), |entry| entry.pair == pair) {
            Ok(entry) => entry.remove().0.positions.into_vec(),
            Err(_) => Vec::new(),
        }
    }
}
