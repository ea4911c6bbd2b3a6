//! Counts, and the builder that fills one from documents and files.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use byteweld_core::counts as core;
use byteweld_core::pretoken::Pretokenizer;
use byteweld_core::specials::Specials;
use byteweld_corpus::Reader;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{texts, threads};
use crate::corpus::{Source, options};
use crate::error::raise;

/// Python is asked for signals and told of progress about this often; each time may wait for its lock.
const REPORT_EVERY: Duration = Duration::from_millis(20);

/// Pre-token bytes and how many. Immutable.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Counts {
    pub(crate) inner: core::Counts,
}

#[pymethods]
impl Counts {
    /// A table from (bytes, count) pairs.
    #[new]
    fn new(py: Python<'_>, items: Vec<(Vec<u8>, u64)>) -> PyResult<Self> {
        let mut inner = core::Counts::new();
        for (pretoken, count) in items {
            inner.add(&pretoken, count).map_err(|e| raise(py, e))?;
        }
        Ok(Self { inner })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    #[getter]
    fn total(&self) -> u128 {
        self.inner.total()
    }

    fn get(&self, pretoken: &[u8]) -> u64 {
        self.inner.get(pretoken)
    }

    /// All (bytes, count) pairs in order of the bytes.
    fn items<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, u64)> {
        let sorted = py.detach(|| self.inner.sorted());
        sorted.into_iter().map(|(bytes, count)| (PyBytes::new(py, bytes), count)).collect()
    }

    /// The sum of tables.
    #[staticmethod]
    fn merge(py: Python<'_>, tables: Vec<Py<Counts>>) -> PyResult<Self> {
        let tables: Vec<&Counts> = tables.iter().map(|table| table.get()).collect();
        let sum = py.detach(|| {
            let mut sum = core::Counts::new();
            for table in tables {
                sum.merge(&table.inner)?;
            }
            Ok(sum)
        });
        sum.map(|inner| Self { inner }).map_err(|e| raise(py, e))
    }
}

/// Counts documents as they come. An error loses what was counted.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct CountBuilder {
    pretokenizer: Pretokenizer,
    boundaries: Specials,
    alphabet: Option<[bool; 256]>,
    threads: std::num::NonZeroUsize,
    /// What was counted so far: by one counter, or by more if several threads of Python count at once.
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

    fn counters(&self) -> MutexGuard<'_, Vec<core::Counter>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with a counter that nobody uses. The lock is not held meanwhile: `work` may call Python.
    fn with_counter(
        &self,
        work: impl FnOnce(&mut core::Counter) -> byteweld_core::Result<()>,
    ) -> byteweld_core::Result<()> {
        let idle = self.counters().pop();
        let mut counter = idle.unwrap_or_else(|| core::Counter::new(self.threads));
        work(&mut counter)?;
        self.counters().push(counter);
        Ok(())
    }
}

#[pymethods]
impl CountBuilder {
    #[new]
    #[pyo3(signature = (*, pattern, boundaries, alphabet, num_threads))]
    fn new(
        py: Python<'_>,
        pattern: Option<&str>,
        boundaries: Vec<String>,
        alphabet: Option<Vec<u8>>,
        num_threads: Option<i128>,
    ) -> PyResult<Self> {
        // A special token may hold other bytes; then it is left to the trainer to find them elsewhere.
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
        Ok(Self {
            pretokenizer: Pretokenizer::new(pattern).map_err(|e| raise(py, e))?,
            boundaries: Specials::new(&boundaries).map_err(|e| raise(py, e))?,
            alphabet,
            threads: threads(num_threads)?,
            counters: Mutex::default(),
        })
    }

    /// Counts documents that are in memory.
    fn add_documents(&self, py: Python<'_>, documents: &Bound<'_, PyAny>) -> PyResult<()> {
        let documents = texts(documents)?;
        let counted = py.detach(|| {
            self.with_counter(|counter| counter.count_documents(&documents, &self.options()))
        });
        counted.map_err(|e| raise(py, e))
    }

    /// Counts the documents of files; returns how many were skipped. `progress` hears of bytes read.
    #[pyo3(signature = (files, *, unit, separator, field, on_error, progress))]
    #[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
    fn add_files(
        &self,
        py: Python<'_>,
        files: Vec<PathBuf>,
        unit: &str,
        separator: Option<Vec<u8>>,
        field: String,
        on_error: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let reader = Reader::new(files, options(unit, separator, field, on_error)?);
        let consumed = reader.consumed();
        let mut source = Source(reader);
        let mut failure = None;
        let counted = py.detach(|| {
            let mut last: Option<Instant> = None;
            let mut report = || {
                if last.is_some_and(|last| last.elapsed() < REPORT_EVERY) {
                    return ControlFlow::Continue(());
                }
                last = Some(Instant::now());
                let bytes = consumed.load(Ordering::Relaxed);
                let outcome = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |call| call.call1(py, (bytes,)).map(drop))
                });
                match outcome {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        failure = Some(error);
                        ControlFlow::Break(())
                    }
                }
            };
            self.with_counter(|counter| {
                counter.count_source(&mut source, &self.options(), &mut report)
            })
        });
        match (failure, counted) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(raise(py, error)),
            (None, Ok(())) => {
                // The caller's thread may have counted nothing, so it tells the end in any case.
                if let Some(call) = &progress {
                    call.call1(py, (consumed.load(Ordering::Relaxed),))?;
                }
                Ok(source.0.skipped())
            }
        }
    }

    /// The sum so far; the builder starts anew.
    fn finish(&self, py: Python<'_>) -> PyResult<Counts> {
        let counters = std::mem::take(&mut *self.counters());
        let sum = py.detach(|| {
            let mut sum: Option<core::Counts> = None;
            for counter in counters {
                let counts = counter.finish()?;
                match &mut sum {
                    Some(sum) => sum.merge(&counts)?,
                    None => sum = Some(counts),
                }
            }
            Ok(sum.unwrap_or_default())
        });
        sum.map(|inner| Counts { inner }).map_err(|e| raise(py, e))
    }

    /// Which engine runs the pattern: "whole", "automaton" or "backtracking".
    #[getter]
    fn engine(&self) -> &'static str {
        self.pretokenizer.engine().name()
    }
}
