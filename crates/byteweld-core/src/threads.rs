//! Work on several threads, which end with the call.

use std::sync::{Mutex, PoisonError};

/// Does `work` to every item, on the caller's thread and on others, so many in all. A thread that cannot be
/// started leaves its items to the rest; a panic in one is the caller's.
pub(crate) fn each<T: Send>(items: Vec<T>, threads: usize, work: impl Fn(T) + Sync) {
    if threads <= 1 || items.len() <= 1 {
        return items.into_iter().for_each(work);
    }
    let others = threads.min(items.len()) - 1;
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..others {
            if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        for threads in [0, 1, 2, 7] {
            let done: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            each(done.iter().collect(), threads, |item| {
                item.fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|item| item.load(Ordering::Relaxed) == 1));
        }
    }
}
