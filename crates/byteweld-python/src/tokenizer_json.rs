//! What a tokenizer.json says, as plain values.

use byteweld_core::rewrite::{AddedToken, Form, SplitBehavior};
use byteweld_core::table::hugging_face as core;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::new_bytes;
use crate::error::{check_memory, raise};
use crate::names::Named;
use crate::table::{OBJECT_BYTES, READ_FACTOR, Table};
use crate::vocabulary::{Added, added_token};

/// What a pattern is, and its source if it has one.
type Pattern = (&'static str, String);

/// A step: its name, or its pattern, behavior and invert.
#[derive(IntoPyObject)]
enum Step {
    Mark(&'static str),
    Split(Pattern, &'static str, bool),
}

/// A step of a normalizer: its name, or its pattern and content.
#[derive(IntoPyObject)]
enum Rewrite {
    Form(&'static str),
    Replace(Pattern, String),
}

/// Merges as (left, right, new).
type Merges = Vec<(u32, u32, u32)>;

/// A tokenizer.json. Immutable.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct TokenizerJson {
    inner: core::TokenizerJson,
    /// The tokens and merges, unless the ids are sparse.
    #[pyo3(get)]
    table: Option<Py<Table>>,
    #[pyo3(get)]
    template: core::Template,
}

#[pymethods]
impl TokenizerJson {
    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        check_memory(py, READ_FACTOR * data.len())?;
        let read = || {
            let mut file = core::TokenizerJson::read(data)?;
            let template = std::mem::replace(&mut file.template, Ok(Default::default()))?;
            Ok((file, template))
        };
        let (mut inner, template) = py.detach(read).map_err(|error| raise(py, error))?;
        let none = core::Tokens::Sparse(Vec::new(), Vec::new());
        let table = match std::mem::replace(&mut inner.tokens, none) {
            core::Tokens::Table(table) => Some(Py::new(py, Table::new(table))?),
            sparse => {
                inner.tokens = sparse;
                None
            }
        };
        Ok(Self { inner, table, template })
    }

    /// The tokens by id and the merges, if there is no table.
    fn sparse<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Merges)> {
        let tokens = PyDict::new(py);
        let core::Tokens::Sparse(all, merges) = &self.inner.tokens else {
            return Ok((tokens, Vec::new()));
        };
        check_memory(py, OBJECT_BYTES * (all.len() + merges.len()))?;
        for (id, token) in all {
            tokens.set_item(id, new_bytes(py, token)?)?;
        }
        Ok((tokens, merges.clone()))
    }

    /// The id of the token with this text.
    fn id(&self, text: &str) -> Option<u32> {
        self.inner.id(text)
    }

    #[getter]
    fn added_tokens(&self) -> Vec<Added> {
        let fields = |token: &AddedToken| {
            let AddedToken { text, id, special, single_word, lstrip, rstrip, normalized } = token;
            (text.clone(), *id, *special, *single_word, *lstrip, *rstrip, *normalized)
        };
        self.inner.added.iter().map(fields).collect()
    }

    #[getter]
    fn steps(&self) -> Vec<Step> {
        let step = |split: &core::Split| match split {
            core::Split::PrefixSpace => Step::Mark("prefix-space"),
            core::Split::ByteLetters => Step::Mark("byte-letters"),
            core::Split::At(at, behavior, invert) => {
                Step::Split(pattern(at), behavior_name(*behavior), *invert)
            }
        };
        self.inner.splits.iter().map(step).collect()
    }

    #[getter]
    fn normalizer(&self) -> Vec<Rewrite> {
        let step = |rewrite: &core::Rewrite| match rewrite {
            core::Rewrite::Form(Form::Nfc) => Rewrite::Form("nfc"),
            core::Rewrite::Form(Form::Nfd) => Rewrite::Form("nfd"),
            core::Rewrite::Form(Form::Nfkc) => Rewrite::Form("nfkc"),
            core::Rewrite::Form(Form::Nfkd) => Rewrite::Form("nfkd"),
            core::Rewrite::Lowercase => Rewrite::Form("lowercase"),
            core::Rewrite::Replace(at, content) => Rewrite::Replace(pattern(at), content.clone()),
        };
        self.inner.normalizer.iter().map(step).collect()
    }

    #[getter]
    fn alphabet(&self) -> &'static str {
        match self.inner.alphabet {
            core::Alphabet::Bytes => "bytes",
            core::Alphabet::Partial => "partial",
            core::Alphabet::Ascii => "ascii",
        }
    }

    #[getter]
    fn unk_token(&self) -> Option<&str> {
        self.inner.unk_token.as_deref()
    }

    #[getter]
    fn ignore_merges(&self) -> bool {
        self.inner.ignore_merges
    }
}

fn pattern(pattern: &core::Pattern) -> Pattern {
    match pattern {
        core::Pattern::ByteLevel => ("ByteLevel", String::new()),
        core::Pattern::Digits => ("Digits", String::new()),
        core::Pattern::Punctuation => ("Punctuation", String::new()),
        core::Pattern::Regex(source) | core::Pattern::Literal(source) => ("", source.clone()),
    }
}

fn behavior_name(behavior: SplitBehavior) -> &'static str {
    let known = SplitBehavior::NAMES.iter().find(|(_, make)| make() == behavior);
    known.map_or("", |(name, _)| name)
}

/// Returns the bytes of an added token that is also in the model of a tokenizer.json, and why other
/// text could become it, if it could.
#[pyfunction]
pub(crate) fn added_in_model<'py>(
    py: Python<'py>,
    token: Added,
    is_ascii: bool,
    is_made: bool,
    ignore_merges: bool,
) -> (Bound<'py, PyBytes>, Option<String>) {
    let letters = core::Letters::new(is_ascii);
    let (bytes, problem) = letters.added(&added_token(token), is_made, ignore_merges);
    (PyBytes::new(py, &bytes), problem)
}
