//! Distribution of work, interrupts and panics.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::error::Error;

#[test]
fn every_item_is_processed_once() {
    for (threads, is_long) in [(0, false), (1, false), (1, true), (2, false), (7, true)] {
        let done: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
        let items = done.iter().collect();
        let outcome = for_each(items, threads, is_long, &mut || Ok(()), |item: &AtomicUsize, _| {
            item.fetch_add(1, Ordering::Relaxed);
        });
        assert!(outcome.is_ok());
        assert!(done.iter().all(|item| item.load(Ordering::Relaxed) == 1));
    }
}

#[test]
fn long_work_can_be_interrupted() {
    let outcome = for_each(vec![()], 1, true, &mut || Err(Error::Interrupted), |(), stop| {
        while !stop.is_set() {
            std::thread::yield_now();
        }
    });
    assert!(matches!(outcome, Err(Error::Interrupted)));
}

#[test]
fn the_callers_result_comes_first() {
    for threads in [0, 1, 2, 7] {
        let next = AtomicUsize::new(1);
        let results = run_workers(threads, &|| next.fetch_add(1, Ordering::Relaxed), || 0);
        assert_eq!(results[0], 0);
        let mut others = results[1..].to_vec();
        others.sort_unstable();
        assert_eq!(others, (1..threads.max(1)).collect::<Vec<_>>());
    }
}

#[test]
fn a_panic_of_a_worker_reaches_the_caller() {
    let run = || run_workers(2, &|| std::panic::resume_unwind(Box::new("worker")), || ());
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"worker"));
}
