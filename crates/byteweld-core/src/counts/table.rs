//! A hash table of pre-tokens and their counts, in order of first occurrence.
//!
//! A pre-token of up to 15 bytes is stored in its entry, packed with its length into 16 bytes and
//! compared in one step; the bytes of a longer one are in an arena. Entries are found through
//! four-byte slots, by open addressing with linear probing: the low bits of a slot are the entry's
//! index, the others a tag from its hash that avoids most useless comparisons. Frequent pre-tokens
//! occur early, so their entries share few cache lines. An entry takes 24 bytes and its share of
//! the slots 6 to 13.
//!
//! The memory of a table is known exactly, so that it can be kept within a limit: see
//! [`CountTable::can_take`].

use std::cmp::Ordering;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::overflow;
use super::spill::Spill;
use crate::cpu::prefetch;
use crate::error::{Error, Result};
use crate::packed::{MAX_PACKED_BYTES as MAX_KEY_BYTES, Packed, pack};
use crate::reserve::{append, failed, reserve_exact};

/// The last byte of an entry's key if the pre-token is in the arena; otherwise that is a length.
const ARENA_TAG: u8 = u8::MAX;

/// A slot without an entry. No index is all ones, because there are fewer entries than slots.
const EMPTY_SLOT: u32 = u32::MAX;

const MIN_SLOTS: usize = 16;
/// The limit of 32-bit indices.
const MAX_SLOTS: u64 = 1 << 32;

#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The [`Packed`]; or the arena offset (8 bytes), the length (7 bytes) and [`ARENA_TAG`].
    key: [u8; MAX_KEY_BYTES + 1],
    pub(super) count: u64,
}

impl Entry {
    /// The key of a short pre-token; never equal to the key of a long one.
    #[inline]
    pub(super) fn key(&self) -> Packed {
        Packed::from_le_bytes(self.key)
    }

    pub(super) fn is_long(&self) -> bool {
        self.key[MAX_KEY_BYTES] == ARENA_TAG
    }

    /// The bytes of an entry, given its table's arena.
    fn bytes<'t>(&'t self, arena: &'t [u8]) -> &'t [u8] {
        if !self.is_long() {
            return &self.key[..usize::from(self.key[MAX_KEY_BYTES])];
        }
        let start = self.key() as u64;
        let length = (self.key() >> 64) as u64 & !(u64::from(ARENA_TAG) << 56);
        &arena[start as usize..][..length as usize]
    }

    /// Compares by bytes. Short keys compare the same way as big-endian numbers: a proper prefix
    /// has zeros where the other continues, and a smaller length.
    fn compare(&self, other: &Entry, arena: &[u8]) -> Ordering {
        if self.is_long() || other.is_long() {
            self.bytes(arena).cmp(other.bytes(arena))
        } else {
            self.sort_key().cmp(&other.sort_key())
        }
    }

    /// A number ordered as the bytes are, as far as the first 15 bytes decide.
    fn sort_key(&self) -> Packed {
        Packed::from_be_bytes(self.key)
    }
}

pub(super) struct CountTable {
    entries: Vec<Entry>,
    /// The low bits are the index of an entry, the others a tag from its hash.
    slots: Vec<u32>,
    /// Shifts a hash right to the index of its slot: the highest bits.
    shift: u32,
    /// The table grows beyond this many entries. The load factor is at most five eighths.
    max_entries: usize,
    /// The bytes of long pre-tokens, back to back.
    arena: Vec<u8>,
}

impl Default for CountTable {
    fn default() -> Self {
        let mut table = Self {
            entries: Vec::new(),
            slots: Vec::new(),
            shift: 0,
            max_entries: 0,
            arena: Vec::new(),
        };
        table.slots.resize(MIN_SLOTS, EMPTY_SLOT);
        table.use_slots();
        table
    }
}

/// The result of a lookup.
enum Lookup {
    /// The index of the entry.
    Found(usize),
    /// The index of the slot where the entry belongs.
    Vacant(usize),
}

impl CountTable {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The bytes of an entry of this table.
    pub(super) fn bytes<'t>(&'t self, entry: &'t Entry) -> &'t [u8] {
        entry.bytes(&self.arena)
    }

    /// A number ordered as the entry's bytes are, as far as the first 15 bytes decide.
    pub(super) fn sort_key(&self, entry: &Entry) -> Packed {
        if !entry.is_long() {
            return entry.sort_key();
        }
        let mut key = [0; MAX_KEY_BYTES + 1];
        key[..MAX_KEY_BYTES].copy_from_slice(&self.bytes(entry)[..MAX_KEY_BYTES]);
        key[MAX_KEY_BYTES] = MAX_KEY_BYTES as u8 + 1; // after the key that ends here
        Packed::from_be_bytes(key)
    }

    /// The total length of the long pre-tokens.
    pub(super) fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// The hash of an entry of this table.
    #[inline]
    pub(super) fn hash(&self, entry: &Entry, hasher: &RandomState) -> u64 {
        if entry.is_long() {
            hasher.hash_one(self.bytes(entry))
        } else {
            hasher.hash_one(entry.key())
        }
    }

    /// The count of a pre-token.
    pub(super) fn get(&self, pretoken: &[u8], hash: u64) -> u64 {
        let found = match pack(pretoken) {
            Some(key) => self.find(hash, |entry| entry.key() == key),
            None => self.find_long(hash, pretoken),
        };
        match found {
            Lookup::Found(index) => self.entries[index].count,
            Lookup::Vacant(_) => 0,
        }
    }

    /// Reserves space for `more` new entries, so that no slot moves while they are added.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize, hasher: &RandomState) -> Result<()> {
        let needed = self.entries.len() + more;
        if needed > self.max_entries { self.grow(needed, hasher) } else { Ok(()) }
    }

    /// Prefetches the slot of a hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, (hash >> self.shift) as usize);
    }

    /// Reads the slot of a hash and prefetches its entry, for [`CountTable::try_increment`].
    #[inline]
    pub(super) fn slot(&self, hash: u64) -> u32 {
        let slot = self.slots[(hash >> self.shift) as usize];
        prefetch(&self.entries, slot as usize & (self.slots.len() - 1));
        slot
    }

    /// Counts a short pre-token, given its slot; false if the slot belongs to another entry or the
    /// count would overflow.
    #[inline]
    pub(super) fn try_increment(&mut self, slot: u32, key: Packed, count: u64) -> bool {
        match self.entries.get_mut(slot as usize & (self.slots.len() - 1)) {
            Some(entry) if entry.key() == key => match entry.count.checked_add(count) {
                Some(sum) => {
                    entry.count = sum;
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    /// Counts any pre-token.
    #[inline(never)]
    pub(super) fn add(
        &mut self,
        pretoken: &[u8],
        hash: u64,
        count: u64,
        hasher: &RandomState,
    ) -> Result<()> {
        self.reserve(1, hasher)?;
        match pack(pretoken) {
            Some(key) => self.add_short(key, hash, count),
            None => self.add_long(pretoken, hash, count),
        }
    }

    /// Counts a short pre-token. Space for it must be reserved.
    #[inline(never)]
    pub(super) fn add_short(&mut self, key: Packed, hash: u64, count: u64) -> Result<()> {
        match self.find(hash, |entry| entry.key() == key) {
            Lookup::Found(index) => self.add_to(index, count),
            Lookup::Vacant(slot) => {
                self.insert(slot, hash, Entry { key: key.to_le_bytes(), count });
                Ok(())
            }
        }
    }

    fn add_long(&mut self, pretoken: &[u8], hash: u64, count: u64) -> Result<()> {
        match self.find_long(hash, pretoken) {
            Lookup::Found(index) => self.add_to(index, count),
            Lookup::Vacant(slot) => {
                let (start, length) = (self.arena.len() as Packed, pretoken.len() as Packed);
                let key = start | length << 64 | Packed::from(ARENA_TAG) << (8 * MAX_KEY_BYTES);
                append(&mut self.arena, pretoken)?;
                self.insert(slot, hash, Entry { key: key.to_le_bytes(), count });
                Ok(())
            }
        }
    }

    fn add_to(&mut self, index: usize, count: u64) -> Result<()> {
        let entry = self.entries[index];
        let sum = entry.count.checked_add(count).ok_or_else(|| overflow(self.bytes(&entry)))?;
        self.entries[index].count = sum;
        Ok(())
    }

    fn insert(&mut self, slot: usize, hash: u64, entry: Entry) {
        self.slots[slot] = hash as u32 & !self.index_bits() | self.entries.len() as u32;
        self.entries.push(entry);
    }

    fn find_long(&self, hash: u64, pretoken: &[u8]) -> Lookup {
        self.find(hash, |entry| entry.is_long() && self.bytes(entry) == pretoken)
    }

    /// Probes the slots from the one of the hash up to the first vacant one.
    #[inline]
    fn find(&self, hash: u64, is_match: impl Fn(&Entry) -> bool) -> Lookup {
        let index_bits = self.index_bits();
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if slot == EMPTY_SLOT {
                return Lookup::Vacant(at);
            }
            let index = (slot & index_bits) as usize;
            if (slot ^ hash as u32) & !index_bits == 0 && is_match(&self.entries[index]) {
                return Lookup::Found(index);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn index_bits(&self) -> u32 {
        (self.slots.len() - 1) as u32
    }

    fn set_slots(&mut self, slots: usize) -> Result<()> {
        self.slots = Vec::new(); // free the old slots first: both together might exceed the limit
        self.slots.try_reserve_exact(slots).map_err(|_| failed::<u32>(slots))?;
        self.slots.resize(slots, EMPTY_SLOT);
        self.use_slots();
        Ok(())
    }

    fn use_slots(&mut self) {
        self.shift = u64::BITS - self.slots.len().trailing_zeros();
        self.max_entries = max_entries(self.slots.len());
    }

    /// Grows to the slots that this many entries need, and rehashes.
    #[cold]
    fn grow(&mut self, entries: usize, hasher: &RandomState) -> Result<()> {
        let slots = slots_for(entries).max(self.slots.len());
        if slots as u64 > MAX_SLOTS {
            return Err(Error::Overflow(format!(
                "more than {} distinct pre-tokens in one table; count the corpus in parts",
                max_entries(MAX_SLOTS as usize)
            )));
        }
        self.set_slots(slots)?;
        let more = self.max_entries - self.entries.len();
        reserve_exact(&mut self.entries, more)?;
        for index in 0..self.entries.len() {
            let hash = self.hash(&self.entries[index], hasher);
            if let Lookup::Vacant(slot) = self.find(hash, |_| false) {
                self.slots[slot] = hash as u32 & !self.index_bits() | index as u32;
            }
        }
        Ok(())
    }
}

/// The maximum number of entries for a number of slots: a load factor of five eighths keeps failed
/// lookups short.
#[inline]
fn max_entries(slots: usize) -> usize {
    slots / 8 * 5
}

/// The number of slots for a number of entries.
fn slots_for(entries: usize) -> usize {
    let mut slots = MIN_SLOTS;
    while max_entries(slots) < entries && slots < 1 << (usize::BITS - 1) {
        slots *= 2;
    }
    slots
}

// ---------------------------------------------------------------------- within a limit

/// At least one part in this many of a limit is reserved for long pre-tokens.
const ARENA_SHARE: usize = 16;
/// Interrupts are checked after this many entries.
const CHECK_INTERVAL: usize = 1 << 16;

/// The memory of a table with these numbers of slots, entries and arena bytes.
fn footprint(slots: usize, entries: usize, arena: usize) -> usize {
    (size_of::<u32>().saturating_mul(slots))
        .saturating_add(size_of::<Entry>().saturating_mul(entries))
        .saturating_add(arena)
}

/// The memory of a table that has grown to this many entries.
pub(super) fn table_bytes(entries: usize, arena: usize) -> usize {
    let slots = slots_for(entries);
    footprint(slots, max_entries(slots), arena.saturating_mul(2))
}

impl CountTable {
    /// The memory of the table in bytes.
    pub(super) fn memory(&self) -> usize {
        footprint(self.slots.len(), self.entries.capacity(), self.arena.capacity())
    }

    /// Whether the table stays within a limit with this many more entries and bytes of long
    /// pre-tokens, even while it grows.
    ///
    /// A growing vector may be copied. The old one and the used half of the new one then take as
    /// much memory as the new one when it is full.
    #[inline]
    pub(super) fn can_take(&self, entries: usize, long: usize, limit: usize) -> bool {
        let (entries, arena) = (self.entries.len() + entries, self.arena.len() + long);
        (entries <= self.max_entries && arena <= self.arena.capacity())
            || self.can_grow(entries, arena, limit)
    }

    #[cold]
    fn can_grow(&self, entries: usize, arena: usize, limit: usize) -> bool {
        let (mut slots, mut max) = (self.slots.len(), self.max_entries);
        if entries > max {
            slots = slots.max(slots_for(entries));
            max = max_entries(slots);
        }
        let mut capacity = self.arena.capacity();
        if arena > capacity {
            capacity = arena.max(capacity.saturating_mul(2)); // as a vector grows
        }
        footprint(slots, max, capacity) <= limit
    }

    /// Writes all entries as a run, sorted by part and bytes. Afterwards the table must be cleared.
    pub(super) fn spill(&mut self, spill: &dyn Spill) -> Result<()> {
        self.sort_by_part(spill)?;
        let Self { entries, arena, .. } = self;
        let mut run = entries.iter().map(|entry| (entry.bytes(arena), entry.count));
        spill.write(&mut run).map_err(Error::Source)
    }

    /// Sorts the entries in place.
    fn sort_by_part(&mut self, spill: &dyn Spill) -> Result<()> {
        let Self { entries, arena, .. } = self;
        let part_of = |entry: &Entry| spill.part(entry.bytes(arena));
        let mut starts = vec![0; spill.parts() + 1];
        for some in entries.chunks(CHECK_INTERVAL) {
            spill.check_interrupt().map_err(Error::Source)?;
            for entry in some {
                starts[part_of(entry) + 1] += 1;
            }
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        // American flag sort: each entry is swapped to the next free position of its part.
        let mut next = starts.clone();
        let mut moved = 0_usize;
        for part in 0..spill.parts() {
            while next[part] < starts[part + 1] {
                let own = part_of(&entries[next[part]]);
                if own != part {
                    entries.swap(next[part], next[own]);
                }
                next[own] += 1;
                moved += 1;
                if moved.is_multiple_of(CHECK_INTERVAL) {
                    spill.check_interrupt().map_err(Error::Source)?;
                }
            }
            spill.check_interrupt().map_err(Error::Source)?;
            entries[starts[part]..starts[part + 1]].sort_unstable_by(|a, b| a.compare(b, arena));
        }
        Ok(())
    }

    /// Clears the table and sizes it to use the limit fully if new entries are as long as the old
    /// ones were; false if no table within the limit can hold this many entries and long bytes.
    pub(super) fn reset(&mut self, entries: usize, long: usize, limit: usize) -> Result<bool> {
        let mean_arena = self.arena.len().div_ceil(self.entries.len().max(1));
        (self.entries, self.slots, self.arena) = (Vec::new(), Vec::new(), Vec::new());
        let min_arena = (limit / ARENA_SHARE).max(long);
        let available = limit.saturating_sub(min_arena);
        let entry_bytes = size_of::<Entry>() + mean_arena;
        let fitting = |slots: usize| {
            max_entries(slots).min(available.saturating_sub(footprint(slots, 0, 0)) / entry_bytes)
        };
        let mut slots = MIN_SLOTS;
        while fitting(2 * slots) > fitting(slots) && (slots as u64) < MAX_SLOTS {
            slots *= 2;
        }
        let max = fitting(slots);
        self.set_slots(slots)?;
        if max < entries {
            return Ok(false); // the table stays small, and grows if it is used
        }
        self.max_entries = max;
        reserve_exact(&mut self.entries, max)?;
        reserve_exact(&mut self.arena, limit.saturating_sub(footprint(slots, max, 0)))?;
        Ok(true)
    }
}
