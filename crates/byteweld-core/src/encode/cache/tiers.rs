//! What the cache needs of a processor: keys of several pre-tokens at once, and their lookups.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::key::{Key, Keys, Spans};
use super::table::Entry;
use crate::cpu::Portable;

/// The number of pre-tokens that are looked up at once.
pub(super) const GROUP: usize = 4;

/// The operations that differ by tier: each does a part of the work, in groups of a few pre-tokens,
/// and leaves the rest to plain code. All tiers give the same results.
pub(in super::super) trait CacheTier: Copy {
    /// Makes the keys of the first spans, of which 16 bytes can be read; returns how many.
    fn make_keys<const HAS_SEGMENTS: bool, E>(
        self,
        spans: &Spans<'_>,
        readable: usize,
        table: (&[E], u32),
        out: &mut Keys<'_>,
    ) -> usize;

    /// Writes the ids of the first keys, up to one that is not in its slot with its ids; returns how
    /// many keys and ids there are. Stops early if there may not be enough space.
    fn look_up(
        self,
        entries: &[Entry],
        keys: &[Key],
        slots: &[u32],
        ids: &mut [u32],
    ) -> (usize, usize);
}

impl CacheTier for Portable {
    #[inline(always)]
    fn make_keys<const HAS_SEGMENTS: bool, E>(
        self,
        _: &Spans<'_>,
        _: usize,
        _: (&[E], u32),
        _: &mut Keys<'_>,
    ) -> usize {
        0
    }

    #[inline(always)]
    fn look_up(self, _: &[Entry], _: &[Key], _: &[u32], _: &mut [u32]) -> (usize, usize) {
        (0, 0)
    }
}
