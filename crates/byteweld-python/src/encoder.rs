//! A vocabulary made ready: text to ids and back.

use std::cell::Cell;
use std::ops::ControlFlow;

use byteweld_core::encode as core;
use byteweld_core::encode::{Allowed, Counter, Gaps, Ranking, Total, WithEnds};
use byteweld_core::pretoken::Pretokenizer;
use byteweld_core::rewrite::{AddedToken, Behaviour, Form, NormalStep, Normaliser, Step, Steps};
use byteweld_core::{Error, Result};
use numpy::{PyArray1, ToPyArray};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList};

use crate::convert::{DETACH_BYTES, ids, import_numpy, texts, threads};
use crate::error::raise;
use crate::lists::Integers;
use crate::output::{known_handler, string, string_with};
use crate::table::Table;
use crate::text::Text;

/// All ids, and where each text's ids start, with the end as last.
type Ragged<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>);

/// Special tokens to be recognised or refused, made by [`Encoder::choose`].
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct SpecialChoice {
    inner: core::Choice,
}

/// None of them, all of the vocabulary's (`True`), or a choice.
enum Specials {
    All(bool),
    Some(Py<SpecialChoice>),
}

// Derived, this would make an exception for each choice: that it is no bool.
impl<'py> FromPyObject<'_, 'py> for Specials {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(all) = object.cast_exact::<PyBool>() {
            return Ok(Specials::All(all.is_true()));
        }
        Ok(Specials::Some(object.cast::<SpecialChoice>()?.to_owned().unbind()))
    }
}

impl Specials {
    fn allowed(specials: &Option<Self>) -> Allowed<'_> {
        match specials {
            None | Some(Specials::All(false)) => Allowed::None,
            Some(Specials::All(true)) => Allowed::All,
            Some(Specials::Some(choice)) => Allowed::Some(&choice.get().inner),
        }
    }
}

/// An added token: text, id, special, single_word, lstrip, rstrip, normalized.
type Added = (String, u32, bool, bool, bool, bool, bool);

fn added_token(added: Added) -> AddedToken {
    let (text, id, special, single_word, lstrip, rstrip, normalized) = added;
    AddedToken { text, id, special, single_word, lstrip, rstrip, normalized }
}

/// The ordinary tokens; or all tokens, with the merges.
#[derive(FromPyObject)]
enum TokensArgument {
    All(Py<Table>),
    Ordinary(Vec<(u32, Vec<u8>)>),
}

/// A step of a chain: its name, or a split's pattern, behavior and invert.
#[derive(FromPyObject)]
enum StepArgument {
    Name(String),
    Split(String, String, bool),
}

impl StepArgument {
    fn into_step(self, py: Python<'_>) -> PyResult<Step> {
        Ok(match self {
            StepArgument::Name(name) => match &name[..] {
                "prefix-space" => Step::PrefixSpace,
                "byte-letters" => Step::ByteLetters,
                other => return Err(unknown("step", other)),
            },
            StepArgument::Split(pattern, behavior, invert) => Step::Split {
                pattern: Pretokenizer::new(Some(&pattern)).map_err(|e| raise(py, e))?,
                behaviour: match &behavior[..] {
                    "isolated" => Behaviour::Isolated,
                    "removed" => Behaviour::Removed,
                    "merged_with_previous" => Behaviour::MergedWithPrevious,
                    "merged_with_next" => Behaviour::MergedWithNext,
                    "contiguous" => Behaviour::Contiguous,
                    other => return Err(unknown("behavior", other)),
                },
                invert,
            },
        })
    }
}

/// A normaliser: its name, or a replacement's pattern and content.
#[derive(FromPyObject)]
enum NormalArgument {
    Name(String),
    Replace(String, String),
}

impl NormalArgument {
    fn into_step(self, py: Python<'_>) -> PyResult<NormalStep> {
        Ok(match self {
            NormalArgument::Name(name) => match &name[..] {
                "nfc" => NormalStep::Form(Form::Nfc),
                "nfd" => NormalStep::Form(Form::Nfd),
                "nfkc" => NormalStep::Form(Form::Nfkc),
                "nfkd" => NormalStep::Form(Form::Nfkd),
                "lowercase" => NormalStep::Lowercase,
                other => return Err(unknown("normalizer", other)),
            },
            NormalArgument::Replace(pattern, content) => {
                let pattern = Pretokenizer::new(Some(&pattern)).map_err(|e| raise(py, e))?;
                NormalStep::Replace { pattern, content }
            }
        })
    }
}

fn slices(tokens: &[(u32, Vec<u8>)]) -> Vec<(u32, &[u8])> {
    tokens.iter().map(|(id, token)| (*id, &token[..])).collect()
}

/// Ids as an array. To copy few of them is quicker than to make the object that would keep them alive.
fn array(py: Python<'_>, ids: Vec<u32>) -> Bound<'_, PyArray1<u32>> {
    const WORTH_KEEPING: usize = 1 << 14;
    if ids.len() < WORTH_KEEPING { ids.to_pyarray(py) } else { PyArray1::from_vec(py, ids) }
}

fn unknown(what: &str, value: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what} {value:?}"))
}

/// The engine of a tokenizer. Immutable; shared by threads.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Encoder {
    inner: core::Encoder,
    integers: Integers,
}

/// Up to so many ids are decoded into room that is there, and copied. More are measured first, and then decoded
/// to where they will lie: that takes longer than to copy them, unless the memory is new to the processor.
const FEW_IDS: usize = 1 << 14;

/// More room than this, in bytes, is not kept.
const KEPT_ROOM: usize = 1 << 18;

thread_local! {
    /// Taken while it is used: what Python does with wrong bytes may come here again.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The same for the ids of a short text.
    static FEW: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

impl Encoder {
    /// Does the work, without the GIL if there is much of it.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        bytes: usize,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        let result = if bytes < DETACH_BYTES { work() } else { py.detach(work) };
        result.map_err(|error| raise(py, error))
    }

    fn refuse(&self, text: &[u8], refused: &Option<Specials>) -> Result<()> {
        match refused {
            None | Some(Specials::All(false)) => Ok(()),
            Some(Specials::All(true)) => self.inner.refuse(text, None),
            Some(Specials::Some(choice)) => self.inner.refuse(text, Some(&choice.get().inner)),
        }
    }

    /// Decodes few ids into room that is kept for the next call; `make` makes of their bytes what goes out.
    fn decode_few<T>(
        &self,
        py: Python<'_>,
        ids: &[u32],
        make: impl FnOnce(&[u8]) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut room = ROOM.take();
        let length =
            self.run(py, ids.len() * 4, || self.inner.tokens().decode_over(ids, &mut room))?;
        let made = make(&room[..length]);
        if room.len() <= KEPT_ROOM {
            ROOM.set(room);
        }
        made
    }

    /// How many bytes many ids have.
    fn decoded_length(&self, py: Python<'_>, ids: &[u32]) -> PyResult<usize> {
        self.run(py, usize::MAX, || self.inner.tokens().decoded_length(ids))
    }

    /// Decodes many ids to where there is room for exactly their bytes.
    fn decode_to(&self, py: Python<'_>, ids: &[u32], out: &mut [u8]) -> PyResult<()> {
        if py.detach(|| self.inner.tokens().decode_to(ids, out)) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("another thread changed the ids while they were decoded"))
    }

    fn encode_ids(
        &self,
        py: Python<'_>,
        text: &Text,
        allowed: &Option<Specials>,
        refused: &Option<Specials>,
    ) -> PyResult<Vec<u32>> {
        let text = text.as_ref();
        self.run(py, text.len(), || {
            self.refuse(text, refused)?;
            let mut ids = Vec::with_capacity(text.len() / 4);
            self.inner.encode(text, &Specials::allowed(allowed), &mut ids)?;
            Ok(ids)
        })
    }

    /// Encodes a text; `make` makes of its ids what goes out. Those of a short text are in room that is kept.
    fn encode_with<T>(
        &self,
        py: Python<'_>,
        text: &Text,
        allowed: &Option<Specials>,
        refused: &Option<Specials>,
        make: impl FnOnce(&[u32]) -> PyResult<T>,
    ) -> PyResult<T> {
        let bytes = text.as_ref();
        if bytes.len() >= DETACH_BYTES {
            return make(&self.encode_ids(py, text, allowed, refused)?);
        }
        let mut ids = FEW.take();
        ids.clear();
        let made = self
            .refuse(bytes, refused)
            .and_then(|()| self.inner.encode(bytes, &Specials::allowed(allowed), &mut ids))
            .map_err(|error| raise(py, error))
            .and_then(|()| make(&ids));
        if ids.capacity() <= KEPT_ROOM / size_of::<u32>() {
            FEW.set(ids);
        }
        made
    }

    fn encode_many(
        &self,
        py: Python<'_>,
        texts: &[Text],
        allowed: &Option<Specials>,
        refused: &Option<Specials>,
        num_threads: Option<i128>,
    ) -> PyResult<core::Ragged> {
        let threads = threads(num_threads)?;
        let bytes = texts.iter().map(|text| text.as_ref().len()).sum();
        self.run(py, bytes, || {
            for text in texts {
                self.refuse(text.as_ref(), refused)?;
            }
            self.inner.encode_batch(texts, &Specials::allowed(allowed), threads)
        })
    }
}

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (*, tokens, merges, ranking, added, added_bytes, pattern, steps, normalizer, gaps, unk))]
    #[allow(
        clippy::too_many_arguments,
        reason = "named arguments, one for each part of a vocabulary"
    )]
    fn new(
        py: Python<'_>,
        tokens: TokensArgument,
        merges: Vec<(u32, u32, u32)>,
        ranking: &str,
        added: Vec<Added>,
        added_bytes: Vec<(u32, Vec<u8>)>,
        pattern: Option<String>,
        steps: Vec<StepArgument>,
        normalizer: Vec<NormalArgument>,
        gaps: &str,
        unk: Option<u32>,
    ) -> PyResult<Self> {
        let ranking = match ranking {
            "merges" => Ranking::Merges,
            "merges-after-lookup" => Ranking::MergesAfterLookup,
            "ids" => Ranking::Ids,
            other => return Err(unknown("ranking", other)),
        };
        let gaps = match gaps {
            "characters" => Gaps::Characters,
            "bytes" => Gaps::Bytes,
            other => return Err(unknown("gaps", other)),
        };
        let steps = steps.into_iter().map(|step| step.into_step(py)).collect::<PyResult<_>>()?;
        let normaliser =
            normalizer.into_iter().map(|step| step.into_step(py)).collect::<PyResult<_>>()?;
        let (tokens, merges) = match &tokens {
            TokensArgument::Ordinary(tokens) => (slices(tokens), merges),
            TokensArgument::All(table) => {
                let table = table.get();
                (table.ordinary(&added_bytes), table.merges_in_order().to_vec())
            }
        };
        let vocabulary = core::Vocabulary {
            tokens,
            merges,
            ranking,
            added: added.into_iter().map(added_token).collect(),
            added_bytes: slices(&added_bytes),
            pattern,
            steps: Steps::new(steps),
            normaliser: Normaliser::new(normaliser),
            gaps,
            unk,
        };
        let inner = py.detach(|| core::Encoder::new(vocabulary)).map_err(|e| raise(py, e))?;
        let integers = Integers::new(inner.tokens().end());
        Ok(Self { inner, integers })
    }

    /// Prepares a choice of special tokens.
    fn choose(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<SpecialChoice> {
        let inner = self.inner.choose(&texts).map_err(|e| raise(py, e))?;
        Ok(SpecialChoice { inner })
    }

    // ------------------------------------------------------------------------------ encoding

    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.encode_with(py, &text, &allowed, &refused, |ids| self.integers.list(py, ids))
    }

    fn encode_to_numpy<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        import_numpy(py)?;
        if text.as_ref().len() >= DETACH_BYTES {
            return Ok(array(py, self.encode_ids(py, &text, &allowed, &refused)?));
        }
        self.encode_with(py, &text, &allowed, &refused, |ids| Ok(ids.to_pyarray(py)))
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        allowed: Option<Specials>,
        refused: Option<Specials>,
        num_threads: Option<i128>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let all = self.encode_many(py, &self::texts(texts)?, &allowed, &refused, num_threads)?;
        all.iter().map(|ids| self.integers.list(py, ids)).collect()
    }

    /// All ids in one array, and where each text's ids start, with the end as last.
    fn encode_ragged<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        allowed: Option<Specials>,
        refused: Option<Specials>,
        num_threads: Option<i128>,
    ) -> PyResult<Ragged<'py>> {
        import_numpy(py)?;
        let all = self.encode_many(py, &self::texts(texts)?, &allowed, &refused, num_threads)?;
        let starts = std::iter::once(&0).chain(&all.ends);
        let offsets: Vec<i64> = starts.map(|&end| end as i64).collect();
        Ok((array(py, all.ids), offsets.to_pyarray(py)))
    }

    /// Ids, and the byte offset where each one ends.
    fn encode_with_ends(
        &self,
        py: Python<'_>,
        text: Text,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<(Vec<u32>, Vec<usize>)> {
        let text = text.as_ref();
        self.run(py, text.len(), || {
            self.refuse(text, &refused)?;
            let mut sink = WithEnds::default();
            self.inner.encode(text, &Specials::allowed(&allowed), &mut sink)?;
            Ok((sink.ids, sink.ends))
        })
    }

    /// Encodes texts as one; special tokens are recognised only inside one text that is trusted.
    fn encode_spans<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        trusted: Vec<bool>,
    ) -> PyResult<Bound<'py, PyList>> {
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
        let allowed = if ranges.is_empty() { Allowed::None } else { Allowed::Within(&ranges) };
        let ids = self.run(py, joined.len(), || {
            let mut ids = Vec::with_capacity(joined.len() / 4);
            self.inner.encode(&joined, &allowed, &mut ids)?;
            Ok(ids)
        })?;
        self.integers.list(py, &ids)
    }

    fn encode_with_unstable(
        &self,
        py: Python<'_>,
        text: &str,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<(Vec<u32>, Vec<Vec<u32>>)> {
        // Even a short text can have thousands of completions.
        self.run(py, usize::MAX, || {
            self.refuse(text.as_bytes(), &refused)?;
            self.inner.encode_with_unstable(text, &Specials::allowed(&allowed))
        })
    }

    /// How many tokens there are.
    fn count(
        &self,
        py: Python<'_>,
        text: Text,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<usize> {
        let text = text.as_ref();
        self.run(py, text.len(), || {
            self.refuse(text, &refused)?;
            let mut sink = Total::default();
            self.inner.encode(text, &Specials::allowed(&allowed), &mut sink)?;
            Ok(sink.tokens)
        })
    }

    /// Tokens up to a limit, the bytes that they cover, and whether there were more.
    fn count_until(
        &self,
        py: Python<'_>,
        text: Text,
        limit: usize,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<(usize, usize, bool)> {
        let text = text.as_ref();
        self.run(py, text.len(), || {
            self.refuse(text, &refused)?;
            let mut sink = Counter::new(limit);
            self.inner.encode(text, &Specials::allowed(&allowed), &mut sink)?;
            Ok((sink.tokens, sink.bytes, sink.passed))
        })
    }

    fn pretokenize<'py>(&self, py: Python<'py>, text: Text) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut pieces = Vec::new();
        self.inner
            .pretokenize(text.as_ref(), &mut |piece| {
                pieces.push(PyBytes::new(py, piece));
                ControlFlow::Continue(())
            })
            .map_err(|e| raise(py, e))?;
        Ok(pieces)
    }

    /// Up to where the ids of a text that goes on are certain; 0 if nothing is.
    fn certain_end(
        &self,
        py: Python<'_>,
        text: Text,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<usize> {
        let refused = match &refused {
            Some(Specials::Some(choice)) => Some(&choice.get().inner),
            _ => None, // the vocabulary's own special tokens are never torn
        };
        let text = text.as_ref();
        self.run(py, text.len(), || {
            Ok(self.inner.certain_end(text, &Specials::allowed(&allowed), refused))
        })
    }

    // ------------------------------------------------------------------------------ decoding

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = self::ids(ids)?;
        let ids = ids.as_slice();
        if ids.len() <= FEW_IDS {
            return self.decode_few(py, ids, |bytes| Ok(PyBytes::new(py, bytes)));
        }
        let length = self.decoded_length(py, ids)?;
        PyBytes::new_with(py, length, |out| self.decode_to(py, ids, out))
    }

    /// Decodes to a `str`; `errors` is as in `bytes.decode`.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        errors: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(handler) = known_handler(errors) else {
            let bytes = self.decode_bytes(py, ids)?;
            return bytes.call_method1("decode", ("utf-8", errors));
        };
        let ids = self::ids(ids)?;
        let ids = ids.as_slice();
        if ids.len() <= FEW_IDS {
            return self.decode_few(py, ids, |bytes| Ok(string(py, bytes, handler)?.into_any()));
        }
        let length = self.decoded_length(py, ids)?;
        let text = string_with(py, length, handler, |out| self.decode_to(py, ids, out))?;
        Ok(text.into_any())
    }

    /// One token's bytes.
    fn token_bytes<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyBytes>> {
        match self.inner.tokens().get(id) {
            Some(token) => Ok(PyBytes::new(py, token)),
            None => Err(raise(py, Error::UnknownId(id))),
        }
    }

    // ------------------------------------------------------------------------------ inspecting

    /// Which engines run the patterns, in order.
    #[getter]
    fn engines(&self) -> Vec<&'static str> {
        self.inner.engines()
    }
}

/// The merges of a rank file, if every token is made of exactly two parts.
#[pyfunction]
pub(crate) fn recover_merges(
    py: Python<'_>,
    tokens: Vec<(u32, Vec<u8>)>,
) -> PyResult<Option<Vec<(u32, u32, u32)>>> {
    py.detach(|| core::recover_merges(tokens)).map_err(|e| raise(py, e))
}

/// A text that is the same for all spellings of a pattern that is recognised as one; None for any other.
#[pyfunction]
pub(crate) fn canonical_pattern(py: Python<'_>, pattern: &str) -> Option<String> {
    py.detach(|| byteweld_core::pretoken::canonical_pattern(pattern))
}
