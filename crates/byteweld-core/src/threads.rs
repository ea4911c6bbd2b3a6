//! Work on several threads, which end with the call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
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
    let others = threads.clamp(1, items.len().max(1)) - usize::from(!is_long);
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(item) = next() {
            work(item, &stop);
        }
    };
    let (ended, all_ended) = channel::<()>();
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..others {
            let ended = ended.clone(); // dropped when the thread ends, however it does
            let worker = || {
                let _ended = ended;
                run();
            };
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
            started += 1;
        }
        drop(ended);
        if !is_long || started == 0 {
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
}
