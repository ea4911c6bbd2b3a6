//! Scoped threads, which end with the call. No other module of the crate starts threads.
//!
//! `for_each` distributes a list of items and can be interrupted; `run_workers` runs workers that
//! fetch their own work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::error::Result;
use crate::reserve::{THREAD_BYTES, is_available};
use crate::watch::Watch;

/// The interval between interrupt checks during long work.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(20);

/// Set when work should stop because its result is no longer needed.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Does `work` on every item with at most `threads` threads. Short work includes the caller's
/// thread. During long work the caller's thread calls `check_interrupt` at intervals; if that
/// fails, the work is stopped in an unspecified state. If a thread cannot be started, the others do
/// its share. Panics propagate to the caller.
pub(crate) fn for_each<T: Send>(
    items: Vec<T>,
    threads: usize,
    is_long: bool,
    check_interrupt: &mut dyn FnMut() -> Result<()>,
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
        run_workers(threads, &run, run);
        return Ok(());
    }
    let (ended, all_ended) = channel::<()>();
    std::thread::scope(|scope| {
        let started = spawn(scope, threads, || {
            let (run, ended) = (&run, ended.clone()); // dropped when the thread ends, even by a panic
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
        while all_ended.recv_timeout(INTERRUPT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = check_interrupt() {
                stop.0.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })
}

/// Runs `mine` on the caller's thread and `work` on `threads - 1` others; returns their results,
/// the caller's first. If a thread cannot be started, the others do its share. Panics propagate to
/// the caller.
pub(crate) fn run_workers<R: Send>(
    threads: usize,
    work: &(impl Fn() -> R + Sync),
    mine: impl FnOnce() -> R,
) -> Vec<R> {
    std::thread::scope(|scope| {
        let others = spawn(scope, threads.saturating_sub(1), || work);
        let mut results = vec![mine()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}

/// Runs `work` on `threads` threads beside the caller's, each with a clone of `shared`, and `mine`,
/// which is told how many could be started, on the caller's. Panics propagate to the caller.
pub(crate) fn run_beside<T: Clone + Send, R>(
    threads: usize,
    shared: T,
    work: &(impl Fn(T) + Sync),
    mine: impl FnOnce(usize) -> R,
) -> R {
    std::thread::scope(|scope| {
        let others = spawn(scope, threads, || {
            let shared = shared.clone();
            move || work(shared)
        });
        drop(shared);
        let result = mine(others.len());
        for other in others {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        result
    })
}

/// The same as [`run_workers`], and looks at the watch while it waits for the others; they have watches that stop together with this one.
pub(crate) fn run_workers_watched<R: Send>(
    threads: usize,
    work: &(impl Fn() -> R + Sync),
    mine: impl FnOnce() -> R,
    mut watch: Watch,
) -> Vec<R> {
    let (ended, all_ended) = channel::<()>();
    std::thread::scope(|scope| {
        let others = spawn(scope, threads.saturating_sub(1), || {
            let ended = ended.clone(); // dropped when the thread ends, even by a panic
            move || {
                let _ended = ended;
                work()
            }
        });
        drop(ended);
        let mut results = vec![mine()];
        while all_ended.recv_timeout(INTERRUPT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let _ = watch.look(); // the others hear of it
        }
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}

/// Starts `threads` threads, or as many as possible: none that there is no memory for.
fn spawn<'scope, R: Send + 'scope, W: FnOnce() -> R + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    threads: usize,
    mut worker: impl FnMut() -> W,
) -> Vec<ScopedJoinHandle<'scope, R>> {
    (0..threads)
        .take_while(|_| is_available(THREAD_BYTES))
        .map_while(|_| Builder::new().spawn_scoped(scope, worker()).ok())
        .collect()
}

#[cfg(test)]
mod tests;
