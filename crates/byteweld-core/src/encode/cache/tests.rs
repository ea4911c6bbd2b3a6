//! The pre-token cache: keys, eviction and growth.

use super::*;
use crate::cpu::{Tier, Work};

/// What [`Batch`] does on the current tier.
struct MakeKeys<'b, const HAS_SEGMENTS: bool>(&'b mut Batch, &'b Cache, Pretokens<'b>);

impl<T: CacheTier, const HAS_SEGMENTS: bool> Work<T> for MakeKeys<'_, HAS_SEGMENTS> {
    type Output = ();

    fn run(self, tier: T) {
        self.0.make_keys::<HAS_SEGMENTS>(tier, self.1, self.2);
    }
}

struct LookUp<'b>(&'b mut Batch, &'b mut Cache, Pretokens<'b>, usize);

impl<T: CacheTier> Work<T> for LookUp<'_> {
    type Output = usize;

    fn run(self, tier: T) -> usize {
        self.0.look_up(tier, self.1, self.2, self.3)
    }
}

fn make_keys<const HAS_SEGMENTS: bool>(batch: &mut Batch, cache: &Cache, pretokens: Pretokens<'_>) {
    cpu::run(MakeKeys::<HAS_SEGMENTS>(batch, cache, pretokens));
}

fn look_up(batch: &mut Batch, cache: &mut Cache, pretokens: Pretokens<'_>, from: usize) -> usize {
    cpu::run(LookUp(batch, cache, pretokens, from))
}

fn prepared() -> Cache {
    let mut cache = Cache::default();
    cache.prepare();
    cache
}

/// The ids of one pre-token, looked up as a batch does it, and as it does it if that fails.
fn ids_at(cache: &mut Cache, text: &[u8], range: Range<usize>, flag: u32) -> Option<Vec<u32>> {
    let mut batch = Batch::default();
    let bounds = [range.start as u32, range.end as u32 | flag];
    let long: &[u16] = if range.len() > MAX_KEY_BYTES { &[0] } else { &[] };
    let pretokens = Pretokens { text, bounds: &bounds, long };
    make_keys::<true>(&mut batch, cache, pretokens);
    let at_home =
        (look_up(&mut batch, cache, pretokens, 0) == 1).then(|| batch.take_ids().to_vec());
    let key = PretokenKey::new(&text[range], flag != 0);
    assert!(at_home.is_none() || cache.contains(key));
    let found = match cache.find(key)? {
        Found::Many(ids) => ids_of(ids).collect(),
        Found::Inline(slot) => {
            batch.set_slot(0, key, slot);
            assert_eq!(batch.find_missing(cache, 0, 1), 0);
            assert_eq!(look_up(&mut batch, cache, pretokens, 0), 1);
            batch.take_ids().to_vec()
        }
    };
    assert!(at_home.is_none_or(|ids| ids == found));
    Some(found)
}

fn insert(cache: &mut Cache, pretoken: &[u8], ids: &[u32]) {
    cache.insert(PretokenKey::new(pretoken, false), ids);
}

#[test]
fn pretokens_of_every_length_are_told_apart_even_by_nul_bytes() {
    let mut cache = prepared();
    let text = [0; 200];
    for length in 1..=100 {
        let ids: Vec<u32> = (0..length as u32).collect();
        assert!(ids_at(&mut cache, &text, 3..3 + length, 0).is_none());
        insert(&mut cache, &text[..length], &ids);
    }
    for length in 1..=100 {
        let ids: Vec<u32> = (0..length as u32).collect();
        // Also at the very end of a text, where nothing can be read after it.
        for start in [0, text.len() - length] {
            let found = ids_at(&mut cache, &text, start..start + length, 0);
            assert_eq!(found.as_ref(), Some(&ids));
        }
    }
}

#[test]
fn a_segment_is_not_a_pretoken_of_the_same_bytes() {
    let mut cache = prepared();
    let text = [7; 32];
    for length in [4, 20] {
        insert(&mut cache, &text[..length], &[1]);
        assert!(ids_at(&mut cache, &text, 0..length, SEGMENT_END).is_none());
        cache.insert(PretokenKey::new(&text[..length], true), &[2]);
        assert_eq!(ids_at(&mut cache, &text, 0..length, 0), Some(vec![1]));
        assert_eq!(ids_at(&mut cache, &text, 0..length, SEGMENT_END), Some(vec![2]));
    }
}

#[test]
fn ids_that_need_all_bits_are_kept() {
    let mut cache = prepared();
    for (pretoken, count) in
        [("short", 4), ("short!", 5), ("longer than a key", 3), ("and even longer", 9)]
    {
        let ids: Vec<u32> = (0..count).map(|at| u32::MAX - at).collect();
        insert(&mut cache, pretoken.as_bytes(), &ids);
        assert_eq!(ids_at(&mut cache, pretoken.as_bytes(), 0..pretoken.len(), 0), Some(ids));
    }
}

#[test]
fn a_full_cache_forgets_and_never_lies() {
    let mut cache = prepared();
    for number in 0..900_000u32 {
        let text = format!("{number:024}");
        for from in [0, 12] {
            let ids = [number; 5];
            insert(&mut cache, &text.as_bytes()[from..], &ids[..1 + number as usize % 5]);
        }
        if number % 7 != 0 {
            continue;
        }
        let text = format!("{:024}", number / 2);
        let expected = vec![number / 2; 1 + number as usize / 2 % 5];
        for from in [0, 12] {
            let found = ids_at(&mut cache, text.as_bytes(), from..24, 0);
            assert!(found.is_none_or(|found| found == expected));
        }
    }
}

#[test]
fn growing_and_copying_keep_what_is_cached() {
    let mut cache = prepared();
    let texts: Vec<String> = (0..1000).map(|number| format!("{number}:{number:020}")).collect();
    for (number, text) in (0..).zip(&texts) {
        insert(&mut cache, text.as_bytes(), &[number]);
        insert(&mut cache, &text.as_bytes()[..5], &[number, 1, 2, 3, 4, 5]);
    }
    let small = cache.table.capacity();
    cache.prepare();
    assert!(cache.table.capacity() > small);
    let mut copy = cache.copy();
    for cache in [&mut cache, &mut copy] {
        for (number, text) in (0..).zip(&texts) {
            assert_eq!(ids_at(cache, text.as_bytes(), 0..text.len(), 0), Some(vec![number]));
        }
    }
}

#[test]
fn a_long_pretoken_with_the_key_of_another_is_not_taken_for_it() {
    let mut cache = prepared();
    let (one, other) = (&b"this one is long enough"[..], &b"that one is long enough"[..]);
    let key = PretokenKey::new(one, false);
    // As if both had the same hash.
    cache.insert(PretokenKey { key: key.key, pretoken: other }, &[7]);
    assert!(cache.find(key).is_none() && !cache.contains(key));
    assert_eq!(ids_at(&mut cache, one, 0..one.len(), 0), None);
}

#[test]
fn a_long_pretoken_is_not_taken_for_one_that_starts_with_it() {
    // Upper halves with which the hash of every chunk is 0.
    let zero = crate::hash::MULTIPLIER.to_le_bytes();
    let start = [b"aaaaaaaa", &zero[..]].concat();
    let whole = [&start[..], b"bbbbbbbb", &zero[..]].concat();
    for ids in [&[1][..], &[1, 2, 3, 4, 5]] {
        for (one, other) in [(&start, &whole), (&whole, &start)] {
            let mut cache = prepared();
            insert(&mut cache, one, ids);
            assert_eq!(ids_at(&mut cache, one, 0..one.len(), 0), Some(ids.to_vec()));
            assert_eq!(ids_at(&mut cache, other, 0..other.len(), 0), None);
        }
    }
}

#[test]
fn a_long_key_is_checked_again_after_entries_have_moved() {
    let mut cache = prepared();
    let (one, other) = (&b"this one is long enough"[..], &b"that one is long enough"[..]);
    let key = PretokenKey::new(one, false);
    // As if both had the same hash.
    let forged = PretokenKey { key: key.key, pretoken: other };
    cache.insert(key, &[1]);
    cache.insert(forged, &[2]);
    let (mut batch, bounds) = (Batch::default(), [0, one.len() as u32]);
    let pretokens = Pretokens { text: one, bounds: &bounds, long: &[0] };
    make_keys::<true>(&mut batch, &cache, pretokens);
    assert_eq!(batch.find_missing(&cache, 0, 1), 0);
    assert!(cache.find(forged).is_some(), "which moves it to the home slot");
    batch.check_long_keys(&cache, pretokens, 0);
    assert_eq!(look_up(&mut batch, &mut cache, pretokens, 0), 0);
    assert_eq!(ids_at(&mut cache, one, 0..one.len(), 0), Some(vec![1]));
}

#[test]
fn pretokens_with_the_same_home_are_found_in_turns() {
    let mut cache = prepared();
    let home_of = |pretoken: &[u8]| {
        key::slot_of(PretokenKey::new(pretoken, false).key, cache.table.entries().1)
    };
    let words: Vec<String> = (0..).map(|at| format!("w{at}")).take(1 << 16).collect();
    let home = home_of(words[0].as_bytes());
    let words: Vec<&String> =
        words.iter().filter(|word| home_of(word.as_bytes()) == home).take(5).collect();
    assert_eq!(words.len(), 5);
    for (at, word) in words.iter().enumerate() {
        // One id to five, of which the last are in the arena.
        insert(&mut cache, word.as_bytes(), &vec![at as u32; at + 1]);
    }
    let order = [0, 4, 1, 4, 3, 0, 0, 2, 1, 4];
    let mut bounds = vec![0];
    let mut text = Vec::new();
    for at in order {
        text.extend_from_slice(words[at].as_bytes());
        bounds.push(text.len() as u32);
    }
    let mut batch = Batch::default();
    let pretokens = Pretokens { text: &text, bounds: &bounds, long: &[] };
    make_keys::<false>(&mut batch, &cache, pretokens);
    assert_eq!(look_up(&mut batch, &mut cache, pretokens, 0), order.len());
    let expected: Vec<u32> =
        order.iter().flat_map(|&at| std::iter::repeat_n(at as u32, at + 1)).collect();
    assert_eq!(batch.take_ids(), expected);
}

#[test]
fn every_tier_makes_the_same_keys() {
    let cache = prepared();
    let text: Vec<u8> = (0..3000u32).map(|at| ((at * at) >> 3) as u8).collect();
    for round in 0..200u32 {
        let mut bounds = vec![round];
        let mut seed = round;
        while bounds.len() <= 1 + round as usize % MAX_BATCH {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let last = bounds[bounds.len() - 1] & !SEGMENT_END;
            let end = last + (seed >> 20) % 16;
            if end as usize > text.len() {
                break;
            }
            bounds.push(end | if seed & 1 << 10 != 0 { SEGMENT_END } else { 0 });
        }
        // The text ends with the last pre-token, or some bytes after it.
        let end = (bounds[bounds.len() - 1] & !SEGMENT_END) as usize + round as usize % 19;
        let text = &text[..end.min(text.len())];
        let plain: Vec<u32> = bounds.iter().map(|bound| bound & !SEGMENT_END).collect();
        let count = bounds.len() - 1;
        let keys = |bounds: &[u32]| -> Vec<(Key, u32)> {
            let mut batch = Batch::default();
            let pretokens = Pretokens { text, bounds, long: &[] };
            if bounds == plain {
                make_keys::<false>(&mut batch, &cache, pretokens);
            } else {
                make_keys::<true>(&mut batch, &cache, pretokens);
            }
            batch.keys.into_iter().zip(batch.slots).take(count).collect()
        };
        for bounds in [&bounds, &plain] {
            let expected: Vec<(Key, u32)> = (0..count)
                .map(|at| {
                    let is_segment = bounds[at + 1] & SEGMENT_END != 0;
                    let key = key::key_of(&text[range_between(bounds, at)], is_segment);
                    (key, key::slot_of(key, cache.table.entries().1))
                })
                .collect();
            for tier in Tier::available() {
                assert_eq!(tier.force(|| keys(bounds)), expected, "{tier:?}");
            }
        }
    }
}

#[test]
fn every_tier_finds_the_same_ids() {
    // Few home slots, so that many entries are next to theirs or further away.
    let mut cache = Cache { table: Table::new(6).unwrap(), ..Cache::default() };
    let word = |at: u32| match at % 7 {
        0 => format!("{at}, which is longer than a key"),
        _ => format!("w{at}"),
    };
    // One id to six; every ninth is missing.
    let ids = |at: u32| (0..1 + at / 2 % 6).map(|n| at << 8 | n).collect::<Vec<_>>();
    let is_missing = |at: u32| at % 9 == 8;
    for at in (0..40).filter(|&at| !is_missing(at)) {
        insert(&mut cache, word(at).as_bytes(), &ids(at));
    }
    for round in 0..400u32 {
        let (mut seed, mut text, mut bounds, mut order) = (round, String::new(), vec![0], vec![]);
        for _ in 0..round % MAX_BATCH as u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (seed >> 20) % if round % 2 == 0 { 40 } else { 6 };
            order.push(at);
            text.push_str(&word(at));
            bounds.push(text.len() as u32);
        }
        let long: Vec<u16> =
            (0..).zip(&order).filter(|(_, at)| **at % 7 == 0).map(|(index, _)| index).collect();
        let pretokens = Pretokens { text: text.as_bytes(), bounds: &bounds, long: &long };
        let all = |cache: &mut Cache| {
            let (mut batch, mut found, mut at) = (Batch::default(), Vec::new(), 0);
            make_keys::<true>(&mut batch, cache, pretokens);
            loop {
                at = look_up(&mut batch, cache, pretokens, at);
                found.extend_from_slice(batch.take_ids());
                if at == order.len() {
                    return found;
                }
                // As one that is not found by its key alone; a marker tells where that was.
                let pretoken = &text.as_bytes()[range_between(&bounds, at)];
                match cache.find(PretokenKey::new(pretoken, false)) {
                    None => found.push(u32::MAX),
                    Some(Found::Many(ids)) => found.extend(ids_of(ids)),
                    Some(Found::Inline(slot)) => {
                        let entry = &cache.table.entries().0[slot as usize];
                        found.extend_from_slice(&entry.ids[..entry.count()]);
                    }
                }
                at += 1;
                batch.check_long_keys(cache, pretokens, at);
            }
        };
        let mut batch = Batch::default();
        make_keys::<true>(&mut batch, &cache, pretokens);
        let is_at_home = |at: usize| {
            let entry = &cache.table.entries().0[batch.slots[at] as usize];
            entry.inline_count(batch.keys[at]).is_some()
        };
        for from in (0..order.len()).step_by(23) {
            let seen = from..order.len().min(from + 64);
            let expected: Vec<usize> = seen.filter(|&at| !is_at_home(at)).collect();
            for tier in Tier::available() {
                let bits = tier.force(|| batch.find_missing(&cache, from, order.len()));
                let found = (0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| from + bit);
                assert_eq!(found.collect::<Vec<_>>(), expected, "{tier:?}");
            }
        }
        let expected: Vec<u32> = order
            .iter()
            .flat_map(|&at| if is_missing(at) { vec![u32::MAX] } else { ids(at) })
            .collect();
        for tier in Tier::available() {
            let mut cache = cache.copy();
            assert_eq!(tier.force(|| all(&mut cache)), expected, "{tier:?}");
        }
        // Entries have moved in the next round.
        all(&mut cache);
    }
}

#[test]
fn an_entry_that_makes_way_is_not_taken_for_that_of_another_pretoken() {
    // Long pre-tokens of the same length that end like this have the same key.
    let alike = |prefix: u8, length: usize| {
        let mut pretoken = vec![prefix; length - 8];
        pretoken.extend_from_slice(&crate::hash::MULTIPLIER.to_le_bytes());
        pretoken
    };
    let mut cache = prepared();
    let home_of =
        |pretoken: &[u8]| key::slot_of(key::key_of(pretoken, false), cache.table.entries().1);
    let length = (24..).find(|&length| home_of(&alike(b'a', length)) % 2 == 0).unwrap();
    let (one, other) = (alike(b'a', length), alike(b'b', length));
    let home = home_of(&one);
    assert_eq!(key::key_of(&one, false), key::key_of(&other, false));
    let words: Vec<String> = (0..1 << 18)
        .map(|at| format!("w{at}"))
        .filter(|word| home_of(word.as_bytes()) == home + 1)
        .take(16)
        .collect();
    assert_eq!(words.len(), 16);
    // The second word is next to its home slot, which is the home slot of the two. All slots in reach
    // are full, so the next entry replaces the first word, in the home slot of the second.
    for (at, word) in (0..).zip(&words) {
        insert(&mut cache, word.as_bytes(), &[at]);
    }
    insert(&mut cache, &other, &[77]);
    let text = [words[1].as_bytes(), &one].concat();
    let bounds = [0, words[1].len() as u32, text.len() as u32];
    let pretokens = Pretokens { text: &text, bounds: &bounds, long: &[1] };
    let mut batch = Batch::default();
    make_keys::<true>(&mut batch, &cache, pretokens);
    assert_eq!(look_up(&mut batch, &mut cache, pretokens, 0), 1);
    assert_eq!(batch.take_ids(), [1]);
}

#[test]
fn two_entries_of_one_pretoken_are_not_swapped_forever() {
    let mut cache = prepared();
    let text = b"twice";
    // Both with ids in the arena, of which the batch has no space for.
    let ids: Vec<u32> = (0..MAX_IDS as u32 + 1).collect();
    insert(&mut cache, text, &ids);
    insert(&mut cache, text, &ids);
    let (mut batch, bounds) = (Batch::default(), [0, text.len() as u32]);
    let pretokens = Pretokens { text, bounds: &bounds, long: &[] };
    make_keys::<false>(&mut batch, &cache, pretokens);
    assert_eq!(look_up(&mut batch, &mut cache, pretokens, 0), 0);
}
