//! Longest match against a plain search, on random vocabularies.

use super::*;
use crate::encode::{Ranking, Vocabulary};
use crate::rewrite::AddedToken;
use crate::testing::{Random, examples};

type Tokens = Vec<(u32, Vec<u8>)>;

/// The letters a and b, and random merges of them.
fn vocabulary(random: &mut Random) -> (Tokens, Vec<(u32, u32, u32)>) {
    let mut tokens: Tokens = (0..2).map(|id| (id, vec![b'a' + id as u8])).collect();
    let mut merges = Vec::new();
    for _ in 0..random.below(12) {
        let (left, right) = (random.below(tokens.len()), random.below(tokens.len()));
        let bytes = [tokens[left].1.as_slice(), &tokens[right].1].concat();
        if tokens.iter().all(|(_, other)| *other != bytes) {
            merges.push((left as u32, right as u32, tokens.len() as u32));
            tokens.push((tokens.len() as u32, bytes));
        }
    }
    (tokens, merges)
}

fn longest_match(tokens: &Tokens, mut text: &[u8]) -> Vec<u32> {
    let mut ids = Vec::new();
    while !text.is_empty() {
        let matches = tokens.iter().filter(|(_, token)| text.starts_with(token));
        let (id, token) = matches.max_by_key(|(_, token)| token.len()).unwrap();
        ids.push(*id);
        text = &text[token.len()..];
    }
    ids
}

#[test]
fn longest_match_agrees_where_a_plain_search_finds_the_same_tokens() {
    let (mut all, mut same) = (0, 0);
    for seed in 0..u64::from(examples(2_000)) {
        let random = &mut Random(seed);
        let (tokens, merges) = vocabulary(random);
        let ranking = random.pick(&[Ranking::Merges, Ranking::MergesAfterLookup, Ranking::Ids]);
        let list = if ranking == Ranking::Ids { Vec::new() } else { merges };
        let encoder = Encoder::new(Vocabulary::new(tokens.clone(), list, ranking)).unwrap();
        // No pattern: each text is a pre-token.
        let most = random.pick(&[4, 12, 100]);
        let length = 1 + random.below(most);
        let text: Vec<u8> = (0..length).map(|_| b'a' + random.below(2) as u8).collect();
        let mut ids = Vec::new();
        encoder.encode(&text, &Allowed::None, &mut ids).unwrap();
        let is_same = ids == longest_match(&tokens, &text);
        let found =
            encoder.longest_match_agreement(&text, &Allowed::None, &Watch::default()).unwrap();
        let expected = Agreement { pretokens: 1, agreeing: u64::from(is_same) };
        assert_eq!(found, Some(expected), "seed {seed}");
        all += 1;
        same += expected.agreeing;
    }
    assert!(all / 10 < same && same < all / 10 * 9, "{same} of {all} agree: too few or too many");
}

#[test]
fn special_tokens_are_not_pretokens() {
    let (tokens, _) = vocabulary(&mut Random(0));
    let mut vocabulary = Vocabulary::new(tokens, Vec::new(), Ranking::Ids);
    vocabulary.added.push(AddedToken::special("ab", 100));
    vocabulary.added_bytes.push((100, b"ab".to_vec()));
    let encoder = Encoder::new(vocabulary).unwrap();
    let pretokens = |allowed: &Allowed<'_>| {
        let found = encoder.longest_match_agreement(b"abaabab", allowed, &Watch::default());
        found.unwrap().unwrap().pretokens
    };
    assert_eq!(pretokens(&Allowed::All), 1);
    assert_eq!(pretokens(&Allowed::None), 1);
    let found = encoder.longest_match_agreement(b"abab", &Allowed::All, &Watch::default());
    assert_eq!(found.unwrap(), Some(Agreement::default()));
}

#[test]
fn a_vocabulary_that_takes_too_many_steps_is_given_up() {
    // Every `a` almost starts the long token, which merging never makes.
    let mut tokens: Tokens = vec![(0, b"a".to_vec()), (1, b"b".to_vec())];
    tokens.push((2, [vec![b'a'; 10_000], vec![b'b']].concat()));
    let encoder = Encoder::new(Vocabulary::new(tokens, Vec::new(), Ranking::Merges)).unwrap();
    let found = |text: &[u8]| {
        encoder.longest_match_agreement(text, &Allowed::None, &Watch::default()).unwrap()
    };
    assert_eq!(found(&vec![b'a'; 100_000]), None);
    assert_eq!(found(b"aaa"), Some(Agreement { pretokens: 1, agreeing: 1 }));
}
