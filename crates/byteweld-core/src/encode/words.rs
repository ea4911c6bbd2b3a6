//! A memory of words: pre-tokens that were merged before, with their ids.
//!
//! Text repeats its words, so most are found here in one cache line instead of being merged again. The table
//! has a fixed size and forgets: a word has one bucket of two places, the one used last is in front, and a new
//! word drives out the one behind. So memory is bounded, nothing is ever moved, and texts made to collide only
//! cost the merging that they would cost anyway.
//!
//! Each thread has a table of its own while it works ([`super::Encoder`] keeps a few for the next calls).

use super::pairs::NONE;

/// The longest word that is remembered.
pub(super) const LONGEST: usize = 31;
/// The longest that fits one 16-byte key together with its length.
const SHORT: usize = 15;

/// Buckets for short words (64 bytes each) and long ones (128 bytes each): 2 MiB and 1 MiB.
const SHORT_BUCKETS: usize = 1 << 15;
const LONG_BUCKETS: usize = 1 << 13;
/// Ids of words with more than fit their place; when there are more, all is forgotten.
const ARENA_IDS: usize = 1 << 17;

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

/// The key of a word; `None` if it is empty or too long.
#[inline(always)]
pub(super) fn key(text: &[u8], start: usize, end: usize) -> Option<Key> {
    let length = end - start;
    match length {
        1..=SHORT => Some(Key::Short(load(text, start, length) | (length as u128) << 120)),
        16..=LONGEST => {
            let high = load(text, start + 16, length - 16) | (length as u128) << 120;
            Some(Key::Long([load(text, start, 16), high]))
        }
        _ => None,
    }
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

/// What is known of a word.
pub(super) enum Ids<'w> {
    /// Its ids, as many as there are before the first [`NONE`].
    Few([u32; 4]),
    Many(&'w [u32]),
}

#[derive(Default)]
pub(super) struct Words {
    short: Table<1>,
    long: Table<2>,
    arena: Vec<u32>,
}

impl Words {
    #[inline(always)]
    pub(super) fn get(&mut self, key: Key) -> Option<Ids<'_>> {
        let value = match key {
            Key::Short(key) => self.short.get([key])?,
            Key::Long(key) => self.long.get(key)?,
        };
        let ids = unpack(value);
        if ids[0] != NONE {
            return Some(Ids::Few(ids));
        }
        let (start, length) = (ids[1] as usize, ids[2] as usize);
        self.arena.get(start..start + length).map(Ids::Many)
    }

    pub(super) fn insert(&mut self, key: Key, ids: &[u32]) {
        let mut few = [NONE; 4];
        if let Some(place) = few.get_mut(..ids.len()) {
            place.copy_from_slice(ids);
        } else {
            if self.arena.len() + ids.len() > ARENA_IDS {
                *self = Self::default();
            }
            few[1] = self.arena.len() as u32;
            few[2] = ids.len() as u32;
            self.arena.extend_from_slice(ids);
        }
        match key {
            Key::Short(key) => self.short.insert([key], pack(few), SHORT_BUCKETS),
            Key::Long(key) => self.long.insert(key, pack(few), LONG_BUCKETS),
        }
    }
}

fn pack(ids: [u32; 4]) -> u128 {
    ids.iter().rev().fold(0, |packed, &id| packed << 32 | u128::from(id))
}

#[inline(always)]
fn unpack(value: u128) -> [u32; 4] {
    [value as u32, (value >> 32) as u32, (value >> 64) as u32, (value >> 96) as u32]
}

/// Buckets of two places, each a key of `N` words and a value.
#[derive(Default)]
struct Table<const N: usize> {
    /// Per bucket: the keys of both places, then their values, then room up to a power of two. Empty at first.
    slots: Vec<u128>,
    /// The first slot that is at the start of a cache line.
    base: usize,
    buckets: usize,
}

impl<const N: usize> Table<N> {
    const STRIDE: usize = (2 * N + 2).next_power_of_two();

    #[inline(always)]
    fn bucket(&mut self, key: [u128; N]) -> Option<&mut [u128]> {
        let folded = key.iter().fold(0u64, |hash, &part| {
            let (low, high) = (part as u64, (part >> 64) as u64);
            (hash ^ low ^ high.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        let bucket = (folded >> 32) as usize & self.buckets.wrapping_sub(1);
        let start = self.base + bucket * Self::STRIDE;
        self.slots.get_mut(start..start + 2 * N + 2)
    }

    #[inline(always)]
    fn get(&mut self, key: [u128; N]) -> Option<u128> {
        let bucket = self.bucket(key)?;
        // Word by word: comparing slices would call a function.
        let holds = |place: &[u128]| (0..N).all(|part| place[part] == key[part]);
        if holds(bucket) {
            return Some(bucket[2 * N]);
        }
        if !holds(&bucket[N..]) {
            return None;
        }
        // The one used last goes in front.
        let (front, back) = bucket.split_at_mut(N);
        front.swap_with_slice(&mut back[..N]);
        bucket.swap(2 * N, 2 * N + 1);
        Some(bucket[2 * N])
    }

    fn insert(&mut self, key: [u128; N], value: u128, buckets: usize) {
        if self.slots.is_empty() {
            self.slots = vec![0; buckets * Self::STRIDE + 4];
            self.base = self.slots.as_ptr().align_offset(64).min(4);
            self.buckets = buckets;
        }
        let Some(bucket) = self.bucket(key) else { return };
        bucket.copy_within(..N, N);
        bucket[..N].copy_from_slice(&key);
        bucket[2 * N + 1] = bucket[2 * N];
        bucket[2 * N] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids_of(words: &mut Words, key: Key) -> Option<Vec<u32>> {
        words.get(key).map(|ids| match ids {
            Ids::Few(few) => few.into_iter().take_while(|&id| id != NONE).collect(),
            Ids::Many(many) => many.to_vec(),
        })
    }

    #[test]
    fn words_of_every_length_are_told_apart_even_by_nul_bytes() {
        let mut words = Words::default();
        let text = [0; 64];
        for length in 1..=LONGEST {
            let ids: Vec<u32> = (0..length as u32).collect();
            assert!(words.get(key(&text, 3, 3 + length).unwrap()).is_none());
            words.insert(key(&text, 3, 3 + length).unwrap(), &ids);
        }
        for length in 1..=LONGEST {
            let ids: Vec<u32> = (0..length as u32).collect();
            // The same word at the very end of a text, where nothing can be read behind it.
            let end = key(&text, text.len() - length, text.len()).unwrap();
            assert_eq!(ids_of(&mut words, end), Some(ids));
        }
        assert!(key(&text, 0, 0).is_none() && key(&text, 0, LONGEST + 1).is_none());
    }

    #[test]
    fn a_full_table_forgets_and_never_lies() {
        let mut words = Words::default();
        for number in 0..300_000u32 {
            let text = format!("{number:024}");
            let (short, long) = (key(text.as_bytes(), 12, 24), key(text.as_bytes(), 0, 24));
            for key in [short.unwrap(), long.unwrap()] {
                words.insert(key, &[number; 5][..1 + number as usize % 5]);
            }
            let text = format!("{:024}", number / 2);
            let expected = vec![number / 2; 1 + number as usize / 2 % 5];
            for key in [key(text.as_bytes(), 12, 24), key(text.as_bytes(), 0, 24)] {
                if let Some(found) = ids_of(&mut words, key.unwrap()) {
                    assert_eq!(found, expected);
                }
            }
        }
    }
}
