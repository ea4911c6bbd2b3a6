//! The trainer against a recount of everything at every step, on tens of thousands of random texts: runs,
//! overlaps, ties, weights of every size, floors that sink, known merges, narrow and wide symbols.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use byteweld_core::train::{KnownMerge, LearnedMerge, Options, Stop, TieBreak, Trained, train};

const TIES: [TieBreak; 3] =
    [TieBreak::SmallestIds, TieBreak::GreatestBytes, TieBreak::SmallestBytes];

type Words = Vec<(Vec<u8>, u64)>;

fn run(words: &Words, options: &Options) -> Trained {
    let words: Vec<(&[u8], u64)> = words.iter().map(|(word, n)| (word.as_slice(), *n)).collect();
    train(&words.as_slice(), options, &mut |_| ControlFlow::Continue(())).unwrap()
}

// ---- the specification ----

/// Counts all pairs, takes the best, rewrites all text; again and again.
fn recount(words: &Words, options: &Options) -> (Vec<LearnedMerge>, Stop) {
    let id = |byte: &u8| options.base_ids[usize::from(*byte)].unwrap();
    let mut tokens: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut text: Vec<(Vec<u32>, u64)> = Vec::new();
    for (word, count) in words.iter().filter(|(_, count)| *count > 0) {
        text.push((word.iter().map(id).collect(), *count));
        tokens.extend(word.iter().map(|byte| (id(byte), vec![*byte])));
    }
    let mut merges = Vec::new();
    let mut given = 0;
    while given < options.max_new_ids {
        let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (ids, count) in &text {
            for pair in ids.windows(2) {
                *counts.entry((pair[0], pair[1])).or_default() += count;
            }
        }
        let length = |pair: &(u32, u32)| tokens[&pair.0].len() + tokens[&pair.1].len();
        counts.retain(|pair, _| options.max_token_bytes.is_none_or(|most| length(pair) <= most));
        let bytes = |pair: &(u32, u32)| (&tokens[&pair.0], &tokens[&pair.1]);
        let best = match options.tie_break {
            TieBreak::SmallestIds => counts.iter().max_by_key(|(pair, n)| (**n, Reverse(**pair))),
            TieBreak::GreatestBytes => counts.iter().max_by_key(|(pair, n)| (**n, bytes(pair))),
            TieBreak::SmallestBytes => {
                counts.iter().max_by_key(|(pair, n)| (**n, Reverse(bytes(pair))))
            }
        };
        let Some((&(left, right), &count)) = best else { return (merges, Stop::NoPairs) };
        if count < options.min_frequency {
            return (merges, Stop::MinFrequency);
        }
        let made = [tokens[&left].as_slice(), &tokens[&right]].concat();
        let new = match options.reserved.iter().find(|(bytes, _)| *bytes == made) {
            Some(&(_, id)) => id,
            None => {
                given += 1;
                options.first_id + u32::try_from(given).unwrap() - 1
            }
        };
        tokens.insert(new, made);
        let mut removed = 0;
        for (ids, weight) in &mut text {
            let before = ids.len();
            *ids = rewrite(ids, left, right, new);
            removed += (before - ids.len()) as u64 * *weight;
        }
        merges.push(LearnedMerge { left, right, new, count, removed });
    }
    (merges, Stop::Size)
}

fn rewrite(ids: &[u32], left: u32, right: u32, new: u32) -> Vec<u32> {
    let mut rewritten = Vec::with_capacity(ids.len());
    let mut rest = ids;
    while let [first, after @ ..] = rest {
        if *first == left && after.first() == Some(&right) {
            rewritten.push(new);
            rest = &after[1..];
        } else {
            rewritten.push(*first);
            rest = after;
        }
    }
    rewritten
}

// ---- random texts ----

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

/// One word: single letters, runs of them, or a short piece over and over.
fn word(random: &mut Random, letters: &[u8], longest: u64) -> Vec<u8> {
    let length = usize::try_from(random.below(longest) + 1).unwrap();
    let shape = random.below(4);
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let letter = random.pick(letters);
        match shape {
            0 => bytes.push(letter),
            1 => bytes.extend(std::iter::repeat_n(letter, random.below(7) as usize + 1)),
            2 => {
                let piece = [letter, random.pick(letters), random.pick(letters)];
                let used = &piece[..random.below(3) as usize + 1];
                for _ in 0..random.below(6) + 1 {
                    bytes.extend_from_slice(used);
                }
            }
            _ => bytes.extend_from_slice(&[letter, letter]),
        }
    }
    bytes.truncate(length);
    bytes
}

/// Words and how often each occurs. One of the shapes is a single long text, as without a pattern.
fn text(random: &mut Random) -> Words {
    let letters = &b"ab\xffc\0d"[..random.below(6) as usize + 1];
    let (most, longest) = random.pick(&[(1, 120), (3, 40), (8, 12), (20, 6), (40, 3)]);
    let weights = random.below(5);
    (0..random.below(most) + 1)
        .map(|_| {
            let count = match weights {
                0 => 1,
                1 => random.below(4),
                2 => random.below(100),
                // Far apart: the floor starts high and sinks often.
                3 => 1 << random.below(50),
                _ => (1 << 40) + random.below(3),
            };
            (word(random, letters, longest), count)
        })
        .collect()
}

/// Options; ids of bytes in any order, some reserved tokens that may be learned.
fn options(random: &mut Random) -> Options {
    let mut base_ids = [None; 256];
    let (start, is_reversed) = (random.pick(&[0u32, 5, 1000]), random.below(2) == 0);
    for (byte, slot) in (0u32..).zip(&mut base_ids) {
        *slot = Some(start + if is_reversed { 255 - byte } else { byte });
    }
    let mut reserved: Vec<(Vec<u8>, u32)> = Vec::new();
    if random.below(3) == 0 {
        for id in 1500..1500 + random.below(4) as u32 {
            let bytes = word(random, b"ab", 4);
            if bytes.len() > 1 && reserved.iter().all(|(other, _)| *other != bytes) {
                reserved.push((bytes, id));
            }
        }
    }
    Options {
        base_ids,
        first_id: 2000,
        max_new_ids: random.pick(&[1, 2, 3, 7, 20, 200]),
        reserved,
        known: Vec::new(),
        tie_break: random.pick(&TIES),
        min_frequency: random.pick(&[0, 0, 1, 2, 3, 50, 1 << 33]),
        max_token_bytes: random.pick(&[None, None, None, Some(2), Some(3), Some(5), Some(9)]),
        threads: random.pick(&[1, 2, 7]),
    }
}

/// The same training from its first `done` merges on.
fn after(done: &[LearnedMerge], options: &Options) -> Options {
    let is_new = |merge: &&LearnedMerge| merge.new >= options.first_id;
    let given = done.iter().filter(is_new).count();
    Options {
        known: done
            .iter()
            .map(|&LearnedMerge { left, right, new, .. }| KnownMerge { left, right, new })
            .collect(),
        first_id: options.first_id + u32::try_from(given).unwrap(),
        max_new_ids: options.max_new_ids - given,
        ..options.clone()
    }
}

// ---- the laws ----

#[test]
fn twenty_five_thousand_random_texts_train_as_a_recount_does() {
    let mut merges = 0;
    for seed in 0..25_000 {
        let random = &mut Random(seed);
        let (words, options) = (text(random), options(random));
        let (expected, stop) = recount(&words, &options);
        let trained = run(&words, &options);
        assert_eq!((&trained.merges, trained.stop), (&expected, stop), "seed {seed}");

        // From any merge on, the rest comes out the same.
        let done = random.below(expected.len() as u64 + 1) as usize;
        let rest = run(&words, &after(&expected[..done], &options));
        assert_eq!((&rest.merges[..], rest.stop), (&expected[done..], stop), "seed {seed}");
        merges += expected.len();
    }
    assert!(merges > 100_000, "only {merges} merges: the texts are too poor");
}

#[test]
fn symbols_of_16_and_of_32_bits_learn_the_same() {
    for seed in 0..3000 {
        let random = &mut Random(seed);
        let (words, mut options) = (text(random), options(random));
        options.max_new_ids = 40_000;
        let narrow = run(&words, &options);
        options.max_new_ids = 70_000;
        let wide = run(&words, &options);
        assert_eq!(narrow, wide, "seed {seed}");
        assert_ne!(narrow.stop, Stop::Size);
    }
}

#[test]
fn a_vocabulary_beyond_65_536_tokens_goes_on_from_a_smaller_one() {
    let random = &mut Random(11);
    let words: Words = (0..60_000)
        .map(|_| {
            let length = random.below(6) + 6;
            let word = (0..length).map(|_| random.below(200) as u8).collect();
            (word, random.below(9) + 1)
        })
        .collect();
    let mut options = options(random);
    options.reserved = Vec::new();
    options.max_token_bytes = None;
    options.min_frequency = 1;
    for (tie_break, threads) in TIES.into_iter().zip([1, 2, 7]) {
        options.threads = threads;
        options.tie_break = tie_break;
        options.max_new_ids = 70_000;
        let whole = run(&words, &options);
        assert_eq!((whole.merges.len(), whole.stop), (70_000, Stop::Size));
        assert!(whole.merges.iter().map(|merge| merge.new).eq(2000..72_000));
        // With 16 bits; and over the border from known merges.
        let part = run(&words, &Options { max_new_ids: 65_000, ..options.clone() });
        assert_eq!(part.merges, whole.merges[..65_000]);
        let rest = run(&words, &after(&whole.merges[..65_000], &options));
        assert_eq!(rest.merges, whole.merges[65_000..]);
    }
}

#[test]
fn pairs_that_only_a_later_part_of_the_text_holds_are_found_by_any_number_of_threads() {
    // Few words are frequent and most are rare, as in a language: when the floor sinks, thousands of tokens
    // are known, and most of their pairs stand in one part of the text only.
    for (seed, letters) in [(9, 80), (10, 30), (11, 200)] {
        let random = &mut Random(seed);
        let words: Words = (0..18_000)
            .map(|number| {
                let length = random.below(7) + 6;
                let word = (0..length).map(|_| random.below(letters) as u8).collect();
                (word, if number < 1000 { 10_000 } else { 1 })
            })
            .collect();
        let mut options = options(random);
        options.reserved = Vec::new();
        options.max_token_bytes = None;
        options.min_frequency = 1;
        options.max_new_ids = 13_000;
        options.threads = 1;
        let expected = run(&words, &options);
        for threads in [2, 3, 7] {
            options.threads = threads;
            assert_eq!(run(&words, &options), expected, "seed {seed}, {threads} threads");
        }
    }
}
