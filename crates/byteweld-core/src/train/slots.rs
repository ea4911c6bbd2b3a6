//! The text while it is being merged: one flat array with a slot for each byte, and no links.
//!
//! A token's number is in the first and last slot of its span; the slots between are meaningless.
//! So the next token starts at `position + length`, and the token before is the number in slot
//! `position - 1`. `EDGE` precedes every pre-token and ends the text.
//!
//! ```text
//!  EDGE  l  o  w  EDGE  l  o  w  e  r  EDGE      (o,w) -> A, (l,A) -> B:
//!  EDGE  B  -  B  EDGE  B  -  B  e  r  EDGE
//! ```
//!
//! A merge also writes `TOMBSTONE` where its right token started. This makes stale positions of a
//! pair easy to detect: the slot where the left token started holds something else. (The token may
//! have become the left part of another, whose number is there now; or the right part, and then the
//! slot holds `TOMBSTONE` or, if the token had one slot, the number of a longer token ending
//! there.)

use std::ops::Range;

use super::neighbors::Neighbors;
use super::pairs::Pair;
use super::tokens::{EDGE, Token, Tokens};
use crate::cpu::prefetch;
use crate::error::Result;
use crate::reserve::{collect, filled};
use crate::threads::{self, Stop};

/// Work on more positions or slots than this checks for interrupts while it runs.
pub(super) const LONG_WORK: usize = 1 << 20;

/// How far to search for an edge when dividing the text.
const MAX_EDGE_DISTANCE: usize = 1 << 16;

/// How far to search for a gap when dividing a list of positions.
const MAX_DIVIDE_DISTANCE: usize = 1 << 10;

/// How many positions of a pair are filtered before the first of them is merged.
const BATCH: usize = 256;

/// The content of a slot: a token's number, in 16 bits if all numbers fit.
pub(super) trait Symbol: Copy + Eq + Send + Sync {
    /// Marks the start of a token that became the right part of another.
    const TOMBSTONE: Self;

    /// The symbol of a token whose number fits.
    fn of(token: Token) -> Self;

    fn token(self) -> Token;
}

impl Symbol for u16 {
    const TOMBSTONE: Self = u16::MAX;

    fn of(token: Token) -> Self {
        token as u16
    }

    fn token(self) -> Token {
        Token::from(self)
    }
}

impl Symbol for u32 {
    const TOMBSTONE: Self = u32::MAX;

    fn of(token: Token) -> Self {
        token
    }

    fn token(self) -> Token {
        self
    }
}

/// The number of pairs of bytes and edges.
pub(super) const BYTE_PAIR_CELLS: usize = (EDGE as usize + 1) * (EDGE as usize + 1);

/// The cell of a pair of bytes or edges, below [`BYTE_PAIR_CELLS`].
#[inline(always)]
pub(super) fn byte_pair_cell(pair: Pair) -> usize {
    pair.left as usize * (EDGE as usize + 1) + pair.right as usize
}

/// The slots and the counts of their blocks.
pub(super) struct Slots<S> {
    slots: Vec<S>,
    /// The count of the pre-tokens in each block.
    counts: Vec<u64>,
    /// A block is `1 << shift` slots.
    shift: u32,
}

/// A merge to apply: the pair becomes the new token.
pub(super) struct Merge {
    pub(super) pair: Pair,
    pub(super) new: Token,
    pub(super) left_length: u32,
    pub(super) right_length: u32,
}

impl<S: Symbol> Slots<S> {
    /// Creates `size` slots without text, with the counts of their blocks.
    pub(super) fn new(size: usize, counts: Vec<u64>, shift: u32) -> Result<Self> {
        Ok(Slots { slots: filled(S::of(EDGE), size)?, counts, shift })
    }

    /// Writes a pre-token; the slots before and after it must be `EDGE`.
    pub(super) fn write_pretoken(&mut self, start: usize, pretoken: &[u8]) {
        for (slot, &byte) in self.slots[start..].iter_mut().zip(pretoken) {
            *slot = S::of(Token::from(byte));
        }
    }

    /// The byte of each slot, before the first merge; `EDGE` gives 0.
    pub(super) fn text(&self) -> Result<Vec<u8>> {
        collect(self.slots.iter().map(|slot| slot.token() as u8))
    }

    /// The bytes of a range of slots, before the first merge.
    pub(super) fn bytes(&self, range: Range<usize>) -> impl Iterator<Item = u8> {
        self.slots[range].iter().map(|slot| slot.token() as u8)
    }

    /// The tokens of the pre-token at `start`, from left to right.
    pub(super) fn tokens_from(&self, tokens: &Tokens, start: usize) -> impl Iterator<Item = Token> {
        let mut at = start;
        std::iter::from_fn(move || {
            let token = self.slots.get(at)?.token();
            at += tokens.length(token) as usize;
            (token != EDGE).then_some(token)
        })
        .fuse()
    }

    /// The tokens of the same pre-token before `start`, from right to left.
    pub(super) fn tokens_before(
        &self,
        tokens: &Tokens,
        start: usize,
    ) -> impl Iterator<Item = Token> {
        let mut at = start;
        std::iter::from_fn(move || {
            let token = self.slots.get(at.checked_sub(1)?)?.token();
            at = at.checked_sub(tokens.length(token) as usize)?;
            (token != EDGE).then_some(token)
        })
        .fuse()
    }

    /// The count of the pre-token at a position.
    pub(super) fn count_at(&self, position: usize) -> u64 {
        self.counts[position >> self.shift]
    }

    /// Divides the slots into `parts` ranges of about equal size, each starting with a token or an
    /// edge. Returns fewer if there is no edge nearby, unless nothing is merged yet, when every
    /// slot starts a token.
    pub(super) fn ranges(&self, parts: usize, is_unmerged: bool) -> Vec<Range<usize>> {
        let mut starts = vec![0];
        for part in 1..parts {
            let from = self.slots.len() / parts * part;
            let near = &self.slots[from..self.slots.len().min(from + MAX_EDGE_DISTANCE)];
            // Stale slots inside a token never hold an edge.
            if let Some(at) = near.iter().position(|slot| slot.token() == EDGE) {
                starts.push(from + at);
            } else if is_unmerged {
                starts.push(from);
            }
        }
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([self.slots.len()]);
        starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
    }

    /// All pairs whose left token starts in a range, from left to right: the pair, position and
    /// count of each occurrence.
    pub(super) fn pairs(
        &self,
        tokens: &Tokens,
        range: Range<usize>,
    ) -> impl Iterator<Item = (Pair, u32, u64)> {
        let mut start = range.start;
        std::iter::from_fn(move || {
            loop {
                let position = start;
                if position >= range.end {
                    return None;
                }
                let left = self.slots.get(position)?.token();
                start += tokens.length(left) as usize;
                let right = self.slots.get(start)?.token();
                if left != EDGE && right != EDGE {
                    let count = self.count_at(position);
                    return Some((Pair { left, right }, position as u32, count));
                }
            }
        })
    }

    /// The same before the first merge, when every slot is a byte or an edge: calls `each` with the
    /// cell (pairs with edges included), position and count of each pair, until `stop` is set.
    #[inline(always)]
    pub(super) fn byte_pairs(
        &self,
        range: Range<usize>,
        stop: &Stop,
        mut each: impl FnMut(usize, u32, u64),
    ) {
        let end = range.end.min(self.slots.len().saturating_sub(1));
        let mut start = range.start;
        while start < end && !stop.is_set() {
            let block = start >> self.shift;
            let next = ((block + 1) << self.shift).min(end);
            for (at, pair) in self.slots[start..=next].windows(2).enumerate() {
                let cell = byte_pair_cell(Pair { left: pair[0].token(), right: pair[1].token() });
                each(cell, (start + at) as u32, self.counts[block]);
            }
            start = next;
        }
    }

    /// Divides a list of positions for several threads; returns the indices at which parts start.
    /// The merges on both sides of a division are at least two slots apart, so that no thread sees
    /// the writes of another.
    pub(super) fn divide(&self, merge: &Merge, positions: &[u32], parts: usize) -> Vec<usize> {
        let reach = merge.left_length + merge.right_length + 1;
        let mut starts = vec![0];
        for part in 1..parts {
            let from = positions.len() / parts * part;
            let near = &positions[from..positions.len().min(from + MAX_DIVIDE_DISTANCE)];
            if let Some(at) = near.windows(2).position(|two| two[1] - two[0] > reach) {
                starts.push(from + at + 1);
            }
        }
        starts
    }

    /// Merges at all `positions` that still hold the pair, from left to right without overlap.
    /// Moves these to the front of their part and returns their number per part. Adds the tokens
    /// around each to `neighbors` (one per part, empty before).
    pub(super) fn merge(
        &mut self,
        merge: &Merge,
        positions: &mut [u32],
        starts: &[usize],
        neighbors: &mut [Neighbors],
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<usize>> {
        let mut kept = vec![0; starts.len()];
        let is_long = positions.len() > LONG_WORK;
        let mut parts = Vec::with_capacity(starts.len());
        let (mut slots, mut positions) = (&mut self.slots[..], positions);
        let (mut first_slot, mut first_place) = (0, 0);
        let ends = starts.iter().skip(1);
        let mut outputs = neighbors.iter_mut().zip(&mut kept);
        for &end in ends {
            let slot = positions[end - first_place] as usize - 1;
            let (mine, others) = slots.split_at_mut(slot - first_slot);
            let (my_places, other_places) = positions.split_at_mut(end - first_place);
            if let Some((neighbors, kept)) = outputs.next() {
                let range = SlotRange {
                    slots: mine,
                    first: first_slot,
                    counts: &self.counts,
                    shift: self.shift,
                };
                parts.push((range, my_places, neighbors, kept));
            }
            (slots, positions, first_slot, first_place) = (others, other_places, slot, end);
        }
        if let Some((neighbors, kept)) = outputs.next() {
            let range =
                SlotRange { slots, first: first_slot, counts: &self.counts, shift: self.shift };
            parts.push((range, positions, neighbors, kept));
        }
        let threads = parts.len();
        threads::for_each(
            parts,
            threads,
            is_long,
            check_interrupt,
            |(mut range, positions, neighbors, kept), stop| {
                *kept = range.merge(merge, positions, neighbors, stop);
            },
        )?;
        Ok(kept)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// A range of slots in which one thread merges.
struct SlotRange<'s, S> {
    slots: &'s mut [S],
    /// The index of the first slot.
    first: usize,
    counts: &'s [u64],
    shift: u32,
}

impl<S: Symbol> SlotRange<'_, S> {
    /// Merges at all `positions` that hold the pair, moves these to the front, and returns their
    /// number.
    fn merge(
        &mut self,
        merge: &Merge,
        positions: &mut [u32],
        neighbors: &mut Neighbors,
        stop: &Stop,
    ) -> usize {
        let mut kept = 0;
        let mut batch = [0; BATCH];
        for start in (0..positions.len()).step_by(BATCH) {
            if stop.is_set() {
                break;
            }
            let end = positions.len().min(start + BATCH);
            for &position in positions[end..].iter().take(BATCH) {
                prefetch(self.slots, position as usize - self.first); // for the next batch
            }
            let found = self.filter_positions(merge, &positions[start..end], &mut batch);
            for &position in &batch[..found] {
                let start = position as usize - self.first;
                // In a run of equal tokens, the previous merge may have consumed the left one.
                if merge.pair.left == merge.pair.right
                    && self.slots[start].token() != merge.pair.left
                {
                    continue;
                }
                self.merge_at(merge, start, neighbors);
                positions[kept] = position;
                kept += 1;
            }
        }
        kept
    }

    /// Copies the positions that hold the pair to the front of `batch` and returns their number.
    ///
    /// About half do, unpredictably. Branch-free code avoids the mispredictions and lets the
    /// processor load the slots of many positions at once.
    fn filter_positions(
        &self,
        merge: &Merge,
        positions: &[u32],
        batch: &mut [u32; BATCH],
    ) -> usize {
        let (left, right) = (S::of(merge.pair.left), S::of(merge.pair.right));
        let mut found = 0;
        for &position in positions {
            let start = position as usize - self.first;
            // In bounds even if the pair is gone, since it was there once.
            let middle = start + merge.left_length as usize;
            batch[found] = position;
            let holds = (self.slots[start] == left) & (self.slots[middle] == right);
            found += usize::from(holds);
        }
        found
    }

    fn merge_at(&mut self, merge: &Merge, start: usize, neighbors: &mut Neighbors) {
        let middle = start + merge.left_length as usize;
        let end = middle + merge.right_length as usize;
        let (before, after) = (self.slots[start - 1].token(), self.slots[end].token());
        if before == merge.new {
            neighbors.forget_last_after();
        }
        neighbors.add(before, after, self.counts[(start + self.first) >> self.shift]);
        rewrite(self.slots, start, middle, end, S::of(merge.new));
    }
}

/// Replaces the tokens at `start..middle` and `middle..end` by one.
fn rewrite<S: Symbol>(slots: &mut [S], start: usize, middle: usize, end: usize, new: S) {
    // First: if the right token has one slot, that is also the last slot of the new token.
    slots[middle] = S::TOMBSTONE;
    slots[start] = new;
    slots[end - 1] = new;
}
