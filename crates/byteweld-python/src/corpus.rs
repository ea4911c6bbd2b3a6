//! `Documents`: reads documents from files, for Python and for counting.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use byteweld_core::counts::{DocumentSource, ReadStatus};
use byteweld_corpus::{ByteCounts, Limits, OnError, Options, Reader, Unit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::new_bytes;
use crate::error::{NoMemory, raise_corpus};
use crate::limit::Signals;
use crate::names::ByName;

/// Whether a file that starts with these bytes is compressed.
#[pyfunction]
pub(crate) fn is_compressed(head: &[u8]) -> bool {
    byteweld_corpus::is_compressed(head)
}

/// Decompresses a file; ValueError if it is damaged or holds more than `limit` bytes.
#[pyfunction]
pub(crate) fn decompress<'py>(
    py: Python<'py>,
    data: &[u8],
    limit: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    match py.detach(|| byteweld_corpus::decompress(data, limit)) {
        Ok(content) => new_bytes(py, &content),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Decompresses at most the first `size` bytes of a file; ValueError if they are damaged.
#[pyfunction]
pub(crate) fn decompress_head<'py>(
    py: Python<'py>,
    data: &[u8],
    size: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    match py.detach(|| byteweld_corpus::decompress_head(data, size)) {
        Ok(head) => new_bytes(py, &head),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// (file, offset, byte)
type Outside = (OsString, Option<u64>, u8);

/// Counts the byte values of all documents. Returns the 256 counts, the first byte that is not in
/// `alphabet`, the number of files with such bytes, and the number of skipped documents. `progress`
/// is called with the bytes read.
#[pyfunction]
#[pyo3(signature = (files, *, unit, separator, field, on_error, alphabet, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
pub(crate) fn count_bytes(
    py: Python<'_>,
    files: Vec<PathBuf>,
    unit: ByName<Unit>,
    separator: Option<Vec<u8>>,
    field: String,
    on_error: ByName<OnError>,
    alphabet: Vec<u8>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<u64>, Option<Outside>, u64, u64)> {
    let options = options(unit, separator, field, on_error, Limits::default())?;
    let mut known = [false; 256];
    for byte in alphabet {
        known[usize::from(byte)] = true;
    }
    let mut reader = Reader::new(files, options);
    let consumed = reader.consumed();
    let signals = Signals::new();
    let watched = Arc::clone(&signals);
    reader.set_interrupt(move || {
        let bytes = consumed.load(std::sync::atomic::Ordering::Relaxed);
        let report = |py: Python<'_>| match &progress {
            Some(call) => call.call1(py, (bytes,)).map(drop),
            None => Ok(()),
        };
        watched.go_on(report).is_break()
    });
    let found = py
        .detach(|| ByteCounts::of(&mut reader, &known))
        .map_err(|error| signals.cause(raise_corpus(py, error)))?;
    let outside = found.first_outside.map(|at| (at.path.into(), at.offset, at.byte));
    Ok((found.counts.to_vec(), outside, found.files_outside, reader.skipped()))
}

/// How to read files. A separator overrides the unit.
pub(crate) fn options(
    unit: ByName<Unit>,
    separator: Option<Vec<u8>>,
    field: String,
    on_error: ByName<OnError>,
    limits: Limits,
) -> PyResult<Options> {
    let unit = match separator {
        Some(separator) if separator.is_empty() => {
            return Err(PyValueError::new_err("separator is empty; it must be at least one byte"));
        }
        Some(separator) => Unit::Separator(separator),
        None => unit.0,
    };
    // Counting takes the bytes as they are, and needs no digest.
    let (require_utf8, digest) = (false, false);
    Ok(Options { unit, field, on_error: on_error.0, require_utf8, digest, limits })
}

/// Adapts a reader to the engine's source of documents.
pub(crate) struct Source(pub(crate) Reader);

impl DocumentSource for Source {
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
    ) -> Result<ReadStatus, Box<dyn std::error::Error + Send + Sync>> {
        match self.0.read(buffer, want) {
            Ok(byteweld_corpus::ReadStatus::More) => Ok(ReadStatus::More),
            Ok(byteweld_corpus::ReadStatus::DocumentEnd) => Ok(ReadStatus::DocumentEnd),
            Ok(byteweld_corpus::ReadStatus::CorpusEnd) => Ok(ReadStatus::CorpusEnd),
            Err(byteweld_corpus::Error::OutOfMemory) => Err(Box::new(NoMemory)),
            Err(error) => Err(Box::new(error)),
        }
    }

    fn location(&self) -> (Option<String>, Option<u64>) {
        let (path, offset) = self.0.location();
        (path.map(|path| path.display().to_string()), offset)
    }
}

/// The documents of files, one after another, as bytes.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Documents {
    reader: Mutex<Reader>,
}

#[pymethods]
impl Documents {
    #[new]
    #[pyo3(signature = (files, *, unit, separator, field, on_error))]
    fn new(
        files: Vec<PathBuf>,
        unit: ByName<Unit>,
        separator: Option<Vec<u8>>,
        field: String,
        on_error: ByName<OnError>,
    ) -> PyResult<Self> {
        let options = options(unit, separator, field, on_error, Limits::default())?;
        Ok(Self { reader: Mutex::new(Reader::new(files, options)) })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let signals = Signals::new();
        let watched = Arc::clone(&signals);
        let document = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            reader.set_interrupt(move || watched.is_stopped());
            let mut document = Vec::new();
            reader.next_document(&mut document).map(|found| found.then_some(document))
        });
        match document {
            Ok(Some(bytes)) => new_bytes(py, &bytes).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(signals.cause(raise_corpus(py, error))),
        }
    }

    /// Number of bytes read from disk so far (compressed, if the files are).
    #[getter]
    fn bytes_read(&self) -> u64 {
        let reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        reader.consumed().load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Number of documents skipped so far.
    #[getter]
    fn skipped(&self) -> u64 {
        self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner).skipped()
    }
}
