//! Pair tables against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// With a layout that is found, one that is known, and one that is not theirs.
fn check(merges: &[(u32, u32, u32)]) {
    let others: Vec<_> = merges.iter().map(|&(left, right, id)| (right, left ^ 1, id)).collect();
    let layout = PairLayout::of_merges(merges);
    let read = PairLayout::from_bytes(&layout.to_bytes(), merges.len());
    assert_eq!(read.as_ref(), Some(&layout));
    for layout in [None, read, Some(PairLayout::of_merges(&others))] {
        check_table(merges, PairTable::from_merges(merges, layout).unwrap());
    }
}

fn check_table(merges: &[(u32, u32, u32)], pairs: PairTable) {
    let mut expected = BTreeMap::new();
    for (&(left, right, id), rank) in merges.iter().zip(0..) {
        expected.entry((left, right)).or_insert((rank, id));
    }
    for (&(left, right), &(rank, id)) in &expected {
        assert_eq!(pairs.rank(left, right), rank);
        assert_eq!(pairs.finish(pairs.start(left, right)), rank);
        assert_eq!(pairs.result(rank), id);
        for (left, right) in [(left, right ^ 1), (left ^ 256, right), (right, left), (left, NO_ID)]
        {
            let rank = expected.get(&(left, right)).map_or(NO_RANK, |(rank, _)| *rank);
            assert_eq!(pairs.rank(left, right), rank);
            assert_eq!(pairs.finish(pairs.start(left, right)), rank);
        }
    }
    assert_eq!(pairs.finish(Probe::EMPTY), NO_RANK);
    assert_eq!(pairs.result(NO_RANK), NO_ID);
    assert_eq!(pairs.by_rank().len(), expected.len());
}

#[test]
fn every_pair_has_its_own_slot() {
    for count in [0, 1, 2, 3, 7, 8, 100, 50_000] {
        // Like those of a real list: many share a side.
        let merges: Vec<_> = (0..count).map(|n| (n % 317, n / 5, 256 + n)).collect();
        check(&merges);
    }
}

#[test]
fn a_repeated_pair_has_its_lowest_rank() {
    check(&(0..5000).map(|n| (1, 2 + n % 3, 300 + n)).collect::<Vec<_>>());
    check(&vec![(NO_ID - 1, NO_ID - 1, 7); 400]);
}

#[test]
fn a_known_layout_is_used() {
    let merges: Vec<_> = (0..1000).map(|n| (n % 31, n, 256 + n)).collect();
    let layout = PairLayout::of_merges(&merges);
    let table = PairTable::from_merges(&merges, Some(layout.clone())).unwrap();
    assert_eq!(table.layout, layout);
    let others: Vec<_> = (0..1000).map(|n| (n, n % 29, 256 + n)).collect();
    let table = PairTable::from_merges(&others, Some(layout.clone())).unwrap();
    assert_ne!(table.layout, layout);
    for length in 0..layout.to_bytes().len() {
        assert!(PairLayout::from_bytes(&layout.to_bytes()[..length], 1000).is_none());
    }
    let mut huge = layout.to_bytes();
    huge[8..16].fill(0xFF);
    assert!(PairLayout::from_bytes(&huge, 1000).is_none());
}

proptest! {
    #[test]
    fn any_list_of_merges(
        merges in prop::collection::vec((any::<u32>(), any::<u32>(), 0..NO_ID), 0..200),
        few in prop::collection::vec((0u32..9, 0u32..9, 0u32..40), 0..200),
    ) {
        let below = |id: u32| id.min(NO_ID - 1);
        check(&merges.iter().map(|&(l, r, id)| (below(l), below(r), id)).collect::<Vec<_>>());
        check(&few);
    }
}
