//! What Hugging Face's pipelines do to a text before it is merged, beyond one pattern.
//!
//! `normal` changes characters, `added` finds added tokens with their flags, `steps` cuts by a chain of
//! splits. Most vocabularies need none of it, and `encode` then goes a shorter way.
//!
//! A text that was rewritten remembers, if asked, where each byte comes from ([`Rewritten::origin`]), so that
//! offsets are offsets of the caller's text.

mod added;
mod normal;
mod steps;

use std::borrow::Cow;

pub use added::AddedToken;
pub(crate) use added::{AddedTokens, Part, Permission};
pub use normal::{Form, NormalStep, Normaliser};
pub(crate) use steps::byte_letter;
pub use steps::{Behaviour, Step, Steps};

/// A text that may have been rewritten.
pub(crate) struct Rewritten<'t> {
    pub(crate) text: Cow<'t, [u8]>,
    /// For each byte of `text`, where in the original its character starts; `None`: nothing changed, or
    /// nobody asked.
    origins: Option<Vec<usize>>,
    original_length: usize,
}

impl<'t> Rewritten<'t> {
    pub(crate) fn unchanged(text: &'t [u8]) -> Self {
        Self { text: Cow::Borrowed(text), origins: None, original_length: text.len() }
    }

    /// Where in the original the character that starts at `at`, or holds it, starts.
    pub(crate) fn origin(&self, at: usize) -> usize {
        match &self.origins {
            None => at.min(self.original_length),
            Some(origins) => origins.get(at).copied().unwrap_or(self.original_length),
        }
    }

    /// Goes on from a text to one made of it; `origins` are places in the former.
    fn then(self, text: Vec<u8>, origins: Option<Vec<usize>>) -> Self {
        let origins = origins.map(|mut list| {
            list.iter_mut().for_each(|place| *place = self.origin(*place));
            list
        });
        Self { text: Cow::Owned(text), origins, original_length: self.original_length }
    }
}

/// Builds a rewritten text, with origins if asked.
struct Writer {
    text: Vec<u8>,
    origins: Option<Vec<usize>>,
}

impl Writer {
    fn new(capacity: usize, wants_origins: bool) -> Self {
        Self { text: Vec::with_capacity(capacity), origins: wants_origins.then(Vec::new) }
    }

    /// Copies bytes that start at `origin` as they are.
    fn copy(&mut self, bytes: &[u8], origin: usize) {
        self.text.extend_from_slice(bytes);
        if let Some(origins) = &mut self.origins {
            origins.extend(origin..origin + bytes.len());
        }
    }

    /// Writes bytes that all come from one place.
    fn put(&mut self, bytes: &[u8], origin: usize) {
        self.text.extend_from_slice(bytes);
        if let Some(origins) = &mut self.origins {
            origins.extend(std::iter::repeat_n(origin, bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests;
