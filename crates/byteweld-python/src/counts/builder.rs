//! `CountBuilder`: counts from documents and files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byteweld_core::counts as core;
use byteweld_core::pretoken::Pretokenizer;
use byteweld_core::reserve::check_memory;
use byteweld_core::specials::Specials;
use pyo3::prelude::*;

use super::combine::merge_runs;
use super::{Counts, Table};
use crate::convert::{texts, threads};
use crate::error::raise;
use crate::inputs::{Arguments, Inputs};
use crate::limit::{MemoryLimit, Signals, SpilledRuns, Watch, reading_limits, spool};

/// Counts documents as they arrive. An error loses the counts so far.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct CountBuilder {
    pretokenizer: Pretokenizer,
    boundaries: Specials,
    alphabet: Option<[bool; 256]>,
    threads: std::num::NonZeroUsize,
    limit: Option<(Py<MemoryLimit>, Arc<SpilledRuns>)>,
    /// Idle counters with the counts so far: one, or more if several Python threads count at once.
    counters: Mutex<Vec<core::Counter>>,
}

impl CountBuilder {
    fn options(&self) -> core::CountOptions<'_> {
        core::CountOptions {
            pretokenizer: &self.pretokenizer,
            boundaries: &self.boundaries,
            alphabet: self.alphabet.as_ref(),
        }
    }

    fn new_counter(&self) -> core::Counter {
        let Some((limit, runs)) = &self.limit else { return core::Counter::new(self.threads) };
        let MemoryLimit { table_bytes, text_bytes, .. } = *limit.get();
        let spill: Arc<dyn core::Spill> = Arc::<SpilledRuns>::clone(runs);
        core::Counter::with_limit(
            core::MemoryLimit { table_bytes, text_bytes, spill },
            self.threads,
        )
    }

    /// Stops threads that are spilling.
    fn stop(&self) {
        if let Some((_, runs)) = &self.limit {
            runs.stop();
        }
    }

    /// The exception that Python raised while a table was spilled, if any; otherwise `error`.
    fn cause(&self, error: PyErr) -> PyErr {
        self.limit.as_ref().and_then(|(_, runs)| runs.failure()).unwrap_or(error)
    }

    fn counters(&self) -> MutexGuard<'_, Vec<core::Counter>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts with an idle counter. The lock is released first, since `work` may call Python.
    fn with_counter(
        &self,
        work: impl FnOnce(&mut core::Counter) -> byteweld_core::Result<()>,
    ) -> byteweld_core::Result<()> {
        let idle = self.counters().pop();
        let mut counter = idle.unwrap_or_else(|| self.new_counter());
        work(&mut counter)?;
        self.counters().push(counter);
        Ok(())
    }
}

#[pymethods]
impl CountBuilder {
    #[new]
    #[pyo3(signature = (*, pattern, boundaries, alphabet, num_threads, limit))]
    fn new(
        py: Python<'_>,
        pattern: Option<&str>,
        boundaries: Vec<String>,
        alphabet: Option<Vec<u8>>,
        num_threads: Option<i128>,
        limit: Option<Py<MemoryLimit>>,
    ) -> PyResult<Self> {
        check_memory().map_err(|e| raise(py, e))?;
        // If a special token contains other bytes, only the trainer can tell whether they also
        // occur elsewhere.
        let alphabet = alphabet.filter(|bytes| {
            boundaries.iter().all(|text| text.bytes().all(|byte| bytes.contains(&byte)))
        });
        let alphabet = alphabet.map(|bytes| {
            let mut known = [false; 256];
            for byte in bytes {
                known[byte as usize] = true;
            }
            known
        });
        // The file is created now, so that an unwritable folder fails before the work starts.
        let limit = match limit {
            None => None,
            Some(limit) => {
                let spool = spool(Some(limit.get())).map_err(|e| raise(py, e))?;
                Some((limit, Arc::new(SpilledRuns::new(spool))))
            }
        };
        Ok(Self {
            pretokenizer: Pretokenizer::new(pattern).map_err(|e| raise(py, e))?,
            boundaries: Specials::new(&boundaries).map_err(|e| raise(py, e))?,
            alphabet,
            threads: threads(num_threads)?,
            limit,
            counters: Mutex::default(),
        })
    }

    /// Counts documents in memory.
    fn add_documents(&self, py: Python<'_>, documents: &Bound<'_, PyAny>) -> PyResult<()> {
        let documents = texts(documents)?;
        let counted = py.detach(|| {
            self.with_counter(|counter| counter.count_documents(&documents, &self.options()))
        });
        counted.map_err(|e| self.cause(raise(py, e)))
    }

    /// Counts the documents of files and tables; returns the number of skipped ones. `progress` is
    /// called with the bytes read.
    #[pyo3(signature = (arguments, *, progress))]
    fn add_files(
        &self,
        py: Python<'_>,
        arguments: Arguments,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let limits = reading_limits(self.limit.as_ref().map(|(limit, _)| limit.get()));
        let mut inputs = Inputs::new(arguments, limits);
        let signals = Signals::new();
        let watched = Arc::clone(&signals);
        inputs.set_interrupt(move || watched.is_stopped());
        let consumed = inputs.consumed();
        let counted = py.detach(|| {
            let mut report = || {
                let answer = signals.go_on(|py| match &progress {
                    Some(call) => call.call1(py, (consumed.bytes(),)).map(drop),
                    None => Ok(()),
                });
                if answer.is_break() {
                    self.stop();
                }
                answer
            };
            self.with_counter(|counter| {
                counter.count_source(&mut inputs, &self.options(), &mut report)
            })
        });
        counted.map_err(|error| self.cause(signals.cause(raise(py, error))))?;
        // The caller's thread may have counted nothing, so the total is always reported at the end.
        if let Some(call) = &progress {
            call.call1(py, (consumed.bytes(),))?;
        }
        Ok(inputs.skipped())
    }

    /// Whether documents can be cut at all.
    fn has_cuts(&self, py: Python<'_>) -> bool {
        py.detach(|| self.options().has_cuts())
    }

    /// The number of bytes on either side of an offset that decide whether it is a cut point.
    #[getter]
    fn context_bytes(&self) -> usize {
        self.options().context_bytes()
    }

    /// The first cut point at or after `start`, in a part of a document.
    fn first_cut(&self, py: Python<'_>, text: &[u8], start: usize, is_end: bool) -> Option<usize> {
        py.detach(|| self.options().first_cut(text, start, is_end))
    }

    /// Returns the sum so far and starts over.
    fn finish(&self, py: Python<'_>) -> PyResult<Counts> {
        let counters = std::mem::take(&mut *self.counters());
        let mut watch = Watch::default();
        let sum = py.detach(|| match &self.limit {
            None => add_up(counters).map(Table::from),
            Some((limit, runs)) => {
                let limit = limit.get();
                // Runs on disk cannot be added up in memory.
                let is_small = runs.runs.written() == 0 && counters.len() <= 1;
                let keep_bytes = if is_small { limit.keep_bytes } else { 0 };
                for counter in counters {
                    if let Some(counts) = counter.finish_within(keep_bytes)? {
                        return Ok(counts.into());
                    }
                }
                merge_runs(&runs.runs, limit, self.threads, &mut || watch.go_on(|_| Ok(())))
            }
        });
        let table = watch.result(py, sum).map_err(|error| self.cause(error))?;
        Ok(Counts { table })
    }
}

fn add_up(counters: Vec<core::Counter>) -> byteweld_core::Result<core::Counts> {
    let mut sum: Option<core::Counts> = None;
    for counter in counters {
        let counts = counter.finish()?;
        match &mut sum {
            Some(sum) => sum.merge(&counts)?,
            None => sum = Some(counts),
        }
    }
    Ok(sum.unwrap_or_default())
}
