//! The tokens known so far: their ids, lengths and bytes.
//!
//! Inside the trainer, a token is identified by its number: byte `b` has number `b`, and learned
//! tokens count up from 257 in the order they were learned. Ids belong to the caller and may be any
//! numbers in any order.

use std::cmp::Ordering;

use super::pairs::Pair;
use crate::error::Result;
use crate::reserve::{push, reserve};

/// A token's number inside the trainer.
pub(super) type Token = u32;

/// Marks the boundary between pre-tokens. It is not a token, but its number lets it be counted as a
/// neighbor like any token.
pub(super) const EDGE: Token = 256;

/// All tokens, by number.
pub(super) struct Tokens {
    ids: Vec<u32>,
    lengths: Vec<u32>,
    /// The offset in `text` of each token's bytes; unused for base tokens.
    starts: Vec<u32>,
    /// The first eight bytes as a number, padded with zeros, which decides most comparisons.
    prefixes: Vec<u64>,
    /// The text before the first merge, slot by slot, then the known tokens; empty if bytes are
    /// never read. Tokens point into it, because copies could add up to the square of the text.
    text: Vec<u8>,
}

impl Tokens {
    /// Creates the base tokens. With an empty `text`, lengths and ids are right and all bytes are
    /// empty.
    pub(super) fn new(base_ids: &[Option<u32>; 256], text: Vec<u8>) -> Self {
        Tokens {
            // The ids of EDGE and of bytes that do not occur in the text are never read.
            ids: base_ids.iter().map(|id| id.unwrap_or(u32::MAX)).chain([u32::MAX]).collect(),
            lengths: vec![1; EDGE as usize + 1],
            starts: vec![0; EDGE as usize + 1],
            prefixes: BYTES.iter().map(|byte| prefix(&[*byte])).chain([0]).collect(),
            text,
        }
    }

    /// The number of the next learned token.
    pub(super) fn next(&self) -> Token {
        // There are fewer tokens than slots, which fit 32 bits.
        self.ids.len() as Token
    }

    /// Adds a learned token whose bytes start at slot `start`.
    pub(super) fn push(&mut self, id: u32, start: u32, length: u32) -> Result<()> {
        let prefix = prefix(self.text_at(start, length));
        push(&mut self.ids, id)?;
        push(&mut self.lengths, length)?;
        push(&mut self.starts, start)?;
        push(&mut self.prefixes, prefix)
    }

    /// Adds the token that a known merge makes, which the text may not contain; `None` if it is too
    /// long.
    pub(super) fn push_known(&mut self, id: u32, pair: Pair) -> Result<Option<Token>> {
        let token = self.next();
        let length = self.length(pair.left).checked_add(self.length(pair.right));
        let start = u32::try_from(self.text.len()).ok();
        let (Some(start), Some(length)) = (start, length) else { return Ok(None) };
        if start.checked_add(length).is_none() {
            return Ok(None);
        }
        if start > 0 {
            reserve(&mut self.text, length as usize)?;
            for part in [pair.left, pair.right] {
                match BYTES.get(part as usize) {
                    Some(&byte) => self.text.push(byte),
                    None => {
                        let start = self.starts[part as usize] as usize;
                        let end = start + self.lengths[part as usize] as usize;
                        self.text.extend_from_within(start..end);
                    }
                }
            }
        }
        self.push(id, start, length)?;
        Ok(Some(token))
    }

    /// The id of a token.
    pub(super) fn id(&self, token: Token) -> u32 {
        self.ids[token as usize]
    }

    /// The ids of the left and the right token.
    pub(super) fn ids(&self, pair: Pair) -> (u32, u32) {
        (self.ids[pair.left as usize], self.ids[pair.right as usize])
    }

    pub(super) fn length(&self, token: Token) -> u32 {
        self.lengths[token as usize]
    }

    /// The bytes of the slots from `start`.
    pub(super) fn text_at(&self, start: u32, length: u32) -> &[u8] {
        self.text.get(start as usize..(start + length) as usize).unwrap_or(&[])
    }

    /// Compares two tokens by their bytes.
    pub(super) fn compare(&self, a: Token, b: Token) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        // Different prefixes are ordered as the bytes are; equal ones decide nothing.
        let by_prefix = self.prefixes[a as usize].cmp(&self.prefixes[b as usize]);
        by_prefix.then_with(|| self.bytes(a).cmp(self.bytes(b)))
    }

    /// The bytes of a token; empty if bytes are never read.
    pub(super) fn bytes(&self, token: Token) -> &[u8] {
        match BYTES.get(token as usize) {
            Some(byte) => std::slice::from_ref(byte),
            None => self.text_at(self.starts[token as usize], self.lengths[token as usize]),
        }
    }
}

/// Every byte value: the bytes of the base tokens.
static BYTES: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        bytes[byte] = byte as u8;
        byte += 1;
    }
    bytes
};

fn prefix(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    for (to, from) in padded.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_be_bytes(padded)
}
