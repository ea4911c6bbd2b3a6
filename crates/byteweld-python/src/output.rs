//! `bytes` and `str` going out, written where they will lie: there is no second copy.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Writes all bytes of what is being made, and says whether it has.
pub(crate) type Fill<'a> = dyn FnMut(&mut [MaybeUninit<u8>]) -> bool + 'a;

/// Makes a `bytes`. `fill` says whether it has written every byte; if it has not, there is none.
pub(crate) fn bytes<'py>(
    py: Python<'py>,
    length: usize,
    fill: &mut Fill<'_>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let size = size(length)?;
    // SAFETY: the object is new, nobody else has it, and it has room for `length` bytes. (An empty one is shared,
    // but has no byte to be written.) It is given away only when each has a value.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let made = Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyBytes>();
        let start = ffi::PyBytes_AsString(made.as_ptr()).cast();
        let filled = fill(std::slice::from_raw_parts_mut(start, length));
        Ok(filled.then_some(made))
    }
}

/// Makes a `str` of UTF-8. `fill` says whether it has written every byte; if it has not, there is none. `errors`
/// is the name of Python's handler for bytes that are not UTF-8.
pub(crate) fn string<'py>(
    py: Python<'py>,
    length: usize,
    errors: &CStr,
    fill: &mut Fill<'_>,
) -> PyResult<Option<Bound<'py, PyString>>> {
    const LAST_ASCII: u32 = 0x7F;
    let size = size(length)?;
    // SAFETY: as in `bytes`. What turns out not to be ASCII is only read, and dropped: it is never seen as a `str`.
    unsafe {
        let made = ffi::PyUnicode_New(size, LAST_ASCII);
        let made = Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyString>();
        let start = ffi::PyUnicode_DATA(made.as_ptr()).cast::<MaybeUninit<u8>>();
        if !fill(std::slice::from_raw_parts_mut(start, length)) {
            return Ok(None);
        }
        let filled = std::slice::from_raw_parts(start.cast::<u8>(), length);
        // Python keeps one object for each text of one character, and gives that.
        if filled.is_ascii() && length > 1 {
            return Ok(Some(made));
        }
        let text = ffi::PyUnicode_DecodeUTF8(filled.as_ptr().cast(), size, errors.as_ptr());
        Ok(Some(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked::<PyString>()))
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
