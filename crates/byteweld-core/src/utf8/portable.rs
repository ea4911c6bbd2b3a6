//! Writes a block with plain Rust, half of it at a time.
//!
//! Each character becomes a word of four bytes, which is vectorized; then the words are written one
//! after another, and each overwrites the excess of the one before.

use std::mem::MaybeUninit;

use super::{BLOCK, SPACE, Space, Unit, WriteBlock, length};
use crate::cpu::Portable;

/// Number of characters that are transcoded together: their words fit the registers.
const HALF: usize = BLOCK / 2;

/// Bytes of a word.
const WORD: usize = 4;

impl WriteBlock for Portable {
    #[inline(always)]
    fn write_block<U: Unit>(self, block: &[U; BLOCK], space: &mut Space) -> Option<usize> {
        let mut at = 0;
        for half in block.as_chunks::<HALF>().0 {
            at = write_half(half, at, space)?;
        }
        Some(at)
    }
}

/// Writes from `at` on; returns where the next character goes.
#[inline(always)]
fn write_half<U: Unit>(units: &[U; HALF], at: usize, space: &mut Space) -> Option<usize> {
    // The remainders prove to the compiler that what is written fits.
    if units.iter().fold(0, |all, &unit| all | unit.into()) < 0x80 {
        let start = at % (SPACE - HALF + 1);
        let bytes = units.map(|unit| MaybeUninit::new(unit.into() as u8));
        space[start..start + HALF].copy_from_slice(&bytes);
        return Some(at + HALF);
    }
    let characters = units.map(U::into);
    if characters.iter().fold(false, |invalid, &character| invalid | is_invalid(character)) {
        return None;
    }
    let words = characters.map(word);
    let lengths = characters.map(length);
    let mut at = at;
    for (word, length) in words.iter().zip(lengths) {
        let start = at % (SPACE - WORD + 1);
        space[start..start + WORD].copy_from_slice(&word.to_le_bytes().map(MaybeUninit::new));
        at += length as usize;
    }
    Some(at)
}

/// Whether it is a surrogate or not a code point.
#[inline(always)]
fn is_invalid(character: u32) -> bool {
    (character & !0x7FF == 0xD800) | (character > 0x10_FFFF)
}

/// A character's UTF-8 as a little-endian word.
#[inline(always)]
fn word(character: u32) -> u32 {
    let tail = |shift: u32| 0x80 | (character >> shift) & 0x3F;
    let two = 0xC0 | character >> 6 | tail(0) << 8;
    let three = 0xE0 | character >> 12 | tail(6) << 8 | tail(0) << 16;
    let four = 0xF0 | character >> 18 | tail(12) << 8 | tail(6) << 16 | tail(0) << 24;
    let word = if character >= 0x80 { two } else { character };
    let word = if character >= 0x800 { three } else { word };
    if character >= 0x1_0000 { four } else { word }
}
