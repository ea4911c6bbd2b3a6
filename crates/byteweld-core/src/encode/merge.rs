//! Merging a sequence of ids: the lowest-ranked pair first, of equal ones the leftmost, until none is left.
//!
//! Short sequences are merged by looking through all pairs for each merge (`short.rs`), others with the pairs in a
//! heap: n log n for any length. Same result. (Long pre-tokens are mostly not merged at all: `longest.rs`.)

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::longest::Trail;
use super::lookup::{Waiting, Window};
use super::pairs::{NONE, Pairs, Ranks};
use super::short::{SHORT, Short};
use super::turns::Turns;
use super::words::Words;
use crate::error::Result;
use crate::reserve::reserve;
use crate::rewrite::Limits;
use crate::watch::Watch;

/// Reusable space for merging.
#[derive(Default)]
pub(super) struct Scratch {
    /// The sequence: ids in, merged ids out.
    pub(super) ids: Vec<u32>,
    /// `ranks[i]` is the rank of the pair that starts at `i`.
    ranks: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    heap: BinaryHeap<Reverse<u64>>,
    /// The way through a long pre-token.
    pub(super) trail: Trail,
    /// Words that were merged before.
    pub(super) words: Words,
    /// New words that are being merged.
    pub(super) turns: Turns,
    /// Words that wait to be looked up.
    pub(super) waiting: Waiting,
    /// Room for the end of a text.
    pub(super) end: Option<Box<Window>>,
    /// What may still be done for the text.
    pub(super) limits: Limits,
    /// Whether to stop.
    pub(super) watch: Watch,
}

/// Space for a longer sequence than this is not kept for the next call.
const KEPT: usize = 1 << 16;

impl Scratch {
    /// Makes it fit to be kept: what one huge word needed is given back.
    pub(super) fn shrink(&mut self) {
        if self.ids.capacity() > KEPT || self.trail.size() > KEPT {
            *self = Self { words: std::mem::take(&mut self.words), ..Self::default() };
        }
    }

    /// Merges `self.ids` in place, with merges of a rank below `limit` only.
    pub(super) fn merge(&mut self, pairs: &Pairs, limit: u32) -> Result<()> {
        if self.ids.len() <= SHORT {
            self.merge_short(pairs, limit);
            return Ok(());
        }
        self.merge_heap(pairs, limit)
    }

    /// For at most [`SHORT`] ids.
    pub(super) fn merge_short(&mut self, pairs: &Pairs, limit: u32) {
        let mut short = Short::default();
        short.begin(self.ids.iter().copied());
        short.rank_all(pairs);
        while short.merge(pairs, limit) {
            short.listen(pairs);
        }
        short.ids(&mut self.ids);
    }

    pub(super) fn merge_heap(&mut self, pairs: &impl Ranks, limit: u32) -> Result<()> {
        let Self { ids, ranks, next, previous, heap, watch, .. } = self;
        let length = ids.len() as u32; // the caller keeps pre-tokens below 2^32 bytes
        // A doubly linked list over places; `length` is the end, and before 0 there is NONE.
        for list in [&mut *next, &mut *previous, &mut *ranks] {
            list.clear();
            reserve(list, ids.len() + 1)?;
        }
        next.extend(1..=length);
        previous.push(NONE);
        previous.extend(0..length.saturating_sub(1));
        ranks.extend(ids.windows(2).map(|pair| pairs.rank(pair[0], pair[1])));
        ranks.push(NONE);
        let entry = |rank: u32, at: u32| Reverse(u64::from(rank) << 32 | u64::from(at));
        let mut entries = std::mem::take(heap).into_vec();
        entries.clear();
        // Each merge takes one out, and puts in two at most.
        reserve(&mut entries, 2 * ids.len())?;
        entries.extend(
            ranks
                .iter()
                .zip(0..)
                .filter(|(rank, _)| **rank < limit)
                .map(|(rank, at)| entry(*rank, at)),
        );
        *heap = BinaryHeap::from(entries);
        while let Some(Reverse(packed)) = heap.pop() {
            let (rank, at) = ((packed >> 32) as u32, packed as u32);
            watch.worked(1)?;
            if ranks[at as usize] != rank {
                continue; // the pair at this place has changed since
            }
            let right = next[at as usize];
            let id = pairs.made(rank);
            ids[at as usize] = id;
            ranks[right as usize] = NONE;
            let after = next[right as usize];
            next[at as usize] = after;
            let new_rank = if after < length {
                previous[after as usize] = at;
                pairs.rank(id, ids[after as usize])
            } else {
                NONE
            };
            ranks[at as usize] = new_rank;
            if new_rank < limit {
                heap.push(entry(new_rank, at));
            }
            let before = previous[at as usize];
            if before != NONE {
                let new_rank = pairs.rank(ids[before as usize], id);
                ranks[before as usize] = new_rank;
                if new_rank < limit {
                    heap.push(entry(new_rank, before));
                }
            }
        }
        // Walk the list and keep what is left.
        let (mut at, mut kept) = (0u32, 0usize);
        while at < length {
            ids[kept] = ids[at as usize];
            kept += 1;
            at = next[at as usize];
        }
        ids.truncate(kept);
        Ok(())
    }
}
