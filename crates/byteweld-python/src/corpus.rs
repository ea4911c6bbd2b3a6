//! `Documents`: reads the documents of files and tables for Python; counts their bytes.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byteweld_corpus::{ByteCounts, Limits, Position};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::new_bytes;
use crate::error::raise_input;
use crate::inputs::{Arguments, InputError, Inputs, Open, hash_file};
use crate::limit::Signals;

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

/// The size and the XXH3-128 of a file as it is stored; `open_remote` opens URLs.
#[pyfunction]
pub(crate) fn file_digest(
    py: Python<'_>,
    path: std::path::PathBuf,
    open_remote: Py<PyAny>,
) -> PyResult<(u64, u128)> {
    let signals = Signals::new();
    let found = py.detach(|| hash_file(&path, &open_remote, &|| signals.is_stopped()));
    found.map_err(|error| signals.cause(raise_input(py, error)))
}

/// (file, offset, byte)
type Outside = (OsString, Option<u64>, u8);

/// The text of a table is counted in pieces of about this size.
const PIECE_BYTES: usize = 1 << 18;

/// Counts the byte values of all documents. Returns the 256 counts, the first byte that is not in
/// `alphabet`, the number of files with such bytes, and the number of skipped documents. `progress`
/// is called with the bytes read.
#[pyfunction]
#[pyo3(signature = (arguments, *, alphabet, progress))]
pub(crate) fn count_bytes(
    py: Python<'_>,
    arguments: Arguments,
    alphabet: Vec<u8>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<u64>, Option<Outside>, u64, u64)> {
    let mut known = [false; 256];
    for byte in alphabet {
        known[usize::from(byte)] = true;
    }
    let mut inputs = Inputs::new(arguments, Limits::default());
    let consumed = inputs.consumed();
    let signals = Signals::new();
    let watched = Arc::clone(&signals);
    inputs.set_interrupt(move || {
        let report = |py: Python<'_>| match &progress {
            Some(call) => call.call1(py, (consumed.bytes(),)).map(drop),
            None => Ok(()),
        };
        watched.go_on(report).is_break()
    });
    let found = py
        .detach(|| count_all(&mut inputs, &known))
        .map_err(|error| signals.cause(raise_input(py, error)))?;
    let outside = found.first_outside.map(|at| (at.path.into(), at.offset, at.byte));
    Ok((found.counts.to_vec(), outside, found.files_outside, inputs.skipped()))
}

/// Counts the files of each reader, and each table.
fn count_all(inputs: &mut Inputs, known: &[bool; 256]) -> Result<ByteCounts, InputError> {
    let mut sum = ByteCounts { counts: [0; 256], first_outside: None, files_outside: 0 };
    while let Some(open) = inputs.part()? {
        let found = match open {
            Open::Files(reader) => ByteCounts::of(reader, known)?,
            Open::Table(_) => count_table(inputs, known)?,
        };
        for (total, count) in sum.counts.iter_mut().zip(found.counts) {
            *total += count;
        }
        sum.first_outside = sum.first_outside.or(found.first_outside);
        sum.files_outside += found.files_outside;
        inputs.finish_part()?;
    }
    Ok(sum)
}

/// Counts the text of the open table.
fn count_table(inputs: &mut Inputs, known: &[bool; 256]) -> Result<ByteCounts, InputError> {
    let mut found = ByteCounts { counts: [0; 256], first_outside: None, files_outside: 0 };
    let mut piece = Vec::new();
    while inputs.read_table(&mut piece, PIECE_BYTES)? {
        piece.iter().for_each(|&byte| found.counts[usize::from(byte)] += 1);
        let outside = piece.iter().find(|&&byte| !known[usize::from(byte)]);
        if let (Some(&byte), None, Some(path)) =
            (outside, &found.first_outside, inputs.location().0)
        {
            let path = path.to_path_buf();
            found.first_outside = Some(byteweld_corpus::Outside { path, offset: None, byte });
            found.files_outside = 1;
        }
        piece.clear();
    }
    Ok(found)
}

/// The documents of files, one after another, as bytes.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Documents {
    inputs: Mutex<Inputs>,
}

impl Documents {
    fn inputs(&self) -> MutexGuard<'_, Inputs> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Documents {
    /// Closing a table may run Python, which must not see an exception that is on its way.
    fn drop(&mut self) {
        Python::attach(|py| {
            let pending = PyErr::take(py);
            py.detach(|| self.inputs().close());
            if let Some(error) = pending {
                error.restore(py);
            }
        });
    }
}

#[pymethods]
impl Documents {
    #[new]
    fn new(arguments: Arguments) -> Self {
        Self { inputs: Mutex::new(Inputs::new(arguments, Limits::default())) }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let signals = Signals::new();
        let watched = Arc::clone(&signals);
        let document = py.detach(|| {
            let mut inputs = self.inputs();
            inputs.set_interrupt(move || watched.is_stopped());
            let mut document = Vec::new();
            inputs.next_document(&mut document).map(|found| found.then_some(document))
        });
        match document {
            Ok(Some(bytes)) => new_bytes(py, &bytes).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(signals.cause(raise_input(py, error))),
        }
    }

    /// Number of bytes read from disk so far (compressed, if the files are).
    #[getter]
    fn bytes_read(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inputs().consumed().bytes())
    }

    /// Number of documents skipped so far.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inputs().skipped())
    }

    /// The position after the last document: file, offset or row, documents of the file, line.
    #[getter]
    fn position(&self, py: Python<'_>) -> (u64, u64, u64, u64) {
        let Position { file, offset, documents, line } = py.detach(|| self.inputs().position());
        (file, offset, documents, line)
    }

    /// Starts at a position; before the first document.
    fn start_at(&self, py: Python<'_>, position: (u64, u64, u64, u64)) {
        let (file, offset, documents, line) = position;
        py.detach(|| self.inputs().start_at(Position { file, offset, documents, line }));
    }

    /// The documents skipped since the last call: file, line, row, offset, reason.
    fn take_skips(&self, py: Python<'_>) -> Vec<SkipTuple> {
        let skips = py.detach(|| self.inputs().take_skips());
        skips.into_iter().map(|s| (s.file, s.line, s.row, s.offset, s.reason)).collect()
    }

    /// The files read to their end since the last call, with the argument `digest`: file, bytes,
    /// XXH3-128 of them, documents, lines.
    fn take_finished(&self, py: Python<'_>) -> Vec<(u64, u64, Option<u128>, u64, u64)> {
        let finished = py.detach(|| self.inputs().take_finished());
        finished.into_iter().map(|f| (f.file, f.bytes, f.digest, f.documents, f.lines)).collect()
    }
}

type SkipTuple = (u64, Option<u64>, Option<u64>, Option<u64>, String);
