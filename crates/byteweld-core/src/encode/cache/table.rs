//! The table of the pre-token cache: open addressing with linear probing, within a bounded reach.
//!
//! An entry has 32 bytes, half a cache line: a key, and up to four ids. It is looked for in its home
//! slot, in the other slot of that line, and in the lines after it. One that is found away from home
//! changes places with the entry there, so that frequent pre-tokens are found at once. If all slots
//! in reach are taken, a new entry replaces one of them: memory is bounded, and text made to collide
//! only costs merging its pre-tokens again.

use super::key::{COUNT_SHIFT, Key, is_long, slot_of};
use crate::cpu::{Zeroable, ZeroedPages};

/// The number of ids that an entry can hold.
pub(in super::super) const MAX_INLINE_IDS: usize = 4;

/// An entry is in one of this many slots, the first two of which are a cache line.
const REACH: usize = 16;

/// A pre-token and its ids. All zeros if empty.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(in super::super) struct Entry {
    /// With the number of ids in the highest bits; 0 if the ids are in the arena.
    key: Key,
    pub(super) ids: [u32; MAX_INLINE_IDS],
}

#[expect(unsafe_code, reason = "a promise about the type")]
// SAFETY: it consists of integers.
unsafe impl Zeroable for Entry {
    const ZERO: Self = Self { key: [0; 2], ids: [0; MAX_INLINE_IDS] };
}

impl Entry {
    /// An entry of a key whose highest bits are 0. A `count` of 0 says that the ids are in the arena.
    pub(super) fn new(key: Key, count: usize, ids: [u32; MAX_INLINE_IDS]) -> Self {
        Self { key: [key[0], key[1] | (count as u64) << COUNT_SHIFT], ids }
    }

    /// The number of ids, if this is the entry of a key and holds them.
    #[inline(always)]
    pub(super) fn inline_count(&self, key: Key) -> Option<usize> {
        // If the keys are equal, only the count is left.
        let count = (self.key[1] ^ key[1]).rotate_left(u64::BITS - COUNT_SHIFT);
        let is_it = self.key[0] == key[0] && count.wrapping_sub(1) < MAX_INLINE_IDS as u64;
        is_it.then_some(count as usize)
    }

    /// Whether this is the entry of a key, wherever its ids are.
    #[inline(always)]
    pub(super) fn is_of(&self, key: Key) -> bool {
        self.key[0] == key[0] && (self.key[1] ^ key[1]) << (u64::BITS - COUNT_SHIFT) == 0
    }

    pub(super) fn count(&self) -> usize {
        (self.key[1] >> COUNT_SHIFT) as usize
    }

    /// Whether the pre-token is longer than a key.
    #[inline(always)]
    pub(super) fn is_long(&self) -> bool {
        is_long(self.key)
    }

    fn is_empty(&self) -> bool {
        self.key == [0; 2]
    }

    /// The key without the count.
    fn bare_key(&self) -> Key {
        [self.key[0], self.key[1] << (u64::BITS - COUNT_SHIFT) >> (u64::BITS - COUNT_SHIFT)]
    }
}

pub(super) struct Table {
    entries: ZeroedPages<Entry>,
    /// How far a hash of 32 bits is shifted down to a slot.
    shift: u32,
    /// The number of entries ever replaced, which chooses the next one.
    replaced: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: ZeroedPages::EMPTY, shift: 0, replaced: 0 }
    }
}

impl Table {
    /// An empty table of `2^bits` home slots; `None` if there is not enough memory.
    pub(super) fn new(bits: u32) -> Option<Self> {
        let entries = ZeroedPages::new((1 << bits) + REACH)?;
        Some(Self { entries, shift: u32::BITS - bits, replaced: 0 })
    }

    /// A copy of the table.
    pub(super) fn copy(&self) -> Option<Self> {
        let mut entries = ZeroedPages::new(self.entries.len())?;
        entries.copy_from_slice(&self.entries);
        Some(Self { entries, ..*self })
    }

    /// The number of home slots.
    #[inline(always)]
    pub(super) fn capacity(&self) -> usize {
        self.entries.len().saturating_sub(REACH)
    }

    #[inline(always)]
    pub(super) fn entries(&self) -> (&[Entry], u32) {
        (&self.entries, self.shift)
    }

    pub(super) fn clear(&mut self) {
        self.entries.fill(Entry::ZERO);
    }

    /// Adds all entries of another table.
    pub(super) fn add_all(&mut self, other: &Self) {
        for &entry in other.entries.iter().filter(|entry| !entry.is_empty()) {
            self.insert(entry);
        }
    }

    /// Finds the entry of a key for which `is_right` holds, and moves it to its home slot.
    pub(super) fn find(
        &mut self,
        key: Key,
        is_right: impl Fn(&Entry) -> bool,
    ) -> Option<(u32, &Entry)> {
        let home = slot_of(key, self.shift);
        let reach = self.reach_of(home)?;
        let at = find_in(reach, home, |entry| entry.is_of(key) && is_right(entry))?;
        // The entry that makes way may get beyond its own reach: then it is forgotten.
        reach.swap(first(home), at);
        Some((home, &self.entries[home as usize]))
    }

    /// Moves the entry of a key that is its own bytes to its home slot, if it is in another one.
    /// Returns the entry that made way.
    #[inline(always)]
    pub(super) fn bring_home(&mut self, key: Key, home: u32) -> Option<&Entry> {
        let (here, near) = (home as usize, home as usize ^ 1);
        if self.entries.get(here)?.is_of(key) {
            return None; // nothing would change, even if another slot had the key, too
        }
        // Most are in the same line.
        if self.entries.get(near).is_some_and(|entry| entry.is_of(key)) {
            self.entries.swap(here, near);
            return self.entries.get(near);
        }
        self.bring_home_from_afar(key, home)
    }

    #[inline(never)]
    fn bring_home_from_afar(&mut self, key: Key, home: u32) -> Option<&Entry> {
        let reach = self.reach_of(home)?;
        let at = find_in(reach, home, |entry| entry.is_of(key))?;
        reach.swap(first(home), at);
        Some(&reach[at])
    }

    /// Whether there is an entry of a key for which `is_right` holds.
    pub(super) fn contains(&self, key: Key, is_right: impl Fn(&Entry) -> bool) -> bool {
        let home = slot_of(key, self.shift);
        let reach = self.entries.get(line_of(home)..).and_then(<[Entry]>::first_chunk);
        reach
            .and_then(|reach| find_in(reach, home, |entry| entry.is_of(key) && is_right(entry)))
            .is_some()
    }

    /// Adds an entry, perhaps in place of another.
    pub(super) fn insert(&mut self, entry: Entry) {
        let home = slot_of(entry.bare_key(), self.shift);
        let replaced = self.replaced.wrapping_add(1);
        let Some(reach) = self.reach_of(home) else { return };
        match first_empty(reach, home) {
            Some(at) => reach[at] = entry,
            None => {
                reach[replaced % REACH] = entry;
                self.replaced = replaced;
            }
        }
    }

    /// The slots in reach of a home slot.
    #[inline(always)]
    fn reach_of(&mut self, home: u32) -> Option<&mut [Entry; REACH]> {
        self.entries.get_mut(line_of(home)..)?.first_chunk_mut()
    }
}

/// The first slot of the line that a home slot is in, from which on entries are in reach of it.
#[inline(always)]
fn line_of(home: u32) -> usize {
    home as usize & !1
}

/// Which of the slots in reach the home slot is.
#[inline(always)]
fn first(home: u32) -> usize {
    home as usize & 1
}

/// The slots in reach of a home slot in the order in which they are taken: the `n`th. From the second
/// line on, it is the same for all, so an entry that makes way has no empty slot before it.
#[inline(always)]
fn nth(home: u32, n: usize) -> usize {
    if n < 2 { n ^ first(home) } else { n }
}

/// The first slot in reach, in order, that is empty.
#[inline(always)]
fn first_empty(reach: &[Entry; REACH], home: u32) -> Option<usize> {
    (0..REACH).map(|n| nth(home, n)).find(|&at| reach[at].is_empty())
}

/// The slot in reach whose entry is the right one.
#[inline(always)]
fn find_in(reach: &[Entry; REACH], home: u32, is_right: impl Fn(&Entry) -> bool) -> Option<usize> {
    for n in 0..REACH {
        let at = nth(home, n);
        if reach[at].is_empty() {
            return None;
        }
        if is_right(&reach[at]) {
            return Some(at);
        }
    }
    None
}
