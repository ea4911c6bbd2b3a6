//! Words to slots: which place each word gets.
//!
//! Words with the same count lie together, the greatest counts first, so that a count is kept once for a
//! block of slots and not once for each word. The words are walked twice: the first walk adds up how much
//! room each count needs, the second puts every word into the room of its count. So no list of the words
//! is needed, and they may come from a disk.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt};

use super::slots::{Slots, Symbol};
use super::words::Words;
use crate::error::{Error, Result};

/// Words with the same count lie together in blocks of `1 << shift` slots, so that the count of a place is
/// found by a shift. Larger blocks make the table of counts smaller, smaller ones waste less when there
/// are many different counts: the largest that wastes at most an eighth is taken.
const MAX_SHIFT: u32 = 6;
const MIN_SHIFT: u32 = 2;

/// The caller is asked whether to go on after so many bytes of words: some milliseconds.
const ASK_EVERY: usize = 1 << 16;

/// What the first walk finds.
pub(super) struct Layout {
    /// By count: how many slots its words take.
    rooms: HashMap<u64, u64>,
    occurs: [bool; 256],
    /// The bytes of the text, each word as often as it occurs.
    pub(super) bytes: u64,
}

impl Layout {
    /// Walks the words once.
    pub(super) fn of(words: &dyn Words, goes_on: &mut dyn FnMut() -> Result<()>) -> Result<Self> {
        let mut rooms: HashMap<u64, u64> = HashMap::new();
        let mut occurs = [false; 256];
        let mut total: u128 = 0;
        walk(words, goes_on, |word, count| {
            if count == 0 {
                return;
            }
            total += word.len() as u128 * u128::from(count);
            for &byte in word {
                occurs[usize::from(byte)] = true;
            }
            // A word of one byte holds no pair.
            if word.len() > 1 {
                *rooms.entry(count).or_insert(0) += word.len() as u64 + 1;
            }
        })?;
        Ok(Layout { rooms, occurs, bytes: check_total(total)? })
    }

    /// The smallest byte that occurs and has no id is an error.
    pub(super) fn check_bytes(&self, base_ids: &[Option<u32>; 256]) -> Result<()> {
        for (byte, id) in base_ids.iter().enumerate() {
            if self.occurs[byte] && id.is_none() {
                return Err(Error::Train(format!(
                    "byte 0x{byte:02X} occurs in the text but has no id in the base alphabet; \
                     use an alphabet that has it or remove it from the text",
                )));
            }
        }
        Ok(())
    }

    /// Walks the words again and puts each into its place.
    pub(super) fn lay_out<S: Symbol>(
        self,
        words: &dyn Words,
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Slots<S>> {
        let mut rooms: Vec<(u64, u64)> = self.rooms.into_iter().collect();
        rooms.sort_unstable_by_key(|&(count, _)| std::cmp::Reverse(count));
        let size: u128 = rooms.iter().map(|&(_, size)| u128::from(size)).sum();
        let shift = block_shift(size, rooms.len() as u128);
        let blocks: u128 =
            rooms.iter().map(|&(_, size)| u128::from(size).div_ceil(1 << shift)).sum();
        let size = (blocks << shift) + 1;
        if size > u128::from(u32::MAX) {
            return Err(Error::Train(format!(
                "the distinct pretokens fill {size} slots of the trainer, which has {}; \
                 use a pattern that cuts the text into shorter pretokens, or train on a part of it",
                u32::MAX,
            )));
        }
        let mut counts = Vec::with_capacity(blocks as usize);
        // By count: what is left of its room.
        let mut left: HashMap<u64, Range<usize>> = HashMap::with_capacity(rooms.len());
        for (count, size) in rooms {
            let start = counts.len() << shift;
            left.insert(count, start..start + size as usize);
            let blocks = size.div_ceil(1 << shift) as usize;
            counts.resize(counts.len() + blocks, count);
        }
        let mut slots = Slots::new(size as usize, counts, shift);
        let mut is_same = true;
        walk(words, goes_on, |word, count| {
            if count == 0 || word.len() < 2 {
                return;
            }
            match left.get_mut(&count).filter(|room| room.len() > word.len()) {
                Some(room) => {
                    slots.place(room.start + 1, word);
                    room.start += word.len() + 1;
                }
                None => is_same = false,
            }
        })?;
        if is_same && left.values().all(Range::is_empty) {
            return Ok(slots);
        }
        Err(Error::Train("the counts changed while they were read; count again".to_owned()))
    }
}

/// Calls `each` with every word, and `goes_on` after every so many bytes of them.
fn walk(
    words: &dyn Words,
    goes_on: &mut dyn FnMut() -> Result<()>,
    mut each: impl FnMut(&[u8], u64),
) -> Result<()> {
    let mut since = 0;
    words.for_each(&mut |word, count| {
        each(word, count);
        since += word.len() + 1;
        if since < ASK_EVERY {
            return Ok(());
        }
        since = 0;
        goes_on()
    })
}

/// The largest block size that wastes little; each room wastes less than one block.
fn block_shift(size: u128, rooms: u128) -> u32 {
    let is_small = |&shift: &u32| rooms << shift <= size / 8;
    (MIN_SHIFT..=MAX_SHIFT).rev().find(is_small).unwrap_or(MIN_SHIFT)
}

/// All pair counts together are below the sum of count times length: if it fits, they do.
fn check_total(bytes: u128) -> Result<u64> {
    match u64::try_from(bytes) {
        Ok(bytes) if i64::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err(Error::Train(format!(
            "the counts add up to {bytes} bytes of text, more than {}; divide all counts by the \
             same number",
            i64::MAX,
        ))),
    }
}
