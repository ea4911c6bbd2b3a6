//! Adding many pre-tokens: first all are hashed, then all their slots are read, then all are counted.
//!
//! A slot or an entry that is not in the cache takes as long to come as ten pre-tokens take otherwise. In
//! loops without jumps the processor waits for many of them at once.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::table::{Key, Table, pack_first};
use crate::error::Result;

/// How many pre-tokens are added at once: enough to wait together, and they stay in the nearest cache.
pub(super) const BATCH: usize = 128;

#[derive(Clone, Copy, Default)]
struct Item {
    key: Key,
    hash: u64,
    count: u64,
}

/// Adds pre-tokens to a table.
pub(super) struct Batch<'t> {
    table: &'t mut Table,
    hasher: &'t RandomState,
    items: [Item; BATCH],
}

impl<'t> Batch<'t> {
    pub(super) fn new(table: &'t mut Table, hasher: &'t RandomState) -> Self {
        Self { table, hasher, items: [Item::default(); BATCH] }
    }

    /// Adds one of each of the pre-tokens that lie one after another at the start of `text`; returns where
    /// they end. There are at most [`BATCH`] of them.
    #[inline(never)]
    pub(super) fn add_run(&mut self, text: &[u8], lengths: &[usize]) -> Result<usize> {
        let mut rest = text;
        let mut filled = 0;
        for &length in lengths {
            match pack_first(rest, length) {
                Some(key) => {
                    self.items[filled] = Item { key, hash: self.hasher.hash_one(key), count: 1 };
                    filled += 1;
                }
                None => {
                    let pretoken = &rest[..length];
                    self.table.add(pretoken, self.hasher.hash_one(pretoken), 1, self.hasher)?;
                }
            }
            rest = &rest[length..];
        }
        self.count(filled)?;
        Ok(text.len() - rest.len())
    }

    /// Adds those entries of another table that belong to one of so many parts.
    pub(super) fn add_part(&mut self, other: &Table, part: usize, parts: usize) -> Result<()> {
        for entries in other.entries().chunks(BATCH) {
            let mut filled = 0;
            for entry in entries {
                let hash = other.hash(entry, self.hasher);
                if part_of(hash, parts) != part {
                    continue;
                }
                if entry.is_long() {
                    self.table.add(other.bytes(entry), hash, entry.count, self.hasher)?;
                } else {
                    self.items[filled] = Item { key: entry.key(), hash, count: entry.count };
                    filled += 1;
                }
            }
            self.count(filled)?;
        }
        Ok(())
    }

    /// Counts the first items.
    #[inline]
    fn count(&mut self, filled: usize) -> Result<()> {
        self.table.reserve(filled, self.hasher)?;
        let items = &self.items[..filled];
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
