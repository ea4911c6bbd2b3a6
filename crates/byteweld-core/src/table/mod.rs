//! Vocabularies as their files hold them, read in one pass into flat arrays, and their checks.
//!
//! All here is sure or says nothing. What it takes, the plain readers and checks in Python take too, with the
//! same result. For anything unusual it gives `None` or `false`; the plain ones then do it again, and only they
//! say what is wrong.

mod json;
mod letters;
mod ranks;
mod stored;

pub use letters::LetterModel;

use std::hash::BuildHasher;
use std::mem;

use foldhash::fast::RandomState;
use hashbrown::{HashSet, HashTable};

use crate::encode::{all_are_made, merges_of_ranks};

/// No token has this id; it stands for none.
const NONE: u32 = u32::MAX;

/// There may be this many ids for a token, and some more: a table by id stays in proportion to its tokens.
const IDS_PER_TOKEN: usize = 4;
const FREE_IDS: usize = 1 << 12;

/// Tokens by id and merges in rank order. No token is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Where the token of each id starts in `bytes`, and the end of the last. Ids without a token are empty.
    starts: Vec<u32>,
    bytes: Vec<u8>,
    /// How many tokens there are.
    count: usize,
    merges: Vec<(u32, u32, u32)>,
}

impl Table {
    /// Lays out tokens in order of id; `None` if one is empty, an id is repeated, or ids are far from dense.
    fn of_tokens<'t>(count: usize, tokens: impl Iterator<Item = (u32, &'t [u8])>) -> Option<Self> {
        let mut laid = Laid::new(count, count * 8);
        for (id, token) in tokens {
            laid.put(id, |bytes| {
                bytes.extend_from_slice(token);
                Some(())
            })?;
        }
        laid.finish()
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A token's bytes.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let end = *self.starts.get(id as usize + 1)?;
        let start = self.starts[id as usize];
        (start < end).then(|| &self.bytes[start as usize..end as usize])
    }

    /// All tokens in order of id.
    pub fn tokens(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0..self.starts.len() as u32 - 1).filter_map(|id| Some((id, self.get(id)?)))
    }

    /// All merges in order of rank, as (left, right, new).
    pub fn merges(&self) -> &[(u32, u32, u32)] {
        &self.merges
    }

    /// Tokens and merges as a fingerprint takes them: a line for each, with the length before the bytes.
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

    /// The same with further tokens, given in any order; `None` if one of their ids is taken.
    pub fn with_tokens(&self, more: &[(u32, Vec<u8>)]) -> Option<Self> {
        if more.is_empty() {
            return Some(self.clone());
        }
        let mut all: Vec<(u32, &[u8])> = Vec::with_capacity(self.count + more.len());
        all.extend(self.tokens());
        all.extend(more.iter().map(|(id, token)| (*id, &token[..])));
        all.sort_by_key(|(id, _)| *id); // made for what is nearly sorted
        let table = Self::of_tokens(all.len(), all.into_iter())?;
        Some(Self { merges: self.merges.clone(), ..table })
    }

    /// The same with the merges that its ids, taken for ranks, stand for; `None` if there are no such.
    pub fn with_merges_of_ranks(&self) -> Option<Self> {
        let mut tokens = Vec::with_capacity(self.count);
        tokens.extend(self.tokens());
        let merges = merges_of_ranks(tokens)?;
        let Self { starts, bytes, count, .. } = self;
        Some(Self { starts: starts.clone(), bytes: bytes.clone(), count: *count, merges })
    }

    /// Whether every token but these can be made by merging its own bytes, by one merge alone. Then it does not
    /// matter whether a pre-token is looked up first.
    pub fn makes_every_token(&self, without: &[u32]) -> bool {
        let byte_ids = self.byte_ids(without);
        let bytes = byte_ids.iter().filter(|&&id| id != NONE).count();
        bytes + self.merges.len() + without.len() == self.count
            && self.joins_bytes(without)
            && all_are_made(&byte_ids, &self.merges)
    }

    /// Those of some ids that a merge makes.
    pub fn made_among(&self, ids: &[u32]) -> Vec<u32> {
        let asked: HashSet<u32, RandomState> = ids.iter().copied().collect();
        let mut made: Vec<u32> =
            self.merges.iter().map(|merge| merge.2).filter(|new| asked.contains(new)).collect();
        made.sort_unstable();
        made.dedup();
        made
    }

    /// The id of each byte's token, or [`NONE`]; tokens with these ids are passed over.
    pub fn byte_ids(&self, without: &[u32]) -> [u32; 256] {
        let is_out = self.flags(without);
        let mut ids = [NONE; 256];
        for (id, token) in self.tokens() {
            if let [byte] = token
                && !is_out[id as usize]
            {
                ids[*byte as usize] = id;
            }
        }
        ids
    }

    /// Of every id, whether it is among these.
    fn flags(&self, ids: &[u32]) -> Vec<bool> {
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

    /// Whether every merge joins two tokens to one that has their bytes, no pair twice, and with none of these.
    /// Every token must have its own bytes.
    pub fn has_sound_merges(&self, without: &[u32]) -> bool {
        self.joins_bytes(without) && self.joins_no_pair_twice()
    }

    /// The same pair makes the same bytes: only if a token is made twice, pairs have to be looked at.
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

    /// Whether every merge joins two tokens to one that has their bytes, and none of these.
    fn joins_bytes(&self, without: &[u32]) -> bool {
        let is_out = self.flags(without);
        let part = |id: u32| self.get(id).filter(|_| !is_out[id as usize]);
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

/// A table that is being laid out.
struct Laid {
    starts: Vec<u32>,
    bytes: Vec<u8>,
    /// How many tokens there will be.
    count: usize,
}

impl Laid {
    /// Room for so many tokens, of about so many bytes.
    fn new(count: usize, bytes: usize) -> Self {
        Self { starts: Vec::with_capacity(count + 1), bytes: Vec::with_capacity(bytes), count }
    }

    /// Adds the token whose bytes `write` appends; `None` if there are none, or the id is not higher than all
    /// before it, or too high.
    fn put(&mut self, id: u32, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
        let (id, start) = (id as usize, self.bytes.len());
        if id < self.starts.len() || id >= self.count * IDS_PER_TOKEN + FREE_IDS {
            return None;
        }
        self.starts.resize(id + 1, u32::try_from(start).ok()?);
        write(&mut self.bytes)?;
        (self.bytes.len() > start).then_some(())
    }

    fn finish(mut self) -> Option<Table> {
        self.starts.push(u32::try_from(self.bytes.len()).ok()?);
        let Self { starts, bytes, count } = self;
        Some(Table { starts, bytes, count, merges: Vec::new() })
    }
}

#[cfg(test)]
mod tests;
