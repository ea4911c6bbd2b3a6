//! A memory of words: pre-tokens that were merged before, with their ids.
//!
//! Text repeats its words, so most are found here in one cache line instead of being merged again. The table
//! has a fixed size and forgets: a word has one bucket of two places, the one used last is in front, and a new
//! word drives out the one behind. So memory is bounded, nothing is ever moved, and texts made to collide only
//! cost the merging that they would cost anyway.
//!
//! Each thread has a table of its own while it works ([`super::Encoder`] keeps a few for the next calls).

use std::ops::Range;

use crate::huge::advise;

/// How many ids a place holds; words of more are rare.
pub(super) const FEW: usize = 4;

/// The longest word that is remembered.
pub(super) const LONGEST: usize = 31;
/// The longest that fits one 16-byte key together with its length.
const SHORT: usize = 15;

/// Bits of a bucket's number, for short words (64 bytes each) and long ones (128 bytes each): 8 and 2 MiB.
const SHORT_BITS: u32 = 17;
const LONG_BITS: u32 = 14;
/// Ids of words with more than fit their place: 2 MiB. New ones take the room of the oldest.
const ARENA_IDS: usize = 1 << 19;

/// The first id of a place has the number of ids on top; this many means that they are in the arena.
const COUNT_SHIFT: u32 = 28;
const MANY: u32 = 15;

/// What a key has on top instead of a length of 1 to 15: these stand for words that have no short key.
pub(super) const LONG: u128 = 0x7F << 120;
pub(super) const LONG_SEGMENT: u128 = LONG | SEGMENT;
/// Marks a part of a pre-token. It may be merged otherwise than a pre-token of the same bytes.
pub(super) const SEGMENT: u128 = 0x80 << 120;

pub(super) fn is_segment(key: u128) -> bool {
    key & SEGMENT != 0
}

/// By length: the bytes of a 16-byte load that belong to the word.
const MASKS: [u128; 17] = {
    let mut masks = [u128::MAX; 17];
    let mut length = 0;
    while length < 16 {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// A word's bytes and length.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Short(u128),
    Long([u128; 2]),
}

/// The key of a word of 1 to 15 bytes.
#[inline(always)]
pub(super) fn short_key(text: &[u8], start: usize, end: usize) -> Option<u128> {
    let length = end - start;
    let is_short = (1..=SHORT).contains(&length);
    is_short.then(|| load(text, start, length) | (length as u128) << 120)
}

/// The same, if 16 bytes from its start on are there to be read.
#[inline(always)]
pub(super) fn whole_key(text: &[u8], start: usize, end: usize) -> Option<u128> {
    let length = end - start;
    let bytes = text.get(start..)?.first_chunk::<16>()?;
    let mask = MASKS.get(length).filter(|_| length <= SHORT)?;
    Some(u128::from_le_bytes(*bytes) & mask | (length as u128) << 120)
}

/// The key of the word at a range, given its short key or what stands for it; `None` if it is too long to be
/// remembered.
pub(super) fn key(text: &[u8], range: &Range<usize>, short: u128) -> Option<Key> {
    if short & LONG != LONG {
        return Some(Key::Short(short));
    }
    let length = range.len();
    if length > LONGEST {
        return None;
    }
    let high = load(text, range.start + 16, length - 16) | (length as u128) << 120;
    Some(Key::Long([load(text, range.start, 16), high | short & SEGMENT]))
}

/// Up to 16 bytes from `start` on, the rest zero.
#[inline(always)]
fn load(text: &[u8], start: usize, length: usize) -> u128 {
    match text.get(start..).and_then(|rest| rest.first_chunk::<16>()) {
        // What lies behind the word is read with it and masked away.
        Some(bytes) => u128::from_le_bytes(*bytes) & MASKS[length],
        None => load_at_end(text, start, length),
    }
}

#[cold]
fn load_at_end(text: &[u8], start: usize, length: usize) -> u128 {
    let mut bytes = [0; 16];
    bytes[..length].copy_from_slice(&text[start..start + length]);
    u128::from_le_bytes(bytes)
}

#[derive(Default)]
pub(super) struct Words {
    short: Table<1, SHORT_BITS>,
    long: Table<2, LONG_BITS>,
    arena: Arena,
}

impl Words {
    /// Must be called before the rest.
    #[inline]
    pub(super) fn prepare(&mut self) {
        if self.short.slots.is_empty() {
            self.short = Table::new();
            self.long = Table::new();
        }
    }

    /// The place of a short key.
    #[inline(always)]
    pub(super) fn place(key: u128) -> u32 {
        Table::<1, SHORT_BITS>::place([key])
    }

    /// The places of short words, for [`front`].
    #[inline(always)]
    pub(super) fn buckets(&self) -> &[Bucket] {
        self.short.slots.get(self.short.base..).unwrap_or_default().as_chunks().0
    }

    /// Finds a word, brings it to the front of its place, and puts its ids into `ids`.
    pub(super) fn recall(&mut self, key: Key, place: u32, ids: &mut Vec<u32>) -> bool {
        let value = match key {
            Key::Short(key) => self.short.get([key], place),
            Key::Long(key) => self.long.get(key, Table::<2, LONG_BITS>::place(key)),
        };
        let Some(value) = value else { return false };
        let mut few = unpack(value);
        let count = few[0] >> COUNT_SHIFT;
        few[0] &= (1 << COUNT_SHIFT) - 1;
        ids.clear();
        match few.get(..count as usize) {
            Some(few) => ids.extend_from_slice(few),
            None => {
                let place = u64::from(few[1]) | u64::from(few[2]) << 32;
                match self.arena.get(place, few[0] as usize) {
                    Some(many) => ids.extend_from_slice(many),
                    None => return false,
                }
            }
        }
        true
    }

    /// Remembers a word.
    pub(super) fn insert(&mut self, key: Key, place: u32, ids: &[u32]) {
        let mut value = [0; FEW];
        match value.get_mut(..ids.len()) {
            Some(few) if ids.first().is_some_and(|&id| id >> COUNT_SHIFT == 0) => {
                few.copy_from_slice(ids);
                value[0] |= (ids.len() as u32) << COUNT_SHIFT;
            }
            _ => {
                let place = self.arena.push(ids);
                let count = MANY << COUNT_SHIFT | ids.len() as u32; // a word has at most 31
                value = [count, place as u32, (place >> 32) as u32, 0];
            }
        }
        match key {
            Key::Short(key) => self.short.insert([key], place, pack(value)),
            Key::Long(key) => self.long.insert(key, Table::<2, LONG_BITS>::place(key), pack(value)),
        }
    }
}

/// Both keys of a place, then both values.
type Bucket = [u128; 4];

/// The ids of the word that is in front at a place, each from its low to its high byte, and how many of them
/// there are, if it has this key and they are few.
#[inline(always)]
pub(super) fn front(buckets: &[Bucket], place: u32, key: u128) -> Option<([u8; 16], usize)> {
    let bucket = buckets.get(place as usize)?;
    let count = bucket[2] as u32 >> COUNT_SHIFT;
    let ids = bucket[2] & !(u128::from(MANY) << COUNT_SHIFT);
    (bucket[0] == key && count <= FEW as u32).then(|| (ids.to_le_bytes(), count as usize))
}

/// A ring of ids: places count up for ever, and what was written longest ago is written over.
#[derive(Default)]
struct Arena {
    ids: Vec<u32>,
    /// The place that is written next.
    next: u64,
}

impl Arena {
    /// Writes ids, fewer than the ring has, and gives their place.
    fn push(&mut self, ids: &[u32]) -> u64 {
        let mut start = self.next as usize % ARENA_IDS;
        if start + ids.len() > ARENA_IDS {
            self.next += (ARENA_IDS - start) as u64; // they lie on end
            start = 0;
        }
        let end = start + ids.len();
        if self.ids.len() < end {
            self.ids.resize(end, 0);
        }
        self.ids[start..end].copy_from_slice(ids);
        let place = self.next;
        self.next += ids.len() as u64;
        place
    }

    /// The ids at a place, unless they are written over.
    fn get(&self, place: u64, length: usize) -> Option<&[u32]> {
        let start = place as usize % ARENA_IDS;
        let is_there = self.next - place <= ARENA_IDS as u64;
        is_there.then(|| &self.ids[start..start + length])
    }
}

fn pack(ids: [u32; 4]) -> u128 {
    ids.iter().rev().fold(0, |packed, &id| packed << 32 | u128::from(id))
}

#[inline(always)]
fn unpack(value: u128) -> [u32; 4] {
    [value as u32, (value >> 32) as u32, (value >> 64) as u32, (value >> 96) as u32]
}

/// `1 << BITS` buckets of two places, each a key of `N` words and a value.
#[derive(Default)]
struct Table<const N: usize, const BITS: u32> {
    /// Per bucket: the keys of both places, then their values, then room up to a power of two.
    slots: Vec<u128>,
    /// The first slot that is at the start of a cache line.
    base: usize,
}

impl<const N: usize, const BITS: u32> Table<N, BITS> {
    const STRIDE: usize = (2 * N + 2).next_power_of_two();

    /// Memory that is never used is never really taken.
    fn new() -> Self {
        let slots = vec![0; (Self::STRIDE << BITS) + 4];
        advise(&slots);
        let base = slots.as_ptr().align_offset(64).min(4);
        Self { slots, base }
    }

    #[inline(always)]
    fn place(key: [u128; N]) -> u32 {
        let hash = key.iter().fold(0u64, |hash, &part| {
            let (low, high) = (part as u64, (part >> 64) as u64);
            (hash ^ low ^ high.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        (hash >> (u64::BITS - BITS)) as u32
    }

    #[inline(always)]
    fn start(&self, place: u32) -> usize {
        self.base + place as usize * Self::STRIDE
    }

    fn bucket(&mut self, place: u32) -> &mut [u128] {
        let start = self.start(place);
        &mut self.slots[start..start + 2 * N + 2]
    }

    fn get(&mut self, key: [u128; N], place: u32) -> Option<u128> {
        let bucket = self.bucket(place);
        // Part by part: comparing slices would call a function.
        let holds = |place: &[u128]| (0..N).all(|part| place[part] == key[part]);
        if holds(bucket) {
            return Some(bucket[2 * N]);
        }
        if !holds(&bucket[N..]) {
            return None;
        }
        // The one used last goes in front.
        for part in 0..N {
            bucket.swap(part, N + part);
        }
        bucket.swap(2 * N, 2 * N + 1);
        Some(bucket[2 * N])
    }

    fn insert(&mut self, key: [u128; N], place: u32, value: u128) {
        let bucket = self.bucket(place);
        for (part, key) in key.into_iter().enumerate() {
            bucket[N + part] = bucket[part];
            bucket[part] = key;
        }
        bucket[2 * N + 1] = bucket[2 * N];
        bucket[2 * N] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(text: &[u8], start: usize, end: usize) -> Option<Key> {
        key(text, &(start..end), short_key(text, start, end).unwrap_or(LONG))
    }

    fn place_of(key: Key) -> u32 {
        match key {
            Key::Short(key) => Words::place(key),
            Key::Long(_) => 0,
        }
    }

    fn insert(words: &mut Words, key: Key, ids: &[u32]) {
        words.insert(key, place_of(key), ids);
    }

    fn ids_of(words: &mut Words, key: Key) -> Option<Vec<u32>> {
        let place = place_of(key);
        let in_front: Option<Vec<u32>> = match key {
            Key::Short(key) => front(words.buckets(), place, key).map(|(ids, count)| {
                let (ids, _) = ids.as_chunks();
                ids[..count].iter().map(|id| u32::from_le_bytes(*id)).collect()
            }),
            Key::Long(_) => None,
        };
        let mut ids = vec![9];
        let recalled = words.recall(key, place, &mut ids).then_some(ids);
        assert!(in_front.is_none() || in_front == recalled);
        recalled
    }

    #[test]
    fn words_of_every_length_are_told_apart_even_by_nul_bytes() {
        let mut words = Words::default();
        words.prepare();
        let text = [0; 64];
        for length in 1..=LONGEST {
            let ids: Vec<u32> = (0..length as u32).collect();
            let key = key_of(&text, 3, 3 + length).unwrap();
            assert!(ids_of(&mut words, key).is_none());
            insert(&mut words, key, &ids);
        }
        for length in 1..=LONGEST {
            let ids: Vec<u32> = (0..length as u32).collect();
            // The same word at the very end of a text, where nothing can be read behind it.
            let end = key_of(&text, text.len() - length, text.len()).unwrap();
            assert_eq!(ids_of(&mut words, end), Some(ids));
        }
        assert!(short_key(&text, 0, 0).is_none() && key_of(&text, 0, LONGEST + 1).is_none());
    }

    #[test]
    fn a_part_is_not_a_word_of_the_same_bytes() {
        let mut words = Words::default();
        words.prepare();
        let text = [7; 32];
        for length in [4, 20] {
            let key = key_of(&text, 0, length).unwrap();
            let part = match key {
                Key::Short(key) => Key::Short(key | SEGMENT),
                Key::Long([low, high]) => Key::Long([low, high | SEGMENT]),
            };
            insert(&mut words, key, &[1]);
            assert!(ids_of(&mut words, part).is_none());
            insert(&mut words, part, &[2]);
            assert_eq!(ids_of(&mut words, key), Some(vec![1]));
            assert_eq!(ids_of(&mut words, part), Some(vec![2]));
        }
    }

    #[test]
    fn ids_that_need_all_bits_are_kept() {
        let mut words = Words::default();
        words.prepare();
        let key = key_of(b"word", 0, 4).unwrap();
        insert(&mut words, key, &[1 << COUNT_SHIFT, 5]);
        assert_eq!(ids_of(&mut words, key), Some(vec![1 << COUNT_SHIFT, 5]));
    }

    #[test]
    fn a_full_arena_forgets_the_oldest_and_never_lies() {
        let mut arena = Arena::default();
        let mut written: Vec<(u64, Vec<u32>)> = Vec::new();
        for number in 0..200_000u32 {
            let ids = vec![number; 5 + number as usize % 27];
            written.push((arena.push(&ids), ids));
            assert!(arena.ids.len() <= ARENA_IDS);
            let (place, ids) = &written[number as usize / 2];
            assert!(arena.get(*place, ids.len()).is_none_or(|found| found == ids));
            let recent = written.len().saturating_sub(ARENA_IDS / 32);
            let (place, ids) = &written[recent];
            assert_eq!(arena.get(*place, ids.len()), Some(&ids[..]));
        }
        let (place, ids) = &written[0];
        assert_eq!(arena.get(*place, ids.len()), None);
    }

    #[test]
    fn a_full_table_forgets_and_never_lies() {
        let mut words = Words::default();
        words.prepare();
        for number in 0..900_000u32 {
            let text = format!("{number:024}");
            let (short, long) = (key_of(text.as_bytes(), 12, 24), key_of(text.as_bytes(), 0, 24));
            for key in [short.unwrap(), long.unwrap()] {
                insert(&mut words, key, &[number; 5][..1 + number as usize % 5]);
            }
            let text = format!("{:024}", number / 2);
            let expected = vec![number / 2; 1 + number as usize / 2 % 5];
            for key in [key_of(text.as_bytes(), 12, 24), key_of(text.as_bytes(), 0, 24)] {
                if let Some(found) = ids_of(&mut words, key.unwrap()) {
                    assert_eq!(found, expected);
                }
            }
        }
    }
}
