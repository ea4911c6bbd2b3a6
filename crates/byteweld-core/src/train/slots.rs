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

use std::cmp::Reverse;

use super::neighbours::Neighbours;
use super::pairs::Pair;
use super::tokens::{EDGE, Token, Tokens};
use crate::error::{Error, Result};

/// What stands where a token started that became the right part of another.
const DEAD: Token = Token::MAX;

/// Pretokens with the same count lie together in blocks of `1 << shift` slots, so that the count of
/// a place is found by a shift. Larger blocks make the table of counts smaller, smaller ones waste
/// less when there are many different counts: the largest that wastes at most an eighth is taken.
const MAX_SHIFT: u32 = 6;
const MIN_SHIFT: u32 = 2;

/// How many places of a pair are looked at before the first of them is merged.
const BATCH: usize = 256;

/// The slots and the counts of their blocks.
pub(super) struct Slots {
    slots: Vec<Token>,
    /// By block: how often the pretokens in it occur.
    counts: Vec<u64>,
    shift: u32,
    /// The bytes of the text before it was made distinct: the sum of count times length.
    bytes: u64,
}

/// A merge to be made: the pair becomes the new token.
pub(super) struct Merge {
    pub(super) pair: Pair,
    pub(super) new: Token,
    pub(super) left_length: u32,
    pub(super) right_length: u32,
}

impl Slots {
    /// Lays out the pretokens; those of one byte hold no pair and are left out.
    pub(super) fn new(words: &[(&[u8], u64)], base_ids: &[Option<u32>; 256]) -> Result<Self> {
        let bytes = count_bytes(words)?;
        let mut order: Vec<(u64, usize)> = (0..words.len())
            .map(|index| (words[index].1, index))
            .filter(|&(count, index)| count > 0 && words[index].0.len() > 1)
            .collect();
        order.sort_by_key(|&(count, _)| Reverse(count));

        let groups = || order.chunk_by(|a, b| a.0 == b.0);
        let sizes: Vec<u128> = groups()
            .map(|group| group.iter().map(|&(_, index)| words[index].0.len() as u128 + 1).sum())
            .collect();
        let shift = block_shift(sizes.iter().sum(), sizes.len() as u128);
        let blocks: u128 = sizes.iter().map(|size| size.div_ceil(1 << shift)).sum();
        let size = (blocks << shift) + 1;
        if size > u128::from(u32::MAX) {
            return Err(Error::Train(format!(
                "the distinct pretokens fill {size} slots of the trainer, which has {}; \
                 use a pattern that cuts the text into shorter pretokens, or train on a part of it",
                u32::MAX,
            )));
        }
        check_bytes(words, base_ids)?;

        let mut slots = vec![EDGE; size as usize];
        let mut counts = Vec::with_capacity(blocks as usize);
        for group in groups() {
            let mut at = counts.len() << shift;
            for &(_, index) in group {
                let bytes = words[index].0;
                at += 1;
                for (slot, &byte) in slots[at..].iter_mut().zip(bytes) {
                    *slot = Token::from(byte);
                }
                at += bytes.len();
            }
            counts.resize(at.div_ceil(1 << shift), group[0].0);
        }
        Ok(Slots { slots, counts, shift, bytes })
    }

    /// How many bytes the text has, each pretoken as often as it occurs.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The byte of each slot, as long as nothing is merged; `EDGE` gives 0.
    pub(super) fn text(&self) -> Vec<u8> {
        self.slots.iter().map(|&slot| slot as u8).collect()
    }

    /// All pairs as they stand, from left to right: pair, place and count of each occurrence.
    pub(super) fn pairs(&self, tokens: &Tokens) -> impl Iterator<Item = (Pair, u32, u64)> {
        let mut start = 0;
        std::iter::from_fn(move || {
            loop {
                let place = start;
                let left = *self.slots.get(place)?;
                start += tokens.length(left) as usize;
                let right = *self.slots.get(start)?;
                if left != EDGE && right != EDGE {
                    let count = self.counts[place >> self.shift];
                    return Some((Pair { left, right }, place as u32, count));
                }
            }
        })
    }

    /// Merges at all `places` that still hold the pair, from left to right, without overlap; keeps
    /// only those in `places` and tells `neighbours` (empty before) what it found around each.
    pub(super) fn merge(
        &mut self,
        merge: &Merge,
        places: &mut Vec<u32>,
        neighbours: &mut Neighbours,
    ) {
        let mut kept = 0;
        let mut batch = [0; BATCH];
        for start in (0..places.len()).step_by(BATCH) {
            let end = places.len().min(start + BATCH);
            let found = self.sift(merge, &places[start..end], &mut batch);
            for &place in &batch[..found] {
                // In a run of equal tokens the merge before may have taken the left one.
                if merge.pair.left == merge.pair.right
                    && self.slots[place as usize] != merge.pair.left
                {
                    continue;
                }
                self.merge_at(merge, place as usize, neighbours);
                places[kept] = place;
                kept += 1;
            }
        }
        places.truncate(kept);
    }

    /// Copies the places that hold the pair to the front of `batch` and says how many they are.
    ///
    /// About half do, as if by chance. Without a branch the processor need not guess which, and
    /// fetches the slots of many places at once.
    fn sift(&self, merge: &Merge, places: &[u32], batch: &mut [u32; BATCH]) -> usize {
        let Pair { left, right } = merge.pair;
        let mut found = 0;
        for &place in places {
            let start = place as usize;
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
        let (before, after) = (self.slots[start - 1], self.slots[end]);
        if before == merge.new {
            neighbours.forget_last_after();
        }
        neighbours.add(before, after, self.counts[start >> self.shift]);
        // First this one: if the right token has one slot, it is also the last of the new token.
        self.slots[middle] = DEAD;
        self.slots[start] = merge.new;
        self.slots[end - 1] = merge.new;
    }
}

/// The largest block size that wastes little; each group of pretokens wastes less than one block.
fn block_shift(size: u128, groups: u128) -> u32 {
    let is_small = |&shift: &u32| groups << shift <= size / 8;
    (MIN_SHIFT..=MAX_SHIFT).rev().find(is_small).unwrap_or(MIN_SHIFT)
}

/// The sum of count times length. All pair counts together are below it: if it fits, they do.
fn count_bytes(words: &[(&[u8], u64)]) -> Result<u64> {
    let bytes: u128 =
        words.iter().map(|(bytes, count)| bytes.len() as u128 * u128::from(*count)).sum();
    match u64::try_from(bytes) {
        Ok(bytes) if i64::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err(Error::Train(format!(
            "the counts add up to {bytes} bytes of text, more than {}; divide all counts by the \
             same number",
            i64::MAX,
        ))),
    }
}

/// Checks that every byte of the text has a token; names the smallest that has none.
fn check_bytes(words: &[(&[u8], u64)], base_ids: &[Option<u32>; 256]) -> Result<()> {
    let mut occurs = [false; 256];
    for &(bytes, count) in words {
        if count > 0 {
            for &byte in bytes {
                occurs[usize::from(byte)] = true;
            }
        }
    }
    for (byte, id) in base_ids.iter().enumerate() {
        if occurs[byte] && id.is_none() {
            return Err(Error::Train(format!(
                "byte 0x{byte:02X} occurs in the text but has no id in the base alphabet; \
                 use an alphabet that has it or remove it from the text",
            )));
        }
    }
    Ok(())
}
