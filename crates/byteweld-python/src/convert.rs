//! Python values to Rust ones, without copies where that is possible.

use std::num::NonZeroUsize;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyByteArray, PyBytes, PyString};

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
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("expected a sequence of ids, found str"));
    }
    let mut ids = Vec::with_capacity(object.len().unwrap_or(0));
    for id in object.try_iter()? {
        ids.push(id?.extract::<u32>()?);
    }
    Ok(ids)
}

/// How many threads: as many as asked for, or as many as there are processors.
pub(crate) fn threads(threads: Option<usize>) -> PyResult<NonZeroUsize> {
    match threads {
        None => Ok(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
        Some(threads) => NonZeroUsize::new(threads)
            .ok_or_else(|| PyValueError::new_err("threads is 0; it must be at least 1")),
    }
}
