//! The operations in plain Rust, for any processor.

use super::{AsciiMasks, BLOCK, Simd};
use crate::cpu::Portable;

const LETTER: u8 = 1;
const NUMBER: u8 = 1 << 1;
const SPACE: u8 = 1 << 2;
const WHITE: u8 = 1 << 3;
const NEWLINE: u8 = 1 << 4;
const APOSTROPHE: u8 = 1 << 5;
const SLASH: u8 = 1 << 6;

/// The classes of each byte.
const FLAGS: [u8; 256] = {
    let mut flags = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        flags[byte as usize] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' => LETTER,
            b'0'..=b'9' => NUMBER,
            b' ' => SPACE | WHITE,
            b'\n' | b'\r' => WHITE | NEWLINE,
            b'\t' | 0x0B | 0x0C => WHITE,
            b'\'' => APOSTROPHE,
            b'/' => SLASH,
            _ => 0,
        };
        byte += 1;
    }
    flags
};

impl Simd for Portable {
    #[inline]
    fn ascii_masks(self, block: &[u8; BLOCK]) -> AsciiMasks {
        let flags = block.map(|byte| FLAGS[usize::from(byte)]);
        let mask = |flag: u8| self.plane(&flags, flag.trailing_zeros());
        AsciiMasks {
            letter: mask(LETTER),
            bit_5: self.plane(block, 5),
            number: mask(NUMBER),
            space: mask(SPACE),
            white: mask(WHITE),
            newline: mask(NEWLINE),
            apostrophe: mask(APOSTROPHE),
            slash: mask(SLASH),
            high: self.plane(block, 7),
        }
    }

    #[inline]
    fn plane(self, block: &[u8; BLOCK], bit: u32) -> u64 {
        let (words, _) = block.as_chunks::<8>();
        words.iter().rev().fold(0, |plane, word| {
            // The multiplication gathers the lowest bits of all bytes in the highest byte.
            let bits = u64::from_le_bytes(*word) >> bit & 0x0101_0101_0101_0101;
            plane << 8 | bits.wrapping_mul(0x0102_0408_1020_4080) >> 56
        })
    }

    #[inline]
    fn squeezer(self, kept: u64) -> Squeeze {
        Squeeze::with_steps(kept)
    }

    #[inline]
    fn squeeze(self, squeeze: &Squeeze, bits: u64) -> u64 {
        squeeze.squeeze(bits)
    }

    #[inline]
    fn spread(self, squeeze: &Squeeze, bits: u64) -> u64 {
        squeeze.spread(bits)
    }

    #[inline]
    fn write_offsets(self, bits: u64, base: u32, out: &mut [u32; BLOCK]) -> usize {
        write_offsets(bits, base, out)
    }
}

/// The two halves of the mask take turns: each offset waits for the one before it in its half.
#[inline(always)]
pub(super) fn write_offsets(bits: u64, base: u32, out: &mut [u32; BLOCK]) -> usize {
    let (low, high) = (bits as u32, (bits >> 32) as u32);
    let middle = low.count_ones() as usize;
    write_half(low, base, out);
    // At most 32, so there is space for as many again.
    write_half(high, base.wrapping_add(32), &mut out[middle..]);
    middle + high.count_ones() as usize
}

/// Twelve at a time, some in vain: a branch after each one would be mispredicted once per block.
#[inline(always)]
fn write_half(mut bits: u32, base: u32, out: &mut [u32]) {
    for some in out.chunks_mut(12) {
        for offset in some {
            *offset = base.wrapping_add(bits.trailing_zeros());
            bits &= bits.wrapping_sub(1);
        }
        if bits == 0 {
            break;
        }
    }
}

/// Which bits of a mask are kept, and how to move them where that takes several steps.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Squeeze {
    pub(super) kept: u64,
    /// Bits that move down by 1, 2, 4, ... 32 in each step.
    steps: [u64; 6],
}

impl Squeeze {
    /// For processors with `pext`, which need no steps.
    #[inline(always)]
    pub(super) fn with_pext(kept: u64) -> Self {
        Self { kept, steps: [0; 6] }
    }

    /// The parallel suffix algorithm of "Hacker's Delight" (7-4).
    #[inline]
    pub(super) fn with_steps(kept: u64) -> Self {
        let mut steps = [0; 6];
        let mut mask = kept;
        let mut moving = !kept << 1; // bits with an odd number of gaps below them move by 1
        for (step, moved) in steps.iter_mut().enumerate() {
            let mut parity = moving;
            for shift in [1, 2, 4, 8, 16, 32] {
                parity ^= parity << shift;
            }
            *moved = parity & mask;
            mask = mask ^ *moved | *moved >> (1 << step);
            moving &= !parity;
        }
        Self { kept, steps }
    }

    #[inline]
    pub(super) fn squeeze(&self, bits: u64) -> u64 {
        let mut bits = bits & self.kept;
        for (step, moved) in self.steps.iter().enumerate() {
            let moving = bits & moved;
            bits = bits ^ moving | moving >> (1 << step);
        }
        bits
    }

    #[inline]
    pub(super) fn spread(&self, mut bits: u64) -> u64 {
        for (step, moved) in self.steps.iter().enumerate().rev() {
            let up = bits << (1 << step);
            bits = bits & !moved | up & moved;
        }
        bits & self.kept
    }
}
