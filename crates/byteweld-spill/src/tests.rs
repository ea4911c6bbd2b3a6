//! Merged runs against a `BTreeMap`, at every fan-in; damage and errors.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::merge::{MergeOptions, Source, merge};
use crate::{Error, PARTS, Runs, SortedCounts, Spool, part_of, write_run};

type Map = BTreeMap<Vec<u8>, u64>;

fn spool() -> Arc<Spool> {
    Arc::new(Spool::new(&std::env::temp_dir()).unwrap())
}

fn proceed() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run_of(map: &Map) -> Vec<(&[u8], u64)> {
    let mut run: Vec<_> = map.iter().map(|(key, &count)| (key.as_slice(), count)).collect();
    run.sort_by_key(|&(key, _)| (part_of(key), key));
    run
}

fn sources_of<'s>(spool: &Arc<Spool>, maps: &[Map]) -> Vec<Vec<Source<'s>>> {
    let mut sources: Vec<Vec<Source<'s>>> = (0..PARTS).map(|_| Vec::new()).collect();
    for map in maps {
        let run = write_run(spool, &mut run_of(map).into_iter()).unwrap();
        for (part, section) in run.into_iter().enumerate() {
            sources[part].push(Source::Owned(section));
        }
    }
    sources
}

fn options(bytes: usize, threads: usize) -> MergeOptions {
    MergeOptions { bytes, threads: NonZeroUsize::new(threads).unwrap() }
}

fn map_of(sorted: &SortedCounts) -> Map {
    let mut map = Map::new();
    for part in 0..PARTS {
        let mut reader = sorted.part(part, 0);
        let mut last: Option<Vec<u8>> = None;
        while reader.next().unwrap() {
            assert!(last.is_none_or(|last| last.as_slice() < reader.key()), "not in order");
            assert_eq!(part_of(reader.key()), part);
            map.insert(reader.key().to_vec(), reader.count());
            last = Some(reader.key().to_vec());
        }
    }
    map
}

fn sum_of(maps: &[Map]) -> Map {
    let mut sum = Map::new();
    for (key, count) in maps.iter().flatten() {
        *sum.entry(key.clone()).or_default() += count;
    }
    sum
}

#[test]
fn the_part_is_xxh3_of_the_bytes() {
    // From the reference implementation of xxHash: XXH3_64bits("") and XXH3_64bits("a").
    assert_eq!(twox_hash::XxHash3_64::oneshot(b""), 0x2d06_8005_38d3_94c2);
    assert_eq!(twox_hash::XxHash3_64::oneshot(b"a"), 0xe6c6_32b6_1e96_4e1f);
    assert_eq!((part_of(b""), part_of(b"a")), (2, 15));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merged_runs_are_the_sum_of_their_maps(
        maps in prop::collection::vec(
            prop::collection::btree_map(
                prop_oneof![
                    prop::collection::vec(0_u8..3, 0..6),
                    prop::collection::vec(any::<u8>(), 5000..5003),
                ],
                prop_oneof![1_u64..5, Just(u64::MAX / 100)],
                0..12,
            ),
            0..30,
        ),
        fan_in in 2_usize..12,
        threads in 1_usize..4,
    ) {
        let spool = spool();
        let bytes = (256 << 10) + 5020 + fan_in * (5020 + 256);
        let sources = sources_of(&spool, &maps);
        let sorted = merge(sources, &spool, options(bytes, threads), &mut proceed).unwrap();
        let expected = sum_of(&maps);
        prop_assert_eq!(map_of(&sorted), expected.clone());
        for (key, &count) in &expected {
            prop_assert_eq!(sorted.get(key).unwrap(), count);
        }
        prop_assert_eq!(sorted.get(b"absent").unwrap(), 0);
        let mut cursor = sorted.in_order().unwrap();
        for (key, &count) in &expected {
            prop_assert_eq!(cursor.next().unwrap(), Some((key.as_slice(), count)));
        }
        prop_assert!(cursor.next().unwrap().is_none());
        let distinct: u64 = sorted.parts().iter().map(|part| part.distinct()).sum();
        prop_assert_eq!(distinct, expected.len() as u64);
        let total: u128 = sorted.parts().iter().map(|part| part.total()).sum();
        prop_assert_eq!(total, expected.values().map(|&count| u128::from(count)).sum());
    }
}

fn many(records: u32) -> Map {
    (0..records).map(|n| (format!("{:08}", n * 7).into_bytes(), u64::from(n) + 1)).collect()
}

#[test]
fn long_sections_are_looked_up_through_the_sparse_index() {
    let spool = spool();
    let map = many(400_000);
    let sorted = merge(
        sources_of(&spool, std::slice::from_ref(&map)),
        &spool,
        options(1 << 20, 1),
        &mut proceed,
    )
    .unwrap();
    assert_eq!(map_of(&sorted), map);
    for n in (0..400_000).step_by(997) {
        assert_eq!(sorted.get(format!("{:08}", n * 7).as_bytes()).unwrap(), n + 1);
        assert_eq!(sorted.get(format!("{:08}", n * 7 + 1).as_bytes()).unwrap(), 0);
    }
}

#[test]
fn chunks_of_merged_runs_are_reused() {
    let spool = spool();
    let maps: Vec<Map> = (0..8).map(|_| many(200_000)).collect();
    let sources = sources_of(&spool, &maps);
    let before = spool.disk_bytes();
    let sorted = merge(sources, &spool, options(1 << 20, 1), &mut proceed).unwrap();
    assert!(spool.disk_bytes() < before + before / 4, "{} {before}", spool.disk_bytes());
    drop(sorted);
}

#[test]
fn a_count_that_exceeds_64_bits_is_an_error() {
    let spool = spool();
    let map = Map::from([(b"ab".to_vec(), u64::MAX)]);
    let sources = sources_of(&spool, &[map.clone(), map]);
    let error = merge(sources, &spool, options(1 << 20, 1), &mut proceed).err().unwrap();
    assert_eq!(error.to_string(), "the count of pre-token \"ab\" exceeds 2^64 - 1");
}

#[test]
fn a_truncated_spool_is_damaged() {
    let spool = spool();
    let sources = sources_of(&spool, &[many(1000), many(10)]);
    spool.truncate(100);
    let error = merge(sources, &spool, options(1 << 20, 1), &mut proceed).err().unwrap();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("does not contain what was written"));
}

#[test]
fn a_missing_folder_is_named() {
    let error = Spool::new(Path::new("/nowhere/at/all")).err().unwrap();
    assert!(error.to_string().starts_with("/nowhere/at/all: "), "{error}");
}

#[test]
fn too_little_memory_for_two_pretokens_is_an_error() {
    let spool = spool();
    let map = Map::from([(vec![7; 1 << 20], 1)]);
    let sources = sources_of(&spool, &[map]);
    let error = merge(sources, &spool, options(2 << 20, 1), &mut proceed).err().unwrap();
    assert!(matches!(error, Error::Memory(_)));
    assert!(error.to_string().contains("larger memory budget"), "{error}");
}

#[test]
fn merging_can_be_stopped() {
    let spool = spool();
    let sources = sources_of(&spool, &[many(100_000), many(100_000)]);
    let stop = &mut || ControlFlow::Break(());
    let error = merge(sources, &spool, options(8 << 20, 2), stop).err().unwrap();
    assert!(matches!(error, Error::Interrupted));
}

#[test]
fn compaction_keeps_the_counts() {
    let runs = Runs::new(spool());
    let maps: Vec<Map> = (0..600_u32)
        .map(|n| Map::from([(vec![n as u8], 1), (vec![b'x', n as u8, 1], 2)]))
        .collect();
    for map in &maps {
        runs.write(&mut run_of(map).into_iter(), &mut proceed).unwrap();
    }
    assert_eq!(runs.written(), 600);
    let sorted = runs.merge(options(1 << 20, 2), &mut proceed).unwrap();
    assert_eq!(map_of(&sorted), sum_of(&maps));
}
