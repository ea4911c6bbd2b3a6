//! Pairs of ids to merges: which pairs merge, with what rank, into what.
//!
//! Merging asks for many more pairs than it merges, and asks all over the table. So the table is kept small: a
//! slot holds a pair and its rank, and what a rank makes is looked up only for the pair that is merged. Before
//! the table stands a filter that is smaller still, for most pairs that are asked for do not merge.

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

#[derive(Clone, Copy, PartialEq)]
struct Slot {
    left: u32,
    right: u32,
    rank: u32,
}

/// While a table is made, so many insertions later its slot will have come from memory.
pub(super) const AHEAD: usize = 16;

const EMPTY: Slot = Slot { left: NONE, right: NONE, rank: NONE };

/// For each slot, so many bits of the filter, as a power of two.
const FILTER_BITS: u32 = 3;

/// Open addressing, at most four fifths full: a look costs one cache line, rarely two.
pub(super) struct Pairs {
    slots: Vec<Slot>,
    /// A pair whose bit is not set does not merge.
    filter: Vec<u64>,
    /// The ranks of pairs of two ids below 256, which nearly always are those of the bytes, in a cell for each.
    low: Vec<u32>,
    /// By rank, the id that is made; `None` if the ranks are the ids.
    made: Option<Vec<u32>>,
    used: usize,
    /// How far a hash is shifted down to a slot.
    shift: u32,
    /// Drawn anew for every table, so that no vocabulary can be made to collide.
    seed: u64,
}

impl Default for Pairs {
    fn default() -> Self {
        Self::with_capacity(0, Some(Vec::new()))
    }
}

/// For each token the tokens that it starts with, itself not among them, as (id, length) from short to
/// long. In sorted order, the tokens that a token starts with stand before it, each starting with the
/// one before: a stack holds them.
fn proper_prefixes(tokens: &[(u32, impl AsRef<[u8]>)]) -> Vec<Vec<(u32, usize)>> {
    let tokens: Vec<(u32, &[u8])> = tokens.iter().map(|(id, t)| (*id, t.as_ref())).collect();
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_unstable_by(|&a, &b| tokens[a].1.cmp(tokens[b].1));
    let mut found = vec![Vec::new(); tokens.len()];
    let mut stack: Vec<usize> = Vec::new();
    for at in order {
        while stack.pop_if(|top| !tokens[at].1.starts_with(tokens[*top].1)).is_some() {}
        found[at] = stack.iter().map(|&place| (tokens[place].0, tokens[place].1.len())).collect();
        stack.push(at);
    }
    found
}

/// The cell of a pair of ids below 256.
#[inline]
fn cell(left: u32, right: u32) -> Option<usize> {
    (left < 256 && right < 256).then_some((left << 8 | right) as usize)
}

impl Pairs {
    /// An empty table with room for so many pairs, whose ranks are the ids that they make.
    pub(super) fn ranked_by_id(capacity: usize) -> Self {
        Self::with_capacity(capacity, None)
    }

    fn with_capacity(capacity: usize, made: Option<Vec<u32>>) -> Self {
        let bits = (capacity + capacity / 4).next_power_of_two().trailing_zeros().max(6);
        let mut slots = Vec::with_capacity(1 << bits);
        advise(slots.spare_capacity_mut());
        slots.resize(1 << bits, EMPTY);
        Self {
            slots,
            filter: vec![0; 1 << (bits + FILTER_BITS - 6)],
            low: vec![NONE; 1 << 16],
            made,
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
        let mut pairs = Self::with_capacity(merges.len(), Some(Vec::with_capacity(merges.len())));
        for (&(left, right, id), rank) in merges.iter().zip(0..) {
            if let Some(&(left, right, _)) = merges.get(rank as usize + AHEAD) {
                pairs.ask_for(left, right);
            }
            pairs.insert(left, right, Merged { rank, id });
        }
        Ok(pairs)
    }

    /// Every way to make a token of two tokens, ranked by the id of the result.
    ///
    /// A token has at most as many prefixes and suffixes that are tokens as it has bytes, and they are
    /// found without looking at a byte twice, so the work is linear in all tokens' bytes (and sorting).
    pub(super) fn of_ranks(tokens: &[(u32, impl AsRef<[u8]>)]) -> Self {
        let prefixes = proper_prefixes(tokens);
        let reverse = |token: &[u8]| token.iter().rev().copied().collect();
        let reversed: Vec<(u32, Vec<u8>)> =
            tokens.iter().map(|(id, token)| (*id, reverse(token.as_ref()))).collect();
        let suffixes = proper_prefixes(&reversed);
        let mut pairs = Self::ranked_by_id(tokens.len());
        for (at, (id, token)) in tokens.iter().enumerate() {
            // Prefixes from short to long, suffixes from long to short: lengths that add up meet.
            let mut ends = suffixes[at].iter().rev().peekable();
            for &(left, left_length) in &prefixes[at] {
                let wanted = token.as_ref().len() - left_length;
                while ends.next_if(|(_, length)| *length > wanted).is_some() {}
                if let Some(&(right, _)) = ends.next_if(|(_, length)| *length == wanted) {
                    pairs.insert(left, right, Merged { rank: *id, id: *id });
                }
            }
        }
        pairs
    }

    /// Adds a merge; if the pair merges already, the lower rank stays. Merges of one rank make one id, and ranks
    /// are counted up.
    pub(super) fn insert(&mut self, left: u32, right: u32, merged: Merged) {
        if self.used * 5 >= self.slots.len() * 4 {
            let larger = Self::with_capacity(self.slots.len(), self.made.take());
            let smaller = std::mem::replace(self, larger);
            for slot in smaller.slots.into_iter().filter(|slot| *slot != EMPTY) {
                self.put(slot);
            }
        }
        if let Some(made) = &mut self.made {
            made.resize(made.len().max(merged.rank as usize + 1), NONE);
            made[merged.rank as usize] = merged.id;
        }
        self.put(Slot { left, right, rank: merged.rank });
    }

    fn put(&mut self, new: Slot) {
        let hash = self.hash(new.left, new.right);
        let bit = (hash >> (self.shift - FILTER_BITS)) as usize;
        self.filter[bit / 64] |= 1 << (bit % 64);
        let place = self.place(new.left, new.right, hash);
        let slot = &mut self.slots[place];
        self.used += usize::from(*slot == EMPTY);
        if new.rank < slot.rank {
            *slot = new;
            if let Some(cell) = cell(new.left, new.right) {
                self.low[cell] = new.rank;
            }
        }
    }

    /// Asks for the slot of a pair that will be added soon.
    #[inline]
    pub(super) fn ask_for(&self, left: u32, right: u32) {
        prefetch(&self.slots, (self.hash(left, right) >> self.shift) as usize);
    }

    #[inline]
    fn hash(&self, left: u32, right: u32) -> u64 {
        let pair = u64::from(left) << 32 | u64::from(right);
        (pair ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Where a pair is, or the empty slot where it would be.
    #[inline]
    fn place(&self, left: u32, right: u32, hash: u64) -> usize {
        let mut place = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[place];
            if slot.left == left && slot.right == right || slot == EMPTY {
                return place;
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    /// The rank of a pair, or [`NONE`].
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        if let Some(cell) = cell(left, right) {
            return self.low[cell];
        }
        let hash = self.hash(left, right);
        let bit = (hash >> (self.shift - FILTER_BITS)) as usize;
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return NONE;
        }
        self.slots[self.place(left, right, hash)].rank
    }

    /// The id that the merge of a rank makes; [`NONE`] makes itself.
    #[inline]
    pub(super) fn made(&self, rank: u32) -> u32 {
        match &self.made {
            Some(made) => made.get(rank as usize).copied().unwrap_or(NONE),
            None => rank,
        }
    }

    /// Every pair that merges, as (left, right, what it becomes), from low rank to high.
    pub(super) fn by_rank(&self) -> Vec<(u32, u32, Merged)> {
        let used = self.slots.iter().filter(|slot| **slot != EMPTY);
        let mut all: Vec<(u32, u32, Merged)> = used
            .map(|&Slot { left, right, rank }| (left, right, Merged { rank, id: self.made(rank) }))
            .collect();
        // The pair, too: of equal ranks the order must not depend on where the table has them.
        all.sort_unstable_by_key(|(left, right, merged)| (merged.rank, *left, *right));
        all
    }
}
