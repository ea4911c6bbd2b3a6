//! What the cache needs of a processor: keys of several pre-tokens at once, and their lookups.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::key::{Key, SEGMENT_END, short_key, slot_of};
use super::table::Entry;
use crate::cpu::{Portable, prefetch};
use crate::packed::{pack, pack_chunk};

/// The spans of a batch of pre-tokens: the first starts at `bounds[0]` of `text`, each ends where the
/// next one starts. Bounds have [`SEGMENT_END`] only if `HAS_SEGMENTS`.
pub(in super::super) struct Spans<'b> {
    pub(super) text: &'b [u8],
    pub(super) bounds: &'b [u32],
}

/// Where keys and slots of a batch go.
pub(in super::super) struct Keys<'b> {
    pub(super) keys: &'b mut [Key],
    pub(super) slots: &'b mut [u32],
}

/// The number of pre-tokens that are looked up at once.
pub(super) const GROUP: usize = 4;

/// The operations that differ by tier: each does a part of the work, in groups of a few pre-tokens,
/// and leaves the rest to plain code. All tiers give the same results.
pub(in super::super) trait CacheTier: Copy {
    /// Makes the keys of the first spans, of which 16 bytes can be read; returns how many.
    fn make_keys<const HAS_SEGMENTS: bool>(
        self,
        spans: &Spans<'_>,
        readable: usize,
        table: (&[Entry], u32),
        out: &mut Keys<'_>,
    ) -> usize;

    /// Writes the ids of the first keys, up to one that is not in its slot with its ids; returns how
    /// many keys and ids there are. The number of keys is a multiple of [`GROUP`]. Keys without enough
    /// space for their ids, and for those of a group more, are not found.
    fn look_up(
        self,
        entries: &[Entry],
        keys: &[Key],
        slots: &[u32],
        ids: &mut [u32],
    ) -> (usize, usize);

    /// The keys that are not in their slots with their ids, as bits.
    fn find_missing(self, entries: &[Entry], keys: &[Key; 64], slots: &[u32; 64]) -> u64;
}

impl CacheTier for Portable {
    #[inline(always)]
    fn make_keys<const HAS_SEGMENTS: bool>(
        self,
        _: &Spans<'_>,
        _: usize,
        _: (&[Entry], u32),
        _: &mut Keys<'_>,
    ) -> usize {
        0
    }

    #[inline(always)]
    fn look_up(
        self,
        entries: &[Entry],
        keys: &[Key],
        slots: &[u32],
        ids: &mut [u32],
    ) -> (usize, usize) {
        let (mut done, mut count) = (0, 0);
        for (key, slot) in keys.iter().zip(slots) {
            let Some(entry) = entries.get(*slot as usize) else { break };
            let Some(more) = entry.inline_count(*key) else { break };
            // All four are written, however many there are: the next ones overwrite the rest.
            let Some(space) = ids.get_mut(count..).and_then(<[u32]>::first_chunk_mut) else {
                break;
            };
            *space = entry.ids;
            count += more;
            done += 1;
        }
        (done, count)
    }

    #[inline(always)]
    fn find_missing(self, entries: &[Entry], keys: &[Key; 64], slots: &[u32; 64]) -> u64 {
        let is_found = |key: &Key, slot: u32| {
            entries.get(slot as usize).is_some_and(|entry| entry.inline_count(*key).is_some())
        };
        let each = keys.iter().zip(slots).zip(0..);
        each.fold(0, |missing, ((key, slot), at)| missing | u64::from(!is_found(key, *slot)) << at)
    }
}

/// Makes the keys of a batch, and prefetches their home slots in a table. Those of pre-tokens longer
/// than a key are meaningless.
#[inline(always)]
pub(super) fn make_keys<const HAS_SEGMENTS: bool>(
    tier: impl CacheTier,
    spans: &Spans<'_>,
    (table, shift): (&[Entry], u32),
    out: &mut Keys<'_>,
) {
    let Spans { text, bounds } = *spans;
    let offset = |at: usize| (bounds[at] & !SEGMENT_END) as usize;
    let count = bounds.len() - 1;
    // Only the last few start so close to the end of the text that 16 bytes cannot be read.
    let mut readable = count;
    while readable > 0 && offset(readable - 1) + 16 > text.len() {
        readable -= 1;
    }
    let done = tier.make_keys::<HAS_SEGMENTS>(spans, readable, (table, shift), out);
    let rest = out.keys[done..count].iter_mut().zip(&mut out.slots[done..count]);
    for ((key, slot), bounds) in rest.zip(bounds[done..].windows(2)) {
        let [start, end] = [bounds[0], bounds[1]].map(|bound| (bound & !SEGMENT_END) as usize);
        let is_segment = HAS_SEGMENTS && bounds[1] & SEGMENT_END != 0;
        let packed = match text.get(start..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => pack_chunk(bytes, end - start),
            None => pack(&text[start..end]),
        };
        *key = short_key(packed.unwrap_or_default(), is_segment);
        *slot = slot_of(*key, shift);
        prefetch(table, *slot as usize);
    }
}
