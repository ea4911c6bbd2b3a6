//! Merges a sequence of any length with a heap of its pairs, in O(n log n).
//!
//! The sequence is a doubly linked list over positions: a merged token stays at the position of its
//! left part. A heap entry whose rank is no longer that of its position is stale and skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pairs::{NO_RANK, Ranks};
use crate::error::Result;
use crate::reserve::reserve;
use crate::watch::Watch;

/// The position before the first.
const NO_POSITION: u32 = u32::MAX;

/// Buffers for merging, reused between calls.
#[derive(Default)]
pub(crate) struct HeapScratch {
    /// By position: the rank of the pair that starts there.
    ranks: Vec<u32>,
    /// By position: the next one, and the previous one.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Rank, then position: the lowest entry is the next merge.
    heap: BinaryHeap<Reverse<u64>>,
}

fn entry(rank: u32, position: u32) -> Reverse<u64> {
    Reverse(u64::from(rank) << 32 | u64::from(position))
}

impl HeapScratch {
    /// Merges fewer than 2^32 `ids` in place, using only merges of a rank below `limit`.
    pub(crate) fn merge(
        &mut self,
        ids: &mut Vec<u32>,
        pairs: &impl Ranks,
        limit: u32,
        watch: &mut Watch,
    ) -> Result<()> {
        self.start(ids, pairs, limit)?;
        let Self { ranks, next, previous, heap } = self;
        let length = ids.len() as u32;
        while let Some(Reverse(packed)) = heap.pop() {
            let (rank, at) = ((packed >> 32) as u32, packed as u32);
            watch.worked(1)?;
            if ranks[at as usize] != rank {
                continue;
            }
            let right = next[at as usize];
            let id = pairs.result(rank);
            ids[at as usize] = id;
            ranks[right as usize] = NO_RANK;
            let after = next[right as usize];
            next[at as usize] = after;
            let mut update = |position: u32, new_rank: u32| {
                ranks[position as usize] = new_rank;
                if new_rank < limit {
                    heap.push(entry(new_rank, position));
                }
            };
            if after < length {
                previous[after as usize] = at;
                update(at, pairs.rank(id, ids[after as usize]));
            } else {
                update(at, NO_RANK);
            }
            let before = previous[at as usize];
            if before != NO_POSITION {
                update(before, pairs.rank(ids[before as usize], id));
            }
        }
        let (mut at, mut kept) = (0, 0);
        while at < length {
            ids[kept] = ids[at as usize];
            kept += 1;
            at = next[at as usize];
        }
        ids.truncate(kept);
        Ok(())
    }

    /// Links all positions and ranks all pairs.
    fn start(&mut self, ids: &[u32], pairs: &impl Ranks, limit: u32) -> Result<()> {
        let Self { ranks, next, previous, heap } = self;
        let length = ids.len() as u32;
        for list in [&mut *ranks, &mut *next, &mut *previous] {
            list.clear();
            reserve(list, ids.len() + 1)?;
        }
        next.extend(1..=length);
        previous.push(NO_POSITION);
        previous.extend(0..length.saturating_sub(1));
        ranks.extend(ids.windows(2).map(|pair| pairs.rank(pair[0], pair[1])));
        ranks.push(NO_RANK);
        let mut entries = std::mem::take(heap).into_vec();
        entries.clear();
        reserve(&mut entries, 2 * ids.len())?; // a merge pops one entry and pushes at most two
        let ranked = ranks.iter().zip(0..).filter(|(rank, _)| **rank < limit);
        entries.extend(ranked.map(|(&rank, position)| entry(rank, position)));
        *heap = BinaryHeap::from(entries);
        Ok(())
    }
}
