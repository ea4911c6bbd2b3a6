//! Adds pre-tokens in batches: first all are hashed, then all their slots are read, then all are
//! counted.
//!
//! A slot or entry that misses the cache costs as much as ten pre-tokens that hit, so both are
//! prefetched ahead of use and the misses of a batch overlap.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::spill::MemoryLimit;
use super::table::CountTable;
use crate::error::{Error, Result};
use crate::packed::{Packed, pack, pack_chunk};

/// Pre-tokens per batch: enough to overlap cache misses, few enough for the batch to fit in L1.
pub(super) const BATCH_LEN: usize = 128;

#[derive(Clone, Copy, Default)]
struct Item {
    key: Packed,
    hash: u64,
    count: u64,
}

/// Adds pre-tokens to a table. Some are buffered until the batch is full or [`Batch::flush`].
pub(super) struct Batch<'t> {
    table: &'t mut CountTable,
    hasher: &'t RandomState,
    /// If set, a table that reaches the limit is spilled.
    limit: Option<&'t MemoryLimit>,
    items: [Item; BATCH_LEN],
    /// The number of buffered items.
    filled: usize,
}

impl<'t> Batch<'t> {
    pub(super) fn new(table: &'t mut CountTable, hasher: &'t RandomState) -> Self {
        Self::with_limit(None, table, hasher)
    }

    /// Keeps the table within a limit by spilling it when it is full.
    pub(super) fn with_limit(
        limit: Option<&'t MemoryLimit>,
        table: &'t mut CountTable,
        hasher: &'t RandomState,
    ) -> Self {
        Self { table, hasher, limit, items: [Item::default(); BATCH_LEN], filled: 0 }
    }

    /// Adds one occurrence of the pre-token `text[start..end]`.
    #[inline(always)]
    pub(super) fn add(&mut self, text: &[u8], start: usize, end: usize) -> Result<()> {
        // Always read 16 bytes: a branch on the length would be mispredicted too often.
        match text.get(start..).and_then(|rest| pack_chunk(rest.first_chunk()?, end - start)) {
            Some(key) => self.push(Item { key, hash: self.hasher.hash_one(key), count: 1 }),
            None => self.add_other(&text[start..end]),
        }
    }

    /// The same for a pre-token that is long or near the end of the text.
    #[inline(never)]
    fn add_other(&mut self, pretoken: &[u8]) -> Result<()> {
        match pack(pretoken) {
            Some(key) => self.push(Item { key, hash: self.hasher.hash_one(key), count: 1 }),
            None => self.add_long(pretoken, self.hasher.hash_one(pretoken), 1),
        }
    }

    /// Adds the entries of another table that belong to one of `parts` parts.
    pub(super) fn add_part(&mut self, other: &CountTable, part: usize, parts: usize) -> Result<()> {
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
        if self.filled == BATCH_LEN {
            self.flush()?;
        }
        self.table.prefetch(item.hash);
        self.items[self.filled] = item;
        self.filled += 1;
        Ok(())
    }

    /// Counts a long pre-token. A new one flushes the batch first, to keep the order of first
    /// occurrence.
    #[inline(never)]
    fn add_long(&mut self, pretoken: &[u8], hash: u64, count: u64) -> Result<()> {
        if self.table.get(pretoken, hash) == 0 {
            self.flush()?;
            if !self.ensure_capacity(1, pretoken.len())? {
                return self.spill_alone(pretoken, count);
            }
        }
        self.table.add(pretoken, hash, count, self.hasher)
    }

    /// Spills the table if the new entries would exceed its limit; false if they do not fit even in
    /// an empty table.
    #[inline]
    fn ensure_capacity(&mut self, entries: usize, long: usize) -> Result<bool> {
        match self.limit {
            Some(limit) if !self.table.can_take(entries, long, limit.table_bytes) => {
                if !self.table.entries().is_empty() {
                    self.table.spill(&*limit.spill)?;
                }
                self.table.reset(entries, long, limit.table_bytes)
            }
            _ => Ok(true),
        }
    }

    /// Writes a run of one pre-token that is too long for the table.
    #[cold]
    fn spill_alone(&self, pretoken: &[u8], count: u64) -> Result<()> {
        match self.limit {
            Some(limit) => {
                limit.spill.write(&mut std::iter::once((pretoken, count))).map_err(Error::Source)
            }
            None => Ok(()),
        }
    }

    /// Counts the buffered items.
    #[inline(never)]
    pub(super) fn flush(&mut self) -> Result<()> {
        // A limit too small for a single batch is exceeded by at most that batch.
        self.ensure_capacity(self.filled, 0)?;
        let items = &self.items[..self.filled];
        self.filled = 0;
        self.table.reserve(items.len(), self.hasher)?;
        let mut slots = [0; BATCH_LEN];
        for (slot, item) in slots.iter_mut().zip(items) {
            *slot = self.table.slot(item.hash);
        }
        for (&slot, item) in slots.iter().zip(items) {
            if !self.table.try_increment(slot, item.key, item.count) {
                self.table.add_short(item.key, item.hash, item.count)?;
            }
        }
        Ok(())
    }
}

/// The part that a hash belongs to; `parts` is a power of two. Slots use other bits of the hash.
pub(super) fn part_of(hash: u64, parts: usize) -> usize {
    hash as usize & (parts - 1)
}
