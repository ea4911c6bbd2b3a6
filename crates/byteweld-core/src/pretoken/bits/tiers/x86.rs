//! The operations with AVX2, and with AVX-512.
#![expect(unsafe_code, reason = "instructions not all processors have")]

use std::arch::x86_64::*;

use super::portable::{self, Squeeze};
use super::{AsciiMasks, BLOCK, Simd};
use crate::cpu::{Avx2, Avx512};

impl Simd for Avx2 {
    #[inline(always)]
    fn ascii_masks(self, block: &[u8; BLOCK]) -> AsciiMasks {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { avx2::ascii_masks(block) }
    }

    #[inline(always)]
    fn plane(self, block: &[u8; BLOCK], bit: u32) -> u64 {
        // SAFETY: the same.
        unsafe { avx2::plane(block, bit) }
    }

    #[inline(always)]
    fn squeezer(self, kept: u64) -> Squeeze {
        if self.has_fast_pext() { Squeeze::with_pext(kept) } else { Squeeze::with_steps(kept) }
    }

    #[inline(always)]
    fn squeeze(self, squeeze: &Squeeze, bits: u64) -> u64 {
        if self.has_fast_pext() {
            // SAFETY: the same.
            unsafe { _pext_u64(bits, squeeze.kept) }
        } else {
            squeeze.squeeze(bits)
        }
    }

    #[inline(always)]
    fn spread(self, squeeze: &Squeeze, bits: u64) -> u64 {
        if self.has_fast_pext() {
            // SAFETY: the same.
            unsafe { _pdep_u64(bits, squeeze.kept) }
        } else {
            squeeze.spread(bits)
        }
    }

    #[inline(always)]
    fn write_offsets(self, bits: u64, base: u32, out: &mut [u32; BLOCK]) -> usize {
        portable::write_offsets(bits, base, out)
    }
}

impl Simd for Avx512 {
    #[inline(always)]
    fn ascii_masks(self, block: &[u8; BLOCK]) -> AsciiMasks {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { avx512::ascii_masks(block) }
    }

    #[inline(always)]
    fn plane(self, block: &[u8; BLOCK], bit: u32) -> u64 {
        // SAFETY: the same.
        unsafe { avx512::plane(block, bit) }
    }

    #[inline(always)]
    fn squeezer(self, kept: u64) -> Squeeze {
        Squeeze::with_pext(kept)
    }

    #[inline(always)]
    fn squeeze(self, squeeze: &Squeeze, bits: u64) -> u64 {
        // SAFETY: the same.
        unsafe { _pext_u64(bits, squeeze.kept) }
    }

    #[inline(always)]
    fn spread(self, squeeze: &Squeeze, bits: u64) -> u64 {
        // SAFETY: the same.
        unsafe { _pdep_u64(bits, squeeze.kept) }
    }

    #[inline(always)]
    fn write_offsets(self, bits: u64, base: u32, out: &mut [u32; BLOCK]) -> usize {
        // SAFETY: the same.
        unsafe { avx512::write_offsets(bits, base, out) }
    }
}

mod avx2 {
    use super::*;

    /// Both halves of a block.
    type Halves = [__m256i; 2];

    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(block: &[u8; BLOCK]) -> Halves {
        let (low, high) = (block.as_ptr(), block[32..].as_ptr());
        // SAFETY: the block has 32 bytes at both addresses.
        unsafe { [_mm256_loadu_si256(low.cast()), _mm256_loadu_si256(high.cast())] }
    }

    /// The highest bits of all bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask([low, high]: Halves) -> u64 {
        u64::from(_mm256_movemask_epi8(low) as u32)
            | u64::from(_mm256_movemask_epi8(high) as u32) << 32
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn splat(byte: u8) -> __m256i {
        _mm256_set1_epi8(byte as i8)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn is([low, high]: Halves, byte: u8) -> Halves {
        [_mm256_cmpeq_epi8(low, splat(byte)), _mm256_cmpeq_epi8(high, splat(byte))]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn or(a: Halves, b: Halves) -> Halves {
        [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])]
    }

    /// Moved up so that the last byte of the range becomes the greatest signed one.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn in_range([low, high]: Halves, first: u8, last: u8) -> Halves {
        let (up, limit) = (splat(0x7F - last), splat(0x7E - (last - first)));
        [
            _mm256_cmpgt_epi8(_mm256_add_epi8(low, up), limit),
            _mm256_cmpgt_epi8(_mm256_add_epi8(high, up), limit),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn ascii_masks(block: &[u8; BLOCK]) -> AsciiMasks {
        let x = halves(block);
        let space = is(x, b' ');
        AsciiMasks {
            letter: mask(in_range(or(x, [splat(0x20); 2]), b'a', b'z')),
            bit_5: mask([_mm256_slli_epi16::<2>(x[0]), _mm256_slli_epi16::<2>(x[1])]),
            number: mask(in_range(x, b'0', b'9')),
            space: mask(space),
            white: mask(or(in_range(x, b'\t', b'\r'), space)),
            newline: mask(or(is(x, b'\n'), is(x, b'\r'))),
            apostrophe: mask(is(x, b'\'')),
            slash: mask(is(x, b'/')),
            high: mask(x),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn plane(block: &[u8; BLOCK], bit: u32) -> u64 {
        let up = _mm_cvtsi32_si128(7 - bit as i32);
        let [low, high] = halves(block);
        mask([_mm256_sll_epi16(low, up), _mm256_sll_epi16(high, up)])
    }
}

mod avx512 {
    use super::*;

    /// 0, 1, 2, ... 63.
    const POSITIONS: [u8; BLOCK] = {
        let mut positions = [0; BLOCK];
        let mut at = 0;
        while at < BLOCK {
            positions[at] = at as u8;
            at += 1;
        }
        positions
    };

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(block: &[u8; BLOCK]) -> __m512i {
        // SAFETY: the block has 64 bytes.
        unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn splat(byte: u8) -> __m512i {
        _mm512_set1_epi8(byte as i8)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn is(x: __m512i, byte: u8) -> u64 {
        _mm512_cmpeq_epi8_mask(x, splat(byte))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn in_range(x: __m512i, first: u8, last: u8) -> u64 {
        _mm512_cmplt_epu8_mask(_mm512_sub_epi8(x, splat(first)), splat(last - first + 1))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn ascii_masks(block: &[u8; BLOCK]) -> AsciiMasks {
        let x = load(block);
        let space = is(x, b' ');
        AsciiMasks {
            letter: in_range(_mm512_or_si512(x, splat(0x20)), b'a', b'z'),
            bit_5: _mm512_test_epi8_mask(x, splat(0x20)),
            number: in_range(x, b'0', b'9'),
            space,
            white: in_range(x, b'\t', b'\r') | space,
            newline: is(x, b'\n') | is(x, b'\r'),
            apostrophe: is(x, b'\''),
            slash: is(x, b'/'),
            high: _mm512_movepi8_mask(x),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn plane(block: &[u8; BLOCK], bit: u32) -> u64 {
        _mm512_test_epi8_mask(load(block), splat(1 << bit))
    }

    /// The positions of set bits are what a compression of all positions leaves.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    pub(super) fn write_offsets(bits: u64, base: u32, out: &mut [u32; BLOCK]) -> usize {
        let found = bits.count_ones() as usize;
        let positions = _mm512_maskz_compress_epi8(bits, load(&POSITIONS));
        let (parts, _) = out.as_chunks_mut::<16>();
        write(parts, 0, base, _mm512_castsi512_si128(positions));
        // Whether a block has more than 16 is hard to predict, more than 32 are rare.
        write(parts, 1, base, _mm512_extracti32x4_epi32::<1>(positions));
        if found > 32 {
            write(parts, 2, base, _mm512_extracti32x4_epi32::<2>(positions));
            write(parts, 3, base, _mm512_extracti32x4_epi32::<3>(positions));
        }
        found
    }

    /// Writes 16 positions as offsets.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn write(parts: &mut [[u32; 16]], at: usize, base: u32, positions: __m128i) {
        let offsets =
            _mm512_add_epi32(_mm512_cvtepu8_epi32(positions), _mm512_set1_epi32(base as i32));
        let part: &mut [u32; 16] = &mut parts[at];
        // SAFETY: the part has 64 bytes.
        unsafe { _mm512_storeu_si512(part.as_mut_ptr().cast(), offsets) };
    }
}
