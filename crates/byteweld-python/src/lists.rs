//! Converts ids to and from Python lists, without a call into Python for each id.
//!
//! In returned lists, an id is always the same integer object: another reference costs a fraction
//! of a new object. In lists passed by the caller, integers are read in place.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyInt, PyList, PyTuple};

use crate::error::reserve;

/// The Python integers of a vocabulary's ids, each created when first needed. So a short text does
/// not pay for a large vocabulary, and frequent ids, which tend to be needed first, are close
/// together in memory.
pub(crate) struct Integers {
    /// By id; null if not created yet. Each is an owned reference.
    made: Box<[AtomicPtr<ffi::PyObject>]>,
}

impl Integers {
    /// For ids below `end`.
    pub(crate) fn new(end: u32) -> Self {
        // A vector of nulls is allocated zeroed, so its pages are not touched until used.
        let nulls = vec![ptr::null_mut::<ffi::PyObject>(); end as usize].into_boxed_slice();
        // SAFETY: `AtomicPtr<T>` has the layout of `*mut T`, and the box is given up.
        let made = unsafe { Box::from_raw(Box::into_raw(nulls) as *mut [AtomicPtr<_>]) };
        Self { made }
    }

    /// Ids as a Python list.
    pub(crate) fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        // As `list` below, but a short text would notice the iterator of results.
        let list = new_list(py, ids.len())?;
        for (index, &id) in (0..).zip(ids) {
            let integer = self.integer(py, id)?;
            // SAFETY: as in `list`.
            unsafe { ffi::PyList_SET_ITEM(list.as_ptr(), index, integer.into_ptr()) };
        }
        Ok(list)
    }

    #[inline(always)]
    fn integer<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyAny>> {
        let made = match self.made.get(id as usize) {
            Some(slot) => slot.load(Ordering::Acquire),
            None => ptr::null_mut(),
        };
        if made.is_null() {
            return self.make(py, id);
        }
        // SAFETY: the table holds an integer, and keeps it alive.
        Ok(unsafe { Bound::from_borrowed_ptr(py, made) })
    }

    #[cold]
    fn make<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyAny>> {
        let integer = integer(py, u64::from(id))?;
        if let Some(slot) = self.made.get(id as usize) {
            let kept = integer.clone().into_ptr();
            if slot
                .compare_exchange(ptr::null_mut(), kept, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                // SAFETY: another thread stored its integer first, so this one is still owned.
                drop(unsafe { Bound::from_owned_ptr(py, kept) });
            }
        }
        Ok(integer)
    }
}

impl Drop for Integers {
    fn drop(&mut self) {
        // Without an interpreter, there is nothing to release.
        Python::try_attach(|py| {
            for slot in &mut self.made {
                let made = std::mem::replace(slot.get_mut(), ptr::null_mut());
                // SAFETY: the table owns a reference to each integer in it.
                drop(unsafe { Bound::from_owned_ptr_or_opt(py, made) });
            }
        });
    }
}

/// A Python integer.
pub(crate) fn integer(py: Python<'_>, value: u64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: it gives an owned integer, or null with an error.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromUnsignedLongLong(value)) }
}

/// A new list whose slots are empty.
#[inline]
fn new_list(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyList>> {
    // SAFETY: `PyList_New` gives a list, or null with an error, also if the length is negative.
    unsafe {
        let list = ffi::PyList_New(length as ffi::Py_ssize_t);
        Ok(Bound::from_owned_ptr_or_err(py, list)?.cast_into_unchecked::<PyList>())
    }
}

/// A Python list of `length` items. (What pyo3 has for it panics if there is no memory.)
pub(crate) fn list<'py, T>(
    py: Python<'py>,
    length: usize,
    items: impl Iterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = new_list(py, length)?;
    for (index, item) in (0..).zip(items.take(length)) {
        let item = item?;
        // SAFETY: the list is new, nobody else has it, its slots are empty, and `index` is below
        // its length. It takes over the reference that `item` owns. If an item cannot be created,
        // the list is dropped with its other slots empty, which is allowed.
        unsafe { ffi::PyList_SET_ITEM(list.as_ptr(), index, item.into_ptr()) };
    }
    Ok(list)
}

/// The ids of a list or tuple that holds only plain ints from 0 to 2^32 - 1; `None` for anything
/// else, because reading it may call into Python, which could change the list.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    if let Ok(list) = object.cast_exact::<PyList>() {
        return with_critical_section(object, || {
            // SAFETY: the list does not change: the critical section (or the GIL) is held, and
            // nothing in `read_items` calls into Python.
            let items = unsafe {
                let items = (*list.as_ptr().cast::<ffi::PyListObject>()).ob_item;
                match items.is_null() {
                    true => &[],
                    false => {
                        std::slice::from_raw_parts(items.cast::<Bound<'_, PyAny>>(), list.len())
                    }
                }
            };
            read_items(object.py(), items)
        });
    }
    match object.cast_exact::<PyTuple>() {
        Ok(tuple) => read_items(object.py(), tuple.as_slice()),
        Err(_) => Ok(None),
    }
}

fn read_items(py: Python<'_>, items: &[Bound<'_, PyAny>]) -> PyResult<Option<Vec<u32>>> {
    let mut ids = Vec::new();
    reserve(py, &mut ids, items.len())?;
    for item in items {
        let Ok(integer) = item.cast_exact::<PyInt>() else { return Ok(None) };
        // SAFETY: it is exactly an int, so none of its methods are called. A value that does not
        // fit is -1 with an error set.
        let value = unsafe { ffi::PyLong_AsLongLong(integer.as_ptr()) };
        match u32::try_from(value) {
            Ok(id) => ids.push(id),
            Err(_) => {
                drop(PyErr::take(py));
                return Ok(None);
            }
        }
    }
    Ok(Some(ids))
}
