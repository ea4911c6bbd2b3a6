//! Choices that have names in Python: each enum lists its names once and is extracted by them.

use byteweld_core::encode::{Gaps, Ranking};
use byteweld_core::rewrite::{Behaviour, Form, NormalStep, Step};
use byteweld_core::train::TieBreak;
use byteweld_corpus::{OnError, Unit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Names and how to make their values.
pub(crate) type Names<T> = &'static [(&'static str, fn() -> T)];

/// A type whose values, or some of them, have names in Python.
pub(crate) trait Named: Sized + 'static {
    /// What the value is called in errors.
    const WHAT: &'static str;
    /// Every name and its value.
    const NAMES: Names<Self>;
}

/// An argument that is one of the names of `T`.
pub(crate) struct ByName<T>(pub(crate) T);

impl<'py, T: Named> FromPyObject<'_, 'py> for ByName<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        let name = text.to_cow()?;
        if let Some((_, make)) = T::NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(Self(make()));
        }
        let names: Vec<String> = T::NAMES.iter().map(|(name, _)| format!("'{name}'")).collect();
        let found = text.repr()?;
        Err(PyValueError::new_err(format!("{} is {found}; expected {}", T::WHAT, names.join(", "))))
    }
}

/// `ranking` of a vocabulary; whether tokens are looked up first is decided elsewhere.
impl Named for Ranking {
    const WHAT: &'static str = "ranking";
    const NAMES: Names<Self> = &[("merges", || Ranking::Merges), ("ranks", || Ranking::Ids)];
}

/// `alphabet` of a vocabulary: what becomes of bytes without a token, if there are any.
impl Named for Gaps {
    const WHAT: &'static str = "alphabet";
    const NAMES: Names<Self> = &[
        ("bytes", || Gaps::Characters),
        ("ascii", || Gaps::Characters),
        ("partial", || Gaps::Bytes),
    ];
}

impl Named for Behaviour {
    const WHAT: &'static str = "behavior";
    const NAMES: Names<Self> = &[
        ("isolated", || Behaviour::Isolated),
        ("removed", || Behaviour::Removed),
        ("merged_with_previous", || Behaviour::MergedWithPrevious),
        ("merged_with_next", || Behaviour::MergedWithNext),
        ("contiguous", || Behaviour::Contiguous),
    ];
}

impl Named for Step {
    const WHAT: &'static str = "step";
    const NAMES: Names<Self> =
        &[("prefix-space", || Step::PrefixSpace), ("byte-letters", || Step::ByteLetters)];
}

impl Named for NormalStep {
    const WHAT: &'static str = "normalizer";
    const NAMES: Names<Self> = &[
        ("nfc", || NormalStep::Form(Form::Nfc)),
        ("nfd", || NormalStep::Form(Form::Nfd)),
        ("nfkc", || NormalStep::Form(Form::Nfkc)),
        ("nfkd", || NormalStep::Form(Form::Nfkd)),
        ("lowercase", || NormalStep::Lowercase),
    ];
}

impl Named for TieBreak {
    const WHAT: &'static str = "tie_break";
    const NAMES: Names<Self> = &[
        ("smallest-ids", || TieBreak::SmallestIds),
        ("greatest-bytes", || TieBreak::GreatestBytes),
        ("smallest-bytes", || TieBreak::SmallestBytes),
    ];
}

impl Named for Unit {
    const WHAT: &'static str = "unit";
    const NAMES: Names<Self> = &[("file", || Unit::File), ("line", || Unit::Line)];
}

impl Named for OnError {
    const WHAT: &'static str = "on_error";
    const NAMES: Names<Self> =
        &[("fail", || OnError::Fail), ("skip", || OnError::Skip), ("replace", || OnError::Replace)];
}
