//! Characters as Python keeps them, in one, two or four bytes each, to UTF-8.
//!
//! Python can do this too, but slower, and it keeps the result for as long as the string lives.

/// Characters that are looked at together.
const BLOCK: usize = 16;

/// A character is written as one word of so many bytes, and the next one covers what was too much.
const WORD: usize = 4;

/// What a character is kept in.
pub(crate) trait Unit: Copy + Into<u32> {}
impl Unit for u8 {}
impl Unit for u16 {}
impl Unit for u32 {}

/// The characters in UTF-8; none if there is a surrogate among them, which UTF-8 has not.
pub(crate) fn utf8<U: Unit>(units: &[U]) -> Option<Vec<u8>> {
    let length = utf8_length(units)?;
    let mut out = vec![0; length + WORD];
    let mut at = 0;
    let (blocks, rest) = units.as_chunks::<BLOCK>();
    for block in blocks {
        if is_ascii(block) {
            let bytes = block.map(|unit| unit.into() as u8);
            out[at..at + BLOCK].copy_from_slice(&bytes);
            at += BLOCK;
        } else {
            at = write(block, &mut out, at);
        }
    }
    at = write(rest, &mut out, at);
    debug_assert_eq!(at, length);
    out.truncate(length);
    Some(out)
}

/// How many bytes the characters have in UTF-8; none if there is a surrogate among them.
fn utf8_length<U: Unit>(units: &[U]) -> Option<usize> {
    let mut length = units.len();
    let mut surrogates = 0;
    // The sums of so many characters fit in 16 bits, and many such sums are one instruction.
    for units in units.chunks(1 << 12) {
        let mut more = 0u16;
        let mut found = 0u16;
        for &unit in units {
            let character: u32 = unit.into();
            more += u16::from(character >= 0x80);
            more += u16::from(character >= 0x800);
            more += u16::from(character >= 0x1_0000);
            found |= u16::from(character & 0xFFFF_F800 == 0xD800);
        }
        length += usize::from(more);
        surrogates |= found;
    }
    (surrogates == 0).then_some(length)
}

fn is_ascii<U: Unit>(block: &[U; BLOCK]) -> bool {
    block.iter().fold(0, |all, &unit| all | unit.into()) < 0x80
}

/// Writes characters at a place, behind which there is room for a word more; returns the place after them.
#[inline(always)]
fn write<U: Unit>(units: &[U], out: &mut [u8], mut at: usize) -> usize {
    for &unit in units {
        let (word, length) = word(unit.into(), size_of::<U>());
        out[at..at + WORD].copy_from_slice(&word.to_le_bytes());
        at += length;
    }
    at
}

/// A character's UTF-8 as a little-endian word, and its length. `size` is that of what it was kept in.
#[inline(always)]
fn word(character: u32, size: usize) -> (u32, usize) {
    let tail = |shift: u32| 0x80 | (character >> shift) & 0x3F;
    let two = 0xC0 | character >> 6 | tail(0) << 8;
    if size == 1 {
        return if character < 0x80 { (character, 1) } else { (two, 2) };
    }
    let three = 0xE0 | character >> 12 | tail(6) << 8 | tail(0) << 16;
    if size == 4 && character >= 0x1_0000 {
        let four = 0xF0 | character >> 18 | tail(12) << 8 | tail(6) << 16 | tail(0) << 24;
        return (four, 4);
    }
    // Chosen without a jump: in most scripts there are spaces and points between the letters.
    let is_two = character >= 0x80;
    let is_three = character >= 0x800;
    let word = if is_two { two } else { character };
    let word = if is_three { three } else { word };
    (word, 1 + usize::from(is_two) + usize::from(is_three))
}
