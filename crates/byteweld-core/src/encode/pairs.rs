//! Pairs of ids to merges: which pairs merge, with what rank, into what.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// "No merge": ranks are lower, and no token has this id.
pub(super) const NONE: u32 = u32::MAX;

/// What a pair becomes.
#[derive(Clone, Copy)]
pub(super) struct Merged {
    pub(super) rank: u32,
    pub(super) id: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    pair: u64,
    merged: Merged,
}

#[derive(Default)]
pub(super) struct Pairs {
    slots: HashTable<Slot>,
}

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

impl Pairs {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { slots: HashTable::with_capacity(capacity) }
    }

    /// Adds a merge; if the pair merges already, the lower rank stays.
    pub(super) fn insert(&mut self, left: u32, right: u32, merged: Merged) {
        let pair = key(left, right);
        let hash = FxBuildHasher.hash_one(pair);
        let found = self.slots.entry(hash, |s| s.pair == pair, |s| FxBuildHasher.hash_one(s.pair));
        match found {
            hashbrown::hash_table::Entry::Occupied(mut slot) => {
                if merged.rank < slot.get().merged.rank {
                    slot.get_mut().merged = merged;
                }
            }
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                vacant.insert(Slot { pair, merged });
            }
        }
    }

    pub(super) fn get(&self, left: u32, right: u32) -> Option<Merged> {
        let pair = key(left, right);
        self.slots.find(FxBuildHasher.hash_one(pair), |s| s.pair == pair).map(|s| s.merged)
    }

    /// The rank of a pair, or [`NONE`].
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        self.get(left, right).map_or(NONE, |merged| merged.rank)
    }
}
