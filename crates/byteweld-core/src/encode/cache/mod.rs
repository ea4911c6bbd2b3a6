//! The pre-token cache: pre-tokens encoded before, with their ids.
//!
//! Text repeats its words, so most pre-tokens are found here in one cache line instead of being
//! merged again. Long pre-tokens can be cached, too: a short one with few ids fits in an entry of the
//! table, longer ones and more ids go to an arena. The table is small at first and grows between
//! batches, up to a fixed size; then new entries replace old ones. Each thread has a cache of its own.
//!
//! A lookup that misses L2 costs as much as ten that hit. So the keys of a batch are made, hashed and
//! their slots prefetched first ([`Batch::make_keys`]), and then looked up ([`Batch::look_up`]).

mod arena;
mod key;
mod table;
mod tiers;

use std::ops::Range;

use crate::cpu::{self, Work};
use arena::{Arena, MAX_BYTES};
use key::{Key, NO_KEY};
use table::{Entry, Table};

pub(super) use key::{MAX_KEY_BYTES, SEGMENT_END};
pub(super) use table::MAX_INLINE_IDS;
pub(super) use tiers::CacheTier;
use tiers::{GROUP, Keys, Spans};

/// The number of home slots as the table grows, in bits: 128 KiB, 512 KiB, 2 MiB, 8 MiB.
const SIZES: [u32; 4] = [12, 14, 16, 18];

/// What there is if there is not enough memory for more.
const LEAST_BITS: u32 = 4;

/// At most a third of the home slots should be taken: more, and too many entries are not at home.
const SLOTS_PER_PRETOKEN: usize = 3;

#[derive(Default)]
pub(super) struct Cache {
    table: Table,
    arena: Arena,
    /// The number of pre-tokens ever added.
    inserted: usize,
}

/// Where the ids of a cached pre-token are.
pub(super) enum Found<'c> {
    /// In the entry of this slot.
    Inline(u32),
    /// In the arena, as little-endian bytes.
    Many(&'c [u8]),
}

impl Cache {
    /// The number of pre-tokens ever added.
    pub(super) fn len(&self) -> usize {
        self.inserted
    }

    /// Makes space for more pre-tokens. To be called before every batch: it moves entries.
    #[inline(always)]
    pub(super) fn prepare(&mut self) {
        let wanted = self.inserted * SLOTS_PER_PRETOKEN;
        if wanted > self.table.capacity() || self.table.capacity() == 0 {
            self.grow(wanted);
        }
    }

    #[cold]
    fn grow(&mut self, wanted: usize) {
        let [.., most] = SIZES;
        let bits = SIZES.into_iter().find(|&bits| wanted <= 1 << bits).unwrap_or(most);
        if self.table.capacity() >= 1 << bits {
            return;
        }
        let is_first = self.table.capacity() == 0;
        // It works with little memory, too.
        let larger = Table::new(bits).or_else(|| Table::new(LEAST_BITS).filter(|_| is_first));
        if let Some(mut larger) = larger {
            larger.add_all(&self.table);
            self.table = larger;
        }
    }

    /// A copy with all that this one knows; an empty one if there is not enough memory.
    pub(super) fn copy(&self) -> Self {
        match (self.table.copy(), self.arena.copy()) {
            (Some(table), Some(arena)) => Self { table, arena, inserted: self.inserted },
            _ => Self::default(),
        }
    }

    /// Finds a pre-token.
    pub(super) fn find(&mut self, key: PretokenKey<'_>) -> Option<Found<'_>> {
        let (arena, PretokenKey { key, pretoken }) = (&self.arena, key);
        let (slot, entry) = self.table.find(key, |entry| is_right(entry, key, pretoken, arena))?;
        if entry.count() > 0 {
            return Some(Found::Inline(slot));
        }
        many_ids(entry, key, pretoken.len(), arena).map(Found::Many)
    }

    /// Whether a pre-token is there.
    pub(super) fn contains(&self, key: PretokenKey<'_>) -> bool {
        let PretokenKey { key, pretoken } = key;
        self.table.contains(key, |entry| is_right(entry, key, pretoken, &self.arena))
    }

    /// Adds a pre-token that is not there.
    pub(super) fn insert(&mut self, key: PretokenKey<'_>, ids: &[u32]) {
        let PretokenKey { key, pretoken } = key;
        self.inserted = self.inserted.saturating_add(1);
        let bytes = if key::is_long(key) { pretoken } else { &[] };
        let max_inline = if key::is_long(key) { MAX_INLINE_IDS - 1 } else { MAX_INLINE_IDS };
        let mut payload = [0; MAX_INLINE_IDS];
        let is_inline = (1..=max_inline).contains(&ids.len());
        if is_inline {
            payload[..ids.len()].copy_from_slice(ids);
        }
        if !is_inline || !bytes.is_empty() {
            let ids = if is_inline { &[] } else { ids };
            if bytes.len() + size_of_val(ids) > MAX_BYTES {
                return;
            }
            let more: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let Some(position) = self.arena.push([bytes, &more]) else {
                // Positions have run out, so forget everything that has one.
                self.table.clear();
                self.arena = Arena::default();
                return;
            };
            payload[MAX_INLINE_IDS - 1] = position;
            if !is_inline {
                payload[0] = ids.len() as u32; // limited by MAX_BYTES
            }
        }
        let count = if is_inline { ids.len() } else { 0 };
        self.table.insert(Entry::new(key, count, payload));
    }
}

/// A pre-token and its key.
#[derive(Clone, Copy)]
pub(super) struct PretokenKey<'t> {
    key: Key,
    pub(super) pretoken: &'t [u8],
}

impl PartialEq for PretokenKey<'_> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && (!key::is_long(self.key) || self.pretoken == other.pretoken)
    }
}

impl<'t> PretokenKey<'t> {
    pub(super) fn new(pretoken: &'t [u8], is_segment: bool) -> Self {
        Self { key: key::key_of(pretoken, is_segment), pretoken }
    }

    pub(super) fn is_segment(self) -> bool {
        key::is_segment(self.key)
    }
}

/// Whether an entry with the right key is that of a pre-token: of a long one, the bytes are compared.
#[inline]
fn is_right(entry: &Entry, key: Key, pretoken: &[u8], arena: &Arena) -> bool {
    let position = entry.ids[MAX_INLINE_IDS - 1];
    if key::is_long(key) {
        arena.get(position, pretoken.len()) == Some(pretoken)
    } else {
        entry.count() > 0 || many_ids(entry, key, pretoken.len(), arena).is_some()
    }
}

/// The ids of an entry that does not hold them, for a pre-token of a given length.
#[inline]
fn many_ids<'a>(entry: &Entry, key: Key, length: usize, arena: &'a Arena) -> Option<&'a [u8]> {
    let [count, .., position] = entry.ids;
    if entry.count() > 0 {
        return None;
    }
    let skipped = if key::is_long(key) { length } else { 0 };
    arena.get(position, skipped + size_of::<u32>() * count as usize)?.get(skipped..)
}

/// The number of pre-tokens that are looked up at once: enough to overlap cache misses, few enough
/// for the batch to stay in L1.
pub(super) const MAX_BATCH: usize = 512;

/// Space for the ids of a batch; those of all entries of a batch always fit.
pub(super) const MAX_IDS: usize = 2 * MAX_BATCH * MAX_INLINE_IDS;

/// Pre-tokens that are looked up together, at most [`MAX_BATCH`].
#[derive(Clone, Copy)]
pub(super) struct Pretokens<'b> {
    pub(super) text: &'b [u8],
    /// The first starts at the first of these offsets, and each ends at the next one. Those that end
    /// a segment have [`SEGMENT_END`].
    pub(super) bounds: &'b [u32],
    /// The indexes of those that are longer than a key.
    pub(super) long: &'b [u16],
}

/// The keys of pre-tokens, and the ids found so far.
pub(super) struct Batch {
    /// After the last one is [`NO_KEY`], so that the last group is whole.
    keys: [Key; MAX_BATCH + GROUP],
    /// Their home slots.
    slots: [u32; MAX_BATCH + GROUP],
    /// With space for two groups after the last ones.
    ids: [u32; MAX_IDS + 2 * GROUP * MAX_INLINE_IDS],
    /// The number of ids.
    count: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            keys: [NO_KEY; MAX_BATCH + GROUP],
            slots: [0; MAX_BATCH + GROUP],
            ids: [0; MAX_IDS + 2 * GROUP * MAX_INLINE_IDS],
            count: 0,
        }
    }
}

impl Batch {
    /// Makes the keys of pre-tokens and prefetches their slots. Only if `HAS_SEGMENTS`, some may be
    /// segments, or longer than a key.
    #[inline(always)]
    pub(super) fn make_keys<const HAS_SEGMENTS: bool>(
        &mut self,
        tier: impl CacheTier,
        cache: &Cache,
        pretokens: Pretokens<'_>,
    ) {
        let Pretokens { text, bounds, .. } = pretokens;
        let count = bounds.len() - 1;
        self.keys[count..][..GROUP].fill(NO_KEY);
        self.slots[count..][..GROUP].fill(0);
        let mut out = Keys { keys: &mut self.keys, slots: &mut self.slots };
        let spans = Spans { text, bounds };
        tiers::make_keys::<HAS_SEGMENTS>(tier, &spans, cache.table.entries(), &mut out);
        if HAS_SEGMENTS {
            self.make_long_keys(cache, pretokens);
        }
    }

    /// Makes the keys of long pre-tokens. A key whose entry turns out to be that of another pre-token
    /// is replaced by one that is never found, so that looking up needs to compare keys only.
    fn make_long_keys(&mut self, cache: &Cache, pretokens: Pretokens<'_>) {
        let Pretokens { text, bounds, long } = pretokens;
        let (entries, shift) = cache.table.entries();
        let pretoken = |at: usize| &text[range_between(bounds, at)];
        for at in long.iter().map(|&at| usize::from(at)) {
            let key = key::key_of(pretoken(at), bounds[at + 1] & SEGMENT_END != 0);
            self.keys[at] = key;
            self.slots[at] = key::slot_of(key, shift);
            cpu::prefetch(entries, self.slots[at] as usize);
        }
        self.check_long_keys(cache, pretokens, 0);
    }

    /// Compares the bytes of long pre-tokens, from one on, with those of the entry that has its key.
    /// To be called again whenever an entry may have changed.
    pub(super) fn check_long_keys(
        &mut self,
        cache: &Cache,
        Pretokens { text, bounds, long }: Pretokens<'_>,
        from: usize,
    ) {
        let (entries, _) = cache.table.entries();
        for at in long.iter().map(|&at| usize::from(at)).filter(|&at| at >= from) {
            let Some(entry) = entries.get(self.slots[at] as usize) else { continue };
            let (key, pretoken) = (self.keys[at], &text[range_between(bounds, at)]);
            if entry.is_of(key) && !is_right(entry, key, pretoken, &cache.arena) {
                self.keys[at] = NO_KEY;
            }
        }
    }

    /// Looks up pre-tokens from one on, up to the first that is not found by its key alone; returns
    /// which one that is.
    #[inline(always)]
    pub(super) fn look_up(
        &mut self,
        tier: impl CacheTier,
        cache: &mut Cache,
        pretokens: Pretokens<'_>,
        from: usize,
    ) -> usize {
        let (mut at, end) = (from, pretokens.bounds.len() - 1);
        loop {
            let (entries, _) = cache.table.entries();
            let last = at + (end - at).next_multiple_of(GROUP);
            let (keys, slots) = (&self.keys[at..last], &self.slots[at..last]);
            let (found, ids) = tier.look_up(entries, keys, slots, &mut self.ids[self.count..]);
            at += found;
            self.count += ids;
            if at == end {
                return at;
            }
            let length = range_between(pretokens.bounds, at).len();
            if self.push_many(cache, at, length, end - at) {
                at += 1;
            } else if !self.bring_home(cache, pretokens, at) {
                return at;
            }
        }
    }

    /// Moves the entry of a pre-token home, if it is elsewhere and needs only its key to be found.
    #[inline(always)]
    fn bring_home(&mut self, cache: &mut Cache, pretokens: Pretokens<'_>, at: usize) -> bool {
        let (key, home) = (self.keys[at], self.slots[at]);
        if key::is_long(key) {
            return false; // its bytes would have to be compared
        }
        let Some(displaced) = cache.table.bring_home(key, home) else { return false };
        // The slot of one that is long may be home to another one with its key.
        if displaced.is_long() {
            self.check_long_keys(cache, pretokens, at);
        }
        true
    }

    /// Adds the ids of a pre-token if its entry is at home and they are in the arena.
    #[inline(always)]
    fn push_many(&mut self, cache: &Cache, at: usize, length: usize, more: usize) -> bool {
        let (key, (entries, _)) = (self.keys[at], cache.table.entries());
        let Some(entry) = entries.get(self.slots[at] as usize).filter(|entry| entry.is_of(key))
        else {
            return false;
        };
        let Some(ids) = many_ids(entry, key, length, &cache.arena) else { return false };
        self.try_push(ids_of(ids), more)
    }

    /// A pre-token of the batch and its key.
    #[inline(always)]
    pub(super) fn key_of<'t>(
        &self,
        at: usize,
        pretoken: &'t [u8],
        is_segment: bool,
    ) -> PretokenKey<'t> {
        if pretoken.len() > MAX_KEY_BYTES {
            return PretokenKey::new(pretoken, is_segment); // it may have been replaced
        }
        PretokenKey { key: self.keys[at], pretoken }
    }

    /// Makes the next lookup of a pre-token look at this slot.
    pub(super) fn set_slot(&mut self, at: usize, pretoken: PretokenKey<'_>, slot: u32) {
        (self.keys[at], self.slots[at]) = (pretoken.key, slot);
    }

    /// The pre-tokens from one on that would not be found by [`Batch::look_up`] at once, as bits: the
    /// lowest is that of `from`. Considers up to 64, and at most as many as there are.
    pub(super) fn find_missing(&self, cache: &Cache, from: usize, count: usize) -> u64 {
        let (entries, _) = cache.table.entries();
        let first = from.min(MAX_BATCH + GROUP - 64);
        let (Some(keys), Some(slots)) =
            (self.keys[first..].first_chunk(), self.slots[first..].first_chunk())
        else {
            return 0;
        };
        let missing = cpu::run(FindMissing { entries, keys, slots }) >> (from - first);
        missing & u64::MAX >> (64 - (count - from).min(64))
    }

    /// The ids found so far, which are then forgotten.
    pub(super) fn take_ids(&mut self) -> &[u32] {
        let count = std::mem::take(&mut self.count);
        &self.ids[..count]
    }

    /// Adds ids, if there is space for them and for those of `more` entries.
    pub(super) fn try_push(
        &mut self,
        ids: impl ExactSizeIterator<Item = u32>,
        more: usize,
    ) -> bool {
        let end = self.count + ids.len();
        if end + more * MAX_INLINE_IDS > MAX_IDS {
            return false;
        }
        for (space, id) in self.ids[self.count..end].iter_mut().zip(ids) {
            *space = id;
        }
        self.count = end;
        true
    }
}

/// [`Batch::find_missing`] of 64 pre-tokens.
struct FindMissing<'b> {
    entries: &'b [Entry],
    keys: &'b [Key; 64],
    slots: &'b [u32; 64],
}

impl<T: CacheTier> Work<T> for FindMissing<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self, tier: T) -> u64 {
        tier.find_missing(self.entries, self.keys, self.slots)
    }
}

/// The range between two bounds.
pub(super) fn range_between(bounds: &[u32], at: usize) -> Range<usize> {
    let bound = |at: usize| (bounds[at] & !SEGMENT_END) as usize;
    bound(at)..bound(at + 1)
}

/// Ids that the arena holds as bytes.
pub(super) fn ids_of(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id))
}

#[cfg(test)]
mod tests;
