//! Counts: pre-tokens and how often each occurs (64-bit). Addition is associative and commutative.

mod batch;
mod counter;
mod pruned;
mod sorted_index;
mod spill;
mod table;
#[cfg(test)]
mod tests;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

pub use counter::{CountOptions, Counter};
pub use pruned::Pruned;
pub use sorted_index::SortedIndex;
pub use spill::{MemoryLimit, Spill};

use crate::error::{Error, Result};
use crate::packed::{Packed, pack};
use crate::reserve::reserve_exact;
use batch::{Batch, part_of};
use table::{CountTable, table_bytes};

/// Pre-tokens and their counts.
pub struct Counts {
    /// Partitions by the low bits of the hash: a power of two, and one unless several threads
    /// counted.
    tables: Vec<CountTable>,
    /// Randomly seeded, so that no corpus can force collisions; results do not depend on it.
    hasher: RandomState,
}

impl Default for Counts {
    fn default() -> Self {
        Self { tables: vec![CountTable::default()], hasher: RandomState::default() }
    }
}

impl Counts {
    /// Empty counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of distinct pre-tokens.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.entries().len()).sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An upper bound of the memory, in bytes, for this many distinct pre-tokens with this many
    /// bytes.
    pub fn memory_needed(distinct: usize, distinct_bytes: usize) -> usize {
        table_bytes(distinct, distinct_bytes)
    }

    /// Adds `count` occurrences of a pre-token. A count of 0 adds nothing.
    pub fn add(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let hash = self.hash(pretoken);
        let part = part_of(hash, self.tables.len());
        self.tables[part].add(pretoken, hash, count, &self.hasher)
    }

    /// The count of one pre-token.
    pub fn get(&self, pretoken: &[u8]) -> u64 {
        let hash = self.hash(pretoken);
        self.tables[part_of(hash, self.tables.len())].get(pretoken, hash)
    }

    /// Adds other counts to these.
    pub fn merge(&mut self, other: &Counts) -> Result<()> {
        let parts = self.tables.len();
        for (part, table) in self.tables.iter_mut().enumerate() {
            let mut batch = Batch::new(table, &self.hasher);
            for other in &other.tables {
                batch.add_part(other, part, parts)?;
            }
            batch.flush()?;
        }
        Ok(())
    }

    /// All pre-tokens with their counts, in order of first occurrence (which depends on the
    /// threads).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.tables
            .iter()
            .flat_map(|table| table.entries().iter().map(|entry| (table.bytes(entry), entry.count)))
    }

    /// All pre-tokens with their counts, sorted by bytes.
    pub fn sorted(&self) -> Result<Vec<(&[u8], u64)>> {
        let mut all = Vec::new();
        reserve_exact(&mut all, self.len())?;
        all.extend(self.iter());
        all.sort_unstable();
        Ok(all)
    }

    /// The entry that an item of a [`SortedIndex`] refers to.
    fn at(&self, (table, entry): (u32, u32)) -> (&[u8], u64) {
        let table = &self.tables[table as usize];
        let entry = &table.entries()[entry as usize];
        (table.bytes(entry), entry.count)
    }

    fn sort_key(&self, (table, entry): (u32, u32)) -> Packed {
        let table = &self.tables[table as usize];
        table.sort_key(&table.entries()[entry as usize])
    }

    fn hash(&self, pretoken: &[u8]) -> u64 {
        match pack(pretoken) {
            Some(key) => self.hasher.hash_one(key),
            None => self.hasher.hash_one(pretoken),
        }
    }
}

#[cold]
fn overflow(pretoken: &[u8]) -> Error {
    Error::Overflow(format!(
        "the count of pre-token {:?} exceeds 2^64 - 1",
        String::from_utf8_lossy(pretoken)
    ))
}
