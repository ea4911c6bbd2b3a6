//! When the caller hears how far the training is, and may stop it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::LearnedMerge;
use crate::error::{Error, Result};

/// The caller hears of every so many merges,
const MERGES: usize = 100;
/// and of fewer after this time.
const PAUSE: Duration = Duration::from_millis(20);

/// Calls `progress` often enough and not too often.
pub(super) struct Watch<'p> {
    progress: &'p mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
    last: Instant,
    told: usize,
}

impl<'p> Watch<'p> {
    pub(super) fn new(progress: &'p mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>) -> Self {
        Watch { progress, last: Instant::now(), told: 0 }
    }

    /// To be called after every step of the work.
    pub(super) fn look(&mut self, merges: &[LearnedMerge]) -> Result<()> {
        if merges.len() < self.told + MERGES && self.last.elapsed() < PAUSE {
            return Ok(());
        }
        self.told = merges.len() / MERGES * MERGES;
        let told = (self.progress)(merges);
        self.last = Instant::now();
        if told.is_break() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
