//! Finds special tokens in text: leftmost first, and of those the longest.

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::{Error, Result};

/// A set of special tokens to find.
pub struct Specials {
    finder: Option<AhoCorasick>,
    texts: Vec<Vec<u8>>,
    longest: usize,
}

/// One occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// The index of the special token in the list given to [`Specials::new`].
    pub(crate) index: usize,
    /// Byte offset of its start.
    pub(crate) start: usize,
    /// Byte offset of its end.
    pub(crate) end: usize,
}

impl Specials {
    /// Prepares the search. Fails if a special token is empty.
    pub fn new<T: AsRef<[u8]>>(texts: &[T]) -> Result<Self> {
        if texts.iter().any(|text| text.as_ref().is_empty()) {
            return Err(Error::Vocabulary("a special token is empty".to_owned()));
        }
        let finder = if texts.is_empty() {
            None
        } else {
            let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
            Some(built.map_err(|e| Error::Vocabulary(format!("special tokens: {e}")))?)
        };
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_ref().to_vec()).collect();
        let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Self { finder, texts, longest })
    }

    /// The first occurrence at or after `from`.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<Occurrence> {
        let found = self.finder.as_ref()?.find(aho_corasick::Input::new(text).range(from..))?;
        Some(Occurrence {
            index: found.pattern().as_usize(),
            start: found.start(),
            end: found.end(),
        })
    }

    /// The length of the longest special token in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a special token lies across `offset` (starts before it and ends after it).
    pub(crate) fn lies_across(&self, text: &[u8], offset: usize) -> bool {
        self.texts.iter().any(|special| {
            let first = offset.saturating_sub(special.len() - 1);
            let last = (offset + special.len() - 1).min(text.len());
            memchr::memmem::find(&text[first..last], special).is_some()
        })
    }
}
