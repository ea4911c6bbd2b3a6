//! Eviction from a full arena.

use super::*;

#[test]
fn a_full_arena_forgets_the_oldest_and_never_lies() {
    let mut arena = Arena::default();
    let mut written: Vec<(u64, Vec<u32>)> = Vec::new();
    for number in 0..200_000u32 {
        let ids = vec![number; 5 + number as usize % 27];
        written.push((arena.push(&ids), ids));
        assert!(arena.ids.len() <= ARENA_IDS);
        let (place, ids) = &written[number as usize / 2];
        assert!(arena.get(*place, ids.len()).is_none_or(|found| found == ids));
        let recent = written.len().saturating_sub(ARENA_IDS / 32);
        let (place, ids) = &written[recent];
        assert_eq!(arena.get(*place, ids.len()), Some(&ids[..]));
    }
    let (place, ids) = &written[0];
    assert_eq!(arena.get(*place, ids.len()), None);
}
