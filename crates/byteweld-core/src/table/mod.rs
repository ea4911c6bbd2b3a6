//! Readers and checks of vocabulary files, which are read in one pass into flat arrays.
//!
//! [`hugging_face`] is the only reader of tokenizer.json. Whatever the others accept, the plain
//! readers and checks in Python accept too, with the same result. For anything unusual these return
//! `None` or `false`; the plain ones then repeat the work and report what is wrong.

mod compiled;
mod crc32c;
pub mod hugging_face;
mod ranks;

pub use crc32c::crc32c;

use std::hash::BuildHasher;
use std::mem;

use foldhash::fast::RandomState;
use hashbrown::{HashSet, HashTable};

use crate::encode::{PairLayout, merges_are_proper, merges_of_ranks};

/// Stands for a missing token; no token has this id.
const NO_ID: u32 = u32::MAX;

/// The number of ids may be at most this multiple of the number of tokens, plus [`EXTRA_IDS`], so
/// that memory stays in proportion to the tokens.
const MAX_IDS_PER_TOKEN: usize = 4;
const EXTRA_IDS: usize = 1 << 12;

/// Tokens by id and merges in rank order. No token is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VocabTable {
    /// The start of each id's token in `bytes`, and the end of the last. Unused ids are empty.
    starts: Vec<u32>,
    bytes: Vec<u8>,
    /// The number of tokens.
    count: usize,
    merges: Vec<(u32, u32, u32)>,
    /// The layout of the merges' pairs, if the table was compiled.
    layout: Option<PairLayout>,
}

impl VocabTable {
    /// Builds a table from tokens in order of id; `None` if a token is empty, an id is repeated, or
    /// the ids are too sparse.
    fn from_tokens<'t>(
        count: usize,
        tokens: impl Iterator<Item = (u32, &'t [u8])>,
    ) -> Option<Self> {
        let mut builder = TableBuilder::new(count, count * 8);
        for (id, token) in tokens {
            builder.push(id, |bytes| {
                bytes.extend_from_slice(token);
                Some(())
            })?;
        }
        builder.finish()
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A token's bytes.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let end = *self.starts.get(id as usize + 1)?;
        let start = self.starts[id as usize];
        (start < end).then(|| &self.bytes[start as usize..end as usize])
    }

    /// The bytes that the table takes in memory.
    pub fn size(&self) -> usize {
        size_of_val(&self.starts[..]) + self.bytes.len() + size_of_val(&self.merges[..])
    }

    /// All tokens in order of id.
    pub fn tokens(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0..self.starts.len() as u32 - 1).filter_map(|id| Some((id, self.get(id)?)))
    }

    /// All merges in order of rank, as (left, right, new).
    pub fn merges(&self) -> &[(u32, u32, u32)] {
        &self.merges
    }

    /// The layout of the merges' pairs, if it is known.
    pub fn layout(&self) -> Option<&PairLayout> {
        self.layout.as_ref()
    }

    /// Tokens and merges in the form that fingerprints hash: one line each, the length before the
    /// bytes.
    pub fn lines(&self) -> Vec<u8> {
        let mut lines =
            Vec::with_capacity(self.bytes.len() + 16 * self.count + 24 * self.merges.len());
        for (id, token) in self.tokens() {
            lines.extend_from_slice(format!("\nt {id} {} ", token.len()).as_bytes());
            lines.extend_from_slice(token);
        }
        for (left, right, new) in &self.merges {
            lines.extend_from_slice(format!("\nm {left} {right} {new}").as_bytes());
        }
        lines
    }

    /// The table with additional tokens, in any order; `None` if one of their ids is taken.
    pub fn with_tokens(&self, more: &[(u32, Vec<u8>)]) -> Option<Self> {
        if more.is_empty() {
            return Some(self.clone());
        }
        let mut all: Vec<(u32, &[u8])> = Vec::with_capacity(self.count + more.len());
        all.extend(self.tokens());
        all.extend(more.iter().map(|(id, token)| (*id, &token[..])));
        all.sort_by_key(|(id, _)| *id); // stable sort: fast on nearly sorted input
        let table = Self::from_tokens(all.len(), all.into_iter())?;
        Some(Self { merges: self.merges.clone(), layout: self.layout.clone(), ..table })
    }

    /// The table with the merges recovered from its ids, taken as ranks; `None` if there are none.
    pub fn with_recovered_merges(&self) -> Option<Self> {
        let mut tokens = Vec::with_capacity(self.count);
        tokens.extend(self.tokens());
        let merges = merges_of_ranks(tokens)?;
        let Self { starts, bytes, count, .. } = self;
        let (starts, bytes, count) = (starts.clone(), bytes.clone(), *count);
        Some(Self { starts, bytes, count, merges, layout: None })
    }

    /// Whether every token, except the excluded ones, is a byte or is made from its own bytes by
    /// exactly one merge. Then looking up whole pre-tokens first does not change the result.
    pub fn makes_every_token(&self, excluded: &[u32]) -> bool {
        let byte_ids = self.byte_ids(excluded);
        let bytes = byte_ids.iter().filter(|&&id| id != NO_ID).count();
        bytes + self.merges.len() + excluded.len() == self.count
            && self.joins_bytes(excluded)
            && merges_are_proper(&byte_ids, &self.merges)
    }

    /// Those of the given ids that a merge makes.
    pub fn made_among(&self, ids: &[u32]) -> Vec<u32> {
        let wanted: HashSet<u32, RandomState> = ids.iter().copied().collect();
        let mut made: Vec<u32> =
            self.merges.iter().map(|merge| merge.2).filter(|new| wanted.contains(new)).collect();
        made.sort_unstable();
        made.dedup();
        made
    }

    /// The id of each byte's token, or [`NO_ID`]; excluded ids are skipped.
    pub fn byte_ids(&self, excluded: &[u32]) -> [u32; 256] {
        let is_excluded = self.id_flags(excluded);
        let mut ids = [NO_ID; 256];
        for (id, token) in self.tokens() {
            if let [byte] = token
                && !is_excluded[id as usize]
            {
                ids[*byte as usize] = id;
            }
        }
        ids
    }

    /// For every id, whether it is in the list.
    fn id_flags(&self, ids: &[u32]) -> Vec<bool> {
        let mut flags = vec![false; self.starts.len()];
        for &id in ids {
            if let Some(flag) = flags.get_mut(id as usize) {
                *flag = true;
            }
        }
        flags
    }

    /// Whether two tokens have the same bytes.
    pub fn has_repeats(&self) -> bool {
        let hasher = RandomState::default();
        let mut seen: HashTable<u32> = HashTable::with_capacity(self.count);
        for (id, token) in self.tokens() {
            let hash = hasher.hash_one(token);
            if seen.find(hash, |&other| self.get(other) == Some(token)).is_some() {
                return true;
            }
            seen.insert_unique(hash, id, |&id| hasher.hash_one(self.get(id).unwrap_or_default()));
        }
        false
    }

    /// Whether every merge joins two tokens into the token with their bytes, without a repeated
    /// pair or an excluded id. No two tokens may have the same bytes.
    pub fn has_sound_merges(&self, excluded: &[u32]) -> bool {
        self.joins_bytes(excluded) && self.joins_no_pair_twice()
    }

    /// A repeated pair makes the same token twice, so pairs are compared only if that happens.
    fn joins_no_pair_twice(&self) -> bool {
        let mut is_made = vec![false; self.starts.len()];
        let mut once =
            self.merges.iter().map(|merge| !mem::replace(&mut is_made[merge.2 as usize], true));
        if once.all(|is_first| is_first) {
            return true;
        }
        let mut pairs: HashSet<(u32, u32), RandomState> =
            HashSet::with_capacity_and_hasher(self.merges.len(), RandomState::default());
        self.merges.iter().all(|&(left, right, _)| pairs.insert((left, right)))
    }

    /// Whether every merge joins two tokens into the token with their bytes, without excluded ids.
    fn joins_bytes(&self, excluded: &[u32]) -> bool {
        let is_excluded = self.id_flags(excluded);
        let part = |id: u32| self.get(id).filter(|_| !is_excluded[id as usize]);
        self.merges.iter().all(|&(left, right, new)| {
            let (Some(first), Some(second), Some(whole)) = (part(left), part(right), part(new))
            else {
                return false;
            };
            first.len() + second.len() == whole.len()
                && whole.starts_with(first)
                && whole.ends_with(second)
        })
    }
}

/// A table under construction.
struct TableBuilder {
    starts: Vec<u32>,
    bytes: Vec<u8>,
    /// The final number of tokens.
    count: usize,
}

impl TableBuilder {
    /// Reserves space for `count` tokens of about `bytes` bytes in total.
    fn new(count: usize, bytes: usize) -> Self {
        Self { starts: Vec::with_capacity(count + 1), bytes: Vec::with_capacity(bytes), count }
    }

    /// Adds the token whose bytes `write` appends; `None` if it is empty, or if the id is not
    /// higher than all before it or is too high.
    fn push(&mut self, id: u32, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
        let (id, start) = (id as usize, self.bytes.len());
        if id < self.starts.len() || id >= self.count * MAX_IDS_PER_TOKEN + EXTRA_IDS {
            return None;
        }
        self.starts.resize(id + 1, u32::try_from(start).ok()?);
        write(&mut self.bytes)?;
        (self.bytes.len() > start).then_some(())
    }

    fn finish(mut self) -> Option<VocabTable> {
        self.starts.push(u32::try_from(self.bytes.len()).ok()?);
        let Self { starts, bytes, count } = self;
        Some(VocabTable { starts, bytes, count, merges: Vec::new(), layout: None })
    }
}

#[cfg(test)]
mod tests;
