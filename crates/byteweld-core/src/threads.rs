//! Work on several threads, which end with the call. Nowhere else in the crate is a thread started.
//!
//! `each` shares out a list of items, and can be told to stop; `together` is for workers that find their
//! work themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::error::Result;

/// How often the caller is asked whether work shall go on.
const PAUSE: Duration = Duration::from_millis(20);

/// Says that the work's result will not be needed.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does `work` to every item on at most so many threads. Short work is done at once, the caller's thread
/// among them. During long work the caller's thread asks `goes_on` every now and then; if that fails, the
/// work is told to stop, and it is not known what was done. A thread that cannot be started leaves its
/// items to the rest; a panic in one is the caller's.
pub(crate) fn each<T: Send>(
    items: Vec<T>,
    threads: usize,
    is_long: bool,
    goes_on: &mut dyn FnMut() -> Result<()>,
    work: impl Fn(T, &Stop) + Sync,
) -> Result<()> {
    let stop = Stop::default();
    if !is_long && (threads <= 1 || items.len() <= 1) {
        items.into_iter().for_each(|item| work(item, &stop));
        return Ok(());
    }
    let threads = threads.clamp(1, items.len().max(1));
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(item) = next() {
            work(item, &stop);
        }
    };
    if !is_long {
        together(threads, &run, run);
        return Ok(());
    }
    let (ended, all_ended) = channel::<()>();
    std::thread::scope(|scope| {
        let started = start(scope, threads, || {
            let (run, ended) = (&run, ended.clone()); // dropped when the thread ends, however it does
            move || {
                let _ended = ended;
                run();
            }
        });
        drop(ended);
        if started.is_empty() {
            run();
            return Ok(());
        }
        while all_ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = goes_on() {
                stop.0.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })
}

/// Runs `mine` on the caller's thread and `work` on as many others as make up the number; gives what they
/// return, the caller's first. A thread that cannot be started leaves its work to the rest; a panic in one
/// is the caller's.
pub(crate) fn together<R: Send>(
    threads: usize,
    work: &(impl Fn() -> R + Sync),
    mine: impl FnOnce() -> R,
) -> Vec<R> {
    std::thread::scope(|scope| {
        let others = start(scope, threads.saturating_sub(1), || work);
        let mut results = vec![mine()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}

/// Starts so many threads, or as many as can be started.
fn start<'scope, R: Send + 'scope, W: FnOnce() -> R + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    threads: usize,
    mut worker: impl FnMut() -> W,
) -> Vec<ScopedJoinHandle<'scope, R>> {
    (0..threads).map_while(|_| Builder::new().spawn_scoped(scope, worker()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::error::Error;

    #[test]
    fn every_item_is_worked_on_once() {
        for (threads, is_long) in [(0, false), (1, false), (1, true), (2, false), (7, true)] {
            let done: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            let items = done.iter().collect();
            let outcome = each(items, threads, is_long, &mut || Ok(()), |item: &AtomicUsize, _| {
                item.fetch_add(1, Ordering::Relaxed);
            });
            assert!(outcome.is_ok());
            assert!(done.iter().all(|item| item.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn long_work_is_told_to_stop() {
        let outcome = each(vec![()], 1, true, &mut || Err(Error::Interrupted), |(), stop| {
            while !stop.is_set() {
                std::thread::yield_now();
            }
        });
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }
    #[test]
    fn workers_work_together_and_the_callers_result_comes_first() {
        for threads in [0, 1, 2, 7] {
            let next = AtomicUsize::new(1);
            let results = together(threads, &|| next.fetch_add(1, Ordering::Relaxed), || 0);
            assert_eq!(results[0], 0);
            let mut others = results[1..].to_vec();
            others.sort_unstable();
            assert_eq!(others, (1..threads.max(1)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_panic_of_a_worker_is_the_callers() {
        let run = || together(2, &|| std::panic::resume_unwind(Box::new("worker")), || ());
        let panic = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"worker"));
    }
}
