//! Keys of pre-tokens in the cache.
//!
//! A key has 16 bytes. A pre-token of up to 15 bytes is its own key: its bytes, zeros, and a tag in
//! the last byte. A longer one has its hash and length instead, so its bytes must be compared where
//! the key is found.

use crate::hash::{MULTIPLIER, multiply_hash};
use crate::packed::{MAX_PACKED_BYTES, Packed, pack};

/// The longest pre-token that is its own key.
pub(in super::super) const MAX_KEY_BYTES: usize = MAX_PACKED_BYTES;

/// The two halves of a packed pre-token (`packed.rs`), the lower one first, with more in the tag.
pub(in super::super) type Key = [u64; 2];

// The tag is the highest byte: four bits of length (0 for a pre-token that is longer than a key), a
// bit for segments, and three bits that are 0 in keys and hold the number of ids in entries.
const LENGTH_SHIFT: u32 = 56;
const SEGMENT: u64 = 1 << 60;
pub(super) const COUNT_SHIFT: u32 = 61;

/// Set in an offset that ends a segment: a part of a pre-token that was split at a cut point. It may
/// merge differently than a pre-token with the same bytes, so its key differs.
pub(in super::super) const SEGMENT_END: u32 = 1 << 31;

/// A key that no entry has: that of a long pre-token without bytes.
pub(super) const NO_KEY: Key = [1, 0];

/// A packed pre-token as a key.
#[inline(always)]
pub(super) fn short_key(packed: Packed, is_segment: bool) -> Key {
    [packed as u64, (packed >> 64) as u64 | if is_segment { SEGMENT } else { 0 }]
}

/// The key of a pre-token.
pub(super) fn key_of(pretoken: &[u8], is_segment: bool) -> Key {
    match pack(pretoken) {
        Some(packed) => short_key(packed, is_segment),
        None => long_key(pretoken, is_segment),
    }
}

pub(super) fn is_segment(key: Key) -> bool {
    key[1] & SEGMENT != 0
}

/// Whether the bytes are longer than a key.
#[inline(always)]
pub(super) fn is_long(key: Key) -> bool {
    key[1] >> LENGTH_SHIFT & 0xF == 0
}

/// The key of a pre-token of at least 16 bytes.
#[inline]
fn long_key(bytes: &[u8], is_segment: bool) -> Key {
    let mix = |hash: u64, bytes: &[u8; 16]| {
        let both = u128::from_le_bytes(*bytes);
        let low = u128::from(both as u64 ^ hash);
        let product = low * u128::from((both >> 64) as u64 ^ MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    let (chunks, _) = bytes.as_chunks();
    let hash = chunks.iter().fold(multiply_hash(bytes.len() as u64), mix);
    let hash = bytes.last_chunk().map_or(hash, |last| mix(hash, last));
    // The length, so that a pre-token is never taken for one that starts with it; bounds fit in 32 bits.
    let length = bytes.len() as u64 & u64::from(u32::MAX);
    let rest = multiply_hash(hash) >> 40 << 32 & ((1 << LENGTH_SHIFT) - 1);
    [hash, rest | length | if is_segment { SEGMENT } else { 0 }]
}

/// How far the upper half of a key is rotated before it is folded into the lower.
pub(super) const FOLD: u32 = 29;

/// The home slot of a key: the highest bits, all but `shift`, of a sum of two products of 32 bits,
/// which every tier can compute.
#[inline(always)]
pub(super) fn slot_of(key: Key, shift: u32) -> u32 {
    let folded = key[0] ^ key[1].rotate_left(FOLD);
    let low = (folded as u32).wrapping_mul(MULTIPLIER as u32);
    let high = ((folded >> 32) as u32).wrapping_mul((MULTIPLIER >> 32) as u32);
    low.wrapping_add(high) >> (shift % u32::BITS)
}
