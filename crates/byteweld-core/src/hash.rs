//! The multiplicative hash that the engine's tables share.

/// 2^64 divided by the golden ratio, rounded to an odd number.
pub(crate) const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hashes a key. The high bits depend on all of it; different keys have different hashes.
#[inline(always)]
pub(crate) const fn multiply_hash(key: u64) -> u64 {
    key.wrapping_mul(MULTIPLIER)
}
