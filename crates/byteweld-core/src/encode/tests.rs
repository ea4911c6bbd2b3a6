//! Short and heap merging agree; the three rank semantics; recovery of merges.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::merge::{HeapScratch, MAX_SHORT_IDS, NO_ID, NO_RANK, PairTable, Ranks, merge_short};
use super::*;
use crate::error::Error;
use crate::rewrite::AddedToken;

fn bytes_and(merges: &[(&str, &str)]) -> Vocabulary {
    let mut tokens: Vec<(u32, Vec<u8>)> = (0..=255u8).map(|b| (u32::from(b), vec![b])).collect();
    let mut list = Vec::new();
    for (left, right) in merges {
        let find = |text: &str| tokens.iter().find(|(_, t)| t == text.as_bytes()).unwrap().0;
        let new = tokens.len() as u32;
        list.push((find(left), find(right), new));
        tokens.push((new, format!("{left}{right}").into_bytes()));
    }
    let mut vocabulary = Vocabulary::new(tokens, list, Ranking::Merges);
    for (text, id) in [("<|end|>", 1000), ("<|end|>>", 1001)] {
        vocabulary.added.push(AddedToken::special(text, id));
        vocabulary.added_bytes.push((id, text.as_bytes().to_vec()));
    }
    vocabulary
}

fn encode(encoder: &Encoder, text: &str, allowed: &Allowed<'_>) -> Vec<u32> {
    let mut ids = Vec::new();
    encoder.encode(text.as_bytes(), allowed, &mut ids).unwrap();
    ids
}

#[test]
fn the_lowest_rank_goes_first_not_the_leftmost() {
    let encoder = Encoder::new(bytes_and(&[("b", "c"), ("a", "b")])).unwrap();
    assert_eq!(encode(&encoder, "abc", &Allowed::None), [97, 256]);
}

#[test]
fn a_pretoken_without_cut_points_is_whole_even_after_one_that_was_split() {
    // A token that merging does not give, since nothing merges to its parts.
    let (sentence, stops) = ("日本語日本語日本語", "。。。。。。");
    let mut vocabulary = bytes_and(&[]);
    vocabulary.tokens.push((256, stops.as_bytes().to_vec()));
    vocabulary.ranking = Ranking::Ids;
    vocabulary.merges.clear();
    vocabulary.pattern = Some(r"\p{L}+|\P{L}+".to_owned());
    let encoder = Encoder::new(vocabulary).unwrap();
    let mut expected: Vec<u32> = sentence.bytes().map(u32::from).collect();
    expected.push(256);
    for _ in 0..2 {
        assert_eq!(encode(&encoder, &format!("{sentence}{stops}"), &Allowed::None), expected);
    }
}

#[test]
fn ignore_merges_takes_a_whole_token_that_merging_would_not_give() {
    let mut vocabulary = bytes_and(&[("b", "c"), ("a", "b")]);
    vocabulary.tokens.push((258, b"abc".to_vec()));
    vocabulary.ranking = Ranking::MergesAfterLookup;
    let encoder = Encoder::new(vocabulary).unwrap();
    assert_eq!(encode(&encoder, "abc", &Allowed::None), [258]);
    assert_eq!(encode(&encoder, "abcc", &Allowed::None), [97, 256, 99]);
}

#[test]
fn ranks_merge_any_two_tokens_that_make_a_token() {
    let mut vocabulary = bytes_and(&[("b", "c"), ("a", "b")]);
    vocabulary.tokens.push((258, b"abc".to_vec()));
    vocabulary.merges.clear();
    vocabulary.ranking = Ranking::Ids;
    let encoder = Encoder::new(vocabulary).unwrap();
    // b+c (256), then a+bc (258), although no list says so.
    assert_eq!(encode(&encoder, "xabc", &Allowed::None), [120, 258]);
}

#[test]
fn special_tokens_are_found_longest_first_and_only_if_allowed() {
    let encoder = Encoder::new(bytes_and(&[])).unwrap();
    assert_eq!(encode(&encoder, "a<|end|>>", &Allowed::All), [97, 1001]);
    let one = encoder.choose(&["<|end|>"]).unwrap();
    assert_eq!(encode(&encoder, "a<|end|>>", &Allowed::Some(&one)), [97, 1000, 62]);
    assert_eq!(encode(&encoder, "<|end|>", &Allowed::None).len(), 7);
    assert!(matches!(
        encoder.refuse(b"a<|end|>", None, &Watch::default()),
        Err(Error::SpecialToken { offset: 1, .. })
    ));
}

#[test]
fn merges_are_recovered_from_ranks() {
    let vocabulary = bytes_and(&[("t", "h"), ("th", "e"), (" ", "the"), ("a", "a"), ("aa", "aa")]);
    let merges = vocabulary.merges.clone();
    assert_eq!(recover_merges(vocabulary.tokens).unwrap(), Some(merges));
    let mut orphan = bytes_and(&[("t", "h")]).tokens;
    orphan.push((257, b"xyz".to_vec()));
    assert_eq!(recover_merges(orphan).unwrap(), None);
}

#[test]
fn a_huge_id_with_few_tokens_is_refused_without_allocating() {
    let mut vocabulary = bytes_and(&[]);
    vocabulary.tokens.push((u32::MAX - 1, b"ab".to_vec()));
    assert!(matches!(Encoder::new(vocabulary), Err(Error::Vocabulary(_))));
}

#[test]
fn limits_are_exact() {
    let encoder = Encoder::new(bytes_and(&[("a", "a")])).unwrap();
    for limit in 0..6 {
        let mut counter = Counter::new(limit);
        encoder.encode(b"aaaaab", &Allowed::None, &mut counter).unwrap(); // aa aa a b
        assert_eq!((counter.tokens, counter.passed), (limit.min(4), limit < 4));
        assert_eq!(counter.bytes, [0, 2, 4, 5, 6, 6][limit]);
    }
}

#[test]
fn a_total_counts_special_tokens_and_all_others() {
    let encoder = Encoder::new(bytes_and(&[("a", "a")])).unwrap();
    for (allowed, expected) in [(Allowed::None, 3 + 7), (Allowed::All, 3 + 1)] {
        let mut total = Total::default();
        encoder.encode(b"aaaab<|end|>", &allowed, &mut total).unwrap(); // aa aa b
        assert_eq!(total.tokens, expected);
    }
}

#[test]
fn a_call_inside_another_has_its_own_scratch() {
    let encoder = Encoder::new(bytes_and(&[("a", "a")])).unwrap();
    let expected = encode(&encoder, "aaab", &Allowed::None);
    encoder.pool.with_scratch(|outer| {
        outer.ids = vec![7];
        assert_eq!(encode(&encoder, "aaab", &Allowed::None), expected);
        assert_eq!(encoder.pool.len(), 1, "the inner one's is kept");
        assert_eq!(outer.ids, [7]);
    });
    assert_eq!(encode(&encoder, "aaab", &Allowed::None), expected);
}

#[test]
fn hostile_rank_files_are_read_in_linear_time() {
    // A token of a million bytes, and a staircase of prefixes.
    let mut tokens = bytes_and(&[]).tokens;
    tokens.push((256, vec![b'a'; 1_000_000]));
    tokens.extend((2..1000u32).map(|n| (300 + n, vec![b'a'; n as usize])));
    assert_eq!(recover_merges(tokens).unwrap(), None);
}

proptest! {
    #![proptest_config(crate::testing::cases(40))]

    #[test]
    fn rank_pairs_are_all_ways_to_make_a_token(
        texts in prop::collection::btree_set("[ab]{1,6}", 1..30),
    ) {
        let texts: Vec<String> = texts.into_iter().collect();
        let tokens: Vec<(u32, Vec<u8>)> =
            texts.iter().zip(0..).map(|(t, id)| (id, t.clone().into_bytes())).collect();
        let pairs = PairTable::from_ranks(&tokens);
        for (left, a) in &tokens {
            for (right, b) in &tokens {
                let joined = [&a[..], b].concat();
                let made = tokens.iter().find(|(_, t)| *t == joined).map(|(id, _)| *id);
                prop_assert_eq!(pairs.result(pairs.rank(*left, *right)), made.unwrap_or(NO_ID));
            }
        }
    }

    #[test]
    fn short_and_heap_merging_agree(
        merges in prop::collection::vec((0u32..12, 0u32..12), 1..40),
        ids in prop::collection::vec(0u32..4, 0..=MAX_SHORT_IDS),
        limit in prop_oneof![Just(NO_RANK), 0u32..40],
    ) {
        let made = |(&(left, right), rank): (&(u32, u32), u32)| (left, right, 4 + rank % 8);
        let pairs = PairTable::from_merges(&merges.iter().zip(0..).map(made).collect::<Vec<_>>(), None).unwrap();
        let (mut short, mut heap) = (ids.clone(), ids);
        merge_short(&mut short, &pairs, limit);
        HeapScratch::default().merge(&mut heap, &pairs, limit, &mut Watch::default()).unwrap();
        prop_assert_eq!(short, heap);
    }

    #[test]
    fn threads_do_not_matter(texts in prop::collection::vec("[ab<|end>]{0,30}", 0..50)) {
        let encoder = Encoder::new(bytes_and(&[("a", "b"), ("ab", "a")])).unwrap();
        let large: Vec<String> = texts.iter().map(|t| t.repeat(500)).collect();
        let one = encoder.encode_batch(&large, &Allowed::All, NonZeroUsize::MIN, &Watch::default()).unwrap();
        for (text, ids) in large.iter().zip(one.iter()) {
            let mut alone = Vec::new();
            encoder.encode(text.as_bytes(), &Allowed::All, &mut alone).unwrap();
            prop_assert_eq!(ids, alone);
        }
        let seven = encoder.encode_batch(&large, &Allowed::All, NonZeroUsize::new(7).unwrap(), &Watch::default()).unwrap();
        prop_assert_eq!(one, seven);
    }

    #[test]
    fn a_long_text_is_encoded_in_pieces_as_if_it_were_whole(
        words in prop::collection::vec("[ a-c\n'1é日<|end>]{1,12}", 1..40),
        pattern in prop::sample::select(vec![
            r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"[a-b]+|\s+|.",
        ]),
    ) {
        let mut vocabulary = bytes_and(&[("a", "b"), ("ab", "a"), (" ", "a"), ("\n", "\n")]);
        vocabulary.pattern = Some(pattern.to_owned());
        let encoder = Encoder::new(vocabulary).unwrap();
        let mut text = String::new();
        for number in 0.. {
            text.push_str(&words[number * 7 % words.len()]);
            if text.len() > 300_000 { break }
        }
        let mut whole = Vec::new();
        encoder.encode(text.as_bytes(), &Allowed::All, &mut whole).unwrap();
        let pieces = encoder.encode_batch(&[&text], &Allowed::All, NonZeroUsize::new(3).unwrap(), &Watch::default()).unwrap();
        prop_assert_eq!(pieces.ids, whole);
    }
}
