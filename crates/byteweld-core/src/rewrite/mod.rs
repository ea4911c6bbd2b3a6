//! The steps of Hugging Face pipelines before merging, beyond a single pattern.
//!
//! `normalizer` changes characters, `added` finds added tokens with their flags, `splits` applies a
//! chain of splits. Most vocabularies need none of these, and `encode` then takes a faster path.
//!
//! On request, rewritten text records where each byte comes from ([`Rewritten::origin`]), so that
//! reported offsets refer to the caller's text.

mod added;
mod normalizer;
mod splits;

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::pretoken::Budget;
use crate::reserve::reserve;
use crate::watch::Watch;

pub use added::AddedToken;
pub(crate) use added::{AddedFinder, AddedTokens, Found, Permission, TextPart};
pub use normalizer::{Form, Normalizer, NormalizerStep};
pub(crate) use splits::byte_letter;
pub use splits::{SplitBehavior, SplitChain, SplitStep};

/// Text that may have been rewritten.
pub(crate) struct Rewritten<'t> {
    pub(crate) text: Cow<'t, [u8]>,
    /// For each byte of `text`, the start of its character in the original; `None` if nothing
    /// changed or origins were not requested.
    origins: Option<Vec<usize>>,
    original_length: usize,
}

impl<'t> Rewritten<'t> {
    pub(crate) fn unchanged(text: &'t [u8]) -> Self {
        Self { text: Cow::Borrowed(text), origins: None, original_length: text.len() }
    }

    /// The start, in the original, of the character that contains offset `at`.
    pub(crate) fn origin(&self, at: usize) -> usize {
        match &self.origins {
            None => at.min(self.original_length),
            Some(origins) => origins.get(at).copied().unwrap_or(self.original_length),
        }
    }

    /// Replaces the text by one derived from it; `origins` are offsets in the current text.
    fn then(self, text: Vec<u8>, origins: Option<Vec<usize>>) -> Self {
        let origins = origins.map(|mut list| {
            list.iter_mut().for_each(|offset| *offset = self.origin(*offset));
            list
        });
        Self { text: Cow::Owned(text), origins, original_length: self.original_length }
    }
}

/// Rewritten text has at most this many times the bytes of the caller's text, plus [`FREE_GROWTH`]. A normal form has
/// up to 11 times the bytes of its character, and real replacements a few times; a chain of replacements has no bound.
const MAX_GROWTH: usize = 64;
const FREE_GROWTH: usize = 1 << 16;

/// The maximum number of steps of a normalizer or a chain of splits, each of which reads the whole text. Real ones have
/// up to six.
const MAX_STEPS: usize = 64;

/// Rejects a vocabulary with too many steps.
pub fn check_steps(steps: usize, what: &str) -> Result<()> {
    if steps <= MAX_STEPS {
        return Ok(());
    }
    Err(Error::Vocabulary(format!(
        "the {what} has {steps} steps; at most {MAX_STEPS} are supported"
    )))
}

/// What rewriting one text may still cost.
#[derive(Default)]
pub(crate) struct Limits {
    /// Bytes of rewritten text.
    max_bytes: usize,
    /// Steps of patterns.
    pub(crate) budget: Budget,
}

impl Limits {
    /// For a text of this many bytes.
    pub(crate) fn new(bytes: usize, watch: Watch) -> Self {
        let max_bytes = bytes.saturating_mul(MAX_GROWTH).saturating_add(FREE_GROWTH);
        Self { max_bytes, budget: Budget::new(watch) }
    }

    /// For a token of this many bytes; there may be many tokens, so there is no free growth.
    fn of_token(bytes: usize) -> Self {
        Self { max_bytes: bytes.saturating_mul(MAX_GROWTH), budget: Budget::new(Watch::default()) }
    }
}

/// Builds rewritten text, with origins on request, up to a maximum length.
struct Writer {
    text: Vec<u8>,
    origins: Option<Vec<usize>>,
    max_bytes: usize,
}

impl Writer {
    fn new(capacity: usize, with_origins: bool, limits: &Limits) -> Result<Self> {
        let (mut text, max_bytes) = (Vec::new(), limits.max_bytes);
        reserve(&mut text, capacity.min(max_bytes))?;
        Ok(Self { text, origins: with_origins.then(Vec::new), max_bytes })
    }

    /// Reserves space for bytes and, on request, their origins.
    #[inline]
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.max_bytes - self.text.len() {
            return Err(self.too_long());
        }
        reserve(&mut self.text, bytes)?;
        match &mut self.origins {
            Some(origins) => reserve(origins, bytes),
            None => Ok(()),
        }
    }

    #[cold]
    fn too_long(&self) -> Error {
        Error::Vocabulary(format!(
            "the normalizer or the splits of the vocabulary make this text longer than {} bytes; at most {MAX_GROWTH} \
             times as long is supported; correct the vocabulary",
            self.max_bytes
        ))
    }

    /// Copies unchanged bytes that start at `origin`.
    fn copy(&mut self, bytes: &[u8], origin: usize) -> Result<()> {
        self.reserve(bytes.len())?;
        self.text.extend_from_slice(bytes);
        if let Some(origins) = &mut self.origins {
            origins.extend(origin..origin + bytes.len());
        }
        Ok(())
    }

    /// Writes bytes that all come from the same offset.
    fn put(&mut self, bytes: &[u8], origin: usize) -> Result<()> {
        self.reserve(bytes.len())?;
        self.text.extend_from_slice(bytes);
        if let Some(origins) = &mut self.origins {
            origins.extend(std::iter::repeat_n(origin, bytes.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
