//! Encodes long pre-tokens without merging: by longest matches, with backtracking.
//!
//! A sequence of tokens is what its bytes merge to if and only if every two neighbors are
//! [compatible](are_compatible). So go from left to right and take the longest token that is
//! compatible with the previous one. Where there is none, the previous token was wrong: go back and
//! try the next shorter one. Only one sequence leads to such a dead end, so no offset is abandoned
//! twice.
//!
//! In a run of one character, the longest token is wrong nearly everywhere, but always in the same
//! way. So the token that was right in the same situation before is guessed first.
//!
//! This holds for *proper* merges: each token is made by one merge, of two tokens made before it,
//! and is what its own bytes merge to. Those of trained vocabularies are. Other merges do no harm
//! if they never happen. Some rank files have *untimely* tokens, whose merge precedes that of one of
//! their parts; text that contains the bytes of one is merged instead. The proofs are in
//! docs/design/algorithm.md, section 8.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::trie::Trie;
use crate::decode::TokenTable;
use crate::encode::merge::{NO_ID, NO_RANK, PairTable, are_compatible};
use crate::error::Result;
use crate::hash::multiply_hash;
use crate::reserve::{check_memory_for, reserve};
use crate::watch::Watch;

/// Pre-tokens of up to this many bytes are merged.
pub(crate) const MAX_MERGED_BYTES: usize = 64;

/// A pre-token that takes more steps is merged. Usual vocabularies take two to ten; one that is
/// built for it can take as many as it has tokens.
const MAX_STEPS_PER_BYTE: usize = 32;

/// Limits the size of the automaton that finds untimely tokens: up to a kilobyte per byte. Llama 3
/// has 104 untimely tokens, with a thousand bytes.
const MAX_UNTIMELY_BYTES: usize = 1 << 12;

/// What the encoder knows of its merges.
#[derive(Clone, Copy)]
pub(crate) struct MergeTables<'e> {
    /// The id of each byte, or [`NO_ID`].
    pub(crate) byte_ids: &'e [u32; 256],
    pub(crate) pairs: &'e PairTable,
    pub(crate) tokens: &'e TokenTable,
}

/// How a token is made.
#[derive(Clone, Copy)]
struct Origin {
    /// One more than the rank of the merge that makes it; 0 for a byte, [`NEVER`] if merging never
    /// gives it.
    made_at: u32,
    /// The two parts of that merge.
    left: u32,
    right: u32,
    /// The longest token that is a proper prefix of it; [`NO_ID`] for a byte.
    prefix: u32,
}

const NEVER: u32 = u32::MAX;

const UNMADE: Origin = Origin { made_at: NEVER, left: NO_ID, right: NO_ID, prefix: NO_ID };

/// Marks an id that was guessed; ids are below.
const GUESSED: u32 = 1 << 31;

/// Encodes by longest matches.
pub(crate) struct Matcher {
    /// By id.
    origins: Vec<Origin>,
    trie: Trie,
    /// Finds untimely tokens, if there are any.
    untimely: Option<AhoCorasick>,
}

impl Matcher {
    /// Prepares for some merges; `None` if they are far from proper, or if there is not enough memory.
    pub(crate) fn new(tables: MergeTables<'_>) -> Option<Self> {
        let MergeTables { byte_ids, tokens, .. } = tables;
        check_memory_for(BYTES_PER_TOKEN * tokens.end() as usize).ok()?;
        let (mut origins, untimely) = find_origins(tables)?;
        let bytes_of = |id: u32| tokens.get(id).unwrap_or_default();
        let untimely: Vec<&[u8]> = untimely.into_iter().map(bytes_of).collect();
        let untimely_bytes: usize = untimely.iter().map(|token| token.len()).sum();
        if untimely_bytes > MAX_UNTIMELY_BYTES || tokens.end() > GUESSED {
            return None;
        }
        let finder =
            AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&untimely).ok()?;
        let is_made = |id: &u32| origins[*id as usize].made_at != NEVER;
        let mut order: Vec<(u64, u32)> =
            (0..tokens.end()).filter(is_made).map(|id| (first_eight(bytes_of(id)), id)).collect();
        order.sort_unstable_by(|&(a, one), &(b, other)| {
            a.cmp(&b).then_with(|| bytes_of(one).cmp(bytes_of(other)))
        });
        let made: Vec<(&[u8], u32)> = order.iter().map(|&(_, id)| (bytes_of(id), id)).collect();
        let trie = Trie::new(&made, |id, prefix| {
            let first = byte_ids[usize::from(bytes_of(id)[0])];
            origins[id as usize].prefix = prefix.unwrap_or(first);
        })?;
        Some(Self { origins, trie, untimely: (!untimely.is_empty()).then_some(finder) })
    }

    /// Puts into `ids` what bytes merge to. Returns false if they have to be merged, because they
    /// contain an untimely token or take too many steps. Every byte must have a token.
    pub(crate) fn encode(
        &self,
        bytes: &[u8],
        tables: MergeTables<'_>,
        ids: &mut Vec<u32>,
        scratch: &mut MatchScratch,
        watch: &mut Watch,
    ) -> Result<bool> {
        let steps = bytes.len().saturating_mul(MAX_STEPS_PER_BYTE);
        self.encode_within(steps, bytes, tables, ids, scratch, watch)
    }

    fn encode_within(
        &self,
        mut steps: usize,
        bytes: &[u8],
        MergeTables { byte_ids, pairs, tokens }: MergeTables<'_>,
        ids: &mut Vec<u32>,
        scratch: &mut MatchScratch,
        watch: &mut Watch,
    ) -> Result<bool> {
        if self.untimely.as_ref().is_some_and(|untimely| untimely.is_match(bytes)) {
            return Ok(false);
        }
        ids.clear();
        scratch.start();
        let mut at = 0;
        let mut wrong = None; // the token here that led to a dead end
        while at < bytes.len() {
            let (longest, read) = self.trie.longest(&bytes[at..]);
            steps = steps.saturating_sub(read);
            if steps == 0 {
                return Ok(false);
            }
            watch.worked(read)?;
            reserve(ids, 1)?;
            let (longest, length) = longest.unwrap_or((byte_ids[usize::from(bytes[at])], 1));
            let previous = ids.last().map_or(NO_ID, |id| id & !GUESSED);
            let guess = *scratch.guess(previous, longest);
            if wrong.is_none()
                && guess.is_for(previous, longest)
                && !is_set(&scratch.dead_ends, at + guess.length as usize)
            {
                ids.push(guess.token | GUESSED);
                at += guess.length as usize;
                continue;
            }
            // After a wrong guess, start over with the longest; else with the next shorter token.
            let (mut token, mut length) = match wrong.take() {
                Some(wrong) if wrong & GUESSED == 0 => {
                    let shorter = self.origins[wrong as usize].prefix;
                    (shorter, tokens.len_of(shorter))
                }
                _ => (longest, length),
            };
            while token != NO_ID
                && (is_set(&scratch.dead_ends, at + length)
                    || previous != NO_ID
                        && !self.are_compatible(pairs, previous, token, &mut steps))
            {
                steps = steps.saturating_sub(1);
                token = self.origins[token as usize].prefix;
                length = tokens.len_of(token);
            }
            if token == NO_ID {
                set(&mut scratch.dead_ends, at)?;
                wrong = ids.pop();
                let Some(id) = wrong else { return Ok(false) };
                at -= tokens.len_of(id & !GUESSED);
                continue;
            }
            *scratch.guess(previous, longest) =
                Guess { previous, longest, token, length: length as u32 };
            ids.push(token);
            at += length;
        }
        for id in ids {
            *id &= !GUESSED;
        }
        Ok(true)
    }

    #[inline(always)]
    fn are_compatible(&self, pairs: &PairTable, left: u32, right: u32, steps: &mut usize) -> bool {
        let made_at = |id: u32| self.origins[id as usize].made_at;
        are_compatible(pairs, (left, right), NO_RANK, made_at, |id| {
            *steps = steps.saturating_sub(1);
            (self.origins[id as usize].left, self.origins[id as usize].right)
        })
    }
}

/// The first eight bytes as a number; most comparisons need no more.
fn first_eight(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(first.len());
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

/// How each token is made, by id, and the ids of untimely tokens. `None` if some merge does not
/// concatenate the bytes of its parts.
fn find_origins(
    MergeTables { byte_ids, pairs, tokens }: MergeTables<'_>,
) -> Option<(Vec<Origin>, Vec<u32>)> {
    let mut origins = vec![UNMADE; tokens.end() as usize];
    for &id in byte_ids.iter().filter(|&&id| id != NO_ID) {
        origins.get_mut(id as usize)?.made_at = 0;
    }
    let mut early = Vec::new(); // merges that precede the merge of one of their parts
    for merge in pairs.by_rank() {
        let (left, right) = (merge.left, merge.right);
        let (left_bytes, right_bytes) = (tokens.get(left)?, tokens.get(right)?);
        let bytes = tokens.get(merge.result)?;
        let is_sound = left_bytes.len() + right_bytes.len() == bytes.len()
            && bytes.starts_with(left_bytes)
            && bytes.ends_with(right_bytes)
            && merge.rank < NO_RANK - 1;
        if !is_sound {
            return None;
        }
        let made_at = |id: u32| origins[id as usize].made_at;
        let parts = |id: u32| (origins[id as usize].left, origins[id as usize].right);
        if made_at(left) == NEVER || made_at(right) == NEVER {
            early.push(merge);
        } else if are_compatible(pairs, (left, right), merge.rank, made_at, parts) {
            origins[merge.result as usize] =
                Origin { made_at: merge.rank + 1, left, right, ..UNMADE };
        } // else the two are never neighbors
    }
    // Nor are those of an early merge if one of them is never made, or only after the result.
    let made_at = |id: u32| origins[id as usize].made_at;
    early.retain(|merge| {
        let both = made_at(merge.left).max(made_at(merge.right));
        both != NEVER && made_at(merge.result) >= both
    });
    let mut untimely: Vec<u32> = early.iter().map(|merge| merge.result).collect();
    untimely.dedup(); // the merges of one token are mostly adjacent
    Some((origins, untimely))
}

/// What building a [`Matcher`] allocates at most.
const BYTES_PER_TOKEN: usize = 128;

/// Building a [`Matcher`] takes about as long as merging this many bytes.
const BYTES_BEFORE_BUILD: usize = 1 << 18;

/// The [`Matcher`] of a vocabulary, built once enough bytes have been merged to make it worthwhile.
#[derive(Default)]
pub(crate) struct LazyMatcher {
    merged_bytes: AtomicUsize,
    matcher: OnceLock<Option<Matcher>>,
}

impl LazyMatcher {
    /// The matcher for a pre-token of this length; `None` if it is to be merged. One thread builds
    /// the matcher, and no other waits for it: in a forked process, that thread may not exist.
    pub(crate) fn get(
        &self,
        length: usize,
        build: impl FnOnce() -> Option<Matcher>,
    ) -> Option<&Matcher> {
        if self.matcher.get().is_none() {
            let before = self.merged_bytes.fetch_add(length, Ordering::Relaxed);
            if before < BYTES_BEFORE_BUILD && length >= BYTES_BEFORE_BUILD - before {
                let _ = self.matcher.set(build()); // only one thread passes the mark
            }
        }
        self.matcher.get()?.as_ref()
    }
}

/// Buffers for matching, reused between calls.
#[derive(Default)]
pub(crate) struct MatchScratch {
    /// A bit for each offset that is a dead end; shorter than the text.
    dead_ends: Vec<u64>,
    /// What was right the last time, by hash.
    guesses: Vec<Guess>,
}

/// The token that was right after `previous`, where `longest` was the longest match.
#[derive(Clone, Copy)]
struct Guess {
    previous: u32,
    longest: u32,
    token: u32,
    length: u32,
}

impl Guess {
    #[inline]
    fn is_for(&self, previous: u32, longest: u32) -> bool {
        (self.previous, self.longest) == (previous, longest)
    }
}

/// The number of guesses as a power of two: 64 KiB stay in the L2 cache.
const GUESS_BITS: u32 = 12;

impl MatchScratch {
    fn start(&mut self) {
        self.dead_ends.clear();
        let nothing = Guess { previous: NO_ID, longest: NO_ID, token: NO_ID, length: 0 };
        self.guesses.resize(1 << GUESS_BITS, nothing);
    }

    /// The allocated size of what grows with the text.
    pub(crate) fn capacity(&self) -> usize {
        self.dead_ends.capacity()
    }

    /// The slot of the guess for two tokens.
    #[inline]
    fn guess(&mut self, previous: u32, longest: u32) -> &mut Guess {
        let key = u64::from(previous) << 32 | u64::from(longest);
        &mut self.guesses[(multiply_hash(key) >> (64 - GUESS_BITS)) as usize]
    }
}

#[inline]
fn is_set(bits: &[u64], at: usize) -> bool {
    bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
}

fn set(bits: &mut Vec<u64>, at: usize) -> Result<()> {
    if bits.len() <= at / 64 {
        reserve(bits, at / 64 + 1 - bits.len())?;
        bits.resize(at / 64 + 1, 0);
    }
    bits[at / 64] |= 1 << (at % 64);
    Ok(())
}

#[cfg(test)]
mod tests;
