//! Adding many pre-tokens: first all are hashed, then all their slots are read, then all are counted.
//!
//! A slot or an entry that is not in the cache takes as long to come as ten pre-tokens take otherwise. So
//! each is asked for well before it is needed, and the processor waits for many of them at once.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::spill::Limit;
use super::table::{Key, Table, pack, pack_chunk};
use crate::error::{Error, Result};

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
    /// Where the table goes when it is full.
    limit: Option<&'t Limit>,
    items: [Item; BATCH],
    /// How many of the items wait.
    filled: usize,
}

impl<'t> Batch<'t> {
    pub(super) fn new(table: &'t mut Table, hasher: &'t RandomState) -> Self {
        Self::within(None, table, hasher)
    }

    /// Keeps the table within a limit: a full one is spilled.
    pub(super) fn within(
        limit: Option<&'t Limit>,
        table: &'t mut Table,
        hasher: &'t RandomState,
    ) -> Self {
        Self { table, hasher, limit, items: [Item::default(); BATCH], filled: 0 }
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
        self.table.prefetch(item.hash);
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
            if !self.make_room(1, pretoken.len())? {
                return self.spill_alone(pretoken, count);
            }
        }
        self.table.add(pretoken, hash, count, self.hasher)
    }

    /// Sees to it that the table stays within its limit; false if it cannot, even if it is empty.
    #[inline]
    fn make_room(&mut self, entries: usize, long: usize) -> Result<bool> {
        match self.limit {
            Some(limit) if !self.table.can_take(entries, long, limit.table_bytes) => {
                if !self.table.entries().is_empty() {
                    self.table.spill(&*limit.spill)?;
                }
                Ok(self.table.empty(entries, long, limit.table_bytes))
            }
            _ => Ok(true),
        }
    }

    /// Makes a run of one pre-token, which is too long for the table.
    #[cold]
    fn spill_alone(&self, pretoken: &[u8], count: u64) -> Result<()> {
        match self.limit {
            Some(limit) => {
                limit.spill.write(&mut std::iter::once((pretoken, count))).map_err(Error::Source)
            }
            None => Ok(()),
        }
    }

    /// Counts what waits.
    #[inline(never)]
    pub(super) fn flush(&mut self) -> Result<()> {
        // A limit below what a batch needs is passed by that little.
        self.make_room(self.filled, 0)?;
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
