//! `allowed_special` and `disallowed_special`: the special tokens that a call recognizes and
//! rejects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use byteweld_core::Result;
use byteweld_core::encode::{Allowed, Choice, Encoder};
use byteweld_core::watch::Watch;
use pyo3::exceptions::{PyTypeError, PyUnicodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyString, PyTuple};

use crate::error::raise;

/// The maximum number of cached choices.
const MAX_CACHED: usize = 64;

/// Special tokens: none, all of the vocabulary's, or some.
enum Selection {
    None,
    All,
    Some(Arc<Choice>),
}

/// What a call does with special tokens in its text.
pub(crate) struct Specials {
    allowed: Selection,
    refused: Selection,
}

impl Specials {
    /// The special tokens that become their ids.
    pub(crate) fn allowed(&self) -> Allowed<'_> {
        match &self.allowed {
            Selection::None => Allowed::None,
            Selection::All => Allowed::All,
            Selection::Some(choice) => Allowed::Some(choice),
        }
    }

    /// Fails if the text contains a disallowed special token.
    pub(crate) fn check(&self, encoder: &Encoder, text: &[u8], watch: &Watch) -> Result<()> {
        match &self.refused {
            Selection::None => Ok(()),
            Selection::All => encoder.refuse(text, None, watch),
            Selection::Some(choice) => encoder.refuse(text, Some(choice), watch),
        }
    }

    /// The disallowed strings, if listed; they need not be special tokens of the vocabulary.
    pub(crate) fn refused_choice(&self) -> Option<&Choice> {
        match &self.refused {
            Selection::Some(choice) => Some(choice),
            Selection::None | Selection::All => None,
        }
    }
}

/// The value of an argument: "all", or a set of strings.
enum Given {
    All,
    Texts(Vec<String>),
}

fn given(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Given> {
    // The defaults first: short calls should not pay for an iterator.
    if object.cast_exact::<PyFrozenSet>().is_ok_and(|set| set.is_empty())
        || object.cast_exact::<PyTuple>().is_ok_and(|tuple| tuple.is_empty())
        || object.is_none()
    {
        return Ok(Given::Texts(Vec::new()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        if *text == "all" {
            return Ok(Given::All);
        }
        let found = text.repr()?;
        return Err(PyTypeError::new_err(format!(
            "{name}_special is {found}; it must be 'all' or a set of special tokens"
        )));
    }
    let texts: PyResult<Vec<String>> =
        object.try_iter()?.map(|text| special_text(&text?, name)).collect();
    Ok(Given::Texts(texts?))
}

fn special_text(object: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    object.extract().or_else(|error: PyErr| {
        if !error.is_instance_of::<PyUnicodeError>(object.py()) {
            return Err(error);
        }
        let found = object.repr()?;
        Err(PyValueError::new_err(format!(
            "{name}_special contains {found}, which has a lone surrogate; a special token is text \
             that UTF-8 can encode"
        )))
    })
}

/// The text of each special token of a vocabulary, and a cache of the choices that calls have made.
pub(crate) struct SpecialTexts {
    /// Sorted.
    known: Vec<String>,
    cached: Mutex<HashMap<Vec<String>, Arc<Choice>>>,
}

impl SpecialTexts {
    pub(crate) fn new(mut known: Vec<String>) -> Self {
        known.sort_unstable();
        Self { known, cached: Mutex::default() }
    }

    /// Reads the two arguments of a call.
    pub(crate) fn read(
        &self,
        encoder: &Encoder,
        allowed: &Bound<'_, PyAny>,
        disallowed: &Bound<'_, PyAny>,
    ) -> PyResult<Specials> {
        let choose = |texts| self.choose(encoder, texts).map_err(|e| raise(allowed.py(), e));
        // Strings that are not special tokens of the vocabulary cannot be allowed.
        let allowed = match given(allowed, "allowed")? {
            Given::All => None,
            Given::Texts(mut texts) => {
                texts.retain(|text| self.known.binary_search(text).is_ok());
                texts.sort_unstable();
                texts.dedup();
                (texts.len() < self.known.len() || texts.is_empty()).then_some(texts)
            }
        };
        let refused = match (given(disallowed, "disallowed")?, &allowed) {
            (Given::Texts(texts), _) => choose(texts)?,
            (Given::All, None) => Selection::None,
            (Given::All, Some(texts)) if texts.is_empty() => Selection::All,
            (Given::All, Some(texts)) => {
                let is_other = |text: &&String| texts.binary_search(text).is_err();
                choose(self.known.iter().filter(is_other).cloned().collect())?
            }
        };
        let allowed = allowed.map_or(Ok(Selection::All), choose)?;
        Ok(Specials { allowed, refused })
    }

    fn choose(&self, encoder: &Encoder, mut texts: Vec<String>) -> Result<Selection> {
        if texts.is_empty() {
            return Ok(Selection::None);
        }
        texts.sort_unstable();
        texts.dedup();
        // Never blocks: in a forked process, the lock may be held by a thread that is gone.
        if let Ok(cached) = self.cached.try_lock()
            && let Some(choice) = cached.get(&texts)
        {
            return Ok(Selection::Some(Arc::clone(choice)));
        }
        let choice = Arc::new(encoder.choose(&texts)?);
        if let Ok(mut cached) = self.cached.try_lock()
            && cached.len() < MAX_CACHED
        {
            cached.insert(texts, Arc::clone(&choice));
        }
        Ok(Selection::Some(choice))
    }
}
