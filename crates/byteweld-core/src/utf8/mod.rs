//! Transcodes text to UTF-8 from the forms in which Python stores it: one, two or four bytes per
//! character.
//!
//! Python can also do this, but more slowly, and it caches the result for the life of the string.
//!
//! Blocks of 32 characters are transcoded together, and each tier has its own way to do that
//! ([`WriteBlock`]: `portable.rs`, `avx2.rs`, `avx512.rs`). The loop over the blocks is here, and so is
//! the slow path for blocks with surrogates.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use std::mem::MaybeUninit;

use crate::cpu::{self, Work};
use crate::error::Result;
use crate::reserve::reserve_exact;

/// Number of characters that are transcoded together.
const BLOCK: usize = 32;

/// Bytes that writing a block may touch: its UTF-8 and the excess of a last wide store.
const SPACE: usize = 4 * BLOCK;

/// Where a block is written.
type Space = [MaybeUninit<u8>; SPACE];

/// Bytes of the buffer that the beginning of a text is written to.
const SCRATCH: usize = 4 << 10;

/// Text is prefetched this far ahead: the processor itself does so only within a page.
const PREFETCHED_BYTES: usize = 1 << 10;

/// What is reserved for a text, relative to what it needs if it goes on as it begins.
const MARGIN: f64 = 1.0625;

/// The integer that stores a character: `u8` (Latin-1), `u16` (UCS-2) or `u32` (UCS-4).
pub trait Unit: Copy + Default + Into<u32> + sealed::Sealed {}

impl Unit for u8 {}
impl Unit for u16 {}
impl Unit for u32 {}

mod sealed {
    pub trait Sealed {}

    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// The characters in UTF-8. A surrogate pair is one character. A lone surrogate becomes U+FFFD, and
/// so does a number that is not a code point.
// Counting the bytes first, to reserve exactly as many, takes up to as long as transcoding: 0.03 to
// 0.09 ns per character (Zen 4, November 2026). Instead, the beginning is written to the stack. If that
// is all, its length is known; otherwise the rest is assumed to be similar. If it turns out longer, what
// remains is counted; if shorter, the end of the reserved memory stays untouched, so that in a long text
// no pages back it.
#[expect(unsafe_code, reason = "the output is not zeroed before it is written")]
pub fn from_units<U: Unit>(units: &[U]) -> Result<Vec<u8>> {
    let mut scratch = [MaybeUninit::uninit(); SCRATCH];
    let (read, written) = cpu::run(&mut Write { units, out: &mut scratch });
    let mut out = Vec::new();
    let expected = expected_length(units.len(), read, written);
    if reserve_exact(&mut out, expected).is_err() {
        reserve_exact(&mut out, written + max_length(&units[read..]) + SPACE)?;
    }
    cpu::advise_huge_pages(out.spare_capacity_mut()); // if it is large
    out.spare_capacity_mut()[..written].copy_from_slice(&scratch[..written]);
    // SAFETY: these bytes were just copied, and `Write` had initialized them.
    unsafe { out.set_len(written) };
    write_rest(units, read, &mut out)?;
    Ok(out)
}

/// The same, in place of what `out` holds: its memory serves again.
pub fn write_units<U: Unit>(units: &[U], out: &mut Vec<u8>) -> Result<()> {
    if out.capacity() < SCRATCH {
        *out = from_units(units)?;
        return Ok(());
    }
    out.clear();
    write_rest(units, 0, out)
}

/// Appends the UTF-8 of the units from `read` on.
#[expect(unsafe_code, reason = "the output is not zeroed before it is written")]
fn write_rest<U: Unit>(units: &[U], mut read: usize, out: &mut Vec<u8>) -> Result<()> {
    while read < units.len() {
        let mut rest = Write { units: &units[read..], out: out.spare_capacity_mut() };
        let (more_read, more_written) = cpu::run(&mut rest);
        read += more_read;
        // SAFETY: `Write` has initialized these bytes.
        unsafe { out.set_len(out.len() + more_written) };
        if read < units.len() {
            reserve_exact(out, max_length(&units[read..]) + SPACE)?;
        }
    }
    Ok(())
}

/// What to reserve for a text whose first `read` units became `written` bytes.
fn expected_length(units: usize, read: usize, written: usize) -> usize {
    if read == units {
        return written;
    }
    let expected = units as f64 * (written as f64 / read as f64);
    ((expected * MARGIN) as usize).saturating_add(SPACE)
}

/// Length of the characters in UTF-8; more if there are surrogates, which count as three bytes each.
fn max_length<U: Unit>(units: &[U]) -> usize {
    // Sums of 32 bits, which cannot overflow, take fewer instructions.
    let sum = |units: &[U]| units.iter().map(|&unit| length(unit.into())).sum::<u32>();
    units.chunks(1 << 16).map(|units| sum(units) as usize).sum()
}

/// Length of a character in UTF-8.
#[inline(always)]
fn length(character: u32) -> u32 {
    1 + u32::from(character >= 0x80)
        + u32::from(character >= 0x800)
        + u32::from(character >= 0x1_0000)
}

/// Writes UTF-8 to the start of `out`, until all is written or less than [`SPACE`] is left. Returns
/// the number of units read and of bytes written, which are then initialized.
struct Write<'a, U> {
    units: &'a [U],
    out: &'a mut [MaybeUninit<u8>],
}

/// A tier's hot loop.
trait WriteBlock: Copy {
    /// Writes the UTF-8 of a block to the start of `space` and returns its length. The rest of
    /// `space` may be overwritten. `None` if a unit is a surrogate or not a code point.
    fn write_block<U: Unit>(self, block: &[U; BLOCK], space: &mut Space) -> Option<usize>;
}

// A reference, since moving the value to a function costs 15 ns: its fields are copied in pairs, each
// load of which has to wait for two stores.
impl<U: Unit, T: WriteBlock> Work<T> for &mut Write<'_, U> {
    type Output = (usize, usize);

    #[inline(always)]
    fn run(self, tier: T) -> (usize, usize) {
        let mut rest = self.units;
        let mut at = 0;
        while let Some(space) = self.out[at..].first_chunk_mut::<SPACE>() {
            cpu::prefetch(rest, PREFETCHED_BYTES / size_of::<U>());
            let Some((block, after)) = rest.split_first_chunk::<BLOCK>() else {
                at += write_last(tier, rest, space);
                rest = &[];
                break;
            };
            if let Some(written) = tier.write_block(block, space) {
                at += written;
                rest = after;
            } else {
                let (read, written) = write_slowly(rest, BLOCK, space);
                at += written;
                rest = &rest[read..];
            }
        }
        (self.units.len() - rest.len(), at)
    }
}

/// Writes the characters after the last whole block; returns their length.
#[inline(always)]
fn write_last<U: Unit>(tier: impl WriteBlock, units: &[U], space: &mut Space) -> usize {
    if units.is_empty() {
        return 0;
    }
    let mut block = [U::default(); BLOCK];
    block[..units.len()].copy_from_slice(units);
    match tier.write_block(&block, space) {
        // The zeros after the characters became one byte each.
        Some(written) => written - (BLOCK - units.len()),
        None => write_slowly(units, units.len(), space).1,
    }
}

/// Writes the characters of the first `count` units, at most a block, one by one; the last may be half
/// of a pair with the unit after it. Returns the number of units read and of bytes written.
#[cold]
#[inline(never)]
fn write_slowly<U: Unit>(units: &[U], count: usize, space: &mut Space) -> (usize, usize) {
    let mut read = 0;
    let mut written = 0;
    while read < count {
        let unit = units[read].into();
        read += 1;
        let next = units.get(read).map_or(0, |&next| next.into());
        let is_pair = matches!((unit, next), (0xD800..0xDC00, 0xDC00..0xE000));
        read += usize::from(is_pair);
        let code_point =
            if is_pair { 0x1_0000 + ((unit & 0x3FF) << 10 | next & 0x3FF) } else { unit };
        let character = char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER);
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            space[written].write(byte);
            written += 1;
        }
    }
    (read, written)
}

#[cfg(test)]
mod tests;
