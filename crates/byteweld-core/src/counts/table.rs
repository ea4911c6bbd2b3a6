//! One table: pre-tokens and their counts, in order of first sight, found by hash.
//!
//! A pre-token of up to 15 bytes stands in its entry, packed with its length into 16 bytes, so that it is
//! compared in one step; the bytes of a longer one lie in an arena. Entries are found through slots of four
//! bytes: half of a slot or so says which entry it is, the rest is a part of the hash that spares most vain
//! looks. Frequent pre-tokens are met early, so their entries share few cache lines, and their slots lie
//! where the hash says. An entry takes 24 bytes and its share of the slots 6 to 13.
//!
//! What a table takes is known exactly, so that it can be kept within a limit: see [`Table::can_take`].

use std::cmp::Ordering;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::overflow;
use super::spill::Spill;
use crate::error::{Error, Result};
use crate::prefetch::prefetch;

/// The longest pre-token that stands in its entry.
pub(super) const SHORT: usize = 15;

/// What the last byte of an entry's key is if its pre-token lies in the arena. Otherwise it is a length.
const LONG: u8 = u8::MAX;

/// A slot without an entry. No entry's index is all ones: there are fewer entries than slots.
const VACANT: u32 = u32::MAX;

const FIRST_SLOTS: usize = 16;
/// As many as indices of 32 bits can tell apart.
const MOST_SLOTS: u64 = 1 << 32;

/// A pre-token of up to 15 bytes: the bytes, zeros, and in the last byte how many they are; so no two
/// pre-tokens have one key, whatever zeros they hold.
pub(super) type Key = u128;

/// By length: the bits of so many bytes.
const BYTES: [Key; SHORT + 1] = {
    let mut masks = [0; SHORT + 1];
    let mut length = 1;
    while length <= SHORT {
        masks[length] = masks[length - 1] << 8 | 0xFF;
        length += 1;
    }
    masks
};

/// The key of a pre-token, if it is short.
pub(super) fn pack(pretoken: &[u8]) -> Option<Key> {
    let mut bytes = [0; SHORT + 1];
    bytes.get_mut(..pretoken.len())?.copy_from_slice(pretoken);
    (pretoken.len() <= SHORT).then(|| with_length(Key::from_le_bytes(bytes), pretoken.len()))
}

/// The key of the first `length` bytes of 16, if it is short.
#[inline(always)]
pub(super) fn pack_chunk(bytes: &[u8; SHORT + 1], length: usize) -> Option<Key> {
    let mask = BYTES.get(length)?;
    Some(with_length(Key::from_le_bytes(*bytes) & mask, length))
}

#[inline]
fn with_length(bytes: Key, length: usize) -> Key {
    bytes | (length as Key) << (8 * SHORT)
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// The [`Key`]; or the place in the arena (8 bytes), the length (7 bytes) and [`LONG`].
    key: [u8; SHORT + 1],
    pub(super) count: u64,
}

impl Entry {
    /// The key of a short pre-token; no short one has that of a long one.
    #[inline]
    pub(super) fn key(&self) -> Key {
        Key::from_le_bytes(self.key)
    }

    pub(super) fn is_long(&self) -> bool {
        self.key[SHORT] == LONG
    }

    /// The bytes of an entry whose table has this arena.
    fn bytes<'t>(&'t self, arena: &'t [u8]) -> &'t [u8] {
        if !self.is_long() {
            return &self.key[..usize::from(self.key[SHORT])];
        }
        let start = self.key() as u64;
        let length = (self.key() >> 64) as u64 & !(u64::from(LONG) << 56);
        &arena[start as usize..][..length as usize]
    }

    /// The order of the bytes. Of two short keys as numbers, the first byte on top, it is the same: where
    /// one is the start of the other it has zeros, and then the smaller length.
    fn compare(&self, other: &Entry, arena: &[u8]) -> Ordering {
        if self.is_long() || other.is_long() {
            self.bytes(arena).cmp(other.bytes(arena))
        } else {
            self.sort_key().cmp(&other.sort_key())
        }
    }

    /// A number that has the order of the bytes, as far as the first 15 of them decide.
    fn sort_key(&self) -> Key {
        Key::from_be_bytes(self.key)
    }
}

pub(super) struct Table {
    entries: Vec<Entry>,
    /// Open addressing. The low bits are the index of an entry, the others are of its hash.
    slots: Vec<u32>,
    /// A hash has its slot at its highest bits: it is shifted by so many.
    shift: u32,
    /// How many entries there may be before the table grows: five eighths of the slots or fewer.
    most: usize,
    /// The bytes of long pre-tokens, back to back.
    arena: Vec<u8>,
}

impl Default for Table {
    fn default() -> Self {
        let mut table =
            Self { entries: Vec::new(), slots: Vec::new(), shift: 0, most: 0, arena: Vec::new() };
        table.set_slots(FIRST_SLOTS);
        table
    }
}

/// Where a pre-token is, or would be.
enum Place {
    Entry(usize),
    Vacant(usize),
}

impl Table {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The bytes of an entry of this table.
    pub(super) fn bytes<'t>(&'t self, entry: &'t Entry) -> &'t [u8] {
        entry.bytes(&self.arena)
    }

    /// A number that has the order of an entry's bytes, as far as the first 15 of them decide.
    pub(super) fn sort_key(&self, entry: &Entry) -> Key {
        if !entry.is_long() {
            return entry.sort_key();
        }
        let mut key = [0; SHORT + 1];
        key[..SHORT].copy_from_slice(&self.bytes(entry)[..SHORT]);
        key[SHORT] = SHORT as u8 + 1; // after the one that ends here
        Key::from_be_bytes(key)
    }

    /// How many bytes the long pre-tokens have.
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
        let place = match pack(pretoken) {
            Some(key) => self.find(hash, |entry| entry.key() == key),
            None => self.find_long(hash, pretoken),
        };
        match place {
            Place::Entry(index) => self.entries[index].count,
            Place::Vacant(_) => 0,
        }
    }

    /// Makes room for so many new entries, so that no slot moves while they are added.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize, hasher: &RandomState) -> Result<()> {
        let needed = self.entries.len() + more;
        if needed > self.most { self.grow(needed, hasher) } else { Ok(()) }
    }

    /// The slot where a hash belongs will soon be asked for.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, (hash >> self.shift) as usize);
    }

    /// What stands in the slot where a hash belongs, for [`Table::count_up`], which will soon be called.
    #[inline]
    pub(super) fn slot(&self, hash: u64) -> u32 {
        let slot = self.slots[(hash >> self.shift) as usize];
        prefetch(&self.entries, slot as usize & (self.slots.len() - 1));
        slot
    }

    /// Counts a short pre-token whose slot is known; false if that slot is not its own or its count would
    /// overflow.
    #[inline]
    pub(super) fn count_up(&mut self, slot: u32, key: Key, count: u64) -> bool {
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

    /// Counts a short pre-token. There must be room for it.
    #[inline(never)]
    pub(super) fn add_short(&mut self, key: Key, hash: u64, count: u64) -> Result<()> {
        match self.find(hash, |entry| entry.key() == key) {
            Place::Entry(index) => self.add_to(index, count),
            Place::Vacant(slot) => {
                self.insert(slot, hash, Entry { key: key.to_le_bytes(), count });
                Ok(())
            }
        }
    }

    fn add_long(&mut self, pretoken: &[u8], hash: u64, count: u64) -> Result<()> {
        match self.find_long(hash, pretoken) {
            Place::Entry(index) => self.add_to(index, count),
            Place::Vacant(slot) => {
                let (start, length) = (self.arena.len() as Key, pretoken.len() as Key);
                let key = start | length << 64 | Key::from(LONG) << (8 * SHORT);
                self.arena.extend_from_slice(pretoken);
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

    fn find_long(&self, hash: u64, pretoken: &[u8]) -> Place {
        self.find(hash, |entry| entry.is_long() && self.bytes(entry) == pretoken)
    }

    /// Looks through the slots from the one where a hash belongs up to the first that is vacant.
    #[inline]
    fn find(&self, hash: u64, is_it: impl Fn(&Entry) -> bool) -> Place {
        let index_bits = self.index_bits();
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if slot == VACANT {
                return Place::Vacant(at);
            }
            let index = (slot & index_bits) as usize;
            if (slot ^ hash as u32) & !index_bits == 0 && is_it(&self.entries[index]) {
                return Place::Entry(index);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn index_bits(&self) -> u32 {
        (self.slots.len() - 1) as u32
    }

    fn set_slots(&mut self, slots: usize) {
        self.slots = Vec::new(); // before the new ones are there: both together might be too much
        self.slots.resize(slots, VACANT);
        self.shift = u64::BITS - slots.trailing_zeros();
        self.most = most_entries(slots);
    }

    /// Takes as many slots as the entries need, and finds each entry's anew.
    #[cold]
    fn grow(&mut self, entries: usize, hasher: &RandomState) -> Result<()> {
        let slots = slots_for(entries).max(self.slots.len());
        if slots as u64 > MOST_SLOTS {
            return Err(Error::Overflow(format!(
                "more than {} distinct pre-tokens in one table; count parts of the corpus",
                most_entries(MOST_SLOTS as usize)
            )));
        }
        self.set_slots(slots);
        self.entries.reserve_exact(self.most - self.entries.len());
        for index in 0..self.entries.len() {
            let hash = self.hash(&self.entries[index], hasher);
            if let Place::Vacant(slot) = self.find(hash, |_| false) {
                self.slots[slot] = hash as u32 & !self.index_bits() | index as u32;
            }
        }
        Ok(())
    }
}

/// How many entries so many slots may have: five eighths, so that a look that fails is short.
#[inline]
fn most_entries(slots: usize) -> usize {
    slots / 8 * 5
}

/// How many slots so many entries need.
fn slots_for(entries: usize) -> usize {
    let mut slots = FIRST_SLOTS;
    while most_entries(slots) < entries && slots < 1 << (usize::BITS - 1) {
        slots *= 2;
    }
    slots
}

// ---------------------------------------------------------------------- within a limit

/// How much of a limit is for long pre-tokens at least: one over this.
const ARENA_SHARE: usize = 16;
/// Whether to go on is asked after so many entries.
const ASK_EVERY: usize = 1 << 16;

/// How many bytes so many slots, entries and bytes of long pre-tokens take.
fn footprint(slots: usize, entries: usize, arena: usize) -> usize {
    (size_of::<u32>().saturating_mul(slots))
        .saturating_add(size_of::<Entry>().saturating_mul(entries))
        .saturating_add(arena)
}

/// How many bytes a table of so many entries takes, once it has grown to them.
pub(super) fn table_bytes(entries: usize, arena: usize) -> usize {
    let slots = slots_for(entries);
    footprint(slots, most_entries(slots), arena.saturating_mul(2))
}

impl Table {
    /// How many bytes the table takes.
    pub(super) fn memory(&self) -> usize {
        footprint(self.slots.len(), self.entries.capacity(), self.arena.capacity())
    }

    /// Whether so many more entries, with so many bytes of long pre-tokens, keep the table within a limit,
    /// also while it grows.
    ///
    /// Growing, a vector may be copied: then the old one and the used half of the new one are there, which
    /// is what the new one takes when it is full.
    #[inline]
    pub(super) fn can_take(&self, entries: usize, long: usize, limit: usize) -> bool {
        let (entries, arena) = (self.entries.len() + entries, self.arena.len() + long);
        (entries <= self.most && arena <= self.arena.capacity())
            || self.can_grow(entries, arena, limit)
    }

    #[cold]
    fn can_grow(&self, entries: usize, arena: usize, limit: usize) -> bool {
        let (mut slots, mut most) = (self.slots.len(), self.most);
        if entries > most {
            slots = slots.max(slots_for(entries));
            most = most_entries(slots);
        }
        let mut capacity = self.arena.capacity();
        if arena > capacity {
            capacity = arena.max(capacity.saturating_mul(2)); // as a vector grows
        }
        footprint(slots, most, capacity) <= limit
    }

    /// Hands all entries over in order of their parts and bytes. What is left can only be emptied.
    pub(super) fn spill(&mut self, spill: &dyn Spill) -> Result<()> {
        self.sort_by_part(spill)?;
        let Self { entries, arena, .. } = self;
        let mut run = entries.iter().map(|entry| (entry.bytes(arena), entry.count));
        spill.write(&mut run).map_err(Error::Source)
    }

    /// Sorts the entries where they are: nothing else is allocated.
    fn sort_by_part(&mut self, spill: &dyn Spill) -> Result<()> {
        let Self { entries, arena, .. } = self;
        let part_of = |entry: &Entry| spill.part(entry.bytes(arena));
        let mut starts = vec![0; spill.parts() + 1];
        for some in entries.chunks(ASK_EVERY) {
            spill.go_on().map_err(Error::Source)?;
            for entry in some {
                starts[part_of(entry) + 1] += 1;
            }
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        // Each entry goes to the next free place of its part; what stood there is looked at next.
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
                if moved.is_multiple_of(ASK_EVERY) {
                    spill.go_on().map_err(Error::Source)?;
                }
            }
            spill.go_on().map_err(Error::Source)?;
            entries[starts[part]..starts[part + 1]].sort_unstable_by(|a, b| a.compare(b, arena));
        }
        Ok(())
    }

    /// Empties the table and gives it the shape that makes the most of a limit, if entries go on to be as
    /// long as they were; false if no table within the limit can take a pre-token of so many bytes.
    pub(super) fn empty(&mut self, entries: usize, long: usize, limit: usize) -> bool {
        let usual = self.arena.len().div_ceil(self.entries.len().max(1));
        (self.entries, self.slots, self.arena) = (Vec::new(), Vec::new(), Vec::new());
        let least_arena = (limit / ARENA_SHARE).max(long);
        let room = limit.saturating_sub(least_arena);
        let each = size_of::<Entry>() + usual;
        let fitting = |slots: usize| {
            most_entries(slots).min(room.saturating_sub(footprint(slots, 0, 0)) / each)
        };
        let mut slots = FIRST_SLOTS;
        while fitting(2 * slots) > fitting(slots) && (slots as u64) < MOST_SLOTS {
            slots *= 2;
        }
        let most = fitting(slots);
        self.set_slots(slots);
        if most < entries {
            return false; // the table stays empty and small, and grows if it is used
        }
        self.most = most;
        self.entries.reserve_exact(most);
        self.arena.reserve_exact(limit.saturating_sub(footprint(slots, most, 0)));
        true
    }
}
