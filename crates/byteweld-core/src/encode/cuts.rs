//! Exact cut points: places inside a pre-token that no token lies across.
//!
//! Every merge makes a token. So where no token of the vocabulary could lie across two characters, no merge
//! ever does, and the parts on both sides are encoded each by itself. Text without spaces between its words
//! (Chinese, Japanese, Thai) is full of such places, and its parts, unlike its sentences, are met again.
//!
//! Only places between two characters of three bytes are looked at, as all of those scripts have. A token that
//! lies across one ends with one to three bytes of the character before, or has more, and starts the character
//! after with one to three bytes, or has more. What is remembered of it is less than that, so that one or two
//! looks are enough; less only means that a cut is not made that could be.

use super::words::LONGEST;
use crate::decode::TokenTable;

/// Bits of each table; few of them are set.
const BITS: u32 = 19;

pub(super) struct Cuts {
    /// Tokens that have the whole character before: that character and two bytes of the one after.
    whole: Vec<u64>,
    /// Tokens that start inside the character before: its last two bytes and two bytes of the one after.
    partial: Vec<u64>,
}

/// The bytes of a character of three.
const WIDE: usize = 3;

impl Cuts {
    /// The cut points that tokens leave.
    pub(super) fn new(tokens: &TokenTable) -> Self {
        let mut cuts = Cuts { whole: vec![0; 1 << (BITS - 6)], partial: vec![0; 1 << (BITS - 6)] };
        for id in 0..tokens.end() {
            cuts.add(tokens.get(id).unwrap_or_default());
        }
        cuts
    }

    /// Forbids the places that a token can lie across.
    fn add(&mut self, token: &[u8]) {
        for at in 1..token.len() {
            let (before, after) = token.split_at(at);
            if !is_wide_lead(after[0]) {
                continue;
            }
            // The second byte of the character after, or any if the token ends before.
            for second in any_of(after.get(1).copied()) {
                let after = u32::from(after[0]) << 8 | u32::from(second);
                match *before {
                    [.., first, middle, last] if is_wide(&[first, middle, last]) => {
                        set(&mut self.whole, whole(first, middle, last, after));
                    }
                    // A longer token that ends with other characters does not lie across such a place.
                    [middle, last] if is_inner(middle) && is_inner(last) => {
                        set(&mut self.partial, partial(middle, last, after));
                    }
                    [last] if is_inner(last) => {
                        for middle in any_of(None) {
                            set(&mut self.partial, partial(middle, last, after));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The cuts of a text, ascending; none at its ends.
    pub(super) fn within<'c>(&'c self, text: &'c [u8]) -> impl Iterator<Item = usize> + 'c {
        let mut at = 0;
        std::iter::from_fn(move || {
            while let Some(window) = text.get(at..at + WIDE + 2) {
                let is_cut = self.is_cut(window);
                at += if is_wide_lead(window[0]) { WIDE } else { 1 };
                if is_cut {
                    return Some(at);
                }
            }
            None
        })
    }

    /// Whether there is a cut between the first three bytes, a character, and the rest, the start of one.
    #[inline(always)]
    fn is_cut(&self, window: &[u8]) -> bool {
        let &[first, middle, last, lead, second] = window else { return false };
        if !is_wide_lead(first) || !is_wide_lead(lead) {
            return false;
        }
        // Text need not be valid: where these are no characters, there is no cut.
        let is_wide = is_inner(middle) && is_inner(last) && is_inner(second);
        let after = u32::from(lead) << 8 | u32::from(second);
        is_wide
            && !has(&self.whole, whole(first, middle, last, after))
            && !has(&self.partial, partial(middle, last, after))
    }
}

/// Whether a pre-token of more than 15 bytes should be cut: if it is too long to be remembered, or if it is of
/// a script that has no spaces and so makes of every sentence a new pre-token. Words of other scripts are met
/// again whole, and seldom have cuts.
pub(super) fn is_worth_it(pretoken: &[u8]) -> bool {
    let from = usize::from(pretoken[0].is_ascii()); // a space or the like
    let is_unspaced = matches!(pretoken[from], 0xE3..=0xE9 | 0xEF);
    is_unspaced || (pretoken.len() > LONGEST && is_wide_lead(pretoken[from]))
}

/// A byte, or every byte that can be inside a character.
fn any_of(byte: Option<u8>) -> std::ops::RangeInclusive<u8> {
    byte.map_or(0x80..=0xBF, |byte| byte..=byte)
}

fn is_wide_lead(byte: u8) -> bool {
    byte & 0xF0 == 0xE0
}

fn is_inner(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn is_wide(bytes: &[u8; WIDE]) -> bool {
    is_wide_lead(bytes[0]) && is_inner(bytes[1]) && is_inner(bytes[2])
}

fn whole(first: u8, middle: u8, last: u8, after: u32) -> usize {
    let before = u32::from_le_bytes([first, middle, last, 0]);
    bit(u64::from(before) << 32 | u64::from(after))
}

fn partial(middle: u8, last: u8, after: u32) -> usize {
    bit(u64::from(u32::from_le_bytes([middle, last, 0, 0])) << 32 | u64::from(after))
}

fn bit(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - BITS)) as usize
}

fn set(bits: &mut [u64], bit: usize) {
    bits[bit / 64] |= 1 << (bit % 64);
}

#[inline]
fn has(bits: &[u64], bit: usize) -> bool {
    bits[bit / 64] >> (bit % 64) & 1 != 0
}

#[cfg(test)]
mod tests;
