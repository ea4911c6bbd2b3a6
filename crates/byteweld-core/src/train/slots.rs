//! The text while it is being merged: one flat array with a slot for each byte, and no links.
//!
//! A token's number stands in the first and in the last slot of its span; what stands between is
//! meaningless. So the next token starts at `place + length`, and the token before is the number in
//! slot `place - 1`. Before every pretoken, and at the end, stands `EDGE`.
//!
//! ```text
//!  EDGE  l  o  w  EDGE  l  o  w  e  r  EDGE      (o,w) -> A, (l,A) -> B:
//!  EDGE  B  -  B  EDGE  B  -  B  e  r  EDGE
//! ```
//!
//! A merge also writes `DEAD` where its right token started. So a place of a pair that no longer
//! holds it is seen at once: the slot where its left token started holds something else. (That
//! token may have become the left part of another, whose number is there now; or the right part,
//! then `DEAD` is there or, if it had one slot only, the number of a longer token that ends there.)

use std::ops::Range;

use super::neighbours::Neighbours;
use super::pairs::Pair;
use super::tokens::{EDGE, Token, Tokens};
use crate::error::Result;
use crate::prefetch::prefetch;
use crate::threads::{self, Stop};

/// Work on more places, or slots, is asked now and then whether it shall go on.
pub(super) const LONG: usize = 1 << 20;

/// How far an edge is looked for.
const EDGE_WITHIN: usize = 1 << 16;

/// How far a place to divide a list is looked for.
const DIVIDE_WITHIN: usize = 1 << 10;

/// How many places of a pair are looked at before the first of them is merged.
const BATCH: usize = 256;

/// What a slot holds: a token's number in as few bits as all numbers need.
pub(super) trait Symbol: Copy + Eq + Send + Sync {
    /// What stands where a token started that became the right part of another.
    const DEAD: Self;

    /// The symbol of a token whose number fits.
    fn of(token: Token) -> Self;

    fn token(self) -> Token;
}

impl Symbol for u16 {
    const DEAD: Self = u16::MAX;

    fn of(token: Token) -> Self {
        token as u16
    }

    fn token(self) -> Token {
        Token::from(self)
    }
}

impl Symbol for u32 {
    const DEAD: Self = u32::MAX;

    fn of(token: Token) -> Self {
        token
    }

    fn token(self) -> Token {
        self
    }
}

/// How many pairs of bytes and edges there are.
pub(super) const CELLS: usize = (EDGE as usize + 1) * (EDGE as usize + 1);

/// The cell of a pair of bytes or edges.
#[inline(always)]
pub(super) fn cell(pair: Pair) -> usize {
    pair.left as usize * (EDGE as usize + 1) + pair.right as usize
}

/// The slots and the counts of their blocks.
pub(super) struct Slots<S> {
    slots: Vec<S>,
    /// By block: how often the pretokens in it occur.
    counts: Vec<u64>,
    /// A block is `1 << shift` slots.
    shift: u32,
}

/// A merge to be made: the pair becomes the new token.
pub(super) struct Merge {
    pub(super) pair: Pair,
    pub(super) new: Token,
    pub(super) left_length: u32,
    pub(super) right_length: u32,
}

impl<S: Symbol> Slots<S> {
    /// So many slots without text, and the counts of their blocks.
    pub(super) fn new(size: usize, counts: Vec<u64>, shift: u32) -> Self {
        Slots { slots: vec![S::of(EDGE); size], counts, shift }
    }

    /// Writes a word; what stands before and behind it must be `EDGE`.
    pub(super) fn place(&mut self, start: usize, word: &[u8]) {
        for (slot, &byte) in self.slots[start..].iter_mut().zip(word) {
            *slot = S::of(Token::from(byte));
        }
    }

    /// The byte of each slot, as long as nothing is merged; `EDGE` gives 0.
    pub(super) fn text(&self) -> Vec<u8> {
        self.slots.iter().map(|slot| slot.token() as u8).collect()
    }

    /// So many ranges of slots, about equal, each starting with a token or an edge. Fewer where there is no edge
    /// to be found soon, unless every slot is a token since nothing was merged.
    pub(super) fn ranges(&self, parts: usize, is_unmerged: bool) -> Vec<Range<usize>> {
        let mut starts = vec![0];
        for part in 1..parts {
            let from = self.slots.len() / parts * part;
            let near = &self.slots[from..self.slots.len().min(from + EDGE_WITHIN)];
            // What is left of older tokens is never an edge.
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

    /// All pairs of which the left token starts in a range, as they stand, from left to right: pair, place
    /// and count of each occurrence.
    pub(super) fn pairs(
        &self,
        tokens: &Tokens,
        range: Range<usize>,
    ) -> impl Iterator<Item = (Pair, u32, u64)> {
        let mut start = range.start;
        std::iter::from_fn(move || {
            loop {
                let place = start;
                if place >= range.end {
                    return None;
                }
                let left = self.slots.get(place)?.token();
                start += tokens.length(left) as usize;
                let right = self.slots.get(start)?.token();
                if left != EDGE && right != EDGE {
                    let count = self.counts[place >> self.shift];
                    return Some((Pair { left, right }, place as u32, count));
                }
            }
        })
    }

    /// The same as long as nothing is merged, so that every slot is a token or an edge: the cell of the pair, of
    /// [`CELLS`], with those of edges among them; place; count. Every now and then `stop` is looked at.
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
                let cell = cell(Pair { left: pair[0].token(), right: pair[1].token() });
                each(cell, (start + at) as u32, self.counts[block]);
            }
            start = next;
        }
    }

    /// Where lists of places may be divided for several threads: indices of `places` at which parts start.
    /// Between the last place of one part and the first of the next lie two slots at least, so that
    /// neither sees what the other does.
    pub(super) fn divide(&self, merge: &Merge, places: &[u32], parts: usize) -> Vec<usize> {
        let reach = merge.left_length + merge.right_length + 1;
        let mut starts = vec![0];
        for part in 1..parts {
            let from = places.len() / parts * part;
            let near = &places[from..places.len().min(from + DIVIDE_WITHIN)];
            if let Some(at) = near.windows(2).position(|two| two[1] - two[0] > reach) {
                starts.push(from + at + 1);
            }
        }
        starts
    }

    /// Merges at all `places` that still hold the pair, from left to right, without overlap; moves those to
    /// the front of their part and gives how many there are in each. Tells `neighbours` (empty before, one
    /// for each part) what it found around each.
    pub(super) fn merge(
        &mut self,
        merge: &Merge,
        places: &mut [u32],
        starts: &[usize],
        neighbours: &mut [Neighbours],
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<usize>> {
        let mut kept = vec![0; starts.len()];
        let is_long = places.len() > LONG;
        let mut parts = Vec::with_capacity(starts.len());
        let (mut slots, mut places) = (&mut self.slots[..], places);
        let (mut first_slot, mut first_place) = (0, 0);
        let ends = starts.iter().skip(1);
        let mut news = neighbours.iter_mut().zip(&mut kept);
        for &end in ends {
            let slot = places[end - first_place] as usize - 1;
            let (mine, others) = slots.split_at_mut(slot - first_slot);
            let (my_places, other_places) = places.split_at_mut(end - first_place);
            if let Some((neighbours, kept)) = news.next() {
                let text = Text {
                    slots: mine,
                    first: first_slot,
                    counts: &self.counts,
                    shift: self.shift,
                };
                parts.push((text, my_places, neighbours, kept));
            }
            (slots, places, first_slot, first_place) = (others, other_places, slot, end);
        }
        if let Some((neighbours, kept)) = news.next() {
            let text = Text { slots, first: first_slot, counts: &self.counts, shift: self.shift };
            parts.push((text, places, neighbours, kept));
        }
        let threads = parts.len();
        threads::each(
            parts,
            threads,
            is_long,
            goes_on,
            |(mut text, places, neighbours, kept), stop| {
                *kept = text.merge(merge, places, neighbours, stop);
            },
        )?;
        Ok(kept)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// A part of the slots, in which one thread merges.
struct Text<'s, S> {
    slots: &'s mut [S],
    /// Which slot is the first.
    first: usize,
    counts: &'s [u64],
    shift: u32,
}

impl<S: Symbol> Text<'_, S> {
    /// Merges at all `places` that hold the pair and moves those to the front; gives how many they are.
    fn merge(
        &mut self,
        merge: &Merge,
        places: &mut [u32],
        neighbours: &mut Neighbours,
        stop: &Stop,
    ) -> usize {
        let mut kept = 0;
        let mut batch = [0; BATCH];
        for start in (0..places.len()).step_by(BATCH) {
            if stop.is_set() {
                break;
            }
            let end = places.len().min(start + BATCH);
            for &place in places[end..].iter().take(BATCH) {
                prefetch(self.slots, place as usize - self.first); // for the next batch
            }
            let found = self.sift(merge, &places[start..end], &mut batch);
            for &place in &batch[..found] {
                let start = place as usize - self.first;
                // In a run of equal tokens the merge before may have taken the left one.
                if merge.pair.left == merge.pair.right
                    && self.slots[start].token() != merge.pair.left
                {
                    continue;
                }
                self.merge_at(merge, start, neighbours);
                places[kept] = place;
                kept += 1;
            }
        }
        kept
    }

    /// Copies the places that hold the pair to the front of `batch` and says how many they are.
    ///
    /// About half do, as if by chance. Without a branch the processor need not guess which, and
    /// fetches the slots of many places at once.
    fn sift(&self, merge: &Merge, places: &[u32], batch: &mut [u32; BATCH]) -> usize {
        let (left, right) = (S::of(merge.pair.left), S::of(merge.pair.right));
        let mut found = 0;
        for &place in places {
            let start = place as usize - self.first;
            // Inside the array even if the pair is gone, since it stood there once.
            let middle = start + merge.left_length as usize;
            batch[found] = place;
            let holds = (self.slots[start] == left) & (self.slots[middle] == right);
            found += usize::from(holds);
        }
        found
    }

    fn merge_at(&mut self, merge: &Merge, start: usize, neighbours: &mut Neighbours) {
        let middle = start + merge.left_length as usize;
        let end = middle + merge.right_length as usize;
        let (before, after) = (self.slots[start - 1].token(), self.slots[end].token());
        if before == merge.new {
            neighbours.forget_last_after();
        }
        neighbours.add(before, after, self.counts[(start + self.first) >> self.shift]);
        rewrite(self.slots, start, middle, end, S::of(merge.new));
    }
}

/// Makes one token of two that lie at `start..middle` and `middle..end`.
fn rewrite<S: Symbol>(slots: &mut [S], start: usize, middle: usize, end: usize, new: S) {
    // First this one: if the right token has one slot, it is also the last of the new token.
    slots[middle] = S::DEAD;
    slots[start] = new;
    slots[end - 1] = new;
}
