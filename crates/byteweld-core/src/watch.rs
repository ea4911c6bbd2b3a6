//! Whether the caller wants long work to stop.
//!
//! Work that may take long tells its watch what it has done. The watch looks at the clock once per [`WORK`], and asks
//! the caller once per [`INTERVAL`]: between two looks, a hot loop pays for one subtraction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Bytes of text, or as much other work, between two looks at the clock: well below a millisecond.
const WORK: usize = 1 << 15;

/// The time between two questions, which may have to wait for a lock of the caller's.
const INTERVAL: Duration = Duration::from_millis(20);

/// Whether the caller wants to stop. Asked on the thread of the call only.
pub type WantsToStop = fn() -> bool;

/// Watches one call, or one thread of it. The default never stops.
#[derive(Clone)]
pub struct Watch {
    question: Option<WantsToStop>,
    /// Shared by the threads of a call.
    stopped: Option<Arc<AtomicBool>>,
    /// When the caller was last asked, or the work started.
    last: Option<Instant>,
    /// So much work until the next look.
    left: usize,
}

impl Default for Watch {
    fn default() -> Self {
        Self { question: None, stopped: None, last: None, left: WORK }
    }
}

impl Watch {
    /// A watch that asks this question.
    pub fn new(question: WantsToStop) -> Self {
        Self { question: Some(question), ..Self::default() }
    }

    /// A watch that stops, with all its clones, when [`Watch::stop`] is called on one of them.
    pub(crate) fn stoppable() -> Self {
        Self { stopped: Some(Arc::default()), ..Self::default() }
    }

    /// Makes all work stop that shares this watch.
    pub(crate) fn stop(&self) {
        if let Some(stopped) = &self.stopped {
            stopped.store(true, Ordering::Relaxed);
        }
    }

    /// A watch for each of several threads: the first asks the question, all stop together.
    pub(crate) fn shared(&self) -> (Self, Self) {
        if self.question.is_none() && self.stopped.is_none() {
            return (Self::default(), Self::default());
        }
        let stopped = Some(self.stopped.clone().unwrap_or_default());
        let first = Self { stopped: stopped.clone(), ..self.clone() };
        (first, Self { stopped, ..Self::default() })
    }

    /// Records work, in bytes of text or as much other work. Fails if the caller wants to stop.
    #[inline(always)]
    pub fn worked(&mut self, bytes: usize) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Asks, if it is time. For work in larger steps.
    #[cold]
    pub(crate) fn look(&mut self) -> Result<()> {
        self.left = WORK;
        let is_set = |stopped: &Arc<AtomicBool>| stopped.load(Ordering::Relaxed);
        if self.stopped.as_ref().is_some_and(is_set) {
            return Err(Error::Interrupted);
        }
        let Some(wants_to_stop) = self.question else { return Ok(()) };
        let last = *self.last.get_or_insert_with(Instant::now);
        if last.elapsed() < INTERVAL {
            return Ok(());
        }
        let answer = wants_to_stop();
        self.last = Some(Instant::now());
        if !answer {
            return Ok(());
        }
        if let Some(stopped) = &self.stopped {
            stopped.store(true, Ordering::Relaxed);
        }
        Err(Error::Interrupted)
    }
}

#[cfg(test)]
mod tests;
