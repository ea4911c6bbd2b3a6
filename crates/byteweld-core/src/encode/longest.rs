//! Long pre-tokens without merging: longest matches, and the way back from a wrong one.
//!
//! Merging a long pre-token jumps about in it, and in memory. But what comes out can be told by looking:
//!
//! > A row of tokens is what its bytes merge to exactly if every two neighbours, by themselves, [stay apart].
//!
//! So we walk from left to right, and take the longest token that stays apart from the one before it. Where none
//! does, the token before was wrong: we go back and take the next shorter one in its place. Where that happens
//! is a dead end for good, because only one row of tokens leads to it: what the bytes before it merge to. So
//! there is no way through a place twice.
//!
//! In a run of one character, the longest token is wrong nearly everywhere, but always in the same way. So what
//! was right between two tokens is guessed to be right again.
//!
//! All this holds for *proper* merges: each token is made by one merge, of two that are made before it, and is
//! what its own bytes merge to. Trained vocabularies are like that. Other merges of a list do no harm if they
//! never happen. Some rank files have *untimely* tokens, whose merge comes before a part of them is made; where
//! the text holds the bytes of none, no such merge happens either. docs/design/algorithm.md, section 8, has the proofs.
//!
//! [stay apart]: stay_apart

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::apart::stay_apart;
use super::pairs::{NONE, Pairs};
use super::trie::Trie;
use crate::decode::TokenTable;
use crate::error::Result;
use crate::reserve::reserve;
use crate::watch::Watch;

/// Pre-tokens of more bytes are long.
pub(super) const LONG: usize = 64;

/// So many steps may be taken for each byte; a pre-token that needs more is merged. Usual vocabularies take two
/// to ten. One that is made for it can take as many as it has tokens.
const STEPS: usize = 32;

/// What the encoder knows: the id of each byte, the merges, and the bytes of all tokens.
pub(super) type Facts<'e> = (&'e [u32; 256], &'e Pairs, &'e TokenTable);

/// What is known of a token.
#[derive(Clone, Copy)]
struct Token {
    /// One more than the rank of the merge that makes it, 0 for a byte, [`NONE`] for what merging never gives.
    made: u32,
    /// The two tokens that it is made of.
    left: u32,
    right: u32,
    /// The longest token that it starts with, other than itself; [`NONE`] for a byte.
    shorter: u32,
}

const UNMADE: Token = Token { made: NONE, left: NONE, right: NONE, shorter: NONE };

/// Set in an id that was guessed; no id has it.
const GUESSED: u32 = 1 << 31;

/// What has to be known of a vocabulary.
pub(super) struct Longest {
    tokens: Vec<Token>,
    trie: Trie,
    /// Finds untimely tokens, if there are such.
    untimely: Option<AhoCorasick>,
}

/// Untimely tokens may have so many bytes together, for each of which their finder needs up to a kilobyte. Llama 3
/// has 104 of them, with a thousand bytes.
const MANY: usize = 1 << 12;

impl Longest {
    /// What has to be known of some merges; `None` if they are far from proper.
    pub(super) fn new((byte_ids, pairs, tokens): Facts<'_>) -> Option<Self> {
        let (mut known, untimely) = proper(byte_ids, pairs, tokens)?;
        let bytes_of = |id: u32| tokens.get(id).unwrap_or_default();
        let untimely: Vec<&[u8]> = untimely.into_iter().map(bytes_of).collect();
        if untimely.iter().map(|token| token.len()).sum::<usize>() > MANY || tokens.end() > GUESSED
        {
            return None;
        }
        let finder =
            AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&untimely).ok()?;
        let untimely = (!untimely.is_empty()).then_some(finder);
        let is_made = |id: &u32| known[*id as usize].made != NONE;
        let mut order: Vec<(u64, u32)> =
            (0..tokens.end()).filter(is_made).map(|id| (start(bytes_of(id)), id)).collect();
        order.sort_unstable_by(|&(a, one), &(b, other)| {
            a.cmp(&b).then_with(|| bytes_of(one).cmp(bytes_of(other)))
        });
        let made: Vec<(&[u8], u32)> = order.iter().map(|&(_, id)| (bytes_of(id), id)).collect();
        let trie = Trie::new(&made, |id, shorter| {
            let first = byte_ids[usize::from(bytes_of(id)[0])];
            known[id as usize].shorter = shorter.unwrap_or(first);
        })?;
        Some(Self { tokens: known, trie, untimely })
    }

    /// Puts into `ids` what bytes merge to; false if they must be merged, because they hold an untimely token or
    /// it takes too many steps. Every byte must have a token.
    pub(super) fn encode(
        &self,
        bytes: &[u8],
        facts: Facts<'_>,
        ids: &mut Vec<u32>,
        trail: &mut Trail,
        watch: &mut Watch,
    ) -> Result<bool> {
        self.encode_within(bytes.len().saturating_mul(STEPS), bytes, facts, ids, trail, watch)
    }

    fn encode_within(
        &self,
        mut steps: usize,
        bytes: &[u8],
        (byte_ids, pairs, tokens): Facts<'_>,
        ids: &mut Vec<u32>,
        trail: &mut Trail,
        watch: &mut Watch,
    ) -> Result<bool> {
        if self.untimely.as_ref().is_some_and(|untimely| untimely.is_match(bytes)) {
            return Ok(false);
        }
        let length_of = |id: u32| tokens.get(id).map_or(0, <[u8]>::len);
        ids.clear();
        trail.start();
        let mut at = 0;
        let mut wrong = None; // what stood here and led to a dead end
        while at < bytes.len() {
            let (longest, looked) = self.trie.longest(&bytes[at..]);
            steps = steps.saturating_sub(looked);
            if steps == 0 {
                return Ok(false);
            }
            watch.worked(looked)?;
            reserve(ids, 1)?;
            let (longest, length) = longest.unwrap_or((byte_ids[usize::from(bytes[at])], 1));
            let last = ids.last().map_or(NONE, |id| id & !GUESSED);
            let guess = *trail.guess(last, longest);
            if wrong.is_none()
                && guess.is_for(last, longest)
                && !is_set(&trail.dead, at + guess.length as usize)
            {
                ids.push(guess.token | GUESSED);
                at += guess.length as usize;
                continue;
            }
            // What was not guessed was the longest that there was.
            let (mut token, mut length) = match wrong.take() {
                Some(wrong) if wrong & GUESSED == 0 => {
                    let shorter = self.tokens[wrong as usize].shorter;
                    (shorter, length_of(shorter))
                }
                _ => (longest, length),
            };
            while token != NONE
                && (is_set(&trail.dead, at + length)
                    || last != NONE && !self.stay_apart(pairs, last, token, &mut steps))
            {
                steps = steps.saturating_sub(1);
                token = self.tokens[token as usize].shorter;
                length = length_of(token);
            }
            if token == NONE {
                set(&mut trail.dead, at)?;
                wrong = ids.pop();
                let Some(id) = wrong else { return Ok(false) };
                at -= length_of(id & !GUESSED);
                continue;
            }
            *trail.guess(last, longest) = Guess { last, longest, token, length: length as u32 };
            ids.push(token);
            at += length;
        }
        for id in ids {
            *id &= !GUESSED;
        }
        Ok(true)
    }

    #[inline(always)]
    fn stay_apart(&self, pairs: &Pairs, left: u32, right: u32, steps: &mut usize) -> bool {
        let made = |id: u32| self.tokens[id as usize].made;
        stay_apart(pairs, (left, right), NONE, made, |id| {
            *steps = steps.saturating_sub(1);
            (self.tokens[id as usize].left, self.tokens[id as usize].right)
        })
    }
}

/// The first eight bytes as a number, which most comparisons need no more than.
fn start(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(first.len());
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

/// How each token is made, by id, and the ids of untimely tokens; `None` if a merge does not join the bytes of its
/// parts.
fn proper(
    byte_ids: &[u32; 256],
    pairs: &Pairs,
    tokens: &TokenTable,
) -> Option<(Vec<Token>, Vec<u32>)> {
    let mut known = vec![UNMADE; tokens.end() as usize];
    for &id in byte_ids.iter().filter(|&&id| id != NONE) {
        known.get_mut(id as usize)?.made = 0;
    }
    let mut early = Vec::new(); // merges that come before one of their parts is made
    for (left, right, merged) in pairs.by_rank() {
        let (first, second, whole) =
            (tokens.get(left)?, tokens.get(right)?, tokens.get(merged.id)?);
        let is_sound = first.len() + second.len() == whole.len()
            && whole.starts_with(first)
            && whole.ends_with(second)
            && merged.rank < NONE - 1;
        if !is_sound {
            return None;
        }
        let made = |id: u32| known[id as usize].made;
        let parts = |id: u32| (known[id as usize].left, known[id as usize].right);
        if made(left) == NONE || made(right) == NONE {
            early.push((left, right, merged.id));
        } else if stay_apart(pairs, (left, right), merged.rank, made, parts) {
            known[merged.id as usize] = Token { made: merged.rank + 1, left, right, ..UNMADE };
        } // else the two never stand side by side
    }
    let made = |id: u32| known[id as usize].made;
    // They never do either if one is never made, or only when what they would make is made already.
    early.retain(|&(left, right, id)| {
        let both = made(left).max(made(right));
        both != NONE && made(id) >= both
    });
    let mut untimely: Vec<u32> = early.iter().map(|merge| merge.2).collect();
    untimely.dedup(); // those of one token mostly stand side by side
    Some((known, untimely))
}

/// Making [`Longest`] takes about as long as merging so many bytes.
const WORTH_IT: usize = 1 << 18;

/// [`Longest`] of a vocabulary, made when so many bytes have been merged that it is worth it.
#[derive(Default)]
pub(super) struct WhenWorthIt {
    merged: AtomicUsize,
    longest: OnceLock<Option<Longest>>,
}

impl WhenWorthIt {
    /// For a pre-token of so many bytes; `None` if it is to be merged. One thread makes it, and no other waits
    /// for that: in a forked process, that thread may not be there.
    pub(super) fn get(
        &self,
        length: usize,
        make: impl FnOnce() -> Option<Longest>,
    ) -> Option<&Longest> {
        if self.longest.get().is_none() {
            let before = self.merged.fetch_add(length, Ordering::Relaxed);
            if before < WORTH_IT && length >= WORTH_IT - before {
                let _ = self.longest.set(make()); // only one thread passes the mark
            }
        }
        self.longest.get()?.as_ref()
    }
}

/// What is written down on the way.
#[derive(Default)]
pub(super) struct Trail {
    /// A bit for each place that is a dead end, as far as there are such.
    dead: Vec<u64>,
    /// What was right when last it was asked, by hash.
    guesses: Vec<Guess>,
}

/// Behind `last`, where `longest` is the longest match, it was `token`, of so many bytes.
#[derive(Clone, Copy)]
struct Guess {
    last: u32,
    longest: u32,
    token: u32,
    length: u32,
}

impl Guess {
    #[inline]
    fn is_for(&self, last: u32, longest: u32) -> bool {
        (self.last, self.longest) == (last, longest)
    }
}

/// So many guesses stay in a near cache: 2^12 of 16 bytes.
const GUESS_BITS: u32 = 12;

impl Trail {
    fn start(&mut self) {
        self.dead.clear();
        let nothing = Guess { last: NONE, longest: NONE, token: NONE, length: 0 };
        self.guesses.resize(1 << GUESS_BITS, nothing);
    }

    /// How much it has grown.
    pub(super) fn size(&self) -> usize {
        self.dead.capacity()
    }

    /// Where the guess for two tokens is, if it is there.
    #[inline]
    fn guess(&mut self, last: u32, longest: u32) -> &mut Guess {
        let key = u64::from(last) << 32 | u64::from(longest);
        &mut self.guesses[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - GUESS_BITS)) as usize]
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
