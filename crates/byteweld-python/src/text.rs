//! Reads the bytes of a `str`, `bytes` or `bytearray`, without a copy where possible.

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, Ordering};

use byteweld_core::utf8;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::error::{raise, reserve};

/// The bytes of a text. Those of ASCII and of `bytes` are borrowed; a `bytearray` is copied, since
/// it can change.
pub(crate) enum Text {
    Str(PyBackedStr),
    Bytes(PyBackedBytes),
    /// A copy of a `bytearray`, or the UTF-8 of a `str` that Python does not store as UTF-8.
    Made(Made),
}

/// Bytes whose memory serves again when they are dropped.
pub(crate) struct Made(Vec<u8>);

/// Memory of more bytes than this is freed.
const MAX_KEPT_BYTES: usize = 1 << 16;

thread_local! {
    /// The buffer of the previous call.
    static MADE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.0.capacity() <= MAX_KEPT_BYTES {
            // If the thread is ending, the memory is freed.
            let _ = MADE.try_with(|kept| kept.set(std::mem::take(&mut self.0)));
        }
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        match self {
            Text::Str(text) => text.as_bytes(),
            Text::Bytes(bytes) => bytes,
            Text::Made(Made(bytes)) => bytes,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Text::of_str(&text);
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Text::Bytes(bytes.to_owned().into()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Text::copy_of(&bytes);
        }
        let name = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("expected str or bytes, found {name}")))
    }
}

impl Text {
    fn copy_of(bytes: &Bound<'_, PyByteArray>) -> PyResult<Self> {
        with_critical_section(bytes, || {
            let mut copy = Vec::new();
            reserve(bytes.py(), &mut copy, bytes.len())?;
            // SAFETY: nothing else runs while the critical section (or the GIL) is held, so the
            // bytes neither change nor move.
            copy.extend_from_slice(unsafe { bytes.as_bytes() });
            Ok(Text::Made(Made(copy)))
        })
    }

    /// The UTF-8 of a `str`, with U+FFFD for each lone surrogate, as in tiktoken.
    pub(crate) fn of_str(text: &Bound<'_, PyString>) -> PyResult<Self> {
        if has_utf8(text) {
            return Ok(Text::Str(text.to_owned().try_into()?));
        }
        transcode(text).map(Text::Made)
    }
}

/// Whether Python already has the UTF-8 of a `str`: it is ASCII, or Python has cached it.
fn has_utf8(text: &Bound<'_, PyString>) -> bool {
    let object = text.as_ptr();
    // SAFETY: a `str` is at least a `PyASCIIObject`, which is where the flags are; one that is
    // compact and not ASCII is a `PyCompactUnicodeObject`. Other threads may be about to set the
    // pointer, so it is read as one that they share.
    unsafe {
        if ffi::PyUnicode_IS_COMPACT(object) == 0 {
            return false;
        }
        if ffi::PyUnicode_IS_COMPACT_ASCII(object) != 0 {
            return true;
        }
        let known = &raw mut (*object.cast::<ffi::PyCompactUnicodeObject>()).utf8;
        !AtomicPtr::from_ptr(known).load(Ordering::Relaxed).is_null()
    }
}

fn transcode(text: &Bound<'_, PyString>) -> PyResult<Made> {
    let mut made = Made(MADE.take());
    // SAFETY: a `str` does not change, and lives as long as `text`. The tests of all kinds of
    // strings check that its flags are laid out as expected.
    let result = match unsafe { text.data() }? {
        PyStringData::Ucs1(units) => utf8::write_units(units, &mut made.0),
        PyStringData::Ucs2(units) => utf8::write_units(units, &mut made.0),
        PyStringData::Ucs4(units) => utf8::write_units(units, &mut made.0),
    };
    result.map_err(|error| raise(text.py(), error))?;
    Ok(made)
}
