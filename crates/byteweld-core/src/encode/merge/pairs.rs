//! The table of merges: which pairs of ids merge, at which rank, into which id.
//!
//! Merging looks up pairs all over the table, and most are absent, unpredictably so. A mispredicted
//! branch costs as much as twenty instructions. So the table is a perfect hash (`pairs/layout.rs`):
//! a pair is in one slot or absent, and a lookup is one comparison without a branch. The id that a
//! merge makes is found by its rank, and only for the pair that merges.

mod layout;

use std::hint::select_unpredictable;

use crate::cpu::{advise_huge_pages, prefetch};
use crate::error::{Error, Result};
use crate::hash::multiply_hash;
pub use layout::PairLayout;

/// The rank of a pair that does not merge. It is above all ranks.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// The id of no token.
pub(crate) const NO_ID: u32 = u32::MAX;

/// What merging needs to know of the merges.
pub(crate) trait Ranks {
    /// The rank of a pair, or [`NO_RANK`].
    fn rank(&self, left: u32, right: u32) -> u32;

    /// The id that the merge of a rank makes; [`NO_ID`] for [`NO_RANK`].
    fn result(&self, rank: u32) -> u32;
}

/// A pair of ids as one number.
pub(super) type Pair = u64;

/// No token has the id [`NO_ID`].
const NO_PAIR: Pair = u64::MAX;

#[inline(always)]
pub(super) fn pack_pair(left: u32, right: u32) -> Pair {
    u64::from(left) << 32 | u64::from(right)
}

fn unpack_pair(pair: Pair) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// A hash of a pair, for its high bits.
#[inline(always)]
pub(super) fn hash_pair(pair: Pair, seed: u64) -> u64 {
    multiply_hash(pair ^ seed)
}

/// A pair and its rank, in 12 bytes.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(super) struct Slot {
    pub(super) pair: Pair,
    pub(super) rank: u32,
}

impl Slot {
    pub(super) const EMPTY: Self = Self { pair: NO_PAIR, rank: NO_RANK };
}

/// A lookup that has been started: a pair, and the only slot where it can be.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pair: Pair,
    slot: usize,
}

impl Probe {
    /// The lookup of a pair that does not merge.
    pub(super) const EMPTY: Self = Self { pair: NO_PAIR, slot: 0 };
}

/// A merge, ordered by rank. Of equal ranks, the order must not depend on the table.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RankedMerge {
    pub(crate) rank: u32,
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) result: u32,
}

/// While a table is filled, slots are prefetched this many pairs at a time.
const LOOKAHEAD: usize = 32;

pub(crate) struct PairTable {
    slots: Vec<Slot>,
    layout: PairLayout,
    /// The ranks of pairs of two ids below 256, nearly always those of the bytes, at
    /// `left << 8 | right`.
    low_ranks: Vec<u32>,
    /// The id that each rank makes; `None` if it is the rank plus `offset`.
    results: Option<Vec<u32>>,
    offset: u32,
}

impl PairTable {
    /// The pairs of a merge list: the rank of a merge is its index. A repeated pair keeps its
    /// lowest rank. Their layout saves time if it is known.
    pub(crate) fn from_merges(
        merges: &[(u32, u32, u32)],
        layout: Option<PairLayout>,
    ) -> Result<Self> {
        if merges.len() >= NO_RANK as usize {
            return Err(Error::Vocabulary("there are 2^32 - 1 or more merges".to_owned()));
        }
        let ranked = || merges.iter().zip(0..);
        let slots = ranked()
            .map(|(&(left, right, _), rank)| Slot { pair: pack_pair(left, right), rank })
            .collect::<Vec<_>>();
        let known = layout.and_then(|layout| Self::with_layout(&slots, layout));
        let mut table = known.unwrap_or_else(|| Self::new(&slots));
        table.offset = merges.first().map_or(0, |&(_, _, id)| id);
        if ranked().any(|((_, _, id), rank)| id.wrapping_sub(rank) != table.offset) {
            table.results = Some(merges.iter().map(|(_, _, id)| *id).collect());
        }
        Ok(table)
    }

    /// Every way to make a token of two tokens, ranked by the id of the result.
    ///
    /// The work is linear in the tokens' bytes, plus sorting: a token has at most as many prefixes
    /// and suffixes that are tokens as it has bytes, and no byte is read twice to find them.
    pub(crate) fn from_ranks(tokens: &[(u32, impl AsRef<[u8]>)]) -> Self {
        let prefixes = proper_prefixes(tokens);
        let reversed: Vec<(u32, Vec<u8>)> = tokens
            .iter()
            .map(|(id, token)| (*id, token.as_ref().iter().rev().copied().collect()))
            .collect();
        let suffixes = proper_prefixes(&reversed);
        let mut slots = Vec::with_capacity(tokens.len());
        for ((id, token), (prefixes, suffixes)) in tokens.iter().zip(prefixes.iter().zip(&suffixes))
        {
            // Prefixes from short to long, suffixes from long to short: one pass finds all lengths
            // that add up.
            let mut suffixes = suffixes.iter().rev().peekable();
            for &(left, left_length) in prefixes {
                let right_length = token.as_ref().len() - left_length;
                while suffixes.next_if(|(_, length)| *length > right_length).is_some() {}
                if let Some(&(right, _)) = suffixes.next_if(|(_, length)| *length == right_length) {
                    slots.push(Slot { pair: pack_pair(left, right), rank: *id });
                }
            }
        }
        Self::new(&slots)
    }

    /// A table in which each rank makes the id of the same number.
    fn new(pairs: &[Slot]) -> Self {
        let only_pairs: Vec<Pair> = pairs.iter().map(|slot| slot.pair).collect();
        loop {
            if let Some(table) = Self::with_layout(pairs, PairLayout::find(&only_pairs)) {
                return table; // always the first
            }
        }
    }

    /// The same with a given layout; `None` if that is not one of these pairs.
    fn with_layout(pairs: &[Slot], layout: PairLayout) -> Option<Self> {
        let mut slots = Vec::with_capacity(layout.num_slots());
        advise_huge_pages(slots.spare_capacity_mut());
        slots.resize(layout.num_slots(), Slot::EMPTY);
        let mut low_ranks = vec![NO_RANK; 1 << 16];
        for chunk in pairs.chunks(LOOKAHEAD) {
            for slot in chunk {
                prefetch(&slots, layout.slot(slot.pair));
            }
            for &Slot { pair, rank } in chunk {
                let slot = &mut slots[layout.slot(pair)];
                if slot.pair != NO_PAIR && slot.pair != pair {
                    return None;
                }
                *slot = Slot { pair, rank: rank.min(slot.rank) };
                let (left, right) = unpack_pair(pair);
                if let Some(index) = low_index(left, right) {
                    low_ranks[index] = low_ranks[index].min(rank);
                }
            }
        }
        Some(Self { slots, layout, low_ranks, results: None, offset: 0 })
    }

    /// The slot of a pair.
    #[inline(always)]
    fn slot(&self, pair: Pair) -> usize {
        self.layout.slot(pair)
    }

    /// Starts the lookup of a pair by prefetching its slot. Either id may be [`NO_ID`].
    #[inline(always)]
    pub(super) fn start(&self, left: u32, right: u32) -> Probe {
        let pair = pack_pair(left, right);
        let slot = self.slot(pair);
        prefetch(&self.slots, slot);
        Probe { pair, slot }
    }

    /// Finishes a lookup: the rank of the pair, or [`NO_RANK`].
    #[inline(always)]
    pub(super) fn finish(&self, probe: Probe) -> u32 {
        let Slot { pair, rank } = self.slots[probe.slot];
        select_unpredictable(pair == probe.pair, rank, NO_RANK)
    }

    /// All merges, from low rank to high.
    pub(crate) fn by_rank(&self) -> Vec<RankedMerge> {
        let used = self.slots.iter().filter(|slot| slot.rank != NO_RANK);
        let mut merges: Vec<RankedMerge> = used
            .map(|&Slot { pair, rank }| {
                let (left, right) = unpack_pair(pair);
                RankedMerge { rank, left, right, result: self.result(rank) }
            })
            .collect();
        merges.sort_unstable();
        merges
    }
}

impl Ranks for PairTable {
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        match low_index(left, right) {
            Some(index) => self.low_ranks[index],
            None => {
                let pair = pack_pair(left, right);
                self.finish(Probe { pair, slot: self.slot(pair) })
            }
        }
    }

    #[inline]
    fn result(&self, rank: u32) -> u32 {
        match &self.results {
            Some(results) => results.get(rank as usize).copied().unwrap_or(NO_ID),
            None if rank == NO_RANK => NO_ID,
            None => rank.wrapping_add(self.offset),
        }
    }
}

/// For each token, the shorter tokens it starts with, as (id, length) from short to long. In sorted
/// order, the prefixes of a token precede it, each a prefix of the next: a stack holds them.
fn proper_prefixes(tokens: &[(u32, impl AsRef<[u8]>)]) -> Vec<Vec<(u32, usize)>> {
    let tokens: Vec<(u32, &[u8])> = tokens.iter().map(|(id, t)| (*id, t.as_ref())).collect();
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_unstable_by(|&a, &b| tokens[a].1.cmp(tokens[b].1));
    let mut prefixes = vec![Vec::new(); tokens.len()];
    let mut stack: Vec<(u32, &[u8])> = Vec::new();
    for index in order {
        let (id, token) = tokens[index];
        while stack.pop_if(|(_, top)| !token.starts_with(top)).is_some() {}
        prefixes[index] = stack.iter().map(|(id, prefix)| (*id, prefix.len())).collect();
        stack.push((id, token));
    }
    prefixes
}

/// The index of a pair of ids below 256.
#[inline]
fn low_index(left: u32, right: u32) -> Option<usize> {
    (left < 256 && right < 256).then_some((left << 8 | right) as usize)
}

#[cfg(test)]
mod tests;
