//! Text going out: a `str` that is written where it will lie, and how Python names what to do with wrong bytes.

use std::ffi::CStr;

use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Makes a `str` of UTF-8 in bytes. `errors` is the name of Python's handler for those that are not UTF-8.
pub(crate) fn string<'py>(
    py: Python<'py>,
    bytes: &[u8],
    errors: &CStr,
) -> PyResult<Bound<'py, PyString>> {
    let size = size(bytes.len())?;
    // SAFETY: `bytes` has `size` bytes, and `errors` ends with its zero. What comes is a `str`, or null and an error.
    unsafe {
        let text = ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), size, errors.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}

/// The same for bytes that `fill` writes. If they are ASCII, there is no copy.
pub(crate) fn string_with<'py>(
    py: Python<'py>,
    length: usize,
    errors: &CStr,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyString>> {
    const LAST_ASCII: u32 = 0x7F;
    if length < 2 {
        // Python keeps one object for each text of one character, and gives that.
        let mut bytes = [0];
        fill(&mut bytes[..length])?;
        return string(py, &bytes[..length], errors);
    }
    let size = size(length)?;
    // SAFETY: the object is new, nobody else has it, and it has room for `length` bytes, each of which is given a
    // value before they are a slice. If they turn out not to be ASCII, they are only read, and dropped: they are
    // never seen as a `str`.
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

/// The name of a handler of Python's own as C has it.
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
