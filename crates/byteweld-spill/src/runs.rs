//! Runs as they come, from several threads at once. They never get too many: 256 are merged to one.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::PARTS;
use crate::error::Result;
use crate::merge::{MergeOptions, Source, merge};
use crate::section::Section;
use crate::sorted::{Sorted, sections};
use crate::spool::Spool;

/// How many runs of one level become one of the next: few enough to be merged in little memory.
const MOST_RUNS: usize = 256;
/// The memory that merging them takes while counting goes on.
const COMPACT_BYTES: usize = 2 << 20;

/// One section for each part.
type Run = Vec<Section>;

/// Runs that wait to be merged.
pub struct Runs {
    spool: Arc<Spool>,
    /// By level: how often a run has been merged. Runs of a level are of like size, so that each record
    /// is rewritten once for each level, and levels are few.
    levels: Mutex<Vec<Vec<Run>>>,
    written: Mutex<u64>,
}

impl Runs {
    /// No runs yet.
    pub fn new(spool: Arc<Spool>) -> Self {
        Self { spool, levels: Mutex::default(), written: Mutex::default() }
    }

    /// How many runs were written.
    pub fn written(&self) -> u64 {
        *lock(&self.written)
    }

    /// Writes a run: pre-tokens in order of their parts and bytes. `keep_going` is asked while runs are
    /// merged because they are too many.
    pub fn write(
        &self,
        run: &mut dyn Iterator<Item = (&[u8], u64)>,
        keep_going: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        self.add(sections(&self.spool, run)?, keep_going)?;
        *lock(&self.written) += 1;
        Ok(())
    }

    fn add(&self, mut run: Run, keep_going: &mut dyn FnMut() -> ControlFlow<()>) -> Result<()> {
        let mut level = 0;
        while let Some(many) = self.add_at(level, run) {
            run = self.compact(many, keep_going)?;
            level += 1;
        }
        Ok(())
    }

    /// Adds a run to a level; gives all of them back if they are too many.
    fn add_at(&self, level: usize, run: Run) -> Option<Vec<Run>> {
        let mut levels = lock(&self.levels);
        if levels.len() == level {
            levels.push(Vec::new());
        }
        let runs = &mut levels[level];
        runs.push(run);
        let longest = runs.iter().flatten().map(Section::longest).max().unwrap_or(0);
        let is_full = runs.len() >= MOST_RUNS && longest < COMPACT_BYTES / (4 * MOST_RUNS);
        is_full.then(|| std::mem::take(runs))
    }

    fn compact(
        &self,
        runs: Vec<Run>,
        keep_going: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Run> {
        let options = MergeOptions { bytes: COMPACT_BYTES, threads: NonZeroUsize::MIN };
        Ok(merge(by_part(runs), &self.spool, options, keep_going)?.into_parts())
    }

    /// The sum of all runs; there are none afterwards.
    pub fn merge(
        &self,
        options: MergeOptions,
        keep_going: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sorted> {
        let runs = std::mem::take(&mut *lock(&self.levels)).into_iter().flatten();
        merge(by_part(runs), &self.spool, options, keep_going)
    }
}

/// The sections of each part.
fn by_part(runs: impl IntoIterator<Item = Run>) -> Vec<Vec<Source<'static>>> {
    let mut parts: Vec<Vec<Source<'static>>> = (0..PARTS).map(|_| Vec::new()).collect();
    for run in runs {
        for (part, section) in parts.iter_mut().zip(run) {
            part.push(Source::Own(section));
        }
    }
    parts
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
