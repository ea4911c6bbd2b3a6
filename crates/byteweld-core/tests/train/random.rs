//! The trainer against a recount of everything at every step, on random texts: runs, overlaps,
//! ties, counts of every size, floors that sink, known merges, narrow and wide symbols.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use byteweld_core::train::{LearnedMerge, Options, StepLimits, Stop, Trained, train_step_by_step};

use crate::recount::{recount, recount_step_by_step};
use crate::testing::{Random, examples};
use crate::{TIES, borrow, resume};

type Pretokens = Vec<(Vec<u8>, u64)>;

fn run(pretokens: &Pretokens, options: &Options) -> Trained {
    crate::run(&borrow(pretokens), options)
}

/// A pre-token of single letters, runs of letters, or a repeated short string.
fn pretoken(random: &mut Random, letters: &[u8], longest: usize) -> Vec<u8> {
    let length = random.below(longest) + 1;
    let shape = random.below(4);
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let letter = random.pick(letters);
        match shape {
            0 => bytes.push(letter),
            1 => bytes.extend(std::iter::repeat_n(letter, random.below(7) + 1)),
            2 => {
                let letters = [letter, random.pick(letters), random.pick(letters)];
                let repeated = &letters[..random.below(3) + 1];
                for _ in 0..random.below(6) + 1 {
                    bytes.extend_from_slice(repeated);
                }
            }
            _ => bytes.extend_from_slice(&[letter, letter]),
        }
    }
    bytes.truncate(length);
    bytes
}

/// Pre-tokens and their counts. One of the shapes is a single long text, as without a pattern.
fn text(random: &mut Random) -> Pretokens {
    let letters = &b"ab\xffc\0d"[..random.below(6) + 1];
    let (most, longest) = random.pick(&[(1, 120), (3, 40), (8, 12), (20, 6), (40, 3)]);
    let weights = random.below(5);
    (0..random.below(most) + 1)
        .map(|_| {
            let count = match weights {
                0 => 1,
                1 => random.below(4) as u64,
                2 => random.below(100) as u64,
                // Far apart, so that the floor starts high and sinks often.
                3 => 1 << random.below(50),
                _ => (1 << 40) + random.below(3) as u64,
            };
            (pretoken(random, letters, longest), count)
        })
        .collect()
}

/// Options with byte ids in any order and some reserved tokens that may be learned.
fn options(random: &mut Random) -> Options {
    let mut base_ids = [None; 256];
    let (start, is_reversed) = (random.pick(&[0u32, 5, 1000]), random.below(2) == 0);
    for (byte, slot) in (0u32..).zip(&mut base_ids) {
        *slot = Some(start + if is_reversed { 255 - byte } else { byte });
    }
    let mut reserved: Vec<(Vec<u8>, u32)> = Vec::new();
    if random.below(3) == 0 {
        for id in 1500..1500 + random.below(4) as u32 {
            let bytes = pretoken(random, b"ab", 4);
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
        forbidden: (0..random.below(3)).map(|_| pretoken(random, b"ab", 4)).collect(),
        known: Vec::new(),
        tie_break: random.pick(&TIES),
        min_frequency: random.pick(&[0, 0, 1, 2, 3, 50, 1 << 33]),
        max_token_bytes: random.pick(&[None, None, None, Some(2), Some(3), Some(5), Some(9)]),
        threads: random.pick(&[1, 2, 7]),
    }
}

// ---- the laws ----

#[test]
fn random_texts_train_as_a_recount_does() {
    let mut merges = 0;
    let texts = examples(2_500);
    for seed in 0..u64::from(texts) {
        let random = &mut Random(seed);
        let (pretokens, options) = (text(random), options(random));
        let Trained { merges: expected, stop, .. } = recount(&borrow(&pretokens), &options);
        let trained = run(&pretokens, &options);
        assert_eq!((&trained.merges, trained.stop), (&expected, stop), "seed {seed}");

        // Resuming after any merge learns the rest.
        let done = random.below(expected.len() + 1);
        let rest = run(&pretokens, &resume(&options, &expected[..done]));
        assert_eq!((&rest.merges[..], rest.stop), (&expected[done..], stop), "seed {seed}");
        merges += expected.len();
    }
    assert!(merges > 4 * texts as usize, "only {merges} merges: the texts have too few pairs");
}

#[test]
fn every_step_is_recorded_as_a_recount_finds_it() {
    let mut seen = 0;
    let texts = examples(1_000);
    for seed in 0..u64::from(texts) {
        let random = &mut Random(seed);
        let (pretokens, options) = (text(random), options(random));
        let distinct: BTreeMap<Vec<u8>, u64> = pretokens.into_iter().collect();
        let pretokens: Pretokens = distinct.into_iter().collect();
        // Two ways to make a reserved token would share its id, and so would their pairs. And ids
        // must be in order of creation, by which examples are chosen.
        let base_ids = std::array::from_fn(|byte| Some(byte as u32));
        let options = Options { reserved: Vec::new(), base_ids, ..options };
        let limits = StepLimits {
            pairs: random.pick(&[1, 2, 5, 13]),
            pretokens: random.pick(&[0, 1, 3, 12]),
            parts: random.pick(&[1, 4, 40]),
        };
        let expected = recount_step_by_step(&borrow(&pretokens), &options, limits);
        let mut go_on = |_: &[LearnedMerge]| ControlFlow::Continue(());
        let found =
            train_step_by_step(&borrow(&pretokens).as_slice(), &options, limits, &mut go_on)
                .unwrap();
        assert_eq!(found, expected, "seed {seed}");
        assert_eq!(found.0, run(&pretokens, &options), "seed {seed}");
        seen += found.1.steps.len();
    }
    assert!(seen > 4 * texts as usize, "only {seen} steps: the texts have too few pairs");
}

#[test]
fn symbols_of_16_and_of_32_bits_learn_the_same() {
    for seed in 0..u64::from(examples(300)) {
        let random = &mut Random(seed);
        let (pretokens, mut options) = (text(random), options(random));
        options.max_new_ids = 40_000;
        let narrow = run(&pretokens, &options);
        options.max_new_ids = 70_000;
        let wide = run(&pretokens, &options);
        assert_eq!(narrow, wide, "seed {seed}");
        assert_ne!(narrow.stop, Stop::Size);
    }
}

#[test]
fn a_vocabulary_beyond_65_536_tokens_resumes_from_a_smaller_one() {
    let random = &mut Random(11);
    let pretokens: Pretokens = (0..60_000)
        .map(|_| {
            let length = random.below(6) + 6;
            let pretoken = (0..length).map(|_| random.below(200) as u8).collect();
            (pretoken, random.below(9) as u64 + 1)
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
        let whole = run(&pretokens, &options);
        assert_eq!((whole.merges.len(), whole.stop), (70_000, Stop::Size));
        assert!(whole.merges.iter().map(|merge| merge.new).eq(2000..72_000));
        // With 16-bit symbols; and beyond 16 bits from known merges.
        let part = run(&pretokens, &Options { max_new_ids: 65_000, ..options.clone() });
        assert_eq!(part.merges, whole.merges[..65_000]);
        let rest = run(&pretokens, &resume(&options, &whole.merges[..65_000]));
        assert_eq!(rest.merges, whole.merges[65_000..]);
    }
}

#[test]
fn pairs_only_in_a_later_part_of_the_text_are_found_by_any_number_of_threads() {
    // As in natural language, few pre-tokens are frequent and most are rare: when the floor sinks,
    // there are thousands of tokens, and most of their pairs occur in only one part of the text.
    for (seed, letters) in [(9, 80), (10, 30), (11, 200)] {
        let random = &mut Random(seed);
        let pretokens: Pretokens = (0..18_000)
            .map(|index| {
                let length = random.below(7) + 6;
                let pretoken = (0..length).map(|_| random.below(letters) as u8).collect();
                (pretoken, if index < 1000 { 10_000 } else { 1 })
            })
            .collect();
        let mut options = options(random);
        options.reserved = Vec::new();
        options.max_token_bytes = None;
        options.min_frequency = 1;
        options.max_new_ids = 13_000;
        options.threads = 1;
        let expected = run(&pretokens, &options);
        for threads in [2, 3, 7] {
            options.threads = threads;
            assert_eq!(run(&pretokens, &options), expected, "seed {seed}, {threads} threads");
        }
    }
}
