//! Pair tables against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn check(merges: &[(u32, u32, u32)]) {
    let pairs = Pairs::of_merges(merges).unwrap();
    let mut expected = BTreeMap::new();
    for (&(left, right, id), rank) in merges.iter().zip(0..) {
        expected.entry((left, right)).or_insert((rank, id));
    }
    for (&(left, right), &(rank, id)) in &expected {
        assert_eq!(pairs.rank(left, right), rank);
        assert_eq!(pairs.answer(pairs.ask(left, right)), rank);
        assert_eq!(pairs.made(rank), id);
        for (left, right) in [(left, right ^ 1), (left ^ 256, right), (right, left), (left, NONE)] {
            let rank = expected.get(&(left, right)).map_or(NONE, |(rank, _)| *rank);
            assert_eq!(pairs.rank(left, right), rank);
            assert_eq!(pairs.answer(pairs.ask(left, right)), rank);
        }
    }
    assert_eq!(pairs.answer(Asked::NOTHING), NONE);
    assert_eq!(pairs.made(NONE), NONE);
    assert_eq!(pairs.by_rank().len(), expected.len());
}

#[test]
fn every_pair_has_a_slot_of_its_own() {
    for count in [0, 1, 2, 3, 7, 8, 100, 50_000] {
        // Like those of a real list: many share a side.
        let merges: Vec<_> = (0..count).map(|n| (n % 317, n / 5, 256 + n)).collect();
        check(&merges);
    }
}

#[test]
fn a_pair_that_is_there_often_has_its_lowest_rank() {
    check(&(0..5000).map(|n| (1, 2 + n % 3, 300 + n)).collect::<Vec<_>>());
    check(&vec![(NONE - 1, NONE - 1, 7); 400]);
}

proptest! {
    #[test]
    fn any_list_of_merges(
        merges in prop::collection::vec((any::<u32>(), any::<u32>(), 0..NONE), 0..200),
        few in prop::collection::vec((0u32..9, 0u32..9, 0u32..40), 0..200),
    ) {
        let below = |id: u32| id.min(NONE - 1);
        check(&merges.iter().map(|&(l, r, id)| (below(l), below(r), id)).collect::<Vec<_>>());
        check(&few);
    }
}
