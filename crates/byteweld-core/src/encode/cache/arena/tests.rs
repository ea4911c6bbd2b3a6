//! Eviction from a full arena.

use super::*;

#[test]
fn a_full_arena_forgets_the_oldest_and_never_lies() {
    let mut arena = Arena::default();
    let mut written: Vec<(Position, Vec<u8>)> = Vec::new();
    for number in 0..200_000u32 {
        let data = number.to_le_bytes().repeat(5 + number as usize % 27);
        let (one, other) = data.split_at(number as usize % 20);
        written.push((arena.push([one, other]).unwrap(), data));
        assert!(arena.bytes.len() <= ARENA_BYTES);
        let (position, data) = &written[number as usize / 2];
        assert!(arena.get(*position, data.len()).is_none_or(|found| found == data));
        let recent = written.len().saturating_sub(ARENA_BYTES / 200);
        let (position, data) = &written[recent];
        assert_eq!(arena.get(*position, data.len()), Some(&data[..]));
    }
    let (position, data) = &written[0];
    assert_eq!(arena.get(*position, data.len()), None);
}

#[test]
fn positions_run_out_and_are_not_used_twice() {
    let mut arena = Arena { next: u64::from(u32::MAX) - 1, ..Arena::default() };
    let (first, second) = (arena.push([b"abcd", b""]), arena.push([b"abcd", b""]));
    assert!(first.is_some() && second.is_some());
    assert_eq!(arena.push([b"abcd", b""]), None);
}
