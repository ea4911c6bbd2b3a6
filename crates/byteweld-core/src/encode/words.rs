//! A memory of words: pre-tokens that were merged before, with their ids.
//!
//! Text repeats its words, so most are found here in one cache line instead of being merged again. The table
//! is small at first, grows between texts while new words keep coming, up to a fixed size, and then forgets: a
//! word has one bucket of two places, the one used last is in front, and a new word drives out the one behind.
//! So memory is bounded, and texts made to collide only cost the merging that they would cost anyway.
//!
//! Each thread has a table of its own while it works ([`super::Encoder`] keeps a few for the next calls).

use std::ops::Range;

use super::arena::Arena;
use crate::huge::advise;
use crate::prefetch::prefetch;

/// How many ids a place holds; words of more are rare.
pub(super) const FEW: usize = 4;

/// The longest word that is remembered.
pub(super) const LONGEST: usize = 31;
/// The longest that fits one 16-byte key together with the mark behind it.
const SHORT: usize = 14;

/// Bits of a bucket's number, for short words (64 bytes each), as the table grows: 128 KiB, 2 MiB, 8 MiB. Few steps,
/// for each costs as much as merging some thousand words. Long words (128 bytes each) are fewer, and their table is
/// a quarter of that.
const BITS: [u32; 3] = [11, 15, 17];
const FEWER_BITS: u32 = 3;

/// What there is if there is no memory for more.
const LEAST_BITS: u32 = 1;

/// A text has about one new word for so many bytes.
const BYTES_PER_NEW_WORD: usize = 32;

/// What is behind the bytes of a word in its key, so that words are told apart even by their last zeros. A part
/// of a pre-token has its own mark: it may be merged otherwise than a pre-token of the same bytes.
const WHOLE: u8 = 1;
const SEGMENT: u8 = 2;

/// The top byte of a short key that is remembered is the number of ids in its place; 0 if they are in the arena.
const COUNT_SHIFT: u32 = 56;

/// The first and the last bytes of a word, and the mark behind them; the first byte is the lowest.
pub(super) type ShortKey = [u64; 2];
/// The bytes of a longer word and, on top, its length.
type LongKey = [u64; 4];

/// These stand for words that have no short key, and no key is like them.
pub(super) const LONG: ShortKey = [0, 0xFF << 48];
pub(super) const LONG_SEGMENT: ShortKey = [0, 0xFE << 48];

/// A word's bytes, and what tells its length.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Key {
    Short(ShortKey),
    Long(LongKey),
}

impl Key {
    /// Whether the word is a part of a pre-token.
    pub(super) fn is_segment(self) -> bool {
        match self {
            Self::Short(key) => is_segment(key),
            Self::Long([.., last]) => last >> 63 == 1,
        }
    }
}

/// By length: the bytes of a 16-byte load that belong to the word, and the mark behind them.
#[derive(Clone, Copy)]
struct Shape {
    mask: [u64; 2],
    mark: [u64; 2],
}

const SHAPES: [Shape; SHORT + 1] = {
    let mut shapes = [Shape { mask: [0; 2], mark: [0; 2] }; SHORT + 1];
    let mut length = 0;
    while length <= SHORT {
        let mark = (WHOLE as u128) << (8 * length);
        let mask = (1u128 << (8 * length)) - 1;
        shapes[length] = Shape { mask: halves(mask), mark: halves(mark) };
        length += 1;
    }
    shapes
};

const fn halves(whole: u128) -> [u64; 2] {
    [whole as u64, (whole >> 64) as u64]
}

/// The key of a word of 1 to 14 bytes, given its first 16 bytes and what follows.
#[inline(always)]
pub(super) fn key_of(bytes: [u8; 16], length: usize) -> Option<ShortKey> {
    let Shape { mask, mark } = SHAPES.get(length)?;
    let [low, high] = halves(u128::from_le_bytes(bytes));
    Some([low & mask[0] | mark[0], high & mask[1] | mark[1]])
}

/// The key of the word at a place of a text, if it is of 1 to 14 bytes.
#[inline(always)]
pub(super) fn short_key(text: &[u8], start: usize, end: usize) -> Option<ShortKey> {
    let length = end - start;
    if length == 0 || length > SHORT {
        return None;
    }
    match text.get(start..).and_then(|rest| rest.first_chunk()) {
        // What lies behind the word is read with it and masked away.
        Some(&bytes) => key_of(bytes, length),
        None => key_of(load(text, start, length), length),
    }
}

/// The key of the same bytes as a part of a pre-token.
pub(super) fn as_segment(key: ShortKey) -> ShortKey {
    let change = |half: u64| half ^ u64::from(WHOLE ^ SEGMENT) << (half.ilog2() / 8 * 8);
    if key[1] != 0 { [key[0], change(key[1])] } else { [change(key[0]), 0] }
}

pub(super) fn is_segment(key: ShortKey) -> bool {
    let last = if key[1] != 0 { key[1] } else { key[0] };
    let mark = last.checked_ilog2().map_or(0, |bit| last >> (bit / 8 * 8));
    key == LONG_SEGMENT || mark == u64::from(SEGMENT)
}

/// The key of the word at a range, given its short key or what stands for it; `None` if it is too long to be
/// remembered.
pub(super) fn key(text: &[u8], range: &Range<usize>, short: ShortKey) -> Option<Key> {
    if short != LONG && short != LONG_SEGMENT {
        return Some(Key::Short(short));
    }
    let length = range.len();
    if length > LONGEST {
        return None;
    }
    let [a, b] = halves(u128::from_le_bytes(load(text, range.start, length.min(16))));
    let rest = load(text, range.start + 16, length.saturating_sub(16)); // the top byte is free
    let [c, d] = halves(u128::from_le_bytes(rest));
    let tag = length as u64 | u64::from(short == LONG_SEGMENT) << 7;
    Some(Key::Long([a, b, c, d | tag << COUNT_SHIFT]))
}

/// Whether what is stored is a word of this key: the count is not of the key.
fn is_it([low, high]: ShortKey, key: ShortKey) -> bool {
    low == key[0] && (high ^ key[1]) << 8 == 0
}

/// Up to 16 bytes from `start` on, the rest zero.
fn load(text: &[u8], start: usize, length: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    if let (Some(room), Some(word)) = (bytes.get_mut(..length), text.get(start..start + length)) {
        room.copy_from_slice(word);
    }
    bytes
}

#[derive(Default)]
pub(super) struct Words {
    short: Table<2>,
    long: Table<4>,
    arena: Arena,
    /// Words that were ever inserted.
    inserted: usize,
}

impl Words {
    /// Makes room for the words of a text, as far as there may be some. Must be called before the rest.
    #[inline]
    pub(super) fn prepare(&mut self, bytes: usize) {
        let words = (bytes / BYTES_PER_NEW_WORD).max(self.inserted).max(1);
        if words > self.short.buckets.len() {
            self.grow(words);
        }
    }

    #[cold]
    fn grow(&mut self, words: usize) {
        let [.., most] = BITS;
        let bits = BITS.into_iter().find(|&bits| words <= 1 << bits).unwrap_or(most);
        if self.short.buckets.len() == 1 << bits {
            return;
        }
        // Of short words, the count is not of the key.
        self.short.grow(bits, |[low, high]| [low, high & ((1 << COUNT_SHIFT) - 1)]);
        self.long.grow(bits - FEWER_BITS, |key| key);
    }

    /// Where short words are looked for.
    #[inline(always)]
    pub(super) fn places(&self) -> Places<'_> {
        Places { buckets: &self.short.buckets, shift: self.short.shift }
    }

    /// Asks for the memory where a long word may be.
    pub(super) fn ask(&self, key: Key) {
        if let Key::Long(key) = key {
            let at = place(key, self.long.shift) as usize;
            prefetch(&self.long.buckets, at);
        }
    }

    /// Whether a word is remembered.
    pub(super) fn has(&self, key: Key) -> bool {
        match key {
            Key::Short(key) => {
                let Bucket { keys, .. } =
                    &self.short.buckets[place(key, self.short.shift) as usize];
                keys.iter().any(|stored| is_it(*stored, key))
            }
            Key::Long(key) => {
                let Bucket { keys, .. } = &self.long.buckets[place(key, self.long.shift) as usize];
                keys.contains(&key)
            }
        }
    }

    /// Finds a word, brings it to the front of its place, and puts its ids into `ids`.
    pub(super) fn recall(&mut self, key: Key, ids: &mut Vec<u32>) -> bool {
        let (few, count) = match key {
            Key::Short(key) => {
                let Some(bucket) = self.short.find(key, |stored| is_it(stored, key)) else {
                    return false;
                };
                (bucket.ids[0], (bucket.keys[0][1] >> COUNT_SHIFT) as usize)
            }
            Key::Long(key) => {
                let Some(bucket) = self.long.find(key, |stored| stored == key) else {
                    return false;
                };
                // The last place tells how many there are.
                (bucket.ids[0], bucket.ids[0][FEW - 1] as usize)
            }
        };
        ids.clear();
        if count != 0 {
            ids.extend(few.get(..count).unwrap_or_default());
            return true;
        }
        let [length, low, high, _] = few;
        let place = u64::from(low) | u64::from(high) << 32;
        let many = self.arena.get(place, length as usize);
        ids.extend(many.unwrap_or_default());
        many.is_some()
    }

    /// Remembers a word.
    pub(super) fn insert(&mut self, key: Key, ids: &[u32]) {
        self.inserted = self.inserted.saturating_add(1);
        let most = if matches!(key, Key::Short(_)) { FEW } else { FEW - 1 };
        let (mut few, mut count) = ([0; FEW], 0);
        if (1..=most).contains(&ids.len()) {
            count = ids.len();
            few[..count].copy_from_slice(ids);
        } else {
            let place = self.arena.push(ids);
            few = [ids.len() as u32, place as u32, (place >> 32) as u32, 0];
        }
        match key {
            Key::Short(key) => {
                let stored = [key[0], key[1] | (count as u64) << COUNT_SHIFT];
                self.short.insert(key, stored, few);
            }
            Key::Long(key) => {
                few[FEW - 1] = count as u32;
                self.long.insert(key, key, few);
            }
        }
    }
}

/// Where short words are looked for.
#[derive(Clone, Copy)]
pub(super) struct Places<'w> {
    pub(super) buckets: &'w [Bucket<2>],
    shift: u32,
}

impl Places<'_> {
    /// The place of a short key.
    #[inline(always)]
    pub(super) fn place(self, key: ShortKey) -> u32 {
        place(key, self.shift)
    }

    /// The ids of the word that is in front at a place, and how many of them there are, if it has this key and
    /// they are few.
    #[inline(always)]
    pub(super) fn front(&self, place: u32, key: ShortKey) -> Option<(&[u32; FEW], usize)> {
        let Bucket { keys: [stored, _], ids: [few, _] } = self.buckets.get(place as usize)?;
        // If the keys are the same, only the count is left, and it is not 0.
        let count = (stored[1] ^ key[1]).rotate_left(u64::BITS - COUNT_SHIFT);
        (stored[0] == key[0] && count.wrapping_sub(1) < FEW as u64).then_some((few, count as usize))
    }
}

/// The place of a key: of its hash, what is left of a shift.
#[inline(always)]
fn place<const N: usize>(key: [u64; N], shift: u32) -> u32 {
    let mut hash = 0u64;
    for pair in key.as_chunks::<2>().0 {
        hash = (hash ^ pair[0] ^ pair[1].rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    (hash >> (shift % u64::BITS)) as u32
}

/// Two words, the one used last in front. A short one takes half a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bucket<const N: usize> {
    keys: [[u64; N]; 2],
    ids: [[u32; FEW]; 2],
}

/// Buckets by the hash of a key.
struct Table<const N: usize> {
    buckets: Vec<Bucket<N>>,
    /// How far a hash is shifted down to a place.
    shift: u32,
}

impl<const N: usize> Default for Table<N> {
    fn default() -> Self {
        Self { buckets: Vec::new(), shift: 0 }
    }
}

impl<const N: usize> Table<N> {
    /// Gets more buckets; what is remembered stays. `key_of` gives the key of what is stored.
    fn grow(&mut self, bits: u32, key_of: impl Fn([u64; N]) -> [u64; N]) {
        let mut buckets = Vec::new();
        if buckets.try_reserve_exact(1 << bits).is_err() {
            // It works with less, too.
            return if self.buckets.is_empty() {
                self.grow(LEAST_BITS, key_of)
            };
        }
        advise(buckets.spare_capacity_mut());
        buckets.resize(1 << bits, Bucket { keys: [[0; N]; 2], ids: [[0; FEW]; 2] });
        let larger = Self { buckets, shift: u64::BITS - bits };
        let smaller = std::mem::replace(self, larger);
        for Bucket { keys, ids } in smaller.buckets {
            for way in [1, 0].into_iter().filter(|way| keys[*way] != [0; N]) {
                self.insert(key_of(keys[way]), keys[way], ids[way]);
            }
        }
    }

    fn bucket(&mut self, key: [u64; N]) -> &mut Bucket<N> {
        &mut self.buckets[place(key, self.shift) as usize]
    }

    /// The bucket of a key, if a word is there that `is_it`, which is then in front.
    fn find(&mut self, key: [u64; N], is_it: impl Fn([u64; N]) -> bool) -> Option<&Bucket<N>> {
        let bucket = self.bucket(key);
        if !is_it(bucket.keys[0]) {
            if !is_it(bucket.keys[1]) {
                return None;
            }
            bucket.keys.swap(0, 1);
            bucket.ids.swap(0, 1);
        }
        Some(bucket)
    }

    fn insert(&mut self, key: [u64; N], stored: [u64; N], ids: [u32; FEW]) {
        let bucket = self.bucket(key);
        bucket.keys = [stored, bucket.keys[0]];
        bucket.ids = [ids, bucket.ids[0]];
    }
}

#[cfg(test)]
mod tests;
