//! A vocabulary made ready: text to ids and back.

use std::ops::ControlFlow;

use byteweld_core::encode as core;
use byteweld_core::encode::{Allowed, Counter, Ranking, WithEnds};
use byteweld_core::{Error, Result};
use numpy::{PyArray1, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{DETACH_BYTES, Text, ids, texts, threads};
use crate::error::raise;

/// All ids, and where each text's ids start, with the end as last.
type Ragged<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>);

/// Special tokens to be recognised or refused, made by [`Encoder::choose`].
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct SpecialChoice {
    inner: core::Choice,
}

/// None of them, all of the vocabulary's (`True`), or a choice.
#[derive(FromPyObject)]
enum Specials {
    All(bool),
    Some(Py<SpecialChoice>),
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

/// The engine of a tokenizer. Immutable; shared by threads.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Encoder {
    inner: core::Encoder,
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

    fn encode_many(
        &self,
        py: Python<'_>,
        texts: &[Text],
        allowed: &Option<Specials>,
        refused: &Option<Specials>,
        num_threads: Option<i128>,
    ) -> PyResult<Vec<Vec<u32>>> {
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
    #[pyo3(signature = (*, tokens, merges, ranking, specials, pattern, unk))]
    fn new(
        py: Python<'_>,
        tokens: Vec<(u32, Vec<u8>)>,
        merges: Vec<(u32, u32, u32)>,
        ranking: &str,
        specials: Vec<(String, u32)>,
        pattern: Option<String>,
        unk: Option<u32>,
    ) -> PyResult<Self> {
        let ranking = match ranking {
            "merges" => Ranking::Merges,
            "merges-after-lookup" => Ranking::MergesAfterLookup,
            "ids" => Ranking::Ids,
            other => return Err(PyValueError::new_err(format!("unknown ranking {other:?}"))),
        };
        let vocabulary = core::Vocabulary { tokens, merges, ranking, specials, pattern, unk };
        let inner = py.detach(|| core::Encoder::new(vocabulary)).map_err(|e| raise(py, e))?;
        Ok(Self { inner })
    }

    /// Prepares a choice of special tokens.
    fn choose(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<SpecialChoice> {
        let inner = self.inner.choose(&texts).map_err(|e| raise(py, e))?;
        Ok(SpecialChoice { inner })
    }

    // ------------------------------------------------------------------------------ encoding

    fn encode(
        &self,
        py: Python<'_>,
        text: Text,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<Vec<u32>> {
        self.encode_ids(py, &text, &allowed, &refused)
    }

    fn encode_to_numpy<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(PyArray1::from_vec(py, self.encode_ids(py, &text, &allowed, &refused)?))
    }

    fn encode_batch(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        allowed: Option<Specials>,
        refused: Option<Specials>,
        num_threads: Option<i128>,
    ) -> PyResult<Vec<Vec<u32>>> {
        self.encode_many(py, &self::texts(texts)?, &allowed, &refused, num_threads)
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
        let lists = self.encode_many(py, &self::texts(texts)?, &allowed, &refused, num_threads)?;
        let mut offsets = Vec::with_capacity(lists.len() + 1);
        let mut end = 0i64;
        offsets.push(end);
        for list in &lists {
            end += list.len() as i64;
            offsets.push(end);
        }
        let all = py.detach(|| lists.concat());
        Ok((PyArray1::from_vec(py, all), offsets.to_pyarray(py)))
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

    /// Tokens up to a limit, the bytes that they cover, and whether there were more.
    fn count(
        &self,
        py: Python<'_>,
        text: Text,
        limit: Option<usize>,
        allowed: Option<Specials>,
        refused: Option<Specials>,
    ) -> PyResult<(usize, usize, bool)> {
        let text = text.as_ref();
        self.run(py, text.len(), || {
            self.refuse(text, &refused)?;
            let mut sink = Counter::new(limit.unwrap_or(usize::MAX));
            self.inner.encode(text, &Specials::allowed(&allowed), &mut sink)?;
            Ok((sink.tokens, sink.bytes, sink.passed))
        })
    }

    fn pretokenize<'py>(&self, py: Python<'py>, text: Text) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut pieces = Vec::new();
        self.inner
            .pretokenizer()
            .for_each(text.as_ref(), &mut |piece| {
                pieces.push(PyBytes::new(py, piece));
                ControlFlow::Continue(())
            })
            .map_err(|e| raise(py, e))?;
        Ok(pieces)
    }

    /// The last place where a text that goes on may be cut without changing an id, or None.
    fn last_cut(&self, text: &[u8], refused: Option<Specials>) -> Option<usize> {
        let refused = match &refused {
            Some(Specials::Some(choice)) => Some(&choice.get().inner),
            _ => None, // the vocabulary's own special tokens are never torn
        };
        self.inner.last_cut(text, refused)
    }

    // ------------------------------------------------------------------------------ decoding

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = self::ids(ids)?;
        let bytes = self.run(py, ids.len() * 4, || {
            let mut bytes = Vec::with_capacity(ids.len() * 4);
            self.inner.tokens().decode_into(&ids, &mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// One token's bytes.
    fn token_bytes<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyBytes>> {
        match self.inner.tokens().get(id) {
            Some(token) => Ok(PyBytes::new(py, token)),
            None => Err(raise(py, Error::UnknownId(id))),
        }
    }

    // ------------------------------------------------------------------------------ inspecting

    /// Which engine runs the pattern: "whole", "automaton" or "backtracking".
    #[getter]
    fn engine(&self) -> &'static str {
        self.inner.pretokenizer().engine().name()
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
