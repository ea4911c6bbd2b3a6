//! Creates `str` objects, writing in place where possible, with Python's error handlers.

use std::ffi::CStr;

use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Decodes UTF-8 to a `str`. `errors` is the name of Python's handler for bytes that are not UTF-8.
pub(crate) fn string<'py>(
    py: Python<'py>,
    bytes: &[u8],
    errors: &CStr,
) -> PyResult<Bound<'py, PyString>> {
    let size = size(bytes.len())?;
    // SAFETY: `bytes` has `size` bytes, and `errors` ends with a zero. The result is a `str`, or
    // null with an error set.
    unsafe {
        let text = ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), size, errors.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}

/// The same for bytes that `fill` writes; ASCII is written in place.
pub(crate) fn string_with<'py>(
    py: Python<'py>,
    length: usize,
    errors: &CStr,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyString>> {
    const LAST_ASCII: u32 = 0x7F;
    if length < 2 {
        // Python has one shared object for each string of one Latin-1 character.
        let mut bytes = [0];
        fill(&mut bytes[..length])?;
        return string(py, &bytes[..length], errors);
    }
    let size = size(length)?;
    // SAFETY: the object is new, nobody else has it, and it has space for `length` bytes, which are
    // all initialized before they become a slice. If they are not ASCII, the object is only read as
    // bytes and dropped, never used as a `str`.
    unsafe {
        let made = ffi::PyUnicode_New(size, LAST_ASCII);
        let made = Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyString>();
        let start = ffi::PyUnicode_DATA(made.as_ptr()).cast::<u8>();
        start.write_bytes(0, length);
        let bytes = std::slice::from_raw_parts_mut(start, length);
        fill(bytes)?;
        if bytes.is_ascii() { Ok(made) } else { string(py, bytes, errors) }
    }
}

fn size(length: usize) -> PyResult<ffi::Py_ssize_t> {
    ffi::Py_ssize_t::try_from(length).map_err(|_| {
        PyOverflowError::new_err(format!("{length} bytes are more than Python can hold"))
    })
}

/// The name of one of Python's own error handlers as a C string.
pub(crate) fn known_handler(errors: &Bound<'_, PyAny>) -> Option<&'static CStr> {
    Some(match errors.cast_exact::<PyString>().ok()?.to_str().ok()? {
        "replace" => c"replace",
        "strict" => c"strict",
        "ignore" => c"ignore",
        "backslashreplace" => c"backslashreplace",
        "surrogateescape" => c"surrogateescape",
        _ => return None,
    })
}
