//! Transcodes characters to UTF-8 from the form in which Python stores them, one, two or four bytes
//! each.
//!
//! Python can also do this, but more slowly, and it caches the result for the life of the string.

use byteweld_core::Result;
use byteweld_core::reserve::reserve;

/// Number of characters that are transcoded together.
const BLOCK: usize = 16;

/// Enough for the UTF-8 of any block and the excess of its last word.
const MAX_BLOCK_BYTES: usize = 2 * BLOCK * WORD;

/// Each character is written as one word of this many bytes; the next one overwrites the excess.
const WORD: usize = 4;

/// The integer that stores a character.
pub(crate) trait Unit: Copy + Into<u32> {
    /// The length of the characters in UTF-8; `None` if one of them is a surrogate.
    fn utf8_length(units: &[Self]) -> Option<usize>;
}

/// `$limits` are the first characters of two, three and four bytes that fit the type. `$many` is a
/// number of characters whose continuation bytes can be counted in the type without overflow.
macro_rules! unit {
    ($type:ty, $limits:expr, $many:expr) => {
        impl Unit for $type {
            // Sums in the type itself vectorize well.
            fn utf8_length(units: &[Self]) -> Option<usize> {
                let mut length = units.len();
                let mut surrogates = false;
                for units in units.chunks($many) {
                    let mut further: $type = 0;
                    let mut found: $type = 0;
                    for &unit in units {
                        for limit in $limits {
                            further += <$type>::from(unit >= limit);
                        }
                        found |= <$type>::from(u32::from(unit) & !0x7FF == 0xD800);
                    }
                    length += further as usize;
                    surrogates |= found != 0;
                }
                (!surrogates).then_some(length)
            }
        }
    };
}
unit!(u8, [0x80], 0xFF);
unit!(u16, [0x80, 0x800], 0x7FFF);
unit!(u32, [0x80, 0x800, 0x1_0000], 0x7FFF_FFFF / 3);

/// The characters in UTF-8. A surrogate pair is one character; a lone surrogate becomes U+FFFD.
pub(crate) fn utf8<U: Unit>(units: &[U]) -> Result<Vec<u8>> {
    let Some(length) = U::utf8_length(units) else { return repair(units) };
    let mut out = Vec::new();
    reserve(&mut out, length + MAX_BLOCK_BYTES)?;
    out.resize(length + MAX_BLOCK_BYTES, 0);
    let mut at = 0;
    let (blocks, rest) = units.as_chunks::<BLOCK>();
    for block in blocks {
        let Some(space) = out[at..].first_chunk_mut::<MAX_BLOCK_BYTES>() else { break };
        let all = block.iter().fold(0, |all, &unit| all | unit.into());
        at += if all < 0x80 {
            for (byte, &unit) in space.iter_mut().zip(block) {
                *byte = unit.into() as u8;
            }
            BLOCK
        } else {
            write(block.map(U::into), BLOCK, space)
        };
    }
    if let Some(space) = out[at..].first_chunk_mut::<MAX_BLOCK_BYTES>() {
        let mut last = [0; BLOCK];
        for (character, &unit) in last.iter_mut().zip(rest) {
            *character = unit.into();
        }
        at += write(last, rest.len(), space);
    }
    debug_assert_eq!(at, length);
    out.truncate(length);
    Ok(out)
}

/// The slow path, for strings that contain surrogates.
#[cold]
fn repair<U: Unit>(units: &[U]) -> Result<Vec<u8>> {
    let wide = units.iter().flat_map(|&unit| {
        let mut pair = [unit.into() as u16, 0]; // a surrogate
        let length = char::from_u32(unit.into()).map_or(1, |c| c.encode_utf16(&mut pair).len());
        pair.into_iter().take(length)
    });
    let mut out = Vec::new();
    for character in char::decode_utf16(wide) {
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        reserve(&mut out, WORD)?;
        out.extend_from_slice(character.encode_utf8(&mut [0; WORD]).as_bytes());
    }
    Ok(out)
}

/// Writes the first `count` characters of a block; returns their length in bytes.
#[inline(always)]
fn write(block: [u32; BLOCK], count: usize, space: &mut [u8; MAX_BLOCK_BYTES]) -> usize {
    // First transcode all characters, which is vectorized; then write them one after another.
    let mut words = [0; BLOCK];
    let mut lengths = [0; BLOCK];
    for (index, &character) in block.iter().enumerate() {
        words[index] = word(character);
        lengths[index] = length(character);
    }
    let mut at = 0;
    for (word, &length) in words.iter().zip(&lengths).take(count) {
        // A block never has more bytes than this; the remainder proves it to the compiler.
        let start = at as usize % (BLOCK * WORD);
        space[start..start + WORD].copy_from_slice(&word.to_le_bytes());
        at += length;
    }
    at as usize
}

fn length(character: u32) -> u32 {
    1 + u32::from(character >= 0x80)
        + u32::from(character >= 0x800)
        + u32::from(character >= 0x1_0000)
}

/// A character's UTF-8 as a little-endian word.
fn word(character: u32) -> u32 {
    let tail = |shift: u32| 0x80 | (character >> shift) & 0x3F;
    let two = 0xC0 | character >> 6 | tail(0) << 8;
    let three = 0xE0 | character >> 12 | tail(6) << 8 | tail(0) << 16;
    let four = 0xF0 | character >> 18 | tail(12) << 8 | tail(6) << 16 | tail(0) << 24;
    let word = if character >= 0x80 { two } else { character };
    let word = if character >= 0x800 { three } else { word };
    if character >= 0x1_0000 { four } else { word }
}
