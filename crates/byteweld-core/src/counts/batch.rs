//! Adding many pre-tokens: first all are hashed, then all their slots are read, then all are counted.
//!
//! A slot or an entry that is not in the cache takes as long to come as ten pre-tokens take otherwise. In
//! loops without jumps the processor waits for many of them at once.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::table::{Key, Table, pack, pack_chunk};
use crate::error::Result;

/// How many pre-tokens are added at once: enough to wait together, and they stay in the nearest cache.
pub(super) const BATCH: usize = 128;

#[derive(Clone, Copy, Default)]
struct Item {
    key: Key,
    hash: u64,
    count: u64,
}

/// Adds pre-tokens to a table. Some wait until there are enough of them, or until [`Batch::flush`].
pub(super) struct Batch<'t> {
    table: &'t mut Table,
    hasher: &'t RandomState,
    items: [Item; BATCH],
    /// How many of the items wait.
    filled: usize,
}

impl<'t> Batch<'t> {
    pub(super) fn new(table: &'t mut Table, hasher: &'t RandomState) -> Self {
        Self { table, hasher, items: [Item::default(); BATCH], filled: 0 }
    }

    /// Adds one of the pre-token `text[start..end]`.
    #[inline(always)]
    pub(super) fn add(&mut self, text: &[u8], start: usize, end: usize) -> Result<()> {
        // 16 bytes are read whatever the length: a jump that depends on it is guessed wrong too often.
        match text.get(start..).and_then(|rest| pack_chunk(rest.first_chunk()?, end - start)) {
            Some(key) => self.push(Item { key, hash: self.hasher.hash_one(key), count: 1 }),
            None => self.add_other(&text[start..end]),
        }
    }

    /// The same for one that is long, or near the end of the text.
    #[inline(never)]
    fn add_other(&mut self, pretoken: &[u8]) -> Result<()> {
        match pack(pretoken) {
            Some(key) => self.push(Item { key, hash: self.hasher.hash_one(key), count: 1 }),
            None => self.add_long(pretoken, self.hasher.hash_one(pretoken), 1),
        }
    }

    /// Adds those entries of another table that belong to one of so many parts.
    pub(super) fn add_part(&mut self, other: &Table, part: usize, parts: usize) -> Result<()> {
        for entry in other.entries() {
            let hash = other.hash(entry, self.hasher);
            if part_of(hash, parts) != part {
                continue;
            }
            if entry.is_long() {
                self.add_long(other.bytes(entry), hash, entry.count)?;
            } else {
                self.push(Item { key: entry.key(), hash, count: entry.count })?;
            }
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, item: Item) -> Result<()> {
        if self.filled == BATCH {
            self.flush()?;
        }
        self.items[self.filled] = item;
        self.filled += 1;
        Ok(())
    }

    /// Counts a long pre-token. A new one comes after those that wait, so that the order stays that of
    /// first sight.
    #[inline(never)]
    fn add_long(&mut self, pretoken: &[u8], hash: u64, count: u64) -> Result<()> {
        if self.table.get(pretoken, hash) == 0 {
            self.flush()?;
        }
        self.table.add(pretoken, hash, count, self.hasher)
    }

    /// Counts what waits.
    #[inline(never)]
    pub(super) fn flush(&mut self) -> Result<()> {
        let items = &self.items[..self.filled];
        self.filled = 0;
        self.table.reserve(items.len(), self.hasher)?;
        let mut slots = [0; BATCH];
        for (slot, item) in slots.iter_mut().zip(items) {
            *slot = self.table.slot(item.hash);
        }
        for (&slot, item) in slots.iter().zip(items) {
            if !self.table.count_up(slot, item.key, item.count) {
                self.table.add_short(item.key, item.hash, item.count)?;
            }
        }
        Ok(())
    }
}

/// Which of so many parts, a power of two, a hash belongs to. A table finds its slots by other bits.
pub(super) fn part_of(hash: u64, parts: usize) -> usize {
    hash as usize & (parts - 1)
}
