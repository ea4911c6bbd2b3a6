//! Cut points: offsets inside a pre-token that no token spans.
//!
//! Every merge makes a token. So where no token of the vocabulary can span two characters, no merge
//! does, and the segments on both sides are encoded independently. Text without spaces (Chinese,
//! Japanese, Thai) is full of cut points, and its segments, unlike its sentences, recur.
//!
//! Only the offsets between two characters of three bytes are considered: those scripts have no
//! others. Of the tokens that span such an offset, the two bit tables record less than their bytes,
//! so that two lookups suffice; this may miss a cut point, but never adds one.

use std::ops::Range;

use crate::decode::TokenTable;
use crate::hash::multiply_hash;

/// The size of each table in bits, as a power of two. Few bits are set.
const TABLE_BITS: u32 = 19;

pub(crate) struct CutPoints {
    /// Tokens that have the whole character before: that character and the next two bytes.
    whole: BitTable,
    /// Tokens that start inside the character before: its last two bytes and the next two.
    partial: BitTable,
}

impl CutPoints {
    /// The cut points that tokens leave.
    pub(crate) fn new(tokens: &TokenTable) -> Self {
        let mut cut_points = Self { whole: BitTable::new(), partial: BitTable::new() };
        for id in 0..tokens.end() {
            cut_points.exclude(tokens.get(id).unwrap_or_default());
        }
        cut_points
    }

    /// Excludes the offsets that a token spans.
    fn exclude(&mut self, token: &[u8]) {
        for at in 1..token.len() {
            let (before, after) = token.split_at(at);
            if !is_lead(after[0]) {
                continue;
            }
            // If the token ends after the lead byte, any byte may follow.
            for second in one_or_any(after.get(1).copied()) {
                let after = [after[0], second];
                match *before {
                    [.., lead, middle, last]
                        if is_lead(lead) && is_inner(middle) && is_inner(last) =>
                    {
                        self.whole.set(whole_key([lead, middle, last], after));
                    }
                    [middle, last] if is_inner(middle) && is_inner(last) => {
                        self.partial.set(partial_key([middle, last], after));
                    }
                    [last] if is_inner(last) => {
                        for middle in one_or_any(None) {
                            self.partial.set(partial_key([middle, last], after));
                        }
                    }
                    _ => {} // not after a character of three bytes
                }
            }
        }
    }

    /// Calls `visit` with the offsets between characters in a range of a text, ascending, and whether
    /// they are cut points, until it returns `false`. Returns from where to go on.
    #[inline(always)]
    pub(crate) fn visit(
        &self,
        text: &[u8],
        range: Range<usize>,
        mut visit: impl FnMut(usize, bool) -> bool,
    ) -> usize {
        let mut at = range.start;
        while at + WINDOW <= range.end {
            let window = match text[at..].first_chunk() {
                Some(bytes) => u64::from_le_bytes(*bytes) & WINDOW_MASK,
                None => window_of(&text[at..at + WINDOW]),
            };
            // A branch, since it is predictable: then the next window need not wait for this one.
            if !is_lead(window as u8) {
                at += 1;
                continue;
            }
            at += 3;
            if !visit(at, self.is_cut(window)) {
                return at;
            }
        }
        range.end
    }

    /// Whether there is a cut point between a character of three bytes and the start of another, the
    /// five bytes of a window. There is none in bytes that are not valid UTF-8.
    #[inline(always)]
    fn is_cut(&self, window: u64) -> bool {
        let are_characters = window & 0xC0_F0_C0_C0_F0 == 0x80_E0_80_80_E0;
        are_characters & !self.whole.has(window) & !self.partial.has(window >> 8)
    }
}

/// The bytes that decide about a cut point: a character of three, and two of the next.
const WINDOW: usize = 5;
const WINDOW_MASK: u64 = (1 << (8 * WINDOW)) - 1;

/// Up to eight bytes as a number.
fn window_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |window, &byte| window << 8 | u64::from(byte))
}

/// A longer pre-token should be split in any script of three-byte characters.
const MAX_UNCUT_BYTES: usize = 31;

/// Whether a pre-token of more than a few bytes should be split at its cut points: if it is in a
/// script without spaces, where whole sentences are pre-tokens and do not recur, or long. Other
/// pre-tokens recur as they are, and have few cut points.
pub(crate) fn should_be_cut(pretoken: &[u8]) -> bool {
    let first = usize::from(pretoken[0].is_ascii()); // after a space or the like
    let is_unspaced = matches!(pretoken[first], 0xE3..=0xE9 | 0xEF);
    is_unspaced || (pretoken.len() > MAX_UNCUT_BYTES && is_lead(pretoken[first]))
}

/// This byte, or every byte that can be inside a character.
fn one_or_any(byte: Option<u8>) -> std::ops::RangeInclusive<u8> {
    byte.map_or(0x80..=0xBF, |byte| byte..=byte)
}

/// Whether a character of three bytes starts with this one.
fn is_lead(byte: u8) -> bool {
    byte & 0xF0 == 0xE0
}

/// Whether a byte continues a character.
fn is_inner(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn whole_key([lead, middle, last]: [u8; 3], [next_lead, second]: [u8; 2]) -> u64 {
    window_of(&[lead, middle, last, next_lead, second])
}

fn partial_key([middle, last]: [u8; 2], [next_lead, second]: [u8; 2]) -> u64 {
    window_of(&[middle, last, next_lead, second])
}

/// A set of keys that may seem to have more than it does: a Bloom filter with one hash.
struct BitTable(Vec<u64>);

impl BitTable {
    fn new() -> Self {
        Self(vec![0; 1 << (TABLE_BITS - 6)])
    }

    fn bit(key: u64) -> usize {
        (multiply_hash(key) >> (u64::BITS - TABLE_BITS)) as usize
    }

    fn set(&mut self, key: u64) {
        let bit = Self::bit(key);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    #[inline]
    fn has(&self, key: u64) -> bool {
        let bit = Self::bit(key);
        self.0[bit / 64] >> (bit % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests;
