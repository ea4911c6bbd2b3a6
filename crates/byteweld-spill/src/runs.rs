//! Collects runs from several threads. Every 256 runs of a level are compacted into one of the
//! next.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::PARTS;
use crate::error::Result;
use crate::merge::{MergeOptions, Source, merge};
use crate::section::Section;
use crate::sorted_counts::{SortedCounts, write_run};
use crate::spool::Spool;

/// The number of runs that are compacted into one: few enough to merge in little memory.
const MAX_RUNS: usize = 256;
/// The memory of a compaction, which happens during counting.
const COMPACTION_BYTES: usize = 2 << 20;

/// One section per part.
type Run = Vec<Section>;

/// Runs waiting to be merged.
pub struct Runs {
    spool: Arc<Spool>,
    /// Runs by level, the number of times they were compacted. Runs of a level have similar sizes,
    /// so that each record is rewritten once per level, and there are few levels.
    levels: Mutex<Vec<Vec<Run>>>,
    written: Mutex<u64>,
}

impl Runs {
    /// No runs yet.
    pub fn new(spool: Arc<Spool>) -> Self {
        Self { spool, levels: Mutex::default(), written: Mutex::default() }
    }

    /// The number of runs written.
    pub fn written(&self) -> u64 {
        *lock(&self.written)
    }

    /// Writes a run: pre-tokens sorted by part and bytes. `keep_going` is called during
    /// compactions.
    pub fn write(
        &self,
        run: &mut dyn Iterator<Item = (&[u8], u64)>,
        keep_going: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        self.add(write_run(&self.spool, run)?, keep_going)?;
        *lock(&self.written) += 1;
        Ok(())
    }

    fn add(&self, mut run: Run, keep_going: &mut dyn FnMut() -> ControlFlow<()>) -> Result<()> {
        let mut level = 0;
        while let Some(full) = self.add_at(level, run) {
            run = self.compact(full, keep_going)?;
            level += 1;
        }
        Ok(())
    }

    /// Adds a run to a level; removes and returns all runs of the level if it is full.
    fn add_at(&self, level: usize, run: Run) -> Option<Vec<Run>> {
        let mut levels = lock(&self.levels);
        if levels.len() == level {
            levels.push(Vec::new());
        }
        let runs = &mut levels[level];
        runs.push(run);
        let longest = runs.iter().flatten().map(Section::longest).max().unwrap_or(0);
        let is_full = runs.len() >= MAX_RUNS && longest < COMPACTION_BYTES / (4 * MAX_RUNS);
        is_full.then(|| std::mem::take(runs))
    }

    fn compact(
        &self,
        runs: Vec<Run>,
        keep_going: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Run> {
        let options = MergeOptions { bytes: COMPACTION_BYTES, threads: NonZeroUsize::MIN };
        Ok(merge(by_part(runs), &self.spool, options, keep_going)?.into_parts())
    }

    /// Removes all runs and returns their sum.
    pub fn merge(
        &self,
        options: MergeOptions,
        keep_going: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<SortedCounts> {
        let runs = std::mem::take(&mut *lock(&self.levels)).into_iter().flatten();
        merge(by_part(runs), &self.spool, options, keep_going)
    }
}

/// The sections of each part.
fn by_part(runs: impl IntoIterator<Item = Run>) -> Vec<Vec<Source<'static>>> {
    let mut parts: Vec<Vec<Source<'static>>> = (0..PARTS).map(|_| Vec::new()).collect();
    for run in runs {
        for (part, section) in parts.iter_mut().zip(run) {
            part.push(Source::Owned(section));
        }
    }
    parts
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
