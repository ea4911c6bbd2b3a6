//! Recovered merges against their definition.

use proptest::prelude::*;

use super::{merges_are_proper, recover_merges};
use crate::encode::merge::{NO_ID, NO_RANK};
use crate::encode::scratch::Scratch;
use crate::encode::{Encoder, Ranking, Vocabulary};

type Tokens = Vec<(u32, Vec<u8>)>;
type Merges = Vec<(u32, u32, u32)>;

/// By the definition: every way to make a token of two tokens is in the table.
fn by_all_pairs(tokens: Tokens) -> Option<Merges> {
    let order: Tokens = tokens.iter().filter(|(_, token)| token.len() > 1).cloned().collect();
    let encoder = Encoder::new(Vocabulary::new(tokens, Vec::new(), Ranking::Ids)).unwrap();
    let mut scratch = Scratch::default();
    let mut merges = Vec::new();
    for (id, token) in order {
        encoder.merge_below(id, &token, &mut scratch).unwrap();
        let [left, right] = scratch.ids[..] else { return None };
        merges.push((left, right, id));
    }
    Some(merges)
}

/// By the definition: each merge is what is left of its token's bytes by those before it.
fn by_merging(tokens: &Tokens, merges: &Merges) -> bool {
    (0..merges.len()).all(|rank| {
        let (left, right, new) = merges[rank];
        let before = merges[..rank].to_vec();
        let token = &tokens.iter().find(|(id, _)| *id == new).unwrap().1;
        let vocabulary = Vocabulary::new(tokens.clone(), before, Ranking::Merges);
        let mut scratch = Scratch::default();
        Encoder::new(vocabulary).unwrap().merge_below(NO_RANK, token, &mut scratch).unwrap();
        scratch.ids == [left, right]
    })
}

/// Tokens that are mostly made of earlier ones, with the bytes somewhere among them.
fn vocabularies() -> impl Strategy<Value = Tokens> {
    let joins = prop::collection::vec((any::<u16>(), any::<u16>()), 0..20);
    let odd = prop::collection::vec(prop::sample::select(&b"abc"[..]), 2..5);
    (joins, prop::option::weighted(0.3, odd), any::<u16>()).prop_map(|(joins, odd, place)| {
        let mut words: Vec<Vec<u8>> = vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()];
        for (left, right) in joins {
            let joined =
                [&words[left as usize % words.len()][..], &words[right as usize % words.len()]];
            let word = joined.concat();
            if !words.contains(&word) && word.len() < 100 {
                words.push(word);
            }
        }
        let mut longer = words.split_off(3);
        if let Some(odd) = odd.filter(|odd| !longer.contains(odd)) {
            longer.insert(place as usize % (longer.len() + 1), odd);
        }
        let place = if place % 2 == 0 { 0 } else { place as usize % (longer.len() + 1) };
        longer.splice(place..place, words);
        (0..).zip(longer).collect()
    })
}

proptest! {
    #![proptest_config(crate::testing::cases(300))]

    #[test]
    fn merges_are_those_of_the_definition(tokens in vocabularies()) {
        prop_assert_eq!(recover_merges(tokens.clone()).unwrap(), by_all_pairs(tokens));
    }

    #[test]
    fn a_list_is_proper_if_merging_makes_its_tokens(tokens in vocabularies(), seed in any::<u64>()) {
        // A merge for each longer token, of any two tokens that have its bytes; not always the right two.
        let find = |part: &[u8]| tokens.iter().find(|(_, t)| t == part).map(|(id, _)| *id);
        let mut merges = Vec::new();
        for (id, token) in tokens.iter().filter(|(_, token)| token.len() > 1) {
            let cuts: Vec<(u32, u32)> = (1..token.len())
                .filter_map(|cut| Some((find(&token[..cut])?, find(&token[cut..])?)))
                .collect();
            if !cuts.is_empty() {
                let (left, right) = cuts[(seed >> (id % 60)) as usize % cuts.len()];
                merges.push((left, right, *id));
            }
        }
        let mut byte_ids = [NO_ID; 256];
        for (id, token) in tokens.iter().filter(|(_, token)| token.len() == 1) {
            byte_ids[token[0] as usize] = *id;
        }
        prop_assert_eq!(merges_are_proper(&byte_ids, &merges), by_merging(&tokens, &merges));
    }
}
