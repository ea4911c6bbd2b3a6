//! Counts: pre-token bytes and how many of them (64-bit). Adding two tables is associative and commutative.

mod stream;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

pub use stream::{CountOptions, DocumentSource, Read, count_documents, count_source};

use crate::error::{Error, Result};

/// A table of counts.
#[derive(Default)]
pub struct Counts {
    /// The pre-tokens' bytes, back to back, in order of first sight.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Places in `entries`, found by the hash of the bytes.
    places: HashTable<usize>,
    /// Seeded anew for every table, so that no text can be made to collide; results do not depend on it.
    hasher: RandomState,
}

struct Entry {
    start: usize,
    end: usize,
    hash: u64,
    count: u64,
}

impl Counts {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many distinct pre-tokens there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many pre-tokens were counted in all.
    pub fn total(&self) -> u128 {
        self.entries.iter().map(|entry| u128::from(entry.count)).sum()
    }

    /// Adds `count` occurrences of a pre-token.
    pub fn add(&mut self, pretoken: &[u8], count: u64) -> Result<()> {
        let hash = self.hasher.hash_one(pretoken);
        let Self { bytes, entries, places, .. } = self;
        let found = places.entry(
            hash,
            |&place| {
                let entry = &entries[place];
                entry.hash == hash && &bytes[entry.start..entry.end] == pretoken
            },
            |&place| entries[place].hash,
        );
        match found {
            hashbrown::hash_table::Entry::Occupied(place) => {
                let entry = &mut entries[*place.get()];
                entry.count = entry.count.checked_add(count).ok_or_else(|| overflow(pretoken))?;
            }
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                vacant.insert(entries.len());
                let start = bytes.len();
                bytes.extend_from_slice(pretoken);
                entries.push(Entry { start, end: bytes.len(), hash, count });
            }
        }
        Ok(())
    }

    /// The count of one pre-token.
    pub fn get(&self, pretoken: &[u8]) -> u64 {
        let hash = self.hasher.hash_one(pretoken);
        let is_it = |&place: &usize| {
            let entry = &self.entries[place];
            &self.bytes[entry.start..entry.end] == pretoken
        };
        self.places.find(hash, is_it).map_or(0, |&place| self.entries[place].count)
    }

    /// Adds another table.
    pub fn merge(&mut self, other: &Counts) -> Result<()> {
        for entry in &other.entries {
            self.add(&other.bytes[entry.start..entry.end], entry.count)?;
        }
        Ok(())
    }

    /// All pre-tokens with their counts, in order of first sight (which depends on the threads).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.entries.iter().map(|entry| (&self.bytes[entry.start..entry.end], entry.count))
    }

    /// All pre-tokens with their counts, in order of their bytes.
    pub fn sorted(&self) -> Vec<(&[u8], u64)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable();
        all
    }
}

#[cold]
fn overflow(pretoken: &[u8]) -> Error {
    Error::Overflow(format!(
        "the count of pre-token {:?} passes 2^64 - 1",
        String::from_utf8_lossy(pretoken)
    ))
}
