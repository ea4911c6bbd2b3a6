//! Interleaved merging against merging one by one.

use proptest::prelude::*;

use super::super::heap::HeapScratch;
use super::super::short::MAX_SHORT_IDS;
use super::*;
use crate::cpu::Tier;
use crate::watch::Watch;

proptest! {
    #[test]
    fn interleaved_sequences_merge_as_they_do_alone_on_every_tier(
        merges in prop::collection::vec((0u32..12, 0u32..12), 0..60),
        sequences in prop::collection::vec(prop::collection::vec(0u32..4, 0..=MAX_SHORT_IDS), 0..=LANES),
        more in prop::collection::vec(prop::collection::vec(0u32..4, 0..=20), 0..=LANES),
    ) {
        let made = |(&(left, right), rank): (&(u32, u32), u32)| (left, right, 4 + rank % 8);
        let merges: Vec<_> = merges.iter().zip(0..).map(made).collect();
        let pairs = PairTable::from_merges(&merges, None).unwrap();
        for tier in Tier::available() {
            let mut interleaved = Interleaved::default();
            for sequences in [&sequences, &more] {
                let mut heap = HeapScratch::default();
                let mut expected = Vec::new();
                for (lane, ids) in sequences.iter().enumerate() {
                    prop_assert_eq!(interleaved.add(ids.iter().copied()), Some(lane));
                    let mut ids = ids.clone();
                    heap.merge(&mut ids, &pairs, NO_RANK, &mut Watch::default()).unwrap();
                    expected.push(ids);
                }
                let mut found = vec![Vec::new(); sequences.len()];
                tier.force(|| {
                    interleaved.merge(&pairs, |lane, merged| merged.write_ids(&mut found[lane]));
                });
                prop_assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn a_sequence_without_a_lane_is_not_added() {
    let mut interleaved = Interleaved::default();
    let no_merges = PairTable::from_merges(&[], None).unwrap();
    for lane in 0..LANES {
        assert_eq!(interleaved.add([1, 2].into_iter()), Some(lane));
    }
    assert_eq!(interleaved.add([1, 2].into_iter()), None);
    let mut count = 0;
    interleaved.merge(&no_merges, |_, merged| count += u32::from(!merged.is_one(1)));
    assert_eq!(count as usize, LANES);
    assert_eq!(interleaved.add([1].into_iter()), Some(0));
    interleaved.merge(&no_merges, |_, merged| assert!(merged.is_one(1) && !merged.is_one(2)));
}
