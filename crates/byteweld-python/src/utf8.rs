//! Characters as Python keeps them, in one, two or four bytes each, to UTF-8.
//!
//! Python can do this too, but slower, and it keeps the result for as long as the string lives.

/// Characters that are looked at together.
const BLOCK: usize = 16;

/// Room for the UTF-8 of a block, whatever is in it, and for the rest of a word behind it.
const ROOM: usize = 2 * BLOCK * WORD;

/// A character is written as one word of so many bytes, and the next one covers what was too much.
const WORD: usize = 4;

/// What a character is kept in.
pub(crate) trait Unit: Copy + Into<u32> {
    /// How many bytes characters have in UTF-8; none if there is a surrogate among them.
    fn utf8_length(units: &[Self]) -> Option<usize>;
}

/// `$limits` are the first characters of two, three and four bytes, as far as they fit into the type; for so many
/// characters as `$many`, the sum of their further bytes does.
macro_rules! unit {
    ($type:ty, $limits:expr, $many:expr) => {
        impl Unit for $type {
            // Sums in the type itself are those of many characters in one instruction.
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

/// The characters in UTF-8; none if there is a surrogate among them, which UTF-8 has not.
pub(crate) fn utf8<U: Unit>(units: &[U]) -> Option<Vec<u8>> {
    let length = U::utf8_length(units)?;
    let mut out = vec![0; length + ROOM];
    let mut at = 0;
    let (blocks, rest) = units.as_chunks::<BLOCK>();
    for block in blocks {
        let Some(room) = out[at..].first_chunk_mut::<ROOM>() else { break };
        let all = block.iter().fold(0, |all, &unit| all | unit.into());
        at += if all < 0x80 {
            for (byte, &unit) in room.iter_mut().zip(block) {
                *byte = unit.into() as u8;
            }
            BLOCK
        } else {
            write(block.map(U::into), BLOCK, room)
        };
    }
    if let Some(room) = out[at..].first_chunk_mut::<ROOM>() {
        let mut last = [0; BLOCK];
        for (character, &unit) in last.iter_mut().zip(rest) {
            *character = unit.into();
        }
        at += write(last, rest.len(), room);
    }
    debug_assert_eq!(at, length);
    out.truncate(length);
    Some(out)
}

/// Writes the first `count` characters of a block; returns how many bytes they have.
#[inline(always)]
fn write(block: [u32; BLOCK], count: usize, room: &mut [u8; ROOM]) -> usize {
    // First what each one becomes, which many lanes do at once; then one after another where it goes.
    let mut words = [0; BLOCK];
    let mut lengths = [0; BLOCK];
    for (place, &character) in block.iter().enumerate() {
        words[place] = word(character);
        lengths[place] = length(character);
    }
    let mut at = 0;
    for (word, &length) in words.iter().zip(&lengths).take(count) {
        // A block has never more bytes than this: it shows that there is room.
        let place = at as usize % (BLOCK * WORD);
        room[place..place + WORD].copy_from_slice(&word.to_le_bytes());
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
