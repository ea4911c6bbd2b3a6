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

/// Builds rewritten text, with origins on request.
struct Writer {
    text: Vec<u8>,
    origins: Option<Vec<usize>>,
}

impl Writer {
    fn new(capacity: usize, with_origins: bool) -> Self {
        Self { text: Vec::with_capacity(capacity), origins: with_origins.then(Vec::new) }
    }

    /// Copies unchanged bytes that start at `origin`.
    fn copy(&mut self, bytes: &[u8], origin: usize) {
        self.text.extend_from_slice(bytes);
        if let Some(origins) = &mut self.origins {
            origins.extend(origin..origin + bytes.len());
        }
    }

    /// Writes bytes that all come from the same offset.
    fn put(&mut self, bytes: &[u8], origin: usize) {
        self.text.extend_from_slice(bytes);
        if let Some(origins) = &mut self.origins {
            origins.extend(std::iter::repeat_n(origin, bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests;
