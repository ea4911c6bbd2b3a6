//! Writes a block with AVX-512: at most two compressions, whatever the characters.
//!
//! Each character gets a lane of two or four bytes, as wide as the longest one of the block needs. Its
//! UTF-8 is put at the end of the lane: the last byte has the last six bits of the character, the byte
//! before it the six bits before, and so on, which one instruction extracts. Then the lanes' unused
//! bytes are removed.
#![expect(unsafe_code, reason = "instructions not all processors have")]

use std::arch::x86_64::*;

use super::{BLOCK, Space, Unit, WriteBlock};
use crate::cpu::Avx512;

impl WriteBlock for Avx512 {
    #[inline(always)]
    fn write_block<U: Unit>(self, block: &[U; BLOCK], space: &mut Space) -> Option<usize> {
        let from = block.as_ptr();
        // SAFETY: the token proves that the instructions exist. A block has 32 units, which are 32, 64
        // or 128 bytes, and the space has 128 bytes.
        unsafe {
            let characters = match size_of::<U>() {
                1 => _mm512_cvtepu8_epi16(_mm256_loadu_si256(from.cast())),
                2 => _mm512_loadu_si512(from.cast()),
                _ => {
                    let low = _mm512_loadu_si512(from.cast());
                    let high = _mm512_loadu_si512(from.add(16).cast());
                    let all = _mm512_or_si512(low, high);
                    if _mm512_test_epi32_mask(all, _mm512_set1_epi32(!0xFFFF)) != 0 {
                        if has_invalid(self, low) | has_invalid(self, high) {
                            return None;
                        }
                        return Some(write_long::<true>(self, [low, high], space));
                    }
                    // Packing alternates between the operands every 8 bytes.
                    let order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
                    _mm512_permutexvar_epi64(order, _mm512_packus_epi32(low, high))
                }
            };
            let two = _mm512_cmpge_epu16_mask(characters, _mm512_set1_epi16(0x80));
            // Latin-1 does without this case: in French, say, the branch would often be mispredicted.
            if size_of::<U>() > 1 && two == 0 {
                let packed = _mm512_cvtepi16_epi8(characters);
                _mm256_storeu_si256(space.as_mut_ptr().cast(), packed);
                return Some(BLOCK);
            }
            let high_bits = _mm512_and_si512(characters, _mm512_set1_epi16(!0x7FF));
            if _mm512_test_epi16_mask(high_bits, high_bits) == 0 {
                return Some(write_short(self, characters, two, space));
            }
            if _mm512_cmpeq_epi16_mask(high_bits, _mm512_set1_epi16(0xD800_u16 as i16)) != 0 {
                return None;
            }
            let low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(characters));
            let high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(characters));
            Some(write_long::<false>(self, [low, high], space))
        }
    }
}

/// Whether one of 16 characters is a surrogate or not a code point.
#[inline(always)]
fn has_invalid(_: Avx512, characters: __m512i) -> bool {
    // SAFETY: the token proves that the instructions exist.
    unsafe {
        let high_bits = _mm512_and_si512(characters, _mm512_set1_epi32(!0x7FF));
        let surrogates = _mm512_cmpeq_epi32_mask(high_bits, _mm512_set1_epi32(0xD800));
        let beyond = _mm512_cmpge_epu32_mask(characters, _mm512_set1_epi32(0x11_0000));
        surrogates | beyond != 0
    }
}

/// Writes 32 characters below U+0800, where `two` says which have two bytes; returns their length.
#[inline(always)]
fn write_short(tier: Avx512, characters: __m512i, two: __mmask32, space: &mut Space) -> usize {
    // SAFETY: the token proves that the instructions exist. The space has 128 bytes.
    unsafe {
        // For each lane, eight bits from bit 6 on, and eight from bit 0 on.
        let shifts = _mm512_set1_epi64(0x3036_2026_1016_0006);
        let bits = _mm512_multishift_epi64_epi8(shifts, characters);
        let ascii_bits = _mm512_set1_epi16(0x7F00);
        let used_bits = _mm512_mask_mov_epi16(ascii_bits, two, _mm512_set1_epi16(0x3F3F));
        let prefixes = _mm512_maskz_mov_epi16(two, _mm512_set1_epi16(0x80C0_u16 as i16));
        let bytes = _mm512_ternarylogic_epi64::<AND_OR>(bits, used_bits, prefixes);
        // Bytes with a prefix are used, and the last one.
        let last = _mm512_set1_epi16(0x8000_u16 as i16);
        let used = _mm512_movepi8_mask(_mm512_or_si512(prefixes, last));
        store_used(tier, bytes, used, space.as_mut_ptr().cast())
    }
}

/// Writes two times 16 characters, of which some may have four bytes if `FOUR`; returns their length.
#[inline(always)]
fn write_long<const FOUR: bool>(tier: Avx512, halves: [__m512i; 2], space: &mut Space) -> usize {
    let out = space.as_mut_ptr().cast::<u8>();
    let mut at = 0;
    for characters in halves {
        // SAFETY: the token proves that the instructions exist. Each half has at most 64 bytes, and the
        // space has 128.
        at += unsafe {
            // For each lane, eight bits from bits 18, 12, 6 and 0 on.
            let shifts = _mm512_set1_epi64(0x2026_2C32_0006_0C12);
            let bits = _mm512_multishift_epi64_epi8(shifts, characters);
            let from_two = _mm512_cmpge_epu32_mask(characters, _mm512_set1_epi32(0x80));
            let ascii_bits = _mm512_set1_epi32(0x7F00_0000);
            let other_bits = _mm512_set1_epi32(0x3F3F_3F3F);
            let used_bits = _mm512_mask_mov_epi32(ascii_bits, from_two, other_bits);

            let of_two = _mm512_set1_epi32(0x80C0_0000_u32 as i32);
            let mut prefixes = _mm512_maskz_mov_epi32(from_two, of_two);
            let from_three = _mm512_cmpge_epu32_mask(characters, _mm512_set1_epi32(0x800));
            let of_three = _mm512_set1_epi32(0x8080_E000_u32 as i32);
            prefixes = _mm512_mask_mov_epi32(prefixes, from_three, of_three);
            if FOUR {
                let four = _mm512_cmpge_epu32_mask(characters, _mm512_set1_epi32(0x1_0000));
                let of_four = _mm512_set1_epi32(0x8080_80F0_u32 as i32);
                prefixes = _mm512_mask_mov_epi32(prefixes, four, of_four);
            }

            let bytes = _mm512_ternarylogic_epi64::<AND_OR>(bits, used_bits, prefixes);
            // Bytes with a prefix are used, and the last one.
            let last = _mm512_set1_epi32(0x8000_0000_u32 as i32);
            let used = _mm512_movepi8_mask(_mm512_or_si512(prefixes, last));
            store_used(tier, bytes, used, out.add(at))
        };
    }
    at
}

/// The truth table of `a & b | c`.
const AND_OR: i32 = 0xEA;

/// Writes the used bytes one after another; returns their number.
///
/// # Safety
///
/// 64 bytes must be writable. Those after the used ones are overwritten.
#[inline(always)]
unsafe fn store_used(_: Avx512, bytes: __m512i, used: __mmask64, out: *mut u8) -> usize {
    // SAFETY: the token proves that the instructions exist, and the caller vouches for the output.
    unsafe {
        // In two steps: an instruction that compresses into memory exists, but Zen 4 has it in
        // microcode.
        _mm512_storeu_si512(out.cast(), _mm512_maskz_compress_epi8(used, bytes));
    }
    used.count_ones() as usize
}
