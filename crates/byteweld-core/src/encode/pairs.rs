//! Pairs of ids to merges: which pairs merge, with what rank, into what.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::error::{Error, Result};
use crate::huge::advise;
use crate::prefetch::prefetch;

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

/// While a table is made, so many insertions later its slot will have come from memory.
pub(super) const AHEAD: usize = 16;

/// What a pair that does not merge becomes.
pub(super) const NO_MERGE: Merged = Merged { rank: NONE, id: NONE };

const EMPTY: Slot = Slot { pair: u64::MAX, merged: NO_MERGE };

/// Open addressing, at most half full: a look costs one cache line, rarely two.
pub(super) struct Pairs {
    slots: Vec<Slot>,
    /// Four bits for each slot; a pair whose bit is not set does not merge. Most pairs that are asked for do
    /// not, and this is small enough to stay near.
    filter: Vec<u64>,
    /// Pairs of two ids below 256, which nearly always are those of the bytes, in a cell for each.
    low: Vec<Merged>,
    used: usize,
    /// How far a hash is shifted down to a slot.
    shift: u32,
    /// Drawn anew for every table, so that no vocabulary can be made to collide.
    seed: u64,
}

impl Default for Pairs {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

/// For each token the tokens that it starts with, itself not among them, as (id, length) from short to
/// long. In sorted order, the tokens that a token starts with stand before it, each starting with the
/// one before: a stack holds them.
fn proper_prefixes(tokens: &[(u32, Vec<u8>)]) -> Vec<Vec<(u32, usize)>> {
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_unstable_by(|&a, &b| tokens[a].1.cmp(&tokens[b].1));
    let mut found = vec![Vec::new(); tokens.len()];
    let mut stack: Vec<usize> = Vec::new();
    for at in order {
        while stack.pop_if(|top| !tokens[at].1.starts_with(&tokens[*top].1)).is_some() {}
        found[at] = stack.iter().map(|&place| (tokens[place].0, tokens[place].1.len())).collect();
        stack.push(at);
    }
    found
}

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// The cell of a pair of ids below 256.
#[inline]
fn cell(pair: u64) -> Option<usize> {
    let (left, right) = ((pair >> 32) as usize, pair as u32 as usize);
    (left < 256 && right < 256).then_some(left << 8 | right)
}

impl Pairs {
    /// An empty table with room for so many pairs.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let bits = (capacity * 2).next_power_of_two().trailing_zeros().max(4);
        let mut slots = Vec::with_capacity(1 << bits);
        advise(slots.spare_capacity_mut());
        slots.resize(1 << bits, EMPTY);
        Self {
            slots,
            filter: vec![0; 1 << (bits + 2 - 6)],
            low: vec![NO_MERGE; 1 << 16],
            used: 0,
            shift: 64 - bits,
            seed: RandomState::default().hash_one(capacity),
        }
    }

    /// The pairs of a merge list: a merge's rank is its place.
    pub(super) fn of_merges(merges: &[(u32, u32, u32)]) -> Result<Self> {
        if merges.len() >= NONE as usize {
            return Err(Error::Vocabulary("there are 2^32 - 1 or more merges".to_owned()));
        }
        let mut pairs = Self::with_capacity(merges.len());
        for (&(left, right, id), rank) in merges.iter().zip(0..) {
            if let Some(&(left, right, _)) = merges.get(rank as usize + AHEAD) {
                prefetch(&pairs.slots, (pairs.hash(key(left, right)) >> pairs.shift) as usize);
            }
            pairs.insert(left, right, Merged { rank, id });
        }
        Ok(pairs)
    }

    /// Every way to make a token of two tokens, ranked by the id of the result.
    ///
    /// A token has at most as many prefixes and suffixes that are tokens as it has bytes, and they are
    /// found without looking at a byte twice, so the work is linear in all tokens' bytes (and sorting).
    pub(super) fn of_ranks(tokens: &[(u32, Vec<u8>)]) -> Self {
        let prefixes = proper_prefixes(tokens);
        let reversed: Vec<(u32, Vec<u8>)> =
            tokens.iter().map(|(id, token)| (*id, token.iter().rev().copied().collect())).collect();
        let suffixes = proper_prefixes(&reversed);
        let mut pairs = Self::with_capacity(tokens.len());
        for (at, (id, token)) in tokens.iter().enumerate() {
            // Prefixes from short to long, suffixes from long to short: lengths that add up meet.
            let mut ends = suffixes[at].iter().rev().peekable();
            for &(left, left_length) in &prefixes[at] {
                let wanted = token.len() - left_length;
                while ends.next_if(|(_, length)| *length > wanted).is_some() {}
                if let Some(&(right, _)) = ends.next_if(|(_, length)| *length == wanted) {
                    pairs.insert(left, right, Merged { rank: *id, id: *id });
                }
            }
        }
        pairs
    }

    /// Adds a merge; if the pair merges already, the lower rank stays.
    pub(super) fn insert(&mut self, left: u32, right: u32, merged: Merged) {
        if self.used * 2 >= self.slots.len() {
            let larger = Self::with_capacity(self.slots.len());
            let smaller = std::mem::replace(self, larger);
            for slot in smaller.slots.into_iter().filter(|slot| slot.pair != EMPTY.pair) {
                self.put(slot);
            }
        }
        self.put(Slot { pair: key(left, right), merged });
    }

    fn put(&mut self, new: Slot) {
        let hash = self.hash(new.pair);
        let bit = (hash >> (self.shift - 2)) as usize;
        self.filter[bit / 64] |= 1 << (bit % 64);
        let place = self.place(new.pair, hash);
        let slot = &mut self.slots[place];
        self.used += usize::from(slot.pair == EMPTY.pair);
        if new.merged.rank < slot.merged.rank {
            *slot = new;
            if let Some(cell) = cell(new.pair) {
                self.low[cell] = new.merged;
            }
        }
    }

    #[inline]
    fn hash(&self, pair: u64) -> u64 {
        (pair ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Where a pair is, or the empty slot where it would be.
    #[inline]
    fn place(&self, pair: u64, hash: u64) -> usize {
        let mut place = (hash >> self.shift) as usize;
        while self.slots[place].pair != pair && self.slots[place].pair != EMPTY.pair {
            place = (place + 1) & (self.slots.len() - 1);
        }
        place
    }

    /// What a pair becomes; rank and id are [`NONE`] if it does not merge.
    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> Merged {
        let pair = key(left, right);
        if let Some(cell) = cell(pair) {
            return self.low[cell];
        }
        let hash = self.hash(pair);
        let bit = (hash >> (self.shift - 2)) as usize;
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return NO_MERGE;
        }
        self.slots[self.place(pair, hash)].merged
    }

    /// Every pair that merges, as (left, right, what it becomes), from low rank to high.
    pub(super) fn by_rank(&self) -> Vec<(u32, u32, Merged)> {
        let used = self.slots.iter().filter(|slot| slot.pair != EMPTY.pair);
        let mut all: Vec<(u32, u32, Merged)> =
            used.map(|slot| ((slot.pair >> 32) as u32, slot.pair as u32, slot.merged)).collect();
        // The pair, too: of equal ranks the order must not depend on where the table has them.
        all.sort_unstable_by_key(|(left, right, merged)| (merged.rank, *left, *right));
        all
    }

    /// The rank of a pair, or [`NONE`].
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        self.get(left, right).rank
    }
}
