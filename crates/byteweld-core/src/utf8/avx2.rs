//! Writes a block with AVX2.
//!
//! Each character gets a lane of two or four bytes, as wide as the longest one of the block needs, and
//! its UTF-8 is put at the end of the lane. Then the lanes' unused bytes are removed, 16 bytes at a
//! time, by a shuffle from a table that is indexed by the characters' lengths.
#![expect(unsafe_code, reason = "instructions not all processors have")]

use std::arch::x86_64::*;

use super::{BLOCK, Space, Unit, WriteBlock};
use crate::cpu::Avx2;

impl WriteBlock for Avx2 {
    #[inline(always)]
    fn write_block<U: Unit>(self, block: &[U; BLOCK], space: &mut Space) -> Option<usize> {
        let from = block.as_ptr();
        // SAFETY: the token proves that the instructions exist. A block has 32 units, which are 32, 64
        // or 128 bytes, and the space has 128 bytes.
        unsafe {
            let [low, high] = match size_of::<U>() {
                1 => [
                    _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast())),
                    _mm256_cvtepu8_epi16(_mm_loadu_si128(from.add(16).cast())),
                ],
                2 => [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(16).cast())],
                _ => {
                    let a = _mm256_loadu_si256(from.cast());
                    let b = _mm256_loadu_si256(from.add(8).cast());
                    let c = _mm256_loadu_si256(from.add(16).cast());
                    let d = _mm256_loadu_si256(from.add(24).cast());
                    let all = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
                    if _mm256_testz_si256(all, _mm256_set1_epi32(!0xFFFF)) == 0 {
                        if has_invalid(self, [a, b, c, d]) {
                            return None;
                        }
                        return Some(write_long::<true>(self, [a, b, c, d], space));
                    }
                    let [low, high] = [_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d)];
                    [in_order(self, low), in_order(self, high)]
                }
            };
            let all = _mm256_or_si256(low, high);
            // Latin-1 does without this case: in French, say, the branch would often be mispredicted.
            if size_of::<U>() > 1 && _mm256_testz_si256(all, _mm256_set1_epi16(!0x7F)) != 0 {
                let packed = in_order(self, _mm256_packus_epi16(low, high));
                _mm256_storeu_si256(space.as_mut_ptr().cast(), packed);
                return Some(BLOCK);
            }
            let not_short = _mm256_set1_epi16(!0x7FF);
            if _mm256_testz_si256(all, not_short) != 0 {
                return Some(write_short(self, [low, high], space));
            }
            let surrogate = _mm256_set1_epi16(0xD800_u16 as i16);
            let in_low = _mm256_cmpeq_epi16(_mm256_and_si256(low, not_short), surrogate);
            let in_high = _mm256_cmpeq_epi16(_mm256_and_si256(high, not_short), surrogate);
            let surrogates = _mm256_or_si256(in_low, in_high);
            if _mm256_testz_si256(surrogates, surrogates) == 0 {
                return None;
            }
            let quarters = [
                _mm256_cvtepu16_epi32(_mm256_castsi256_si128(low)),
                _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(low)),
                _mm256_cvtepu16_epi32(_mm256_castsi256_si128(high)),
                _mm256_cvtepu16_epi32(_mm256_extracti128_si256::<1>(high)),
            ];
            Some(write_long::<false>(self, quarters, space))
        }
    }
}

/// Restores the order of what was packed, which alternates between the operands every 8 bytes.
#[inline(always)]
fn in_order(_: Avx2, packed: __m256i) -> __m256i {
    // SAFETY: the token proves that the instructions exist.
    unsafe { _mm256_permute4x64_epi64::<0b11_01_10_00>(packed) }
}

/// Whether a character is a surrogate or not a code point.
#[inline(always)]
fn has_invalid(_: Avx2, quarters: [__m256i; 4]) -> bool {
    // SAFETY: the token proves that the instructions exist.
    unsafe {
        let mut invalid = _mm256_setzero_si256();
        for characters in quarters {
            let high_bits = _mm256_and_si256(characters, _mm256_set1_epi32(!0x7FF));
            let surrogates = _mm256_cmpeq_epi32(high_bits, _mm256_set1_epi32(0xD800));
            // There is no unsigned comparison, but a maximum.
            let end = _mm256_set1_epi32(0x11_0000);
            let beyond = _mm256_cmpeq_epi32(_mm256_max_epu32(characters, end), characters);
            invalid = _mm256_or_si256(invalid, _mm256_or_si256(surrogates, beyond));
        }
        _mm256_testz_si256(invalid, invalid) == 0
    }
}

/// Writes two times 16 characters below U+0800; returns their length.
#[inline(always)]
fn write_short(tier: Avx2, halves: [__m256i; 2], space: &mut Space) -> usize {
    let out = space.as_mut_ptr().cast::<u8>();
    let mut at = 0;
    for characters in halves {
        // SAFETY: the token proves that the instructions exist. Every 8 characters have at most 16
        // bytes, so that the last of the four stores ends within 64 bytes; the space has 128.
        unsafe {
            let two = _mm256_cmpgt_epi16(characters, _mm256_set1_epi16(0x7F));
            let ascii = _mm256_slli_epi16::<8>(characters);
            let bits_0 = _mm256_and_si256(ascii, _mm256_set1_epi16(0x3F00));
            let bits_6 = _mm256_srli_epi16::<6>(characters);
            let prefixes = _mm256_set1_epi16(0x80C0_u16 as i16);
            let others = _mm256_or_si256(_mm256_or_si256(bits_6, bits_0), prefixes);
            let bytes = _mm256_blendv_epi8(ascii, others, two);

            let [low, high] = [_mm256_castsi256_si128(two), _mm256_extracti128_si256::<1>(two)];
            let twos = _mm_movemask_epi8(_mm_packs_epi16(low, high)) as usize;
            let middle = at + 8 + (twos & 0xFF).count_ones() as usize;
            let [low, high] = [_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes)];
            store_shuffled(tier, low, &SHORT[twos & 0xFF], out.add(at));
            store_shuffled(tier, high, &SHORT[twos >> 8 & 0xFF], out.add(middle));
            at += 16 + twos.count_ones() as usize;
        }
    }
    at
}

/// Writes four times 8 characters, of which some may have four bytes if `FOUR`; returns their length.
#[inline(always)]
fn write_long<const FOUR: bool>(tier: Avx2, quarters: [__m256i; 4], space: &mut Space) -> usize {
    let out = space.as_mut_ptr().cast::<u8>();
    let mut at = 0;
    for characters in quarters {
        // SAFETY: the token proves that the instructions exist. Every 4 characters have at most 16
        // bytes, so that the last of the eight stores ends within the space's 128 bytes.
        unsafe {
            let ascii = _mm256_slli_epi32::<24>(characters);
            let bits_0 = _mm256_and_si256(ascii, _mm256_set1_epi32(0x3F00_0000));
            let bits_6 = _mm256_slli_epi32::<10>(characters);
            let bits_6 = _mm256_and_si256(bits_6, _mm256_set1_epi32(0x3F_0000));
            let bits_12 = _mm256_srli_epi32::<4>(characters);
            let bits_12 = _mm256_and_si256(bits_12, _mm256_set1_epi32(0x3F00));
            let mut bits = _mm256_or_si256(_mm256_or_si256(bits_0, bits_6), bits_12);

            // Each further byte has the prefix of a first one, and changes the next byte's to 0x80.
            let from_two = _mm256_cmpgt_epi32(characters, _mm256_set1_epi32(0x7F));
            let second = _mm256_and_si256(from_two, _mm256_set1_epi32(0x80C0_0000_u32 as i32));
            let from_three = _mm256_cmpgt_epi32(characters, _mm256_set1_epi32(0x7FF));
            let third = _mm256_and_si256(from_three, _mm256_set1_epi32(0x0040_E000));
            let mut prefixes = _mm256_xor_si256(second, third);
            // A length minus one in binary: whether the first bit is set, and the second one.
            let mut first_bit = _mm256_xor_si256(from_two, from_three);
            let second_bit = from_three;
            if FOUR {
                let four = _mm256_cmpgt_epi32(characters, _mm256_set1_epi32(0xFFFF));
                let fourth = _mm256_and_si256(four, _mm256_set1_epi32(0x0000_60F0));
                prefixes = _mm256_xor_si256(prefixes, fourth);
                bits = _mm256_or_si256(bits, _mm256_srli_epi32::<18>(characters));
                first_bit = _mm256_or_si256(first_bit, four);
            }
            let bytes = _mm256_blendv_epi8(ascii, _mm256_or_si256(bits, prefixes), from_two);

            let ones = _mm256_movemask_ps(_mm256_castsi256_ps(first_bit)) as usize;
            let twos = _mm256_movemask_ps(_mm256_castsi256_ps(second_bit)) as usize;
            let low_lengths = ones & 0xF | (twos & 0xF) << 4;
            let high_lengths = ones >> 4 & 0xF | twos & 0xF0;
            let middle = 4 + (ones & 0xF).count_ones() + 2 * (twos & 0xF).count_ones();
            let [low, high] = [_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes)];
            store_shuffled(tier, low, &LONG[low_lengths], out.add(at));
            store_shuffled(tier, high, &LONG[high_lengths], out.add(at + middle as usize));
            at += 8 + (ones.count_ones() + 2 * twos.count_ones()) as usize;
        }
    }
    at
}

/// Writes 16 bytes in the order that `shuffle` gives.
///
/// # Safety
///
/// 16 bytes must be writable.
#[inline(always)]
unsafe fn store_shuffled(_: Avx2, bytes: __m128i, shuffle: &[u8; 16], out: *mut u8) {
    // SAFETY: the token proves that the instructions exist, and the caller vouches for the output.
    unsafe {
        let shuffle = _mm_loadu_si128(shuffle.as_ptr().cast());
        _mm_storeu_si128(out.cast(), _mm_shuffle_epi8(bytes, shuffle));
    }
}

/// Moves the used bytes of eight lanes of two bytes to the front. Bit `i` of the index says whether
/// lane `i` uses both.
static SHORT: [[u8; 16]; 256] = {
    let mut shuffles = [[0; 16]; 256];
    let mut index = 0;
    while index < 256 {
        let mut lengths = [1; 8];
        let mut lane = 0;
        while lane < 8 {
            lengths[lane] += index >> lane & 1;
            lane += 1;
        }
        shuffles[index] = shuffle(lengths);
        index += 1;
    }
    shuffles
};

/// Moves the used bytes of four lanes of four bytes to the front. Bits `i` and `i + 4` of the index
/// are the number of bytes that lane `i` uses, minus one.
static LONG: [[u8; 16]; 256] = {
    let mut shuffles = [[0; 16]; 256];
    let mut index = 0;
    while index < 256 {
        let mut lengths = [1; 4];
        let mut lane = 0;
        while lane < 4 {
            lengths[lane] += (index >> lane & 1) + 2 * (index >> (lane + 4) & 1);
            lane += 1;
        }
        shuffles[index] = shuffle(lengths);
        index += 1;
    }
    shuffles
};

/// Which byte goes where, if each lane uses its last bytes, as many as `lengths` says.
const fn shuffle<const LANES: usize>(lengths: [usize; LANES]) -> [u8; 16] {
    let mut shuffle = [0; 16];
    let mut at = 0;
    let mut lane = 0;
    while lane < LANES {
        let end = (lane + 1) * (16 / LANES);
        let mut byte = end - lengths[lane];
        while byte < end {
            shuffle[at] = byte as u8;
            at += 1;
            byte += 1;
        }
        lane += 1;
    }
    shuffle
}
