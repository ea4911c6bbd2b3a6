//! `Encoder`: a vocabulary whose engine is built when it is first used.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use byteweld_core::Error;
use byteweld_core::encode as core;
use byteweld_core::encode::{Allowed, Counter, Total, WithEnds};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::convert::{self, id_of, ids, import_numpy, texts};
use crate::engine::{Engine, Ragged, bytes_object};
use crate::error::{check_memory, raise, reserve};
use crate::inputs::Arguments;
use crate::lists;
use crate::stream::{Events, StreamArguments, encode_corpus};
use crate::text::Text;

/// What recovering the merges of ranks allocates at most for a token, with Python's objects.
const RECOVERY_BYTES: usize = 512;

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
        engine.encode_to_list(py, &text, &specials)
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
    ) -> PyResult<Bound<'py, PyList>> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let all = engine.encode_many(py, &self::texts(texts)?, &specials, num_threads)?;
        lists::list(py, all.ends.len(), all.iter().map(|ids| engine.integers.list(py, ids)))
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
        let mut offsets: Vec<i64> = Vec::new();
        reserve(py, &mut offsets, all.ends.len() + 1)?;
        offsets.extend(starts.map(|&end| end as i64));
        Ok((crate::engine::array(py, all.ids), crate::engine::array(py, offsets)))
    }

    /// Encodes a corpus; `receive` gets the blocks in order.
    fn encode_corpus(
        &self,
        py: Python<'_>,
        corpus: Arguments,
        arguments: StreamArguments,
        receive: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Events> {
        import_numpy(py)?;
        encode_corpus(py, self.engine(py)?, corpus, arguments, receive, progress)
    }

    /// Ids, and the byte offset where each token ends.
    fn encode_with_ends<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        allowed: &Bound<'py, PyAny>,
        disallowed: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let sink = engine.encode_into(py, &text, &specials, WithEnds::default())?;
        let ends = sink.ends.iter().map(|&end| lists::integer(py, end as u64));
        Ok((engine.integers.list(py, &sink.ids)?, lists::list(py, sink.ends.len(), ends)?))
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
        let mut joined = Vec::new();
        reserve(py, &mut joined, texts.iter().map(|text| text.as_ref().len()).sum())?;
        let mut ranges = Vec::new();
        for (text, is_trusted) in texts.iter().zip(&trusted) {
            let start = joined.len();
            joined.extend_from_slice(text.as_ref());
            if *is_trusted && start < joined.len() {
                ranges.push(start..joined.len());
            }
        }
        let allowed = Allowed::Within(&ranges);
        let ids = engine.run(py, joined.len(), |encoder, watch| {
            let mut ids: Vec<u32> = Vec::new();
            encoder.encode_watched(&joined, &allowed, &mut ids, &watch)?;
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
        engine.run(py, usize::MAX, |encoder, watch| {
            specials.check(encoder, text.as_bytes(), &watch)?;
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

    fn pretokenize<'py>(&self, py: Python<'py>, text: Text) -> PyResult<Bound<'py, PyList>> {
        let text = text.as_ref();
        let ends = self.engine(py)?.run(py, text.len(), |encoder, mut watch| {
            let mut pieces = Pieces::default();
            encoder.pretokenize(text, &watch.clone(), &mut |piece| {
                watch.worked(piece.len())?;
                pieces.add(piece)?;
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(pieces)
        })?;
        lists::list(py, ends.lengths.len(), ends.iter().map(|piece| bytes_object(py, piece)))
    }

    /// The number of pre-tokens that longest match cuts into the same tokens, and of all pre-tokens;
    /// `None` if the vocabulary would take too many steps.
    fn longest_match_agreement(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(u64, u64)>> {
        let engine = self.engine(py)?;
        let specials = engine.specials(allowed, disallowed)?;
        let texts = self::texts(texts)?;
        let bytes = texts.iter().map(|text| text.as_ref().len()).sum();
        engine.run(py, bytes, |encoder, watch| {
            let mut sums = (0, 0);
            for text in &texts {
                let text = text.as_ref();
                specials.check(encoder, text, &watch)?;
                let found = encoder.longest_match_agreement(text, &specials.allowed(), &watch)?;
                let Some(found) = found else { return Ok(None) };
                sums = (sums.0 + found.agreeing, sums.1 + found.pretokens);
            }
            Ok(Some(sums))
        })
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
        engine.run(py, text.len(), |encoder, _| {
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
            Some(token) => bytes_object(py, token),
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

/// The pieces of a text, concatenated.
#[derive(Default)]
struct Pieces {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl Pieces {
    fn add(&mut self, piece: &[u8]) -> byteweld_core::Result<()> {
        byteweld_core::reserve::reserve(&mut self.bytes, piece.len())?;
        byteweld_core::reserve::reserve(&mut self.lengths, 1)?;
        self.bytes.extend_from_slice(piece);
        self.lengths.push(piece.len());
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map_while(move |&length| rest.split_off(..length))
    }
}

/// Recovers the merges of a rank file; None unless every token re-splits into exactly two parts.
#[pyfunction]
pub(crate) fn recover_merges(tokens: &Bound<'_, PyAny>) -> PyResult<Option<Vec<(u32, u32, u32)>>> {
    let py = tokens.py();
    check_memory(py, RECOVERY_BYTES * tokens.len()?)?;
    let tokens = convert::tokens(tokens)?;
    py.detach(|| core::recover_merges(tokens)).map_err(|e| raise(py, e))
}

/// The canonical form shared by all spellings of a recognized pattern; None for any other pattern.
#[pyfunction]
pub(crate) fn canonical_pattern(py: Python<'_>, pattern: &str) -> PyResult<Option<String>> {
    check_memory(py, 0)?;
    Ok(py.detach(|| byteweld_core::pretoken::canonical_pattern(pattern)))
}
