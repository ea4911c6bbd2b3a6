//! Maps Rust errors to the exceptions of `byteweld.errors`. No other module does.

use std::path::Path;

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use byteweld_core::Error;

use crate::inputs::InputError;

/// Out of memory, as an error that is boxed without allocating.
#[derive(Debug)]
pub(crate) struct NoMemory;

impl std::fmt::Display for NoMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not enough memory")
    }
}

impl std::error::Error for NoMemory {}

/// Creates the exception; if that fails, returns the error of the failure.
pub(crate) fn raise(py: Python<'_>, error: Error) -> PyErr {
    make(py, error).unwrap_or_else(|failure| failure)
}

/// Creates a `MemoryError` if there is not enough memory for an operation that allocates up to this
/// many bytes, and what every operation does.
pub(crate) fn check_memory(py: Python<'_>, bytes: usize) -> PyResult<()> {
    byteweld_core::reserve::check_memory_for(bytes).map_err(|error| raise(py, error))
}

/// Reserves space for more items, or creates a `MemoryError`.
pub(crate) fn reserve<T>(py: Python<'_>, list: &mut Vec<T>, more: usize) -> PyResult<()> {
    byteweld_core::reserve::reserve(list, more).map_err(|error| raise(py, error))
}

fn make(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let message = error.to_string();
    Ok(match error {
        Error::Pattern(_) => with_message(py, "PatternError", &message)?,
        Error::Vocabulary(_) => with_message(py, "VocabularyError", &message)?,
        Error::Train(_) | Error::Unsupported(_) => with_message(py, "UnsupportedError", &message)?,
        Error::Format { offset, .. } => with_position(py, "FormatError", &message, None, offset)?,
        Error::MissingKey(_) => with_position(py, "MissingKeyError", &message, None, None)?,
        Error::Overflow(_) => PyOverflowError::new_err(message),
        Error::OutsideAlphabet { .. } => with_message(py, "VocabularyError", &message)?,
        Error::SpecialToken { token, .. } => {
            let token = pyo3::types::PyString::new(py, &token).repr()?;
            let message = format!(
                "text contains the special token {token}; pass allowed_special={{{token}}} (or \"all\") to encode it \
                 as one id, or disallowed_special=() to encode it as plain text"
            );
            with_message(py, "SpecialTokenError", &message)?
        }
        Error::AmbiguousId { id, token, offset } => {
            let token = pyo3::types::PyString::new(py, &token).repr()?;
            let message = format!(
                "text at byte {offset} that is not a trusted special token encodes to id {id}, which is also that of \
                 the special token {token}, and no merge splits it; give the special token its own id"
            );
            with_message(py, "SpecialTokenError", &message)?
        }
        Error::UnknownId(id) => {
            let message = format!("invalid token for decoding: {id} is not in the vocabulary");
            PyErr::from_value(class(py, "UnknownIdError")?.call1((message, id))?)
        }
        Error::ForbiddenByte { byte, offset, path } => {
            let message = format!("0x{byte:02X} is not in the alphabet of this recipe");
            with_position(py, "CorpusError", &message, path, offset)?
        }
        Error::Memory(_) => with_message(py, "BudgetError", &message)?,
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        Error::Source(source) => match source.downcast::<byteweld_corpus::Error>() {
            Ok(error) => return corpus(py, *error),
            Err(other) => match other.downcast::<byteweld_spill::Error>() {
                Ok(error) => return spill(py, *error),
                Err(other) if other.is::<NoMemory>() => PyMemoryError::new_err(other.to_string()),
                Err(other) => match other.downcast::<PyErr>() {
                    Ok(error) => *error,
                    Err(other) => with_message(py, "NativeError", &other.to_string())?,
                },
            },
        },
        Error::Interrupted => interrupted(py),
    })
}

/// Creates the exception for an integer that is not an id of any vocabulary.
pub(crate) fn id_out_of_range(integer: &Bound<'_, PyAny>) -> PyErr {
    let made = class(integer.py(), "IdRangeError").and_then(|class| class.call1((integer,)));
    made.map_or_else(|failure| failure, PyErr::from_value)
}

/// Creates the exception for inputs that cannot be read.
pub(crate) fn raise_input(py: Python<'_>, error: InputError) -> PyErr {
    match error {
        InputError::Corpus(error) => corpus(py, error).unwrap_or_else(|failure| failure),
        InputError::Python(error) => error,
    }
}

/// Normally a signal handler or a callback has already raised; this is the fallback.
fn interrupted(py: Python<'_>) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

fn corpus(py: Python<'_>, error: byteweld_corpus::Error) -> PyResult<PyErr> {
    match error {
        byteweld_corpus::Error::Io { path, error } => match error.downcast::<PyErr>() {
            Ok(error) => Ok(error), // of a remote file
            Err(error) => system(py, &path, &error),
        },
        byteweld_corpus::Error::TooLarge { is_budget: true, .. } => {
            with_message(py, "BudgetError", &error.to_string())
        }
        byteweld_corpus::Error::Damaged { path, offset, message } => {
            let path = path.display().to_string();
            with_position(py, "CorpusError", &message, Some(path), Some(offset))
        }
        byteweld_corpus::Error::OutOfMemory => Ok(PyMemoryError::new_err(error.to_string())),
        byteweld_corpus::Error::Interrupted => Ok(interrupted(py)),
        byteweld_corpus::Error::Content { path, line, offset, message }
        | byteweld_corpus::Error::TooLarge { path, line, offset, message, .. } => {
            let position = match line {
                Some(line) => format!("{}:{line}", path.display()),
                None => path.display().to_string(),
            };
            with_position(py, "CorpusError", &message, Some(position), offset)
        }
    }
}

/// Creates the exception for counts that cannot be written to disk or read back.
fn spill(py: Python<'_>, error: byteweld_spill::Error) -> PyResult<PyErr> {
    match error {
        byteweld_spill::Error::Io { folder, error } => system(py, &folder, &error),
        byteweld_spill::Error::Damaged { .. } => Ok(PyOSError::new_err(error.to_string())),
        other => make(py, crate::limit::core_error(other)),
    }
}

/// An OSError; Python chooses the subclass, such as FileNotFoundError, by the error code.
fn system(py: Python<'_>, path: &Path, error: &std::io::Error) -> PyResult<PyErr> {
    match error.raw_os_error() {
        Some(code) => {
            let text = py.import("os")?.call_method1("strerror", (code,))?;
            Ok(PyOSError::new_err((code, text.unbind(), path.as_os_str().to_os_string())))
        }
        None => Ok(PyOSError::new_err(format!("{}: {error}", path.display()))),
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("byteweld.errors")?.getattr(name)
}

fn with_message(py: Python<'_>, name: &str, message: &str) -> PyResult<PyErr> {
    Ok(PyErr::from_value(class(py, name)?.call1((message,))?))
}

fn with_position(
    py: Python<'_>,
    name: &str,
    message: &str,
    path: Option<String>,
    offset: Option<u64>,
) -> PyResult<PyErr> {
    let position = PyDict::new(py);
    position.set_item("path", path)?;
    position.set_item("offset", offset)?;
    Ok(PyErr::from_value(class(py, name)?.call((message,), Some(&position))?))
}
