//! The trainer: laws, known answers, large inputs, progress and errors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail as tests do")]

mod random;
mod recount;
#[path = "../../src/testing.rs"]
mod testing;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use byteweld_core::error::{Error, Result};
use byteweld_core::train::{
    KnownMerge, LearnedMerge, Options, PretokenCounts, Stop, TieBreak, Trained,
};
use proptest::prelude::*;
use recount::recount;
use testing::{Random, cases};

const TIES: [TieBreak; 3] =
    [TieBreak::SmallestIds, TieBreak::GreatestBytes, TieBreak::SmallestBytes];

/// Options where every byte is its own id, learned ids start at 256, and only the size is limited.
fn options(max_new_ids: usize, tie_break: TieBreak) -> Options {
    let mut base_ids = [None; 256];
    for (id, slot) in (0u32..).zip(&mut base_ids) {
        *slot = Some(id);
    }
    Options {
        base_ids,
        first_id: 256,
        max_new_ids,
        reserved: Vec::new(),
        forbidden: Vec::new(),
        known: Vec::new(),
        tie_break,
        min_frequency: 0,
        max_token_bytes: None,
        threads: 1,
    }
}

fn train(
    pretokens: &[(&[u8], u64)],
    options: &Options,
    progress: &mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
) -> Result<Trained> {
    byteweld_core::train::train(&pretokens, options, progress)
}

fn run(pretokens: &[(&[u8], u64)], options: &Options) -> Trained {
    train(pretokens, options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn train_error(pretokens: &[(&[u8], u64)], options: &Options) -> String {
    match train(pretokens, options, &mut |_| ControlFlow::Continue(())) {
        Err(Error::Train(message)) => message,
        Err(_) => panic!("expected a training error, found another error"),
        Ok(trained) => panic!("expected an error, found {trained:?}"),
    }
}

/// The merges as pairs of strings.
fn merges_as_text(trained: &Trained) -> Vec<(String, String)> {
    let mut tokens: BTreeMap<u32, Vec<u8>> = (0..=255u8).map(|b| (u32::from(b), vec![b])).collect();
    let mut text = Vec::new();
    for merge in &trained.merges {
        let (left, right) = (tokens[&merge.left].clone(), tokens[&merge.right].clone());
        text.push((
            String::from_utf8_lossy(&left).into_owned(),
            String::from_utf8_lossy(&right).into_owned(),
        ));
        tokens.insert(merge.new, [left, right].concat());
    }
    text
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(left, right)| (left.to_owned(), right.to_owned())).collect()
}

// ---- laws ----

/// Pre-tokens over a small alphabet, so that runs, overlaps and ties are common.
fn pretokens(
    letters: &'static [u8],
    longest: usize,
    max_len: usize,
) -> impl Strategy<Value = Vec<(Vec<u8>, u64)>> {
    let pretoken = prop::collection::vec(prop::sample::select(letters), 0..=longest);
    let count = prop_oneof![4 => 0..4u64, 1 => 1..1000u64, 1 => Just(1 << 41)];
    prop::collection::vec((pretoken, count), 0..=max_len)
}

fn any_pretokens() -> impl Strategy<Value = Vec<(Vec<u8>, u64)>> {
    prop_oneof![
        pretokens(b"a", 40, 4),
        pretokens(b"ab", 24, 8),
        pretokens(b"ab", 120, 1),
        pretokens(b"abc", 12, 30),
        pretokens(b"\0\x01a\xfe\xff", 9, 12),
    ]
}

/// The ids of the bytes: identical, or reversed from 1000, so that byte order is not id order.
fn base_ids(is_reversed: bool) -> [Option<u32>; 256] {
    let mut ids = [None; 256];
    for (byte, slot) in (0u32..).zip(&mut ids) {
        *slot = Some(if is_reversed { 1255 - byte } else { byte });
    }
    ids
}

prop_compose! {
    fn any_options()(
        tie_break in prop::sample::select(&TIES[..]),
        max_new_ids in prop_oneof![Just(usize::MAX), 0..12usize],
        min_frequency in prop_oneof![Just(0), Just(1), 2..6u64, Just(1 << 41)],
        max_token_bytes in prop::option::of(0..9usize),
        is_reversed in any::<bool>(),
        reserved in prop::collection::btree_set(
            prop::collection::vec(prop::sample::select(&b"ab\0"[..]), 2..5), 0..4),
        has_small_reserved_ids in any::<bool>(),
        forbidden in prop::collection::vec(
            prop::collection::vec(prop::sample::select(&b"ab\0"[..]), 1..6), 0..4),
    ) -> Options {
        // Reserved ids below or between the others, never among the learned ones.
        let first_reserved = if has_small_reserved_ids && is_reversed { 7 } else { 1500 };
        Options {
            base_ids: base_ids(is_reversed),
            first_id: 2000,
            max_new_ids,
            reserved: reserved.into_iter().zip(first_reserved..).collect(),
            forbidden,
            known: Vec::new(),
            tie_break,
            min_frequency,
            max_token_bytes,
            threads: 1,
        }
    }
}

fn borrow(pretokens: &[(Vec<u8>, u64)]) -> Vec<(&[u8], u64)> {
    pretokens.iter().map(|(bytes, count)| (bytes.as_slice(), *count)).collect()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_trainer_equals_the_recount(pretokens in any_pretokens(), options in any_options()) {
        let pretokens = borrow(&pretokens);
        prop_assert_eq!(run(&pretokens, &options), recount(&pretokens, &options));
    }

    #[test]
    fn order_and_repetition_of_the_pretokens_do_not_matter(
        (pretokens, shuffled) in any_pretokens().prop_flat_map(|pretokens| {
            (Just(pretokens.clone()), Just(pretokens).prop_shuffle())
        }),
        options in any_options(),
    ) {
        let shuffled = borrow(&shuffled);
        let divided: Vec<(&[u8], u64)> = shuffled
            .iter()
            .flat_map(|&(bytes, count)| [(bytes, count / 3), (bytes, count - count / 3)])
            .collect();
        let expected = run(&borrow(&pretokens), &options);
        prop_assert_eq!(&run(&shuffled, &options), &expected);
        prop_assert_eq!(&run(&divided, &options), &expected);
    }

    #[test]
    fn a_smaller_size_learns_the_first_merges_of_a_larger(
        pretokens in any_pretokens(), options in any_options(), size in 0..20usize,
    ) {
        let pretokens = borrow(&pretokens);
        let whole = run(&pretokens, &Options { max_new_ids: usize::MAX, ..options.clone() });
        let part = run(&pretokens, &Options { max_new_ids: size, ..options });
        prop_assert_eq!(&whole.merges[..part.merges.len()], &part.merges[..]);
    }
}

/// The options that resume a training after its first merges.
fn resume(options: &Options, done: &[LearnedMerge]) -> Options {
    let reserved: Vec<u32> = options.reserved.iter().map(|(_, id)| *id).collect();
    let new_ids = done.iter().filter(|merge| !reserved.contains(&merge.new)).count();
    let known =
        |merge: &LearnedMerge| KnownMerge { left: merge.left, right: merge.right, new: merge.new };
    Options {
        known: done.iter().map(known).collect(),
        first_id: options.first_id + new_ids as u32,
        max_new_ids: options.max_new_ids - new_ids,
        ..options.clone()
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_resumed_training_learns_the_rest(
        pretokens in any_pretokens(), options in any_options(), done in 0..12usize,
    ) {
        let pretokens = borrow(&pretokens);
        let whole = run(&pretokens, &options);
        let (done, rest) = whole.merges.split_at(done.min(whole.merges.len()));
        let second = run(&pretokens, &resume(&options, done));
        prop_assert_eq!(&second.merges[..], rest);
        prop_assert_eq!(second.stop, whole.stop);
        let removed: u64 = done.iter().map(|merge| merge.removed).sum();
        prop_assert_eq!(second.first_tokens, whole.first_tokens - removed);
    }
}

#[test]
fn contradictory_known_merges_are_named() {
    let known = |left, right, new| KnownMerge { left, right, new };
    let error = |known: &[KnownMerge]| {
        let options = Options { known: known.to_vec(), ..options(5, TieBreak::SmallestIds) };
        train_error(&[(b"abab", 1)], &options)
    };
    assert!(error(&[known(97, 400, 300)]).contains("no earlier token has the id 400"));
    assert!(
        error(&[known(97, 98, 99)])
            .contains("makes the id 99, which already belongs to another token")
    );
    assert!(error(&[known(97, 98, 300), known(97, 98, 301)]).contains("is a duplicate"));
    assert!(error(&[known(97, 98, 257)]).contains("is in the range of learned ids"));
}

#[test]
fn known_tokens_absent_from_the_text_take_part_in_tie_breaking() {
    // (zz, a) and (b, zz) have equal counts; bytes decide, and zz is a known token.
    let known = vec![
        KnownMerge { left: 122, right: 122, new: 300 },
        KnownMerge { left: 120, right: 300, new: 301 },
    ];
    for (tie_break, first) in
        [(TieBreak::GreatestBytes, (300, 97)), (TieBreak::SmallestBytes, (98, 300))]
    {
        let options = Options { known: known.clone(), ..options(1, tie_break) };
        let trained = run(&[(b"zza", 1), (b"bzz", 1)], &options);
        assert_eq!((trained.merges[0].left, trained.merges[0].right), first);
    }
}

proptest! {
    #![proptest_config(cases(10))]

    // Enough text for blocks of every size, with few counts or with nearly one per pre-token.
    #[test]
    fn the_trainer_equals_the_recount_on_longer_texts(
        pretokens in pretokens(b"abcdefgh", 16, 600),
        greatest_count in 1..500u64,
        mut options in any_options(),
    ) {
        let pretokens: Vec<(&[u8], u64)> = (0u64..)
            .zip(&pretokens)
            .map(|(index, (bytes, _))| (bytes.as_slice(), index * 7919 % greatest_count + 1))
            .collect();
        options.max_new_ids = options.max_new_ids.min(60);
        prop_assert_eq!(run(&pretokens, &options), recount(&pretokens, &options));
    }
}

#[test]
fn tokens_with_reserved_ids_count_towards_the_width_of_symbols() {
    // All pairs of bytes become tokens, some with reserved ids: too many for 16 bits.
    let texts: Vec<[u8; 3]> =
        (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| [a, b, b'x'])).collect();
    let pretokens: Vec<(&[u8], u64)> =
        texts.iter().map(|text| (if text[0] < 254 { &text[..2] } else { &text[..] }, 2)).collect();
    let reserved: Vec<(Vec<u8>, u32)> =
        (0..600u32).map(|i| (texts[i as usize][..2].to_vec(), 200_000 + i)).collect();
    let narrow = Options { reserved, ..options(65_200, TieBreak::SmallestIds) };
    let wide = Options { max_new_ids: 100_000, ..narrow.clone() };
    let (narrow, wide) = (run(&pretokens, &narrow).merges, run(&pretokens, &wide).merges);
    assert!(narrow.len() > 65_536);
    assert!(narrow == wide[..narrow.len()]);
}

#[test]
fn replaying_known_merges_can_be_interrupted() {
    let text: Vec<u8> = (0..12_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let pretokens: [(&[u8], u64); 1] = [(&text, 1)];
    let done = run(&pretokens, &options(300, TieBreak::SmallestIds)).merges;
    let options = resume(&options(300, TieBreak::SmallestIds), &done);
    let mut asked = 0;
    let stopped = train(&pretokens, &options, &mut |merges| {
        asked += 1;
        assert!(merges.is_empty());
        if asked == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Error::Interrupted)));
}

/// Pre-tokens that arrive slowly; records how many were taken in each pass.
struct SlowPretokens {
    taken: RefCell<Vec<usize>>,
}

impl SlowPretokens {
    const COUNT: usize = 100;
}

impl PretokenCounts for SlowPretokens {
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let pretoken = [b'a'; 1 << 16];
        self.taken.borrow_mut().push(0);
        for taken in 1..=Self::COUNT {
            each(&pretoken, 1)?;
            *self.taken.borrow_mut().last_mut().unwrap() = taken;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

#[test]
fn training_can_be_stopped_during_the_layout() {
    for pass in [1, 2] {
        let pretokens = SlowPretokens { taken: RefCell::default() };
        let mut progress = |_: &[LearnedMerge]| {
            let is_early = pretokens.taken.borrow().len() < pass;
            if is_early { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let options = options(9, TieBreak::SmallestIds);
        let stopped = byteweld_core::train::train(&pretokens, &options, &mut progress);
        assert!(matches!(stopped, Err(Error::Interrupted)));
        let taken = pretokens.taken.borrow();
        assert_eq!(taken.len(), pass);
        assert_eq!(taken[..pass - 1], [SlowPretokens::COUNT][..pass - 1]);
        assert!(taken[pass - 1] < SlowPretokens::COUNT, "stopped after pass {pass}, not in it");
    }
}

// ---- known answers ----

#[test]
fn the_pairs_of_a_run_are_counted_at_every_position() {
    for tie_break in TIES {
        let trained = run(&[(b"aaa", 3)], &options(10, tie_break));
        let expected = [
            LearnedMerge { left: 97, right: 97, new: 256, count: 6, removed: 3 },
            LearnedMerge { left: 256, right: 97, new: 257, count: 3, removed: 3 },
        ];
        assert_eq!(trained.merges, expected);
        assert_eq!(trained.stop, Stop::NoPairs);
    }
}

#[test]
fn two_documents_give_three_known_merges() {
    let mut options = options(3, TieBreak::SmallestIds);
    for (id, slot) in (4u32..).zip(&mut options.base_ids) {
        *slot = Some(id);
    }
    options.first_id = 260;
    options.min_frequency = 2;
    let trained = run(&[(b"ab ab ab\n", 1), ("aaa bà\n".as_bytes(), 1)], &options);
    let merges: Vec<_> = trained.merges.iter().map(|m| (m.left, m.right, m.new)).collect();
    assert_eq!(merges, [(101, 102, 260), (36, 260, 261), (101, 101, 262)]);
}

#[test]
fn a_pair_is_counted_across_pretokens_of_different_counts() {
    let trained = run(&[(b"ab", 1), (b" ab", 2)], &options(10, TieBreak::SmallestIds));
    let expected = [
        LearnedMerge { left: 97, right: 98, new: 256, count: 3, removed: 3 },
        LearnedMerge { left: 32, right: 256, new: 257, count: 2, removed: 2 },
    ];
    assert_eq!(trained.merges, expected);
}

#[test]
fn low_and_lower_merge_by_greatest_bytes_as_in_the_example() {
    let trained = run(&[(b"low", 5), (b"lower", 2)], &options(10, TieBreak::GreatestBytes));
    let expected = pairs(&[("o", "w"), ("l", "ow"), ("low", "e"), ("lowe", "r")]);
    assert_eq!(merges_as_text(&trained), expected);
    assert_eq!(trained.stop, Stop::NoPairs);
}

#[test]
fn work_and_worked_merge_by_smallest_bytes_as_in_the_example() {
    let pretokens: [(&[u8], u64); 3] = [(b"work", 2), (b"worked", 2), (b"works", 1)];
    let trained = run(&pretokens, &options(3, TieBreak::SmallestBytes));
    assert_eq!(merges_as_text(&trained), pairs(&[("o", "r"), ("or", "k"), ("w", "ork")]));
    assert_eq!(trained.stop, Stop::Size);
}

#[test]
fn bytes_are_compared_as_python_compares_them() {
    // All pairs occur once. A prefix is smaller than what it begins; bytes are unsigned; the left
    // token decides before the right one.
    let pretokens: [(&[u8], u64); 3] = [(b"a\xff", 1), (b"\x80a", 1), (b"a\0", 1)];
    let firsts = TIES.map(|tie_break| {
        let merge = run(&pretokens, &options(1, tie_break)).merges[0];
        (merge.left, merge.right)
    });
    assert_eq!(firsts, [(97, 0), (0x80, 97), (97, 0)]);
}

#[test]
fn tokens_that_share_nine_bytes_are_ordered_by_the_rest() {
    // After `abcdefghi` is one token in all of them, the last letters decide among equal counts.
    let pretokens: [(&[u8], u64); 3] =
        [(b"abcdefghixx", 1), (b"abcdefghizz", 1), (b"abcdefghiyy", 1)];
    for tie_break in [TieBreak::GreatestBytes, TieBreak::SmallestBytes] {
        let options = options(usize::MAX, tie_break);
        assert_eq!(run(&pretokens, &options), recount(&pretokens, &options));
    }
}

#[test]
fn counts_beyond_two_to_the_forty_are_exact() {
    let many = 1 << 60;
    let pretokens: [(&[u8], u64); 3] = [(b"ab", many), (b"abab", 1), (b"cd", many + 1)];
    let trained = run(&pretokens, &options(10, TieBreak::SmallestIds));
    let counts: Vec<u64> = trained.merges.iter().map(|merge| merge.count).collect();
    assert_eq!(counts, [many + 2, many + 1, 1]);
}

#[test]
fn training_stops_below_the_minimum_frequency() {
    let mut options = options(10, TieBreak::SmallestIds);
    options.min_frequency = 3;
    let trained = run(&[(b"ab", 1), (b" ab", 2)], &options);
    assert_eq!(trained.merges.len(), 1);
    assert_eq!(trained.stop, Stop::MinFrequency);
}

#[test]
fn pairs_that_would_be_too_long_are_skipped() {
    let mut options = options(10, TieBreak::SmallestIds);
    options.max_token_bytes = Some(2);
    let trained = run(&[(b"abc", 9), (b"de", 1)], &options);
    assert_eq!(merges_as_text(&trained), pairs(&[("a", "b"), ("d", "e")]));
    assert_eq!(trained.stop, Stop::NoPairs);
}

#[test]
fn no_text_no_size_and_no_pairs_are_valid() {
    let none = Trained { merges: Vec::new(), stop: Stop::NoPairs, first_tokens: 0 };
    assert_eq!(run(&[], &options(5, TieBreak::SmallestIds)), none);
    let none = Trained { first_tokens: 3, ..none };
    assert_eq!(run(&[(b"", 3), (b"a", 3), (b"ab", 0)], &options(5, TieBreak::SmallestIds)), none);
    assert_eq!(run(&[(b"ab", 3)], &options(0, TieBreak::SmallestIds)).stop, Stop::Size);
    let mut rare = options(5, TieBreak::SmallestIds);
    rare.min_frequency = 4;
    assert_eq!(run(&[(b"ab", 3)], &rare).stop, Stop::MinFrequency);
}

#[test]
fn a_learned_token_with_reserved_bytes_takes_the_reserved_id() {
    let mut options = options(1, TieBreak::SmallestIds);
    options.reserved = vec![(b"ab".to_vec(), 900), (b"never".to_vec(), 901)];
    let trained = run(&[(b"abc", 3)], &options);
    let expected = [
        LearnedMerge { left: 97, right: 98, new: 900, count: 3, removed: 3 },
        LearnedMerge { left: 900, right: 99, new: 256, count: 3, removed: 3 },
    ];
    assert_eq!(trained.merges, expected);
    assert_eq!(trained.stop, Stop::Size);
}

// ---- large inputs ----

#[test]
fn pairs_with_thousands_of_positions_merge_as_in_the_recount() {
    for seed in 0..4 {
        let mut random = Random(seed);
        // Short runs of each letter, so that every kind of overlap occurs many times.
        let text: Vec<u8> = (0..4000).map(|_| b'a' + (random.below(8) > 4) as u8).collect();
        for tie_break in TIES {
            let options = options(40, tie_break);
            let pretokens: [(&[u8], u64); 2] = [(&text, 1), (&text[..1500], 2)];
            assert_eq!(run(&pretokens, &options), recount(&pretokens, &options));
        }
    }
}

#[test]
fn one_pretoken_of_two_megabytes_is_trained_in_near_linear_time() {
    let mut random = Random(1);
    let text: Vec<u8> = (0..2_000_000).map(|_| random.pick(b"acgt")).collect();
    for tie_break in TIES {
        let trained = run(&[(&text, 1)], &options(2000, tie_break));
        assert_eq!(trained.merges.len(), 2000);
        assert!(trained.merges.windows(2).all(|two| two[0].count >= two[1].count));
    }
}

#[test]
fn one_letter_repeated_doubles_at_every_merge() {
    let text = vec![b'a'; 1 << 21];
    let trained = run(&[(&text, 1)], &options(100, TieBreak::GreatestBytes));
    let expected: Vec<u64> = (1..=21).rev().map(|power| (1 << power) - 1).collect();
    let counts: Vec<u64> = trained.merges.iter().map(|merge| merge.count).collect();
    assert_eq!(counts, expected);
    assert_eq!(trained.stop, Stop::NoPairs);
}

#[test]
fn a_long_text_repeated_becomes_one_long_token() {
    // Tokens grow with the text: copies of their bytes would take gigabytes.
    let mut random = Random(2);
    let half: Vec<u8> = (0..60_000).map(|_| random.next() as u8).collect();
    let text = [half.as_slice(), &half].concat();
    let mut options = options(usize::MAX, TieBreak::SmallestBytes);
    options.min_frequency = 2;
    let trained = run(&[(&text, 1)], &options);
    assert_eq!(trained.stop, Stop::MinFrequency);
    let mut lengths: BTreeMap<u32, usize> = (0..256).map(|id| (id, 1)).collect();
    for merge in &trained.merges {
        lengths.insert(merge.new, lengths[&merge.left] + lengths[&merge.right]);
    }
    assert_eq!(lengths.values().max(), Some(&60_000));
}

#[test]
fn a_different_count_for_every_pretoken_wastes_little() {
    let mut random = Random(3);
    let pretokens: Vec<(Vec<u8>, u64)> = (1..100_000)
        .map(|count| ((0..5).map(|_| b'a' + random.below(20) as u8).collect(), count))
        .collect();
    let trained = run(&borrow(&pretokens), &options(500, TieBreak::SmallestIds));
    assert_eq!(trained.merges.len(), 500);
}

// ---- progress and errors ----

#[test]
fn progress_is_reported_every_hundred_merges_and_may_interrupt() {
    let mut random = Random(4);
    let text: Vec<u8> = (0..20_000).map(|_| b'a' + random.below(26) as u8).collect();
    let pretokens: [(&[u8], u64); 1] = [(&text, 1)];
    let options = options(350, TieBreak::SmallestIds);
    let mut seen = Vec::new();
    train(&pretokens, &options, &mut |merges| {
        // It is also called at time intervals.
        if merges.len() % 100 == 0 && !merges.is_empty() {
            seen.push(merges.len());
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    seen.dedup();
    assert_eq!(seen, [100, 200, 300]);

    let mut calls = 0;
    let interrupted = train(&pretokens, &options, &mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert!(matches!(interrupted, Err(Error::Interrupted)));
    assert_eq!(calls, 1);
}

#[test]
fn a_byte_outside_the_alphabet_is_named() {
    let mut options = options(5, TieBreak::SmallestIds);
    options.base_ids[0xC3] = None;
    let message = train_error(&[(b"ok", 1), ("é".as_bytes(), 2)], &options);
    assert!(message.contains("byte 0xC3"), "{message}");
    assert!(train_error(&[(b"\xC3", 1)], &options).contains("byte 0xC3"));
    assert_eq!(run(&[("é".as_bytes(), 0), (b"ok", 1)], &options).merges.len(), 1);
}

#[test]
fn counts_that_could_overflow_are_an_error() {
    let message = train_error(&[(b"ab", u64::MAX)], &options(5, TieBreak::SmallestIds));
    assert!(message.contains("36893488147419103230 bytes"), "{message}");
    let half = i64::MAX as u64 / 2;
    assert_eq!(run(&[(b"ab", half)], &options(5, TieBreak::SmallestIds)).merges[0].count, half);
    train_error(&[(b"ab", half), (b"cd", 1)], &options(5, TieBreak::SmallestIds));
}

#[test]
fn text_beyond_32_bits_of_slots_is_an_error_before_allocation() {
    let text = vec![b'a'; 1 << 20];
    let pretokens: Vec<(&[u8], u64)> = vec![(&text, 1); 4096];
    let message = train_error(&pretokens, &options(5, TieBreak::SmallestIds));
    assert!(message.contains("4294967295"), "{message}");
}

#[test]
fn duplicate_ids_are_an_error() {
    let ab = || b"ab".to_vec();
    let pretokens: [(&[u8], u64); 1] = [(b"abc", 1)];
    let error = |change: &dyn Fn(&mut Options)| {
        let mut options = options(2, TieBreak::SmallestIds);
        change(&mut options);
        train_error(&pretokens, &options)
    };
    let message = error(&|options| options.base_ids[98] = Some(97));
    assert!(message.contains("id 97 belongs to both b'a' and b'b'"), "{message}");
    let message = error(&|options| options.reserved = vec![(ab(), 97)]);
    assert!(message.contains("id 97 belongs to both b'a' and b'ab'"), "{message}");
    let message = error(&|options| options.reserved = vec![(ab(), 257)]);
    assert!(message.contains("id 257 belongs to b'ab'"), "{message}");
    let message = error(&|options| options.reserved = vec![(ab(), 300), (ab(), 301)]);
    assert!(message.contains("b'ab' has the ids 300 and 301"), "{message}");
    let message = error(&|options| options.first_id = u32::MAX);
    assert!(message.contains("above 4294967295"), "{message}");
}

#[test]
fn a_reserved_base_token_and_a_reserved_id_after_the_learned_ones_are_accepted() {
    let mut options = options(2, TieBreak::SmallestIds);
    options.reserved = vec![(b"a".to_vec(), 97), (b"abc".to_vec(), 258)];
    let trained = run(&[(b"abc", 2), (b"abcd", 1)], &options);
    let new: Vec<u32> = trained.merges.iter().map(|merge| merge.new).collect();
    assert_eq!(new, [256, 258, 257]);
}
