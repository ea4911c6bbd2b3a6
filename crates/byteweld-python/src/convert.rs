//! Converts arguments that several methods take: ids, text, number of threads.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use numpy::{Element, PyArray1, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::reserve;
use crate::lists;
use crate::text::Text;

/// A `len()` larger than this is not trusted when reserving memory.
const TRUSTED_LENGTH: usize = 1 << 16;

/// Cached: the system call takes longer than encoding a short text, and its result never changes.
static PROCESSORS: OnceLock<NonZeroUsize> = OnceLock::new();

/// The maximum number of threads.
const MAX_THREADS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// For shorter text, which takes about ten microseconds, the GIL is not released: passing it to another
/// thread and back takes as long.
pub(crate) const DETACH_BYTES: usize = 1 << 13;

/// Ids passed by the caller: copied, or borrowed from a numpy array.
pub(crate) enum Ids<'py> {
    Copied(Vec<u32>),
    Borrowed(PyReadonlyArray1<'py, u32>),
}

impl Ids<'_> {
    /// Other threads may change the ids of a borrowed array at any time.
    pub(crate) fn as_slice(&self) -> &[u32] {
        match self {
            Ids::Copied(ids) => ids,
            // Only contiguous arrays are borrowed.
            Ids::Borrowed(array) => array.as_slice().unwrap_or_default(),
        }
    }
}

/// Imports numpy and makes a first array. The numpy crate would also import it, but panics if
/// Ctrl-C interrupts the import, so pending interrupts are raised here first.
pub(crate) fn import_numpy(py: Python<'_>) -> PyResult<()> {
    static IMPORTED: AtomicBool = AtomicBool::new(false);
    if !IMPORTED.load(Ordering::Relaxed) {
        py.import("numpy")?;
        py.check_signals()?;
        PyArray1::<u32>::zeros(py, 0, false);
        IMPORTED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// A `bytes` object; MemoryError if it cannot be allocated, where `PyBytes::new` panics.
pub(crate) fn new_bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, content.len(), |bytes| {
        bytes.copy_from_slice(content);
        Ok(())
    })
}

/// Reads ids from a numpy array or any sequence of integers.
pub(crate) fn ids<'py>(object: &Bound<'py, PyAny>) -> PyResult<Ids<'py>> {
    // Lists first: checking for an array imports numpy.
    if let Some(ids) = lists::read(object)? {
        return Ok(Ids::Copied(ids));
    }
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        let name = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("expected a sequence of ids, found {name}")));
    }
    import_numpy(object.py())?;
    if let Some(ids) = array(object)? {
        return Ok(ids);
    }
    let mut ids = Vec::new();
    reserve(object.py(), &mut ids, object.len().unwrap_or(0).min(TRUSTED_LENGTH))?;
    for id in object.try_iter()? {
        reserve(object.py(), &mut ids, 1)?;
        ids.push(id_of(&id?)?);
    }
    Ok(Ids::Copied(ids))
}

/// Reads one id; an integer that no vocabulary can have as an id is an unknown id.
pub(crate) fn id_of(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    object.extract::<u32>().or_else(|error| {
        if !error.is_instance_of::<PyOverflowError>(object.py()) {
            return Err(error);
        }
        // Fails if it was `__index__` that raised.
        let integer = object.call_method0("__index__")?;
        Err(crate::error::id_out_of_range(&integer))
    })
}

/// Reads ids from a numpy array of a common type; other types are read one by one.
fn array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Ids<'py>>> {
    let Ok(untyped) = object.cast::<PyUntypedArray>() else { return Ok(None) };
    if let Ok(array) = object.extract::<PyReadonlyArray1<'_, u32>>() {
        if array.as_slice().is_ok() {
            return Ok(Some(Ids::Borrowed(array)));
        }
        // Strided arrays are copied; unaligned ones are read through Python.
        if !untyped.is_aligned() {
            return Ok(None);
        }
        let mut ids = Vec::new();
        reserve(object.py(), &mut ids, untyped.len())?;
        ids.extend(array.as_array().iter().copied());
        return Ok(Some(Ids::Copied(ids)));
    }
    for narrow in [narrow::<i64>, narrow::<i32>, narrow::<u64>, narrow::<u16>] {
        if let Some(ids) = narrow(object)? {
            return Ok(Some(Ids::Copied(ids)));
        }
    }
    Ok(None)
}

/// The ids of an array of another type, if they all fit.
fn narrow<T: Element + Copy + TryInto<u32>>(
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<Vec<u32>>> {
    let Ok(array) = object.extract::<PyReadonlyArray1<'_, T>>() else { return Ok(None) };
    let Ok(wide) = array.as_slice() else { return Ok(None) };
    let mut ids = Vec::new();
    reserve(object.py(), &mut ids, wide.len())?;
    for &id in wide {
        let Ok(id) = id.try_into() else { return Ok(None) };
        ids.push(id);
    }
    Ok(Some(ids))
}

/// Reads `str` and `bytes` from any iterable that is not itself a `str` or `bytes`.
pub(crate) fn texts(object: &Bound<'_, PyAny>) -> PyResult<Vec<Text>> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        let name = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "expected a sequence of str or bytes, found {name}"
        )));
    }
    let mut texts = Vec::new();
    reserve(object.py(), &mut texts, object.len().unwrap_or(0).min(TRUSTED_LENGTH))?;
    for text in object.try_iter()? {
        reserve(object.py(), &mut texts, 1)?;
        texts.push(text?.extract()?);
    }
    Ok(texts)
}

/// Reads tokens as (id, bytes) from any iterable.
pub(crate) fn tokens(object: &Bound<'_, PyAny>) -> PyResult<Vec<(u32, Vec<u8>)>> {
    let py = object.py();
    let mut tokens: Vec<(u32, Vec<u8>)> = Vec::new();
    for token in object.try_iter()? {
        let (id, bytes): (u32, Bound<'_, PyBytes>) = token?.extract()?;
        let mut copied = Vec::new();
        reserve(py, &mut copied, bytes.as_bytes().len())?;
        copied.extend_from_slice(bytes.as_bytes());
        reserve(py, &mut tokens, 1)?;
        tokens.push((id, copied));
    }
    Ok(tokens)
}

/// Reads merges as (left, right, new) from any iterable.
pub(crate) fn merges(object: &Bound<'_, PyAny>) -> PyResult<Vec<(u32, u32, u32)>> {
    let mut merges = Vec::new();
    for merge in object.try_iter()? {
        reserve(object.py(), &mut merges, 1)?;
        merges.push(merge?.extract()?);
    }
    Ok(merges)
}

/// The requested number of threads, or one per processor.
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
