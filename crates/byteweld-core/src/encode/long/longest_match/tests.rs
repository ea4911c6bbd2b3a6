//! Longest matches give what merging gives, and are used only where merges are proper.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::encode::merge::Ranks;
use crate::encode::scratch::Scratch;
use crate::encode::{Allowed, Encoder, Ranking, Vocabulary};

type Tokens = Vec<(u32, Vec<u8>)>;
type Merges = Vec<(u32, u32, u32)>;

/// The tables of a vocabulary.
struct Case {
    byte_ids: [u32; 256],
    pairs: PairTable,
    tokens: crate::decode::TokenTable,
}

impl Case {
    fn new(tokens: &Tokens, pairs: PairTable) -> Self {
        let mut byte_ids = [NO_ID; 256];
        for (id, token) in tokens.iter().filter(|(_, token)| token.len() == 1) {
            byte_ids[usize::from(token[0])] = *id;
        }
        Self { byte_ids, pairs, tokens: crate::decode::TokenTable::new(tokens).unwrap() }
    }

    fn of_merges(tokens: &Tokens, merges: &Merges) -> Self {
        Self::new(tokens, PairTable::from_merges(merges, None).unwrap())
    }

    fn of_ranks(tokens: &Tokens) -> Self {
        Self::new(tokens, PairTable::from_ranks(tokens))
    }

    fn tables(&self) -> MergeTables<'_> {
        MergeTables { byte_ids: &self.byte_ids, pairs: &self.pairs, tokens: &self.tokens }
    }

    /// By definition: the lowest rank, the leftmost among equals, until no pair has one.
    fn merged(&self, text: &[u8]) -> Vec<u32> {
        let mut ids: Vec<u32> = text.iter().map(|&byte| self.byte_ids[usize::from(byte)]).collect();
        loop {
            let ranks = ids.windows(2).map(|pair| self.pairs.rank(pair[0], pair[1]));
            let Some((rank, at)) = ranks.zip(0..).min().filter(|(rank, _)| *rank != NO_RANK) else {
                return ids;
            };
            ids.splice(at..at + 2, [self.pairs.result(rank)]);
        }
    }

    /// All texts by longest matches, sharing guesses; `None` for one that has to be merged.
    fn matched(&self, texts: &[Vec<u8>]) -> Vec<Option<Vec<u32>>> {
        let Some(matcher) = Matcher::new(self.tables()) else { return vec![None; texts.len()] };
        let mut scratch = MatchScratch::default();
        let encode = |text: &Vec<u8>| {
            let mut ids = Vec::new();
            let tables = self.tables();
            let watch = &mut Watch::default();
            let is_matched = matcher
                .encode_within(usize::MAX, text, tables, &mut ids, &mut scratch, watch)
                .unwrap();
            is_matched.then_some(ids)
        };
        texts.iter().map(encode).collect()
    }

    /// Whether longest matches give what merging gives.
    fn agrees(&self, texts: &[Vec<u8>]) -> bool {
        let matched = self.matched(texts);
        texts.iter().zip(matched).all(|(text, ids)| ids.is_none_or(|ids| ids == self.merged(text)))
    }

    /// Whether they do, and for all texts.
    fn is_proper(&self, texts: &[Vec<u8>]) -> bool {
        self.agrees(texts) && self.matched(texts).iter().all(Option::is_some)
    }
}

/// Whether windows of any size give what merging gives, for texts and for their repeated starts.
fn windows_join(encoder: &Encoder, case: &Case, texts: &[Vec<u8>]) -> bool {
    let mut scratch = Scratch::default();
    let start = |text: &Vec<u8>, length: usize| text[..length.min(text.len())].repeat(90);
    let runs = texts.iter().flat_map(|text| (1..4).map(move |length| start(text, length)));
    texts.iter().cloned().chain(runs).all(|ref text| {
        let merged = case.merged(text);
        [4, 8, 13, 32, 70].iter().all(|&window| {
            encoder.merge_in_windows(window, text, &mut scratch).unwrap();
            scratch.ids == merged
        })
    })
}

/// Learns merges as training does; among equal counts, the first pair in order.
fn train(text: &[u8], merges: usize) -> (Tokens, Merges) {
    let mut tokens: Tokens = (0..).zip(b"abc".iter().map(|&byte| vec![byte])).collect();
    let mut ids: Vec<u32> = text.iter().map(|byte| u32::from(byte - b'a')).collect();
    let mut list = Vec::new();
    for new in (tokens.len() as u32..).take(merges) {
        let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for pair in ids.windows(2) {
            *counts.entry((pair[0], pair[1])).or_default() += 1;
        }
        let best = counts.into_iter().max_by_key(|&(pair, count)| (count, std::cmp::Reverse(pair)));
        let Some(((left, right), _)) = best else { break };
        list.push((left, right, new));
        tokens.push((new, [&tokens[left as usize].1[..], &tokens[right as usize].1].concat()));
        let mut joined = Vec::new();
        for &id in &ids {
            if joined.last() == Some(&left) && id == right {
                joined.pop();
                joined.push(new);
            } else {
                joined.push(id);
            }
        }
        ids = joined;
    }
    (tokens, list)
}

/// Every way to make a token of two, token by token, as Hugging Face converts rank files.
fn all_ways(tokens: &Tokens, seed: u64) -> Merges {
    let find = |part: &[u8]| tokens.iter().find(|(_, token)| token == part).map(|(id, _)| *id);
    let mut merges = Vec::new();
    for (id, token) in tokens {
        let mut ways: Merges = (1..token.len())
            .filter_map(|cut| Some((find(&token[..cut])?, find(&token[cut..])?, *id)))
            .collect();
        let turn = (seed >> (id % 48)) as usize % ways.len().max(1);
        ways.rotate_left(turn);
        merges.extend(ways);
    }
    merges
}

/// A Fibonacci string: a, ab, aba, abaab, ... each made of the two before.
fn fibonacci(length: usize) -> Vec<u8> {
    let (mut before, mut word) = (b"b".to_vec(), b"a".to_vec());
    while word.len() < length {
        let next = [&word[..], &before].concat();
        before = std::mem::replace(&mut word, next);
    }
    word.truncate(length);
    word
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let letters = |some: &'static [u8]| prop::collection::vec(prop::sample::select(some), 1..80);
    let runs = prop::collection::vec((prop::sample::select(&b"abc"[..]), 1usize..40), 1..6);
    prop_oneof![
        letters(b"a"),
        letters(b"ab"),
        letters(b"aaaaab"),
        letters(b"abc"),
        (1usize..150).prop_map(fibonacci),
        (letters(b"ab"), 1usize..30).prop_map(|(word, times)| word.repeat(times)[..]
            .iter()
            .take(150)
            .copied()
            .collect()),
        runs.prop_map(|runs| runs.iter().flat_map(|&(byte, times)| vec![byte; times]).collect()),
    ]
}

fn several() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(texts(), 1..5)
}

proptest! {
    #![proptest_config(crate::testing::cases(300))]

    #[test]
    fn trained_merges_are_proper_and_matched(text in texts(), merges in 0usize..40, others in several()) {
        let (tokens, list) = train(&text, merges);
        let mut all = others;
        all.push(text);
        for case in [Case::of_merges(&tokens, &list), Case::of_ranks(&tokens)] {
            prop_assert!(case.is_proper(&all));
        }
    }

    #[test]
    fn every_way_to_make_a_token_may_be_listed(
        text in texts(), merges in 0usize..40, seed in any::<u64>(), others in several(),
    ) {
        let (tokens, _) = train(&text, merges);
        prop_assert!(Case::of_merges(&tokens, &all_ways(&tokens, seed)).is_proper(&others));
    }

    #[test]
    fn tokens_that_are_missing_or_out_of_order_do_no_harm(
        text in texts(), merges in 1usize..30, others in several(),
        missing in prop::collection::btree_set(3u32..30, 0..4),
        swaps in prop::collection::vec((0usize..30, 0usize..30), 0..4), seed in any::<u64>(),
    ) {
        let (tokens, mut list) = train(&text, merges);
        let mut words: Vec<Vec<u8>> = tokens.iter().map(|(_, token)| token.clone()).collect();
        let places = words.len();
        for &(a, b) in &swaps {
            words.swap(a % places, b % places);
            if !list.is_empty() {
                let merges = list.len();
                list.swap(a % merges, b % merges);
            }
        }
        let swapped: Tokens = (0..).zip(words)
            .filter(|(id, token)| token.len() == 1 || !missing.contains(id)).collect();
        prop_assert!(Case::of_merges(&tokens, &list).agrees(&others));
        prop_assert!(Case::of_ranks(&swapped).agrees(&others));
        prop_assert!(Case::of_merges(&swapped, &all_ways(&swapped, seed)).agrees(&others));
    }

    #[test]
    fn any_rank_file_is_matched_or_merged(
        words in prop::collection::btree_set("[ab]{2,6}", 0..25), order in any::<u64>(), others in several(),
    ) {
        let mut words: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
        let number = words.len().max(1) as u64;
        words.sort_by_key(|word| (word.iter().map(|&b| u64::from(b)).product::<u64>() ^ order) % number);
        let bytes = b"abc".iter().map(|&byte| vec![byte]);
        let tokens: Tokens = (0..).zip(bytes.chain(words)).collect();
        let case = Case::of_ranks(&tokens);
        prop_assert!(case.agrees(&others));
        prop_assert!(Case::of_merges(&tokens, &all_ways(&tokens, order)).agrees(&others));
        let encoder = Encoder::new(Vocabulary::new(tokens, Vec::new(), Ranking::Ids)).unwrap();
        prop_assert!(windows_join(&encoder, &case, &others));
    }

    #[test]
    fn any_list_of_merges_is_matched_or_merged(
        joins in prop::collection::vec((any::<u16>(), any::<u16>()), 1..25),
        order in prop::collection::vec(any::<u16>(), 25), others in several(),
    ) {
        let mut tokens: Tokens = (0..).zip(b"abc".iter().map(|&byte| vec![byte])).collect();
        let (mut pairs, mut words) = (BTreeSet::new(), BTreeMap::new());
        let mut list = Vec::new();
        for (left, right) in joins {
            let part = |number: u16| tokens[usize::from(number) % tokens.len()].clone();
            let ((left, first), (right, second)) = (part(left), part(right));
            let word = [first, second].concat();
            if word.len() > 12 || !pairs.insert((left, right)) {
                continue;
            }
            let next = tokens.len() as u32;
            let id = *words.entry(word.clone()).or_insert(next);
            if id == next {
                tokens.push((id, word));
            }
            list.push((left, right, id));
        }
        prop_assert!(Case::of_merges(&tokens, &list).agrees(&others));
        let mut mixed: Vec<_> = order.iter().zip(list).collect();
        mixed.sort();
        let mixed: Merges = mixed.into_iter().map(|(_, merge)| merge).collect();
        let case = Case::of_merges(&tokens, &mixed);
        prop_assert!(case.agrees(&others));
        let encoder = Encoder::new(Vocabulary::new(tokens, mixed, Ranking::Merges)).unwrap();
        prop_assert!(windows_join(&encoder, &case, &others));
    }
}

#[test]
fn texts_with_untimely_tokens_are_merged() {
    let word = |id, text: &str| (id, text.as_bytes().to_vec());
    let mut tokens = vec![word(0, "a"), word(1, "b"), word(2, "c"), word(3, "ab"), word(4, "abc")];
    let texts = [b"cabc".to_vec(), b"abab".to_vec()];
    assert!(Case::of_merges(&tokens, &vec![(0, 1, 3), (3, 2, 4)]).is_proper(&texts));
    // A merge before the one that makes its part.
    let untimely = Case::of_merges(&tokens, &vec![(3, 2, 4), (0, 1, 3)]);
    assert_eq!(untimely.matched(&texts), [None, Some(vec![3, 3])]);
    // The same where it never happens: when ab comes, abc would have been made of a and bc.
    tokens.push(word(5, "bc"));
    let proper = vec![(1, 2, 5), (3, 2, 4), (0, 5, 4), (0, 1, 3)];
    assert!(Case::of_merges(&tokens, &proper).is_proper(&texts));
    // What a merge makes has not the bytes of its parts.
    assert_eq!(Case::of_merges(&tokens, &vec![(0, 1, 5)]).matched(&texts), [None, None]);
}

#[test]
fn a_vocabulary_that_takes_too_many_steps_is_merged() {
    // Tokens end in c; in a text without one, each is wrong, which shows only at the end.
    let (tokens, list) = {
        let mut tokens: Tokens = vec![(0, b"a".to_vec()), (1, b"b".to_vec()), (2, b"c".to_vec())];
        let mut list = vec![];
        for new in 3..600u32 {
            let (left, right) = (new % 2, if new == 3 { 2 } else { new - 1 });
            tokens.push((new, [&tokens[left as usize].1[..], &tokens[right as usize].1].concat()));
            list.push((left, right, new));
        }
        (tokens, list)
    };
    let case = Case::of_merges(&tokens, &list);
    let matcher = Matcher::new(case.tables()).unwrap();
    let text = b"ab".repeat(5000);
    let mut ids = Vec::new();
    let mut scratch = MatchScratch::default();
    let done = matcher.encode(&text, case.tables(), &mut ids, &mut scratch, &mut Watch::default());
    assert!(!done.unwrap());
    let matched = case.matched(std::slice::from_ref(&text));
    assert_eq!(matched[0].as_ref().unwrap().len(), text.len());
}

#[test]
fn an_encoder_starts_to_match_and_gives_the_same() {
    let text = fibonacci(70_000);
    let (tokens, list) = train(&text[..2000], 60);
    let encoder =
        Encoder::new(Vocabulary::new(tokens.clone(), list.clone(), Ranking::Merges)).unwrap();
    let mut scratch = Scratch::default();
    encoder.merge_below(NO_RANK, &text, &mut scratch).unwrap();
    for _ in 0..4 {
        let mut ids = Vec::new();
        encoder.encode(&text, &Allowed::None, &mut ids).unwrap();
        assert_eq!(ids, scratch.ids);
    }
    assert!(encoder.matcher.get(0, || None).is_some());
}
