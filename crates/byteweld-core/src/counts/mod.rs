//! Counts: pre-token bytes and how many of them (64-bit). Adding two tables is associative and commutative.

mod batch;
mod dropped;
mod feed;
mod order;
mod spill;
mod stream;
mod table;
#[cfg(test)]
mod tests;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

pub use dropped::Dropped;
pub use feed::{DocumentSource, Read};
pub use order::Order;
pub use spill::{Limit, Spill};
pub use stream::{CountOptions, Counter};

use crate::error::{Error, Result};
use batch::{Batch, part_of};
use table::{Key, Table, pack, table_bytes};

/// A table of counts.
pub struct Counts {
    /// Each holds the pre-tokens with its own low bits of the hash: a power of two of them, one unless
    /// several threads counted.
    tables: Vec<Table>,
    /// Seeded anew for every counting, so that no text can be made to collide; results do not depend on it.
    hasher: RandomState,
}

impl Default for Counts {
    fn default() -> Self {
        Self { tables: vec![Table::default()], hasher: RandomState::default() }
    }
}

impl Counts {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many distinct pre-tokens there are.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.entries().len()).sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many pre-tokens were counted in all.
    pub fn total(&self) -> u128 {
        self.iter().map(|(_, count)| u128::from(count)).sum()
    }

    /// How many bytes the counted pre-tokens have in all.
    pub fn total_bytes(&self) -> u128 {
        self.iter().map(|(bytes, count)| bytes.len() as u128 * u128::from(count)).sum()
    }

    /// How many bytes of memory a table takes that has so many distinct pre-tokens with so many bytes, at most.
    pub fn memory_needed(distinct: usize, distinct_bytes: usize) -> usize {
        table_bytes(distinct, distinct_bytes)
    }

    /// Adds `count` occurrences of a pre-token. One that does not occur is not in the table.
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

    /// Adds another table.
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

    /// All pre-tokens with their counts, in order of first sight (which depends on the threads).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.tables
            .iter()
            .flat_map(|table| table.entries().iter().map(|entry| (table.bytes(entry), entry.count)))
    }

    /// All pre-tokens with their counts, in order of their bytes.
    pub fn sorted(&self) -> Vec<(&[u8], u64)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable();
        all
    }

    /// The entry at a place of an [`Order`].
    fn at(&self, (table, entry): (u32, u32)) -> (&[u8], u64) {
        let table = &self.tables[table as usize];
        let entry = &table.entries()[entry as usize];
        (table.bytes(entry), entry.count)
    }

    fn sort_key(&self, (table, entry): (u32, u32)) -> Key {
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
        "the count of pre-token {:?} passes 2^64 - 1",
        String::from_utf8_lossy(pretoken)
    ))
}
