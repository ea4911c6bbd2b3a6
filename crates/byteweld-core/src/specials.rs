//! Finds special tokens in text: leftmost first, and of those the longest.
//!
//! Building and searching take linear time, whatever the special tokens are.

mod backward;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::{Error, Result};
use backward::Backward;

/// The aho-corasick crate, which is faster, finds special tokens of up to this many bytes: its time
/// per byte of the tokens and of the text grows with the longest of them.
const MAX_SHORT_BYTES: usize = 64;

/// It finds up to this many: it takes quadratic time to prepare for `w0`, `w1`, ... `w99999`, but
/// 30 ms for the first 4096.
const MAX_FEW: usize = 4096;

/// The least number of bytes that [`Backward`] searches at once.
const BLOCK: usize = 4096;

/// A set of special tokens to find.
pub struct Specials {
    finder: Finder,
    texts: Vec<Vec<u8>>,
    longest: usize,
}

enum Finder {
    Nothing,
    Short(AhoCorasick),
    Any(Box<Backward>),
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
        Self::with_short(texts, MAX_SHORT_BYTES)
    }

    fn with_short<T: AsRef<[u8]>>(texts: &[T], short: usize) -> Result<Self> {
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_ref().to_vec()).collect();
        if texts.iter().any(Vec::is_empty) {
            return Err(Error::Vocabulary("a special token is empty".to_owned()));
        }
        let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
        let finder = if texts.is_empty() {
            Finder::Nothing
        } else if longest <= short && texts.len() <= MAX_FEW {
            let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&texts);
            Finder::Short(built.map_err(|e| Error::Vocabulary(format!("special tokens: {e}")))?)
        } else {
            Finder::Any(Box::new(Backward::new(&texts)?))
        };
        Ok(Self { finder, texts, longest })
    }

    /// Starts a search in a text.
    pub(crate) fn search<'a>(&'a self, text: &'a [u8]) -> Search<'a> {
        Search { specials: self, text, found: Vec::new(), searched: 0 }
    }

    /// The first occurrence.
    pub(crate) fn first(&self, text: &[u8]) -> Option<Occurrence> {
        self.search(text).next(0)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The length of the longest special token in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a special token lies across `offset` (starts before it and ends after it).
    pub(crate) fn lies_across(&self, text: &[u8], offset: usize) -> bool {
        let reach = self.longest.saturating_sub(1);
        let mut from = offset.saturating_sub(reach);
        let mut search = self.search(&text[..text.len().min(offset + reach)]);
        while let Some(found) = search.next(from).filter(|found| found.start < offset) {
            if found.end > offset {
                return true;
            }
            from = found.start + 1;
        }
        false
    }
}

/// A search for special tokens, from left to right.
pub(crate) struct Search<'a> {
    specials: &'a Specials,
    text: &'a [u8],
    /// With [`Backward`]: where special tokens start, and the longest one there, last to first.
    found: Vec<(usize, u32)>,
    /// The end of the part where `found` is known.
    searched: usize,
}

impl Search<'_> {
    /// The first occurrence at or after `from`, which must not be less than in an earlier call.
    #[inline]
    pub(crate) fn next(&mut self, from: usize) -> Option<Occurrence> {
        match &self.specials.finder {
            _ if from > self.text.len() => None,
            Finder::Nothing => None,
            Finder::Short(finder) => {
                let found = finder.find(aho_corasick::Input::new(self.text).range(from..))?;
                Some(Occurrence {
                    index: found.pattern().as_usize(),
                    start: found.start(),
                    end: found.end(),
                })
            }
            Finder::Any(finder) => self.next_of(finder, from),
        }
    }

    fn next_of(&mut self, finder: &Backward, from: usize) -> Option<Occurrence> {
        let Specials { texts, longest, .. } = self.specials;
        loop {
            while let Some(&(start, index)) = self.found.last() {
                if start >= from {
                    let index = index as usize;
                    return Some(Occurrence { index, start, end: start + texts[index].len() });
                }
                self.found.pop();
            }
            let start = finder.first_candidate(self.text, from.max(self.searched))?;
            self.searched = self.text.len().min(start + BLOCK.max(*longest));
            let read_end = self.text.len().min(self.searched + longest - 1);
            let found = &mut self.found;
            finder.for_each_start(self.text, start..self.searched, read_end, |at, index| {
                found.push((at, index));
            });
        }
    }
}

#[cfg(test)]
mod tests;
