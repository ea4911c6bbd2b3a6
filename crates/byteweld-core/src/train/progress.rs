//! Decides when to call the caller's progress callback, which may stop the training.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::LearnedMerge;
use crate::error::{Error, Result};

/// Progress is reported after this many merges,
const MERGES_PER_REPORT: usize = 100;
/// or after this time, whichever comes first.
const REPORT_INTERVAL: Duration = Duration::from_millis(20);

/// Calls `progress` at intervals.
pub(super) struct ProgressReporter<'p> {
    progress: &'p mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>,
    last_report: Instant,
    /// The last multiple of [`MERGES_PER_REPORT`] that was reported.
    reported: usize,
}

impl<'p> ProgressReporter<'p> {
    pub(super) fn new(progress: &'p mut dyn FnMut(&[LearnedMerge]) -> ControlFlow<()>) -> Self {
        ProgressReporter { progress, last_report: Instant::now(), reported: 0 }
    }

    /// Reports progress if a report is due. Called after every step of the work.
    pub(super) fn check(&mut self, merges: &[LearnedMerge]) -> Result<()> {
        let is_due = merges.len() >= self.reported + MERGES_PER_REPORT
            || self.last_report.elapsed() >= REPORT_INTERVAL;
        if !is_due {
            return Ok(());
        }
        self.reported = merges.len() / MERGES_PER_REPORT * MERGES_PER_REPORT;
        let flow = (self.progress)(merges);
        self.last_report = Instant::now();
        if flow.is_break() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
