//! Memory limits, spilling to disk, and checking signals and reporting progress during long work.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use byteweld_core::Error;
use byteweld_core::counts as core;
use byteweld_corpus::Limits;
use byteweld_spill::{MergeOptions, PARTS, Runs, Spool, part_of};
use pyo3::prelude::*;

use crate::error::NoMemory;

/// The interval between checks of signals and progress reports, each of which may wait for the GIL.
const REPORT_EVERY: Duration = Duration::from_millis(20);

/// Interrupts are checked once per this many pre-tokens.
const CHECK_EVERY: usize = 1 << 14;

/// Memory for merging if no limit is given.
const USUAL_MERGE_BYTES: usize = 64 << 20;

/// How many bytes of memory counts may use, and the folder to spill to.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct MemoryLimit {
    folder: PathBuf,
    pub(crate) table_bytes: usize,
    pub(crate) text_bytes: usize,
    merge_bytes: usize,
    pub(crate) keep_bytes: usize,
    record_bytes: usize,
    dictionary_bytes: usize,
}

#[pymethods]
impl MemoryLimit {
    #[new]
    #[pyo3(signature = (folder, *, table_bytes, text_bytes, merge_bytes, keep_bytes, record_bytes, dictionary_bytes))]
    fn new(
        folder: PathBuf,
        table_bytes: usize,
        text_bytes: usize,
        merge_bytes: usize,
        keep_bytes: usize,
        record_bytes: usize,
        dictionary_bytes: usize,
    ) -> Self {
        Self {
            folder,
            table_bytes,
            text_bytes,
            merge_bytes,
            keep_bytes,
            record_bytes,
            dictionary_bytes,
        }
    }

    /// Whether counts of this many distinct pre-tokens and bytes may stay in memory.
    fn can_keep(&self, distinct: u128, distinct_bytes: u128) -> bool {
        match (usize::try_from(distinct), usize::try_from(distinct_bytes)) {
            (Ok(distinct), Ok(bytes)) => {
                core::Counts::memory_needed(distinct, bytes) <= self.keep_bytes
            }
            _ => false,
        }
    }
}

/// What reading may hold in memory at once.
pub(crate) fn reading_limits(limit: Option<&MemoryLimit>) -> Limits {
    limit.map_or_else(Limits::default, |limit| Limits {
        record_bytes: limit.record_bytes,
        dictionary_bytes: limit.dictionary_bytes,
        is_budget: true,
    })
}

/// A new temporary file, in the limit's folder.
pub(crate) fn spool(limit: Option<&MemoryLimit>) -> byteweld_core::Result<Arc<Spool>> {
    let folder = limit.map_or_else(std::env::temp_dir, |limit| limit.folder.clone());
    Spool::new(&folder).map(Arc::new).map_err(core_error)
}

/// The options of a merge within a limit.
pub(crate) fn merge_options(limit: Option<&MemoryLimit>, threads: NonZeroUsize) -> MergeOptions {
    let bytes = limit.map_or(USUAL_MERGE_BYTES, |limit| limit.merge_bytes);
    MergeOptions { bytes, threads }
}

/// The runs that counting spills. Sorting and writing a large table takes seconds, so signals are
/// checked while that runs; an exception in one thread stops the others.
pub(crate) struct SpilledRuns {
    pub(crate) runs: Runs,
    watch: Mutex<Watch>,
    stopped: AtomicBool,
}

impl SpilledRuns {
    pub(crate) fn new(spool: Arc<Spool>) -> Self {
        Self { runs: Runs::new(spool), watch: Mutex::default(), stopped: AtomicBool::new(false) }
    }

    /// Stops the work of all threads.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The exception that Python raised while a table was spilled.
    pub(crate) fn failure(&self) -> Option<PyErr> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).failure.take()
    }

    fn check(&self) -> ControlFlow<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        // One thread checks at a time; the others continue.
        let Ok(mut watch) = self.watch.try_lock() else { return ControlFlow::Continue(()) };
        let answer = watch.go_on(|_| Ok(()));
        if answer.is_break() {
            self.stop();
        }
        answer
    }
}

impl core::Spill for SpilledRuns {
    fn parts(&self) -> usize {
        PARTS
    }

    fn part(&self, pretoken: &[u8]) -> usize {
        part_of(pretoken)
    }

    fn check_interrupt(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match self.check() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Box::new(byteweld_spill::Error::Interrupted)),
        }
    }

    fn write(
        &self,
        run: &mut dyn Iterator<Item = (&[u8], u64)>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut written = 0_usize;
        let mut is_stopped = false;
        let mut run = run.take_while(|_| {
            written += 1;
            is_stopped = written.is_multiple_of(CHECK_EVERY) && self.check().is_break();
            !is_stopped
        });
        match self.runs.write(&mut run, &mut || self.check()) {
            Ok(()) => {}
            Err(byteweld_spill::Error::OutOfMemory { .. }) => return Err(Box::new(NoMemory)),
            Err(error) => return Err(Box::new(error)),
        }
        if is_stopped { Err(Box::new(byteweld_spill::Error::Interrupted)) } else { Ok(()) }
    }
}

/// Converts an error of the spill crate to one of the core.
pub(crate) fn core_error(error: byteweld_spill::Error) -> Error {
    match error {
        byteweld_spill::Error::Overflow(message) => Error::Overflow(message),
        byteweld_spill::Error::Memory(message) => Error::Memory(message),
        byteweld_spill::Error::OutOfMemory { bytes } => Error::OutOfMemory { bytes },
        byteweld_spill::Error::Interrupted => Error::Interrupted,
        other => Error::Source(Box::new(other)),
    }
}

/// Checks signals for code that runs on several threads. Python handles signals on its main thread
/// only, so the caller's thread checks, and the others see whether it stopped.
pub(crate) struct Signals {
    caller: ThreadId,
    watch: Mutex<Watch>,
    stopped: AtomicBool,
}

impl Signals {
    /// Signals that the current thread checks.
    pub(crate) fn new() -> Arc<Self> {
        let caller = std::thread::current().id();
        Arc::new(Self { caller, watch: Mutex::default(), stopped: AtomicBool::new(false) })
    }

    /// Checks signals and calls `report` if the interval has passed; only on the caller's thread.
    pub(crate) fn go_on(&self, report: impl FnOnce(Python<'_>) -> PyResult<()>) -> ControlFlow<()> {
        let answer = self.watch.lock().unwrap_or_else(PoisonError::into_inner).go_on(report);
        if answer.is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Whether to stop; on any thread.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
            || (std::thread::current().id() == self.caller && self.go_on(|_| Ok(())).is_break())
    }

    /// The exception that Python raised, if any; otherwise `error`.
    pub(crate) fn cause(&self, error: PyErr) -> PyErr {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.failure.take().unwrap_or(error)
    }
}

/// Checks signals and reports progress while the engine works without the GIL.
#[derive(Default)]
pub(crate) struct Watch {
    last: Option<Instant>,
    failure: Option<PyErr>,
}

impl Watch {
    /// Checks signals and calls `report` if the interval has passed; an exception stops the work.
    pub(crate) fn go_on(
        &mut self,
        report: impl FnOnce(Python<'_>) -> PyResult<()>,
    ) -> ControlFlow<()> {
        if self.last.is_some_and(|last| last.elapsed() < REPORT_EVERY) {
            return ControlFlow::Continue(());
        }
        self.last = Some(Instant::now());
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            report(py)
        });
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// The exception that Python raised, if any; otherwise the engine's result.
    pub(crate) fn result<T>(self, py: Python<'_>, result: byteweld_core::Result<T>) -> PyResult<T> {
        match self.failure {
            Some(error) => Err(error),
            None => result.map_err(|error| crate::error::raise(py, error)),
        }
    }
}
