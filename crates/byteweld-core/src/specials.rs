//! Special tokens in text: the leftmost first, and of those that start there the longest.

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::{Error, Result};

/// A set of texts to be found.
pub struct Specials {
    finder: Option<AhoCorasick>,
    texts: Vec<Vec<u8>>,
    longest: usize,
}

/// One occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Which text, as its place in the list given to [`Specials::new`].
    pub index: usize,
    /// Byte offset of its start.
    pub start: usize,
    /// Byte offset of its end.
    pub end: usize,
}

impl Specials {
    /// Prepares the search. Empty texts are refused.
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
    pub fn find(&self, text: &[u8], from: usize) -> Option<Occurrence> {
        let found = self.finder.as_ref()?.find(aho_corasick::Input::new(text).range(from..))?;
        Some(Occurrence {
            index: found.pattern().as_usize(),
            start: found.start(),
            end: found.end(),
        })
    }

    /// The length of the longest text in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether any of the texts lies across `place` (starts before it and ends after it).
    pub fn lies_across(&self, text: &[u8], place: usize) -> bool {
        self.texts.iter().any(|special| {
            let first = place.saturating_sub(special.len() - 1);
            let last = (place + special.len() - 1).min(text.len());
            memchr::memmem::find(&text[first..last], special).is_some()
        })
    }
}
