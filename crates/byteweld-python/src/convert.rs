//! Python values to Rust ones, without copies where that is possible.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyByteArray, PyBytes, PyString};

/// What `len()` says is believed up to here; what comes after must really be there.
const TRUSTED_LENGTH: usize = 1 << 16;

/// Asking the system takes longer than encoding a short text, and the answer stays.
static PROCESSORS: OnceLock<NonZeroUsize> = OnceLock::new();

/// More threads than this are never started, whatever is asked for.
const MAX_THREADS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Work on less text than this is done without letting go of the GIL: that would take longer.
pub(crate) const DETACH_BYTES: usize = 1 << 11;

/// A `str`, `bytes` or `bytearray`, borrowed (a `bytearray` is copied, since it can change).
pub(crate) enum Text {
    Str(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        match self {
            Text::Str(text) => text.as_bytes(),
            Text::Bytes(bytes) => bytes,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            // A lone surrogate raises UnicodeEncodeError; the caller decides what becomes of it.
            return Ok(Text::Str(text.to_owned().try_into()?));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Text::Bytes(bytes.to_owned().into()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Text::Bytes(bytes.to_owned().into()));
        }
        let name = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("expected str or bytes, found {name}")))
    }
}

/// Ids from a numpy array of uint32, or from any sequence of integers.
pub(crate) fn ids(object: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    if let Ok(array) = object.extract::<PyReadonlyArray1<'_, u32>>() {
        return Ok(array.as_array().to_vec());
    }
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        let name = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("expected a sequence of ids, found {name}")));
    }
    let mut ids = Vec::with_capacity(object.len().unwrap_or(0).min(TRUSTED_LENGTH));
    for id in object.try_iter()? {
        ids.push(id?.extract::<u32>()?);
    }
    Ok(ids)
}

/// Texts from any iterable but a text.
pub(crate) fn texts(object: &Bound<'_, PyAny>) -> PyResult<Vec<Text>> {
    let mut texts = Vec::with_capacity(object.len().unwrap_or(0).min(TRUSTED_LENGTH));
    for text in object.try_iter()? {
        texts.push(text?.extract()?);
    }
    Ok(texts)
}

/// How many threads: as many as asked for, or as many as there are processors.
pub(crate) fn threads(num_threads: Option<i128>) -> PyResult<NonZeroUsize> {
    let Some(threads) = num_threads else {
        return Ok(*PROCESSORS
            .get_or_init(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)));
    };
    usize::try_from(threads)
        .ok()
        .and_then(NonZeroUsize::new)
        .map(|n| n.min(MAX_THREADS))
        .ok_or_else(|| {
            PyValueError::new_err(format!("num_threads is {threads}; it must be at least 1"))
        })
}
