//! The scratch of calls that are over, for the next calls; the cache in it is what makes them fast.
//!
//! A call never waits for a lock: in a forked process, one may be held by a thread that does not
//! exist. If calls overlap, each thread gets a scratch of its own, whose cache starts as a copy of
//! the one that knows most, as soon as that one is free to be copied.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::scratch::Scratch;

/// At most this many are kept, of up to 13 MB each; more threads at once make their own.
const MAX_POOLED: usize = 64;

/// A cache with this many times fewer pre-tokens than another is replaced by a copy of that one.
const MUCH_LESS: usize = 4;

/// A cache with fewer pre-tokens is not worth copying.
const MIN_COPIED: usize = 1 << 10;

#[derive(Default)]
pub(super) struct Pool {
    /// The scratch of one call at a time: the only one if calls do not overlap. The lock is held as
    /// long as the call takes; locking twice would take as long as encoding a word.
    first: Mutex<Option<Box<Scratch>>>,
    /// Those of overlapping calls.
    others: Mutex<Vec<Box<Scratch>>>,
    /// The number of calls that had to start with an empty cache since it was last looked at.
    cold_starts: AtomicUsize,
}

impl Pool {
    /// Calls `work` with a scratch.
    pub(super) fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        if let Ok(mut first) = self.first.try_lock() {
            let scratch = first.get_or_insert_default();
            let result = work(scratch);
            scratch.shrink();
            if self.cold_starts.load(Ordering::Relaxed) > 0 {
                self.share(scratch);
            }
            return result;
        }
        let pooled = self.others.try_lock().ok().and_then(|mut others| others.pop());
        let mut scratch = pooled.unwrap_or_else(|| {
            self.cold_starts.fetch_add(1, Ordering::Relaxed);
            Box::default()
        });
        let result = work(&mut scratch);
        scratch.shrink();
        self.put_back(scratch);
        result
    }

    fn put_back(&self, scratch: Box<Scratch>) {
        if let Ok(mut others) = self.others.try_lock()
            && others.len() < MAX_POOLED
        {
            others.push(scratch);
        }
    }

    /// Replaces caches that know much less by copies of this one.
    #[cold]
    fn share(&self, scratch: &Scratch) {
        let Ok(mut others) = self.others.try_lock() else { return };
        let known = scratch.cache.len();
        let knows_little = |other: &&mut Box<Scratch>| other.cache.len() * MUCH_LESS < known;
        if others.is_empty() || known < MIN_COPIED {
            return; // they are in use, or there is nothing to share yet
        }
        for other in others.iter_mut().filter(knows_little) {
            other.cache = scratch.cache.copy();
        }
        self.cold_starts.store(0, Ordering::Relaxed);
    }

    /// Gets ready for `threads` more threads than the caller's: each will find a scratch whose cache
    /// knows what the first one does.
    pub(super) fn warm_up(&self, threads: usize) {
        let Ok(mut first) = self.first.try_lock() else { return };
        let scratch = first.get_or_insert_default();
        if scratch.cache.len() < MIN_COPIED {
            return;
        }
        if let Ok(mut others) = self.others.try_lock() {
            while others.len() < threads.min(MAX_POOLED) {
                others.push(Box::default());
            }
        }
        self.share(scratch);
    }

    /// Frees everything that is kept and not in use.
    pub(super) fn clear(&self) {
        if let Ok(mut first) = self.first.try_lock() {
            *first = None;
        }
        if let Ok(mut others) = self.others.try_lock() {
            others.clear();
        }
    }

    /// The number of scratches that are kept, apart from the first.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.others.try_lock().map_or(0, |others| others.len())
    }
}

#[cfg(test)]
mod tests;
