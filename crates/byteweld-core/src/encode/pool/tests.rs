//! Which cache a call finds.

use super::*;
use crate::encode::cache::PretokenKey;

/// Adds many pre-tokens to the cache of a scratch.
fn fill(scratch: &mut Scratch) {
    scratch.cache.prepare();
    for number in 0..MIN_COPIED as u32 {
        scratch.cache.insert(PretokenKey::new(format!("{number}").as_bytes(), false), &[number]);
    }
}

fn knows(scratch: &mut Scratch) -> bool {
    scratch.cache.prepare();
    scratch.cache.contains(PretokenKey::new(b"17", false))
}

#[test]
fn the_next_call_finds_the_cache_of_the_last() {
    let pool = Pool::default();
    pool.with_scratch(fill);
    assert!(pool.with_scratch(knows));
    assert_eq!(pool.len(), 0);
}

#[test]
fn a_call_within_a_call_finds_a_scratch_and_later_a_warm_one() {
    let pool = Pool::default();
    pool.with_scratch(|outer| {
        fill(outer);
        assert!(!pool.with_scratch(knows), "nobody may look into the outer one's");
        assert_eq!(pool.len(), 1, "the inner one's is kept");
    });
    // The outer one's was copied when it was free.
    pool.with_scratch(|_| assert!(pool.with_scratch(knows)));
    assert_eq!(pool.len(), 1);
}

#[test]
fn threads_start_with_what_the_first_one_knows() {
    let pool = Pool::default();
    pool.warm_up(2);
    assert_eq!(pool.len(), 0, "there is nothing to copy yet");
    pool.with_scratch(fill);
    pool.warm_up(2);
    assert_eq!(pool.len(), 2);
    pool.with_scratch(|_| {
        pool.with_scratch(|inner| {
            assert!(knows(inner));
            assert!(pool.with_scratch(knows));
        });
    });
}

#[test]
fn a_cache_that_knows_enough_is_not_replaced() {
    let pool = Pool::default();
    pool.with_scratch(|_| {
        pool.with_scratch(|inner| {
            fill(inner);
            inner.cache.insert(PretokenKey::new(b"only here", false), &[1]);
        });
    });
    pool.with_scratch(fill);
    pool.with_scratch(|_| {
        let key = PretokenKey::new(b"only here", false);
        assert!(pool.with_scratch(|inner| inner.cache.contains(key)));
    });
}
