//! The core's encoder, and the caches that turn its results into Python objects quickly.

use std::cell::Cell;

use byteweld_core::Result;
use byteweld_core::encode as core;
use byteweld_core::watch::Watch;
use numpy::{Element, PyArray1, ToPyArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::convert::{DETACH_BYTES, threads};
use crate::error::{check_memory, raise};
use crate::lists::Integers;
use crate::output::{known_handler, string, string_with};
use crate::specials::{SpecialTexts, Specials};
use crate::text::Text;
use crate::vocabulary::prepare;

/// All ids, and the offset where each text's ids start, followed by the end.
pub(crate) type Ragged<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>);

/// Up to this many ids are decoded into a scratch buffer and copied. For more, the length is
/// computed first and they are decoded in place, which is faster only if a copy would miss the
/// cache.
const MAX_COPIED_IDS: usize = 1 << 14;

/// Up to this many ids are copied into an array, which is faster than creating an object that owns
/// them.
const MAX_COPIED_ARRAY: usize = 1 << 14;

/// Scratch buffers of more bytes than this are freed after the call.
const MAX_KEPT_BYTES: usize = 1 << 18;

thread_local! {
    /// Decoded bytes. Taken while in use, since one of Python's error handlers may call decode
    /// again.
    static DECODED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// Ids of a text.
    static ENCODED: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer for ids, with the space that an earlier call needed.
fn scratch_ids() -> Vec<u32> {
    let mut ids = ENCODED.take();
    ids.clear();
    ids
}

/// Keeps a buffer for the next call of this thread, unless it is large.
fn keep_scratch(ids: Vec<u32>) {
    if ids.capacity() <= MAX_KEPT_BYTES / size_of::<u32>() {
        ENCODED.set(ids);
    }
}

/// Everything an encoder builds from its vocabulary.
pub(crate) struct Engine {
    pub(crate) encoder: core::Encoder,
    pub(crate) integers: Integers,
    specials: SpecialTexts,
}

/// Whether a signal handler, such as that of Ctrl-C, has raised an exception; Python then keeps it for
/// [`raise`].
fn is_interrupted() -> bool {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            error.restore(py);
            true
        }
    })
}

/// A `bytes`, or a `MemoryError`.
pub(crate) fn bytes_object<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |space| {
        space.copy_from_slice(bytes);
        Ok(())
    })
}

/// Ids or offsets as an array.
pub(crate) fn array<T: Element + Copy>(py: Python<'_>, ids: Vec<T>) -> Bound<'_, PyArray1<T>> {
    if ids.len() < MAX_COPIED_ARRAY { ids.to_pyarray(py) } else { PyArray1::from_vec(py, ids) }
}

impl Engine {
    /// Builds the engine of a `byteweld.Vocabulary`.
    pub(crate) fn new(vocab: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (encoder, specials) = prepare(vocab)?;
        let end = encoder.tokens().end();
        check_memory(vocab.py(), size_of::<usize>() * end as usize)?;
        let integers = Integers::new(end);
        Ok(Self { encoder, integers, specials: SpecialTexts::new(specials) })
    }

    /// Reads `allowed_special` and `disallowed_special`.
    pub(crate) fn specials(
        &self,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<Specials> {
        self.specials.read(&self.encoder, allowed, disallowed)
    }

    /// Does the work. If there is much of it, releases the GIL, and lets Ctrl-C interrupt it.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        bytes: usize,
        work: impl FnOnce(&core::Encoder, Watch) -> Result<T> + Send,
    ) -> PyResult<T> {
        let result = if bytes < DETACH_BYTES {
            work(&self.encoder, Watch::default())
        } else {
            py.detach(|| work(&self.encoder, Watch::new(is_interrupted)))
        };
        result.map_err(|error| raise(py, error))
    }

    // ------------------------------------------------------------------------------ encoding

    /// Encodes a text into a sink.
    pub(crate) fn encode_into<S: core::Sink + Send>(
        &self,
        py: Python<'_>,
        text: &Text,
        specials: &Specials,
        mut sink: S,
    ) -> PyResult<S> {
        let text = text.as_ref();
        self.run(py, text.len(), |encoder, watch| {
            specials.check(encoder, text, &watch)?;
            // About what most texts need.
            sink.reserve(if text.len() < DETACH_BYTES { 0 } else { text.len() / 4 })?;
            encoder.encode_watched(text, &specials.allowed(), &mut sink, &watch)?;
            Ok(sink)
        })
    }

    /// Encodes a text to a list.
    pub(crate) fn encode_to_list<'py>(
        &self,
        py: Python<'py>,
        text: &Text,
        specials: &Specials,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = self.encode_into(py, text, specials, scratch_ids())?;
        let list = self.integers.list(py, &ids);
        keep_scratch(ids);
        list
    }

    /// Encodes a text to an array.
    pub(crate) fn encode_to_array<'py>(
        &self,
        py: Python<'py>,
        text: &Text,
        specials: &Specials,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let ids = self.encode_into(py, text, specials, scratch_ids())?;
        if ids.len() >= MAX_COPIED_ARRAY {
            return Ok(PyArray1::from_vec(py, ids));
        }
        let array = ids.to_pyarray(py);
        keep_scratch(ids);
        Ok(array)
    }

    /// Encodes many texts on several threads.
    pub(crate) fn encode_many(
        &self,
        py: Python<'_>,
        texts: &[Text],
        specials: &Specials,
        num_threads: Option<i128>,
    ) -> PyResult<core::Ragged> {
        let threads = threads(num_threads)?;
        let bytes = texts.iter().map(|text| text.as_ref().len()).sum();
        self.run(py, bytes, |encoder, mut watch| {
            for text in texts {
                specials.check(encoder, text.as_ref(), &watch)?;
                watch.worked(text.as_ref().len())?;
            }
            encoder.encode_batch(texts, &specials.allowed(), threads, &watch)
        })
    }

    // ------------------------------------------------------------------------------ decoding

    /// Decodes to `bytes`.
    pub(crate) fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &[u32],
    ) -> PyResult<Bound<'py, PyBytes>> {
        if ids.len() <= MAX_COPIED_IDS {
            return self.decode_with(py, ids, |bytes| bytes_object(py, bytes));
        }
        let length = self.decoded_length(py, ids)?;
        PyBytes::new_with(py, length, |out| self.decode_to(py, ids, out))
    }

    /// Decodes to a `str`; `errors` is as in `bytes.decode`.
    pub(crate) fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &[u32],
        errors: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(handler) = known_handler(errors) else {
            return self.decode_bytes(py, ids)?.call_method1("decode", ("utf-8", errors));
        };
        if ids.len() <= MAX_COPIED_IDS {
            return self.decode_with(py, ids, |bytes| Ok(string(py, bytes, handler)?.into_any()));
        }
        let length = self.decoded_length(py, ids)?;
        let text = string_with(py, length, handler, |out| self.decode_to(py, ids, out))?;
        Ok(text.into_any())
    }

    /// Decodes ids into a scratch buffer and passes the bytes to `make`.
    fn decode_with<T>(
        &self,
        py: Python<'_>,
        ids: &[u32],
        make: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut buffer = DECODED.take();
        let length = self
            .run(py, ids.len() * 4, |encoder, _| encoder.tokens().decode_over(ids, &mut buffer))?;
        let made = make(&buffer[..length]);
        if buffer.len() <= MAX_KEPT_BYTES {
            DECODED.set(buffer);
        }
        made
    }

    /// Number of bytes that the ids decode to.
    fn decoded_length(&self, py: Python<'_>, ids: &[u32]) -> PyResult<usize> {
        self.run(py, usize::MAX, |encoder, mut watch| {
            encoder.tokens().decoded_length(ids, &mut watch)
        })
    }

    /// Decodes ids into a slice of exactly their length.
    fn decode_to(&self, py: Python<'_>, ids: &[u32], out: &mut [u8]) -> PyResult<()> {
        if self.run(py, usize::MAX, |encoder, mut watch| {
            encoder.tokens().decode_to(ids, out, &mut watch)
        })? {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("another thread changed the ids while they were decoded"))
    }
}
