//! Merges from ranks.
//!
//! Merging a token's own bytes with all lower-ranked merges must leave exactly two parts: the pair that made
//! it. If that holds for every token, the list of those pairs in rank order is the same tokenizer: while a
//! text is merged, the parts inside the span of a token evolve as they do alone as long as nothing crosses
//! the span's ends, and alone there is one state of two parts; so no other pair can ever make the token.
//! (docs/design/algorithm.md has the argument in full.)
//!
//! So the pairs found for the tokens before a token are all that is needed to find its own, and nothing has to
//! be merged: of the ways to cut it into two known tokens, the right one is that whose halves [stay apart].
//!
//! [stay apart]: stay_apart

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::apart::stay_apart;
use super::growing::GrowingPairs;
use super::merge::Scratch;
use super::pairs::NONE;
use crate::decode::TokenTable;
use crate::error::Result;
use crate::huge::advise;
use crate::prefetch::prefetch;

/// The merges of a vocabulary ranked by id, as (left, right, new) in rank order; `None` if some token is not
/// made of exactly two parts.
pub fn recover_merges(mut tokens: Vec<(u32, Vec<u8>)>) -> Result<Option<Vec<(u32, u32, u32)>>> {
    TokenTable::new(&tokens)?; // an id twice, or far beyond the others
    tokens.sort_unstable_by_key(|(id, _)| *id);
    let tokens: Vec<(u32, &[u8])> = tokens.iter().map(|(id, token)| (*id, &token[..])).collect();
    Ok(merges_of_ranks(tokens))
}

/// The same for tokens in order of rank, if no id is repeated.
pub(crate) fn merges_of_ranks(mut tokens: Vec<(u32, &[u8])>) -> Option<Vec<(u32, u32, u32)>> {
    let mut made = Made::new(tokens.len())?;
    let mut known = Known::new(BYTES + tokens.len());
    let mut ids = vec![NONE; BYTES];
    for (id, token) in &tokens {
        if let [byte] = token {
            known.insert(hash_of_byte(*byte), u32::from(*byte));
            ids[usize::from(*byte)] = *id;
        }
    }
    tokens.retain(|(_, token)| token.len() != 1);
    ids.reserve_exact(tokens.len());
    let mut seen = vec![Seen::default(); AHEAD];
    for (place, (_, token)) in seen.iter_mut().zip(&tokens) {
        known.look_at(token, place);
    }
    for (at, &(id, token)) in tokens.iter().enumerate() {
        let looked_at = &mut seen[at % AHEAD];
        if token.len() <= SHORT {
            let is_right = |&(left, right): &(u32, u32)| made.stay_apart(left, right);
            let (left, right) = known.cuts(looked_at).find(is_right)?;
            known.insert(looked_at.starts[token.len()], made.add(left, right));
        } else if token.iter().all(|&byte| ids[usize::from(byte)] != NONE) {
            let (left, right) = made.merge(token)?;
            made.add(left, right);
        } else {
            return None;
        }
        ids.push(id);
        if let Some((_, later)) = tokens.get(at + AHEAD) {
            known.look_at(later, looked_at);
        }
    }
    let id = |place: u32| ids[place as usize];
    let places = made.halves.iter().zip(BYTES as u32..);
    Some(places.map(|(&(left, right), new)| (id(left), id(right), id(new))).collect())
}

/// Whether merging its own bytes gives every token that these merges make, each by one merge alone.
pub(crate) fn all_are_made(byte_ids: &[u32; 256], merges: &[(u32, u32, u32)]) -> bool {
    let highest =
        merges.iter().map(|merge| merge.2).chain(*byte_ids).filter(|&id| id != NONE).max();
    let mut places = vec![NONE; highest.map_or(0, |id| id as usize + 1)];
    for (&id, byte) in byte_ids.iter().zip(0..).filter(|(id, _)| **id != NONE) {
        places[id as usize] = byte;
    }
    let Some(mut made) = Made::new(merges.len()) else { return false };
    merges.iter().all(|&(left, right, new)| {
        let place = |id: u32| places.get(id as usize).copied().filter(|&place| place != NONE);
        let (Some(left), Some(right), None) = (place(left), place(right), place(new)) else {
            return false;
        };
        let is_made = made.stay_apart(left, right);
        places[new as usize] = made.add(left, right);
        is_made
    })
}

/// Bytes come first; then tokens in the order of their merges.
const BYTES: usize = 256;

/// Tokens by place: the 256 bytes, and what merges make of them, in order of rank.
struct Made {
    /// The two parts of each token after the bytes.
    halves: Vec<(u32, u32)>,
    /// What two places make, ranked by its place.
    pairs: GrowingPairs,
    /// Made for the first token that is long.
    scratch: Option<Scratch>,
}

impl Made {
    /// Room for so many merges; `None` if they cannot be numbered.
    fn new(merges: usize) -> Option<Self> {
        if merges >= NONE as usize - BYTES {
            return None;
        }
        let halves = Vec::with_capacity(merges);
        Some(Self { halves, pairs: GrowingPairs::with_capacity(merges), scratch: None })
    }

    /// Adds a merge; gives the place of what it makes.
    fn add(&mut self, left: u32, right: u32) -> u32 {
        let place = (BYTES + self.halves.len()) as u32;
        self.halves.push((left, right));
        self.pairs.insert(left, right, place);
        place
    }

    /// Whether the bytes of two tokens merge to just these two.
    fn stay_apart(&self, left: u32, right: u32) -> bool {
        self.pairs.ask_for(left, right); // if they do, they are added next
        let made = |place: u32| if place < BYTES as u32 { 0 } else { place + 1 };
        let parts = |place: u32| self.halves[place as usize - BYTES];
        stay_apart(&self.pairs, (left, right), NONE, made, parts)
    }

    /// The two parts that bytes merge to; `None` if they are not two.
    fn merge(&mut self, bytes: &[u8]) -> Option<(u32, u32)> {
        if bytes.len() >= NONE as usize {
            return None;
        }
        let scratch = self.scratch.get_or_insert_default();
        scratch.ids.clear();
        scratch.ids.extend(bytes.iter().map(|&byte| u32::from(byte)));
        scratch.merge_heap(&self.pairs, NONE).ok()?;
        match scratch.ids[..] {
            [left, right] => Some((left, right)),
            _ => None,
        }
    }
}

/// Longer tokens are merged: they are few, and have many cuts.
const SHORT: usize = 64;

/// So many tokens before a token is cut, it is looked at.
const AHEAD: usize = 8;

/// The hashes of the starts and ends of a short token. Each is a polynomial of the bytes modulo 2^61 - 1, at a
/// point that nobody knows, spread over all 64 bits.
#[derive(Clone)]
struct Seen {
    length: usize,
    /// By a number of bytes, what the first so many have, and what all behind them have.
    starts: [u64; SHORT + 1],
    ends: [u64; SHORT + 1],
}

impl Default for Seen {
    fn default() -> Self {
        Self { length: 0, starts: [0; SHORT + 1], ends: [0; SHORT + 1] }
    }
}

/// The places of tokens by their hash. Tokens are looked at some time before they are looked for, so that what
/// is asked for has come from memory.
///
/// The bytes themselves are not compared. Should two tokens ever meet in one hash, then a merge comes out whose
/// parts are not the bytes of its result, which every vocabulary checks.
struct Known {
    /// Open addressing, at most half full: a place and, above it, the low bits of the hash; [`EMPTY`] if empty.
    /// With the high bits, which say where the slot is, that is all of the hash.
    slots: Vec<u64>,
    place_bits: u32,
    /// How far a hash is shifted down to a slot.
    shift: u32,
    powers: [u64; SHORT],
}

/// No place is so high that a slot in use could look like this.
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

/// Spreads a value over all 64 bits; no two become one.
fn spread(value: u64) -> u64 {
    value.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn hash_of_byte(byte: u8) -> u64 {
    spread(u64::from(byte) + 1)
}

impl Known {
    /// Room for places below `end`, each given once.
    fn new(end: usize) -> Self {
        let point = RandomState::default().build_hasher().finish() % (PRIME - 512) + 256;
        let mut powers = [1; SHORT];
        for exponent in 1..SHORT {
            powers[exponent] = multiply(powers[exponent - 1], point);
        }
        let place_bits = usize::BITS - end.leading_zeros();
        let mut slots = Vec::with_capacity(2 << place_bits);
        advise(slots.spare_capacity_mut());
        slots.resize(2 << place_bits, EMPTY);
        Self { slots, place_bits, shift: u64::BITS - place_bits - 1, powers }
    }

    /// Takes the hashes of a token, if it is short, and asks for the slots of all that it may be made of.
    fn look_at(&self, token: &[u8], seen: &mut Seen) {
        seen.length = token.len();
        if token.len() > SHORT {
            return;
        }
        let (mut start, mut end) = (0, 0);
        for (at, &byte) in token.iter().enumerate() {
            start = reduce(multiply(start, self.powers[1]) + u64::from(byte) + 1);
            seen.starts[at + 1] = spread(start);
            prefetch(&self.slots, self.home(seen.starts[at + 1]));
        }
        for (at, &byte) in token.iter().enumerate().skip(1).rev() {
            end = reduce(end + multiply(u64::from(byte) + 1, self.powers[token.len() - 1 - at]));
            seen.ends[at] = spread(end);
            prefetch(&self.slots, self.home(seen.ends[at]));
        }
    }

    /// The slot where a hash is looked for first.
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    fn insert(&mut self, hash: u64, place: u32) {
        let mut slot = self.home(hash);
        while self.slots[slot] != EMPTY {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = hash << self.place_bits | u64::from(place);
    }

    fn find(&self, hash: u64) -> Option<u32> {
        let mut slot = self.home(hash);
        loop {
            let found = self.slots[slot];
            if found == EMPTY {
                return None;
            }
            if (found ^ hash << self.place_bits) >> self.place_bits == 0 {
                return Some((found & !(u64::MAX << self.place_bits)) as u32);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Every way to cut a token into two known ones, the longest left part first: that is the right one most
    /// often.
    fn cuts(&self, seen: &Seen) -> impl Iterator<Item = (u32, u32)> {
        (1..seen.length)
            .rev()
            .filter_map(|cut| Some((self.find(seen.starts[cut])?, self.find(seen.ends[cut])?)))
    }
}

#[cfg(test)]
mod tests;
