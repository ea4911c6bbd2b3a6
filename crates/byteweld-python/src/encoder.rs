//! `Encoder`: a vocabulary whose engine is built when it is first used.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use byteweld_core::Error;
use byteweld_core::encode as core;
use byteweld_core::encode::{Allowed, Counter, Total, WithEnds};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::convert::{id_of, ids, import_numpy, texts};
use crate::engine::{Engine, Ragged};
use crate::error::raise;
use crate::text::Text;

/// How often a thread checks whether another one has finished building the engine.
const WAIT: Duration = Duration::from_millis(1);

/// The engine of a tokenizer. Immutable; shared by threads.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Encoder {
    /// A `byteweld.Vocabulary`.
    vocab: Py<PyAny>,
    engine: OnceLock<Engine>,
    /// The process in which a thread is building the engine, or 0.
    builder: AtomicU32,
}

impl Encoder {
    fn engine(&self, py: Python<'_>) -> PyResult<&Engine> {
        match self.engine.get() {
            Some(engine) => Ok(engine),
            None => self.build(py),
        }
    }

    /// Builds the engine once, however many threads need it. Not with a lock: in a forked process
    /// it could be held by a thread that no longer exists.
    #[cold]
    fn build(&self, py: Python<'_>) -> PyResult<&Engine> {
        let process = std::process::id();
        loop {
            if let Some(engine) = self.engine.get() {
                return Ok(engine);
            }
            let builder = self.builder.load(Ordering::Acquire);
            if builder == process {
                py.detach(|| std::thread::sleep(WAIT));
                py.check_signals()?;
            } else if self
                .builder
                .compare_exchange(builder, process, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
        }
        let built = Engine::new(self.vocab.bind(py));
        let engine = built.map(|engine| self.engine.get_or_init(|| engine));
        self.builder.store(0, Ordering::Release);
        engine
    }
}

#[pymethods]
impl Encoder {
    /// `eager` builds the engine immediately, so that errors are raised here.
    #[new]
    #[pyo3(signature = (vocab, *, eager))]
    fn new(py: Python<'_>, vocab: Py<PyAny>, eager: bool) -> PyResult<Self> {
        let encoder = Self { vocab, engine: OnceLock::new(), builder: AtomicU32::new(0) };
        if eager {
            encoder.engine(py)?;
        }
        Ok(encoder)
    }

    // ------------------------------------------------------------------------------ encoding

    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        allowed: &Bound<'py, PyAny>,
        disallowed: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        engine.encode_with(py, &text, &specials, |ids| engine.integers.list(py, ids))
    }

    fn encode_to_numpy<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        allowed: &Bound<'py, PyAny>,
        disallowed: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        import_numpy(py)?;
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        engine.encode_to_array(py, &text, &specials)
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        allowed: &Bound<'py, PyAny>,
        disallowed: &Bound<'py, PyAny>,
        num_threads: Option<i128>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let all = engine.encode_many(py, &self::texts(texts)?, &specials, num_threads)?;
        all.iter().map(|ids| engine.integers.list(py, ids)).collect()
    }

    /// All ids in one array, and the offset where each text's ids start, followed by the end.
    fn encode_ragged<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        allowed: &Bound<'py, PyAny>,
        disallowed: &Bound<'py, PyAny>,
        num_threads: Option<i128>,
    ) -> PyResult<Ragged<'py>> {
        import_numpy(py)?;
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let all = engine.encode_many(py, &self::texts(texts)?, &specials, num_threads)?;
        let starts = std::iter::once(&0).chain(&all.ends);
        let offsets: Vec<i64> = starts.map(|&end| end as i64).collect();
        Ok((crate::engine::array(py, all.ids), offsets.to_pyarray(py)))
    }

    /// Ids, and the byte offset where each token ends.
    fn encode_with_ends(
        &self,
        py: Python<'_>,
        text: Text,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<(Vec<u32>, Vec<usize>)> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let sink = engine.encode_into(py, &text, &specials, WithEnds::default())?;
        Ok((sink.ids, sink.ends))
    }

    /// Encodes spans as one text; a special token is recognized only within a single trusted span.
    fn encode_spans<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        trusted: Vec<bool>,
    ) -> PyResult<Bound<'py, PyList>> {
        let engine = self.engine(py)?;
        let texts = self::texts(texts)?;
        let mut joined = Vec::with_capacity(texts.iter().map(|text| text.as_ref().len()).sum());
        let mut ranges = Vec::new();
        for (text, is_trusted) in texts.iter().zip(&trusted) {
            let start = joined.len();
            joined.extend_from_slice(text.as_ref());
            if *is_trusted && start < joined.len() {
                ranges.push(start..joined.len());
            }
        }
        let allowed = Allowed::Within(&ranges);
        let ids = engine.run(py, joined.len(), |encoder| {
            let mut ids = Vec::with_capacity(joined.len() / 4);
            encoder.encode(&joined, &allowed, &mut ids)?;
            Ok(ids)
        })?;
        engine.integers.list(py, &ids)
    }

    fn encode_with_unstable(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<(Vec<u32>, Vec<Vec<u32>>)> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let text = String::from_utf8(Text::of_str(text)?.as_ref().to_vec())?;
        // Even a short text can have thousands of completions.
        engine.run(py, usize::MAX, |encoder| {
            specials.check(encoder, text.as_bytes())?;
            encoder.encode_with_unstable(&text, &specials.allowed())
        })
    }

    /// Number of tokens.
    fn count(
        &self,
        py: Python<'_>,
        text: Text,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        Ok(engine.encode_into(py, &text, &specials, Total::default())?.tokens)
    }

    /// Number of tokens, up to a limit; the bytes they cover; and whether there are more.
    fn count_until(
        &self,
        py: Python<'_>,
        text: Text,
        limit: usize,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<(usize, usize, bool)> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let sink = engine.encode_into(py, &text, &specials, Counter::new(limit))?;
        Ok((sink.tokens, sink.bytes, sink.passed))
    }

    fn pretokenize<'py>(&self, py: Python<'py>, text: Text) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut pieces = Vec::new();
        self.engine(py)?
            .encoder
            .pretokenize(text.as_ref(), &mut |piece| {
                pieces.push(PyBytes::new(py, piece));
                ControlFlow::Continue(())
            })
            .map_err(|e| raise(py, e))?;
        Ok(pieces)
    }

    /// The offset up to which the ids are final, whatever text follows.
    fn certain_end(
        &self,
        py: Python<'_>,
        text: Text,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let text = text.as_ref();
        // The vocabulary's special tokens are never cut, so only other disallowed strings matter.
        engine.run(py, text.len(), |encoder| {
            Ok(encoder.certain_end(text, &specials.allowed(), specials.refused_choice()))
        })
    }

    // ------------------------------------------------------------------------------ decoding

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.engine(py)?.decode_bytes(py, self::ids(ids)?.as_slice())
    }

    /// Decodes to a `str`; `errors` is as in `bytes.decode`.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        errors: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.engine(py)?.decode(py, self::ids(ids)?.as_slice(), errors)
    }

    /// The bytes of one token.
    fn token_bytes<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let id = id_of(id)?;
        match self.engine(py)?.encoder.tokens().get(id) {
            Some(token) => Ok(PyBytes::new(py, token)),
            None => Err(raise(py, Error::UnknownId(id))),
        }
    }

    // ------------------------------------------------------------------------------ inspecting

    /// The kind of engine that runs each pattern, in order.
    #[getter]
    fn engines(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        Ok(self.engine(py)?.encoder.engines())
    }
}

/// Recovers the merges of a rank file; None unless every token re-splits into exactly two parts.
#[pyfunction]
pub(crate) fn recover_merges(
    py: Python<'_>,
    tokens: Vec<(u32, Vec<u8>)>,
) -> PyResult<Option<Vec<(u32, u32, u32)>>> {
    py.detach(|| core::recover_merges(tokens)).map_err(|e| raise(py, e))
}

/// The canonical form shared by all spellings of a recognized pattern; None for any other pattern.
#[pyfunction]
pub(crate) fn canonical_pattern(py: Python<'_>, pattern: &str) -> Option<String> {
    py.detach(|| byteweld_core::pretoken::canonical_pattern(pattern))
}
