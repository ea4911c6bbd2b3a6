//! Recovers the merges of a vocabulary that has only ranks.
//!
//! The merge of a token is the pair that its bytes merge to by all lower-ranked merges. If every
//! token has such a pair, the list of these pairs in rank order is the same tokenizer
//! (docs/design/algorithm.md, section 7). Finding them needs no merging: of all the ways to split a
//! token into two earlier ones, the right one gives [compatible](are_compatible) halves.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::compatible::are_compatible;
use super::growing_pairs::GrowingPairTable;
use super::heap::HeapScratch;
use super::pairs::{NO_ID, NO_RANK};
use crate::cpu::{advise_huge_pages, prefetch};
use crate::decode::TokenTable;
use crate::error::Result;
use crate::hash::multiply_hash;
use crate::watch::Watch;

/// The merges of a vocabulary ranked by id, as (left, right, new) in rank order; `None` if some
/// token is not made of exactly two parts.
pub fn recover_merges(mut tokens: Vec<(u32, Vec<u8>)>) -> Result<Option<Vec<(u32, u32, u32)>>> {
    TokenTable::new(&tokens)?; // rejects repeated and sparse ids
    tokens.sort_unstable_by_key(|(id, _)| *id);
    let tokens: Vec<(u32, &[u8])> = tokens.iter().map(|(id, token)| (*id, &token[..])).collect();
    Ok(merges_of_ranks(tokens))
}

/// The same for tokens in order of rank, without repeated ids.
pub(crate) fn merges_of_ranks(mut tokens: Vec<(u32, &[u8])>) -> Option<Vec<(u32, u32, u32)>> {
    let mut list = MergeList::with_capacity(tokens.len())?;
    let mut known = TokenIndex::new(BYTES + tokens.len());
    let mut ids = vec![NO_ID; BYTES]; // by number
    for (id, token) in &tokens {
        if let [byte] = token {
            known.insert(hash_of_byte(*byte), u32::from(*byte));
            ids[usize::from(*byte)] = *id;
        }
    }
    tokens.retain(|(_, token)| token.len() != 1);
    ids.reserve_exact(tokens.len());
    let mut lookahead = vec![SplitHashes::default(); LOOKAHEAD];
    for (hashes, (_, token)) in lookahead.iter_mut().zip(&tokens) {
        known.hash_splits(token, hashes);
    }
    for (at, &(id, token)) in tokens.iter().enumerate() {
        let hashes = &mut lookahead[at % LOOKAHEAD];
        if token.len() <= MAX_SPLIT_BYTES {
            let is_right = |&(left, right): &(u32, u32)| list.are_compatible(left, right);
            let (left, right) = known.splits(hashes).find(is_right)?;
            known.insert(hashes.prefixes[token.len()], list.push(left, right));
        } else if token.iter().all(|&byte| ids[usize::from(byte)] != NO_ID) {
            let (left, right) = list.merge(token)?;
            list.push(left, right);
        } else {
            return None;
        }
        ids.push(id);
        if let Some((_, later)) = tokens.get(at + LOOKAHEAD) {
            known.hash_splits(later, hashes);
        }
    }
    let id = |number: u32| ids[number as usize];
    let numbered = list.parts.iter().zip(BYTES as u32..);
    Some(numbered.map(|(&(left, right), new)| (id(left), id(right), id(new))).collect())
}

/// Whether a merge list is proper: its parts are made before they are used, one merge makes each
/// token, and the bytes of each token merge to it.
pub(crate) fn merges_are_proper(byte_ids: &[u32; 256], merges: &[(u32, u32, u32)]) -> bool {
    let highest =
        merges.iter().map(|merge| merge.2).chain(*byte_ids).filter(|&id| id != NO_ID).max();
    let mut numbers = vec![NO_NUMBER; highest.map_or(0, |id| id as usize + 1)]; // by id
    for (&id, byte) in byte_ids.iter().zip(0..).filter(|(id, _)| **id != NO_ID) {
        numbers[id as usize] = byte;
    }
    let Some(mut list) = MergeList::with_capacity(merges.len()) else { return false };
    merges.iter().all(|&(left, right, new)| {
        let number = |id: u32| numbers.get(id as usize).copied().filter(|&n| n != NO_NUMBER);
        let (Some(left), Some(right), None) = (number(left), number(right), number(new)) else {
            return false;
        };
        let is_right = list.are_compatible(left, right);
        numbers[new as usize] = list.push(left, right);
        is_right
    })
}

/// Here tokens are numbered: the bytes first, then the tokens that merges make, in rank order.
const BYTES: usize = 256;

const NO_NUMBER: u32 = u32::MAX;

/// Merges in rank order, by token number.
struct MergeList {
    /// The two parts of each token after the bytes.
    parts: Vec<(u32, u32)>,
    /// The same; the rank of a pair is the number of the token it makes.
    pairs: GrowingPairTable,
    heap: HeapScratch,
}

impl MergeList {
    /// An empty list with capacity for this many merges; `None` if numbers do not suffice.
    fn with_capacity(merges: usize) -> Option<Self> {
        if merges >= NO_NUMBER as usize - BYTES {
            return None;
        }
        Some(Self {
            parts: Vec::with_capacity(merges),
            pairs: GrowingPairTable::with_capacity(merges),
            heap: HeapScratch::default(),
        })
    }

    /// Appends a merge; returns the number of the token it makes.
    fn push(&mut self, left: u32, right: u32) -> u32 {
        let number = (BYTES + self.parts.len()) as u32;
        self.parts.push((left, right));
        self.pairs.insert(left, right, number);
        number
    }

    /// Whether the bytes of two tokens merge to just these two.
    fn are_compatible(&self, left: u32, right: u32) -> bool {
        self.pairs.prefetch(left, right); // if they are, they are pushed next
        let made_at = |number: u32| if number < BYTES as u32 { 0 } else { number + 1 };
        let parts = |number: u32| self.parts[number as usize - BYTES];
        are_compatible(&self.pairs, (left, right), NO_RANK, made_at, parts)
    }

    /// The two tokens that bytes merge to; `None` if these are not two.
    fn merge(&mut self, bytes: &[u8]) -> Option<(u32, u32)> {
        if bytes.len() >= u32::MAX as usize {
            return None;
        }
        let mut numbers = bytes.iter().map(|&byte| u32::from(byte)).collect();
        self.heap.merge(&mut numbers, &self.pairs, NO_RANK, &mut Watch::default()).ok()?;
        match numbers[..] {
            [left, right] => Some((left, right)),
            _ => None,
        }
    }
}

/// Longer tokens are merged: they are few, and have many splits.
const MAX_SPLIT_BYTES: usize = 64;

/// Tokens are hashed, and their slots prefetched, this many tokens ahead.
const LOOKAHEAD: usize = 8;

/// The hashes of the prefixes and suffixes of a token, by the length of the prefix.
///
/// A hash is a polynomial of the bytes modulo 2^61 - 1, at a random point, multiplied so that all
/// 64 bits depend on it.
#[derive(Clone)]
struct SplitHashes {
    length: usize,
    prefixes: [u64; MAX_SPLIT_BYTES + 1],
    suffixes: [u64; MAX_SPLIT_BYTES + 1],
}

impl Default for SplitHashes {
    fn default() -> Self {
        Self { length: 0, prefixes: [0; MAX_SPLIT_BYTES + 1], suffixes: [0; MAX_SPLIT_BYTES + 1] }
    }
}

/// Token numbers by hash. Bytes are not compared: if two tokens ever had the same hash, some merge
/// would have parts that are not the bytes of its result, which every vocabulary checks.
struct TokenIndex {
    /// Linear probing, with a load factor of at most 1/2. A slot is a number and, above it, the low
    /// bits of the hash. The high bits give the slot, so the whole hash is compared.
    slots: Vec<u64>,
    number_bits: u32,
    /// A hash is shifted right by this to give a slot.
    shift: u32,
    /// The powers of the random point.
    powers: [u64; MAX_SPLIT_BYTES],
}

/// No number is so high that a slot in use looks like this.
const EMPTY: u64 = u64::MAX;

const PRIME: u64 = (1 << 61) - 1;

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    reduce((product as u64 & PRIME) + (product >> 61) as u64)
}

/// A number below 2^62 modulo the prime.
fn reduce(number: u64) -> u64 {
    if number >= PRIME { number - PRIME } else { number }
}

fn hash_of_byte(byte: u8) -> u64 {
    multiply_hash(u64::from(byte) + 1)
}

impl TokenIndex {
    /// An empty index for numbers below `end`, each inserted once.
    fn new(end: usize) -> Self {
        let point = RandomState::default().build_hasher().finish() % (PRIME - 512) + 256;
        let mut powers = [1; MAX_SPLIT_BYTES];
        for exponent in 1..MAX_SPLIT_BYTES {
            powers[exponent] = multiply(powers[exponent - 1], point);
        }
        let number_bits = usize::BITS - end.leading_zeros();
        let mut slots = Vec::with_capacity(2 << number_bits);
        advise_huge_pages(slots.spare_capacity_mut());
        slots.resize(2 << number_bits, EMPTY);
        Self { slots, number_bits, shift: u64::BITS - number_bits - 1, powers }
    }

    /// Hashes all prefixes and suffixes of a token, unless it is long, and prefetches their slots.
    fn hash_splits(&self, token: &[u8], hashes: &mut SplitHashes) {
        hashes.length = token.len();
        if token.len() > MAX_SPLIT_BYTES {
            return;
        }
        let (mut prefix, mut suffix) = (0, 0);
        for (at, &byte) in token.iter().enumerate() {
            prefix = reduce(multiply(prefix, self.powers[1]) + u64::from(byte) + 1);
            hashes.prefixes[at + 1] = multiply_hash(prefix);
            prefetch(&self.slots, self.home(hashes.prefixes[at + 1]));
        }
        for (at, &byte) in token.iter().enumerate().skip(1).rev() {
            let power = self.powers[token.len() - 1 - at];
            suffix = reduce(suffix + multiply(u64::from(byte) + 1, power));
            hashes.suffixes[at] = multiply_hash(suffix);
            prefetch(&self.slots, self.home(hashes.suffixes[at]));
        }
    }

    /// The slot where probing for a hash starts.
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    fn insert(&mut self, hash: u64, number: u32) {
        let mut slot = self.home(hash);
        while self.slots[slot] != EMPTY {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = hash << self.number_bits | u64::from(number);
    }

    fn find(&self, hash: u64) -> Option<u32> {
        let mut slot = self.home(hash);
        loop {
            let found = self.slots[slot];
            if found == EMPTY {
                return None;
            }
            if (found ^ hash << self.number_bits) >> self.number_bits == 0 {
                return Some((found & !(u64::MAX << self.number_bits)) as u32);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Every split of a token into two known ones. The longest left part comes first: it is right
    /// most often.
    fn splits(&self, hashes: &SplitHashes) -> impl Iterator<Item = (u32, u32)> {
        (1..hashes.length).rev().filter_map(|at| {
            Some((self.find(hashes.prefixes[at])?, self.find(hashes.suffixes[at])?))
        })
    }
}

#[cfg(test)]
mod tests;
