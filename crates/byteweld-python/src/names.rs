//! Enums that are strings in Python: each lists its names once and is extracted by name.

use byteweld_core::encode::{Gaps, Ranking};
use byteweld_core::rewrite::{Form, NormalizerStep, SplitBehavior, SplitStep};
use byteweld_core::train::TieBreak;
use byteweld_corpus::{OnError, Unit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Names and functions that create their values.
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

/// `ranking` of a vocabulary; `vocabulary.rs` decides whether tokens are looked up first.
impl Named for Ranking {
    const WHAT: &'static str = "ranking";
    const NAMES: Names<Self> = &[("merges", || Ranking::Merges), ("ranks", || Ranking::Ids)];
}

/// `alphabet` of a vocabulary: how bytes without a token are treated, if there are any.
impl Named for Gaps {
    const WHAT: &'static str = "alphabet";
    const NAMES: Names<Self> = &[
        ("bytes", || Gaps::Characters),
        ("ascii", || Gaps::Characters),
        ("partial", || Gaps::Bytes),
    ];
}

impl Named for SplitBehavior {
    const WHAT: &'static str = "behavior";
    const NAMES: Names<Self> = &[
        ("isolated", || SplitBehavior::Isolated),
        ("removed", || SplitBehavior::Removed),
        ("merged_with_previous", || SplitBehavior::MergedWithPrevious),
        ("merged_with_next", || SplitBehavior::MergedWithNext),
        ("contiguous", || SplitBehavior::Contiguous),
    ];
}

impl Named for SplitStep {
    const WHAT: &'static str = "step";
    const NAMES: Names<Self> =
        &[("prefix-space", || SplitStep::PrefixSpace), ("byte-letters", || SplitStep::ByteLetters)];
}

impl Named for NormalizerStep {
    const WHAT: &'static str = "normalizer";
    const NAMES: Names<Self> = &[
        ("nfc", || NormalizerStep::Form(Form::Nfc)),
        ("nfd", || NormalizerStep::Form(Form::Nfd)),
        ("nfkc", || NormalizerStep::Form(Form::Nfkc)),
        ("nfkd", || NormalizerStep::Form(Form::Nfkd)),
        ("lowercase", || NormalizerStep::Lowercase),
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
