//! Two pre-tokens at a time with AVX2, four with AVX-512.
#![expect(unsafe_code, reason = "instructions not all processors have")]

use std::arch::x86_64::*;

use super::{CacheTier, GROUP, Keys, Spans};
use crate::cpu::{Avx2, Avx512, prefetch};
use crate::encode::cache::key::{COUNT_SHIFT, FOLD, Key, MAX_KEY_BYTES, SEGMENT_END};
use crate::encode::cache::table::{Entry, MAX_INLINE_IDS};
use crate::hash::MULTIPLIER;

/// By length, and 16 more for segments: the mask of a 16-byte load, and the tag.
static SHAPES: [[[u8; 16]; 2]; 32] = {
    let mut shapes = [[[0; 16]; 2]; 32];
    let mut tag = 0;
    while tag < shapes.len() {
        let mut at = 0;
        while at < tag % 16 {
            shapes[tag][0][at] = 0xFF;
            at += 1;
        }
        shapes[tag][1][MAX_KEY_BYTES] = tag as u8;
        tag += 1;
    }
    shapes
};

/// The offset and the tag of the span between two bounds.
#[inline(always)]
fn offset_and_tag<const HAS_SEGMENTS: bool>(start: u32, end: u32) -> (usize, usize) {
    if HAS_SEGMENTS {
        let start = start & !SEGMENT_END;
        let length = (end & !SEGMENT_END).wrapping_sub(start) & 0xF;
        (start as usize, (length | end >> 31 << 4) as usize)
    } else {
        (start as usize, (end.wrapping_sub(start) & 0xF) as usize)
    }
}

impl CacheTier for Avx2 {
    #[inline(always)]
    fn make_keys<const HAS_SEGMENTS: bool>(
        self,
        spans: &Spans<'_>,
        readable: usize,
        table: (&[Entry], u32),
        out: &mut Keys<'_>,
    ) -> usize {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { make_keys_avx2::<HAS_SEGMENTS>(spans, readable, table, out) }
    }

    #[inline(always)]
    fn look_up(
        self,
        entries: &[Entry],
        keys: &[Key],
        slots: &[u32],
        ids: &mut [u32],
    ) -> (usize, usize) {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { look_up_avx2(entries, keys, slots, ids) }
    }

    #[inline(always)]
    fn find_missing(self, entries: &[Entry], keys: &[Key; 64], slots: &[u32; 64]) -> u64 {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { find_missing_avx2(entries, keys, slots) }
    }
}

impl CacheTier for Avx512 {
    #[inline(always)]
    fn make_keys<const HAS_SEGMENTS: bool>(
        self,
        spans: &Spans<'_>,
        readable: usize,
        table: (&[Entry], u32),
        out: &mut Keys<'_>,
    ) -> usize {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { make_keys_avx512::<HAS_SEGMENTS>(spans, readable, table, out) }
    }

    #[inline(always)]
    fn look_up(
        self,
        entries: &[Entry],
        keys: &[Key],
        slots: &[u32],
        ids: &mut [u32],
    ) -> (usize, usize) {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { look_up_avx512(entries, keys, slots, ids) }
    }

    #[inline(always)]
    fn find_missing(self, entries: &[Entry], keys: &[Key; 64], slots: &[u32; 64]) -> u64 {
        // SAFETY: the token proves that the processor has the instructions.
        unsafe { find_missing_avx512(entries, keys, slots) }
    }
}

/// Sixteen bytes each from two addresses.
///
/// # Safety
///
/// They must be readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_two(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: the caller says so.
    unsafe {
        let low = _mm256_castsi128_si256(_mm_loadu_si128(low.cast()));
        _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(high.cast()))
    }
}

/// # Safety
///
/// 16 bytes must be readable at the first `readable` offsets of the text.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn make_keys_avx2<const HAS_SEGMENTS: bool>(
    spans: &Spans<'_>,
    readable: usize,
    (table, shift): (&[Entry], u32),
    out: &mut Keys<'_>,
) -> usize {
    let text = spans.text.as_ptr();
    let (keys, _) = out.keys[..readable].as_chunks_mut::<2>();
    let (slots, _) = out.slots[..readable].as_chunks_mut::<2>();
    for (at, (keys, slots)) in keys.iter_mut().zip(slots).enumerate() {
        let Some(&[a, b, c]) = spans.bounds[2 * at..].first_chunk() else { break };
        let (first, first_tag) = offset_and_tag::<HAS_SEGMENTS>(a, b);
        let (second, second_tag) = offset_and_tag::<HAS_SEGMENTS>(b, c);
        let [first_mask, first_tag] = &SHAPES[first_tag % 32];
        let [second_mask, second_tag] = &SHAPES[second_tag % 32];
        // SAFETY: both offsets are among the first `readable`; masks and tags have 16 bytes.
        let (bytes, mask, tag) = unsafe {
            (
                load_two(text.add(first), text.add(second)),
                load_two(first_mask.as_ptr(), second_mask.as_ptr()),
                load_two(first_tag.as_ptr(), second_tag.as_ptr()),
            )
        };
        let key = _mm256_or_si256(_mm256_and_si256(bytes, mask), tag);
        // SAFETY: two keys have 32 bytes.
        unsafe { _mm256_storeu_si256(keys.as_mut_ptr().cast(), key) };
        let rotated = _mm256_or_si256(
            _mm256_slli_epi64::<{ FOLD as i32 }>(key),
            _mm256_srli_epi64::<{ 64 - FOLD as i32 }>(key),
        );
        let folded = _mm256_xor_si256(key, _mm256_shuffle_epi32::<0x4E>(rotated));
        let product = _mm256_mullo_epi32(folded, _mm256_set1_epi64x(MULTIPLIER as i64));
        let sum = _mm256_add_epi32(product, _mm256_srli_epi64::<32>(product));
        let found = _mm256_srl_epi32(sum, _mm_cvtsi32_si128(shift as i32));
        slots[0] = _mm256_cvtsi256_si32(found) as u32;
        slots[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256::<1>(found)) as u32;
        prefetch(table, slots[0] as usize);
        prefetch(table, slots[1] as usize);
    }
    readable / 2 * 2
}

/// In each 16 bytes: their positions.
const POSITIONS: [u8; 64] = {
    let mut positions = [0; 64];
    let mut at = 0;
    while at < 64 {
        positions[at] = (at % 16) as u8;
        at += 1;
    }
    positions
};

/// In each 16 bytes: the position of the lowest byte of one of the first four 32-bit numbers.
const LANES: [u8; 64] = {
    let mut lanes = [0; 64];
    let mut at = 0;
    while at < 64 {
        lanes[at] = (at / 16 * 4) as u8;
        at += 1;
    }
    lanes
};

/// The last of each 16 bytes.
const LAST_BYTES: u64 = 0x8000_8000_8000_8000;

/// # Safety
///
/// 16 bytes must be readable at the first `readable` offsets of the text.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn make_keys_avx512<const HAS_SEGMENTS: bool>(
    spans: &Spans<'_>,
    readable: usize,
    (table, shift): (&[Entry], u32),
    out: &mut Keys<'_>,
) -> usize {
    let text = spans.text.as_ptr();
    // SAFETY: both have 64 bytes.
    let [lanes, positions] =
        [LANES, POSITIONS].map(|bytes| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) });
    let every_fourth = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    let shift = _mm_cvtsi32_si128(shift as i32);
    let (keys, _) = out.keys[..readable].as_chunks_mut::<4>();
    let (slots, _) = out.slots[..readable].as_chunks_mut::<4>();
    for (at, (keys, slots)) in keys.iter_mut().zip(slots).enumerate() {
        let Some(bounds) = spans.bounds[4 * at..].first_chunk::<5>() else { break };
        let [a, b, c, d, _] =
            if HAS_SEGMENTS { bounds.map(|bound| bound & !SEGMENT_END) } else { *bounds };
        // SAFETY: the offsets are among the first `readable`; there are five bounds.
        let (bytes, starts, ends) = unsafe {
            let low = load_two(text.add(a as usize), text.add(b as usize));
            let high = load_two(text.add(c as usize), text.add(d as usize));
            (
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high),
                _mm_loadu_si128(bounds.as_ptr().cast()),
                _mm_loadu_si128(bounds[1..].as_ptr().cast()),
            )
        };
        // The flags of segments do not reach the lowest bits of the difference.
        let lengths = _mm_and_si128(_mm_sub_epi32(ends, starts), _mm_set1_epi32(0xF));
        let spread = _mm512_permutexvar_epi8(lanes, _mm512_castsi128_si512(lengths));
        let is_inside = _mm512_cmplt_epu8_mask(positions, spread);
        let tags = if HAS_SEGMENTS {
            let tags = _mm_or_si128(lengths, _mm_slli_epi32::<4>(_mm_srli_epi32::<31>(ends)));
            _mm512_permutexvar_epi8(lanes, _mm512_castsi128_si512(tags))
        } else {
            spread
        };
        let key = _mm512_maskz_mov_epi8(is_inside, bytes);
        let key = _mm512_mask_mov_epi8(key, LAST_BYTES, tags);
        let rotated = _mm512_rol_epi64::<{ FOLD as i32 }>(key);
        let folded = _mm512_xor_si512(key, _mm512_shuffle_epi32::<0x4E>(rotated));
        let product = _mm512_mullo_epi32(folded, _mm512_set1_epi64(MULTIPLIER as i64));
        let sum = _mm512_add_epi32(product, _mm512_srli_epi64::<32>(product));
        let found = _mm512_permutexvar_epi32(every_fourth, _mm512_srl_epi32(sum, shift));
        // SAFETY: there are four keys and four slots.
        unsafe {
            _mm512_storeu_si512(keys.as_mut_ptr().cast(), key);
            _mm_storeu_si128(slots.as_mut_ptr().cast(), _mm512_castsi512_si128(found));
        }
        for &slot in &*slots {
            prefetch(table, slot as usize);
        }
    }
    readable / 4 * 4
}

/// Sixteen bytes each of two entries: their keys, or their ids.
#[inline]
#[target_feature(enable = "avx2")]
fn load_halves<const OFFSET: usize>(low: &Entry, high: &Entry) -> __m256i {
    const { assert!(OFFSET + 16 <= size_of::<Entry>()) };
    let [low, high] = [low, high].map(|entry| std::ptr::from_ref(entry).cast::<u8>());
    // SAFETY: 16 bytes of an entry follow the offset.
    unsafe { load_two(low.add(OFFSET), high.add(OFFSET)) }
}

/// The keys of four pre-tokens, two by two.
#[inline]
#[target_feature(enable = "avx2")]
fn load_keys(keys: &[Key; GROUP]) -> [__m256i; 2] {
    let start = keys.as_ptr().cast::<__m256i>();
    // SAFETY: four keys have 64 bytes.
    unsafe { [_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))] }
}

// Where an entry has the key, their difference is the number of ids, in the highest bits of the upper
// half; less one, that fits in two bits.
const ONE_ID: i64 = 1 << COUNT_SHIFT;
const NOT_COUNT: i64 = !((MAX_INLINE_IDS as i64 - 1) << COUNT_SHIFT);

/// The entries in the slots of a group.
type Group<'t> = [&'t Entry; GROUP];

#[inline(always)]
fn entries_of<'t>(entries: &'t [Entry], slots: &[u32; GROUP]) -> Option<Group<'t>> {
    match slots.map(|slot| entries.get(slot as usize)) {
        [Some(a), Some(b), Some(c), Some(d)] => Some([a, b, c, d]),
        _ => None,
    }
}

/// How many of a group come before the first with a difference, which are two bits for each.
#[inline(always)]
fn before_first(differences: u8) -> usize {
    differences.trailing_zeros() as usize / 2
}

/// One bit for each of a group instead of two.
#[inline(always)]
fn one_bit_each(differences: u8) -> u64 {
    let either = (differences | differences >> 1) & 0x55;
    let pairs = (either | either >> 1) & 0x33;
    u64::from((pairs | pairs >> 2) & 0xF)
}

/// The keys of a group combined with those of entries, two by two: where they are the same, what is
/// left is the number of ids, less one, in the highest bits.
#[inline]
#[target_feature(enable = "avx2")]
fn counts_avx2([a, b, c, d]: Group<'_>, keys: &[Key; GROUP]) -> [__m256i; 2] {
    let one = _mm256_set_epi64x(ONE_ID, 0, ONE_ID, 0);
    let [low, high] = load_keys(keys);
    [
        _mm256_sub_epi64(_mm256_xor_si256(low, load_halves::<0>(a, b)), one),
        _mm256_sub_epi64(_mm256_xor_si256(high, load_halves::<0>(c, d)), one),
    ]
}

/// What must be zero in what [`counts_avx2`] gives.
#[inline]
#[target_feature(enable = "avx2")]
fn not_count() -> __m256i {
    _mm256_set_epi64x(NOT_COUNT, !0, NOT_COUNT, !0)
}

/// Two bits for each of a group, of which one is set where the entry is not that of the key, or does
/// not have its ids.
#[inline]
#[target_feature(enable = "avx2")]
fn differences_avx2([low, high]: [__m256i; 2]) -> u8 {
    let is_same = |half| {
        let rest = _mm256_and_si256(half, not_count());
        let is_same = _mm256_cmpeq_epi64(rest, _mm256_setzero_si256());
        _mm256_movemask_pd(_mm256_castsi256_pd(is_same)) as u8
    };
    !(is_same(low) | is_same(high) << 4)
}

/// The most keys for whose ids there is space, and for those of a group after them.
#[inline(always)]
fn with_space(ids: &[u32]) -> usize {
    (ids.len() / MAX_INLINE_IDS).saturating_sub(GROUP)
}

/// Four at a time; of each, all four ids are written, and the next ones overwrite the rest.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up_avx2(entries: &[Entry], keys: &[Key], slots: &[u32], ids: &mut [u32]) -> (usize, usize) {
    let keys = &keys[..keys.len().min(with_space(ids))];
    let (start, mut end) = (ids.as_mut_ptr(), ids.as_mut_ptr());
    let mut done = 0;
    // SAFETY: at most four ids were kept of each key so far, so there is space for four more.
    let write = |entry: &Entry, end: *mut u32, is_kept: bool| unsafe {
        end.cast::<[u32; MAX_INLINE_IDS]>().write(entry.ids);
        end.add(if is_kept { entry.count() } else { 0 })
    };
    for (keys, slots) in keys.as_chunks().0.iter().zip(slots.as_chunks().0) {
        let Some(group) = entries_of(entries, slots) else { break };
        let counts @ [low, high] = counts_avx2(group, keys);
        if _mm256_testz_si256(_mm256_or_si256(low, high), not_count()) == 0 {
            let found = before_first(differences_avx2(counts));
            for (at, entry) in group.into_iter().enumerate() {
                end = write(entry, end, at < found);
            }
            done += found;
            break;
        }
        end = group.into_iter().fold(end, |end, entry| write(entry, end, true));
        done += GROUP;
    }
    (done, end.addr().wrapping_sub(start.addr()) / size_of::<u32>())
}

#[inline]
#[target_feature(enable = "avx2")]
fn find_missing_avx2(entries: &[Entry], keys: &[Key; 64], slots: &[u32; 64]) -> u64 {
    let groups = keys.as_chunks().0.iter().zip(slots.as_chunks().0);
    groups.zip((0..).step_by(GROUP)).fold(0, |missing, ((keys, slots), at)| {
        let group = entries_of(entries, slots);
        let differences = group.map_or(!0, |group| differences_avx2(counts_avx2(group, keys)));
        missing | one_bit_each(differences) << at
    })
}

/// As [`counts_avx2`].
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn counts_avx512([a, b, c, d]: Group<'_>, keys: &[Key; GROUP]) -> __m512i {
    let one = _mm512_set_epi64(ONE_ID, 0, ONE_ID, 0, ONE_ID, 0, ONE_ID, 0);
    // SAFETY: four keys have 64 bytes.
    let keys = unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) };
    let found = join(load_halves::<0>(a, b), load_halves::<0>(c, d));
    _mm512_sub_epi64(_mm512_xor_si512(keys, found), one)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn join(low: __m256i, high: __m256i) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// As [`differences_avx2`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn differences_avx512(counts: __m512i) -> u8 {
    _mm512_test_epi64_mask(counts, _mm512_broadcast_i32x4(_mm_set_epi64x(NOT_COUNT, !0)))
}

/// Four at a time; of all their ids, those that count are moved together.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,popcnt")]
fn look_up_avx512(
    entries: &[Entry],
    keys: &[Key],
    slots: &[u32],
    ids: &mut [u32],
) -> (usize, usize) {
    // The second id is there if the count, less one, is at least one, and so on.
    let index = |at: i32| at << (COUNT_SHIFT - u32::BITS);
    let indexes = _mm512_broadcast_i32x4(_mm_setr_epi32(index(0), index(1), index(2), index(3)));
    let keys = &keys[..keys.len().min(with_space(ids))];
    let (mut done, mut count) = (0, 0);
    for (keys, slots) in keys.as_chunks().0.iter().zip(slots.as_chunks().0) {
        let Some(group @ [a, b, c, d]) = entries_of(entries, slots) else { break };
        let counts = counts_avx512(group, keys);
        let differences = differences_avx512(counts);
        let is_there = _mm512_cmple_epu32_mask(indexes, _mm512_shuffle_epi32::<0xFF>(counts));
        let found = join(load_halves::<16>(a, b), load_halves::<16>(c, d));
        let mut write = |is_there: u16| {
            let found = _mm512_maskz_compress_epi32(is_there, found);
            // SAFETY: at most four ids were written for each key so far, so there is space for 16.
            unsafe { _mm512_storeu_si512(ids.as_mut_ptr().add(count).cast(), found) };
            count += is_there.count_ones() as usize;
        };
        if differences != 0 {
            let first = before_first(differences);
            write(is_there & ((1 << (MAX_INLINE_IDS * first)) - 1));
            done += first;
            break;
        }
        write(is_there);
        done += GROUP;
    }
    (done, count)
}

#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn find_missing_avx512(entries: &[Entry], keys: &[Key; 64], slots: &[u32; 64]) -> u64 {
    let groups = keys.as_chunks().0.iter().zip(slots.as_chunks().0);
    groups.zip((0..).step_by(GROUP)).fold(0, |missing, ((keys, slots), at)| {
        let group = entries_of(entries, slots);
        let differences = group.map_or(!0, |group| differences_avx512(counts_avx512(group, keys)));
        missing | one_bit_each(differences) << at
    })
}
