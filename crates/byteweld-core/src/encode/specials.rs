//! Which special tokens a call recognizes or rejects, and where they are in a text.

use std::ops::Range;

use super::Encoder;
use super::merge::NO_ID;
use crate::error::{Error, Result};
use crate::rewrite::AddedFinder;
use crate::specials::{Occurrence, Search, Specials};
use crate::watch::Watch;

/// Which special tokens a call recognizes.
pub enum Allowed<'a> {
    /// None: they are ordinary text.
    None,
    /// All of the vocabulary.
    All,
    /// These, prepared by [`Encoder::choose`].
    Some(&'a Choice),
    /// All, but only inside one of these ranges of the text, which are sorted and do not overlap.
    Within(&'a [Range<usize>]),
}

/// A choice of special tokens to recognize or reject.
pub struct Choice {
    pub(super) set: SpecialSet,
    /// Finds those that appear only in normalized text.
    normalized: Option<AddedFinder>,
}

/// Special tokens that can be found in text.
pub(super) struct SpecialSet {
    /// Text and id. The id is [`NO_ID`] if the vocabulary has no such token, which can then be
    /// rejected but not recognized.
    pub(super) tokens: Vec<(String, u32)>,
    /// Finds their texts.
    pub(super) finder: Specials,
    /// Their ids, ascending.
    pub(super) ids: Vec<u32>,
}

impl SpecialSet {
    pub(super) fn new(tokens: Vec<(String, u32)>) -> Result<Self> {
        let finder = Specials::new(&tokens.iter().map(|(text, _)| text).collect::<Vec<_>>())?;
        let mut ids: Vec<u32> =
            tokens.iter().map(|(_, id)| *id).filter(|&id| id != NO_ID).collect();
        ids.sort_unstable();
        Ok(Self { tokens, finder, ids })
    }

    /// Starts a search for the special tokens that a call recognizes. `self` is the set of all.
    pub(super) fn recognize<'a>(&'a self, text: &'a [u8], allowed: &Allowed<'a>) -> Recognized<'a> {
        let (set, is_searched, ranges) = match allowed {
            Allowed::None => (self, false, &[][..]),
            Allowed::All => (self, true, &[][..]),
            Allowed::Some(choice) => (&choice.set, true, &[][..]),
            Allowed::Within(ranges) => (self, false, *ranges),
        };
        let search = is_searched.then(|| set.finder.search(text));
        Recognized { text, set, search, start: 0, ranges }
    }
}

/// The special tokens of a text that a call recognizes, from left to right.
pub(super) struct Recognized<'a> {
    text: &'a [u8],
    set: &'a SpecialSet,
    /// The current search, and the offset where it starts; `None` before the first range.
    search: Option<Search<'a>>,
    start: usize,
    /// Ranges of the text that remain to be searched, one by one.
    ranges: &'a [Range<usize>],
}

impl Recognized<'_> {
    /// The first one at or after `from`, with its id. `from` must not decrease between calls.
    pub(super) fn next(&mut self, from: usize) -> Option<(Occurrence, u32)> {
        loop {
            let start = self.start.max(from);
            if let Some(found) = self.search.as_mut().and_then(|search| search.next(start)) {
                let id = self.set.tokens[found.index].1;
                return Some((found, id)).filter(|_| id != NO_ID);
            }
            // Search up to the end of the range: a token that crosses it must not hide a shorter
            // one inside.
            let (range, rest) = self.ranges.split_first()?;
            self.ranges = rest;
            self.start = range.start;
            self.search =
                (from < range.end).then(|| self.set.finder.search(&self.text[..range.end]));
        }
    }
}

impl Encoder {
    /// Prepares a choice of special tokens.
    pub fn choose<T: AsRef<str>>(&self, texts: &[T]) -> Result<Choice> {
        let all = &self.specials.tokens;
        let id_of = |text: &str| {
            let found = all.binary_search_by(|(special, _)| special.as_str().cmp(text));
            found.map_or(NO_ID, |at| all[at].1)
        };
        let tokens = texts.iter().map(T::as_ref).map(|text| (text.to_owned(), id_of(text)));
        let set = SpecialSet::new(tokens.collect())?;
        let normalized =
            self.rewrites.as_ref().map(|rewrites| rewrites.choose(&set.ids)).transpose()?;
        Ok(Choice { set, normalized })
    }

    /// Rejects a text that contains a special token of the choice, or any if there is no choice.
    pub fn refuse(&self, text: &[u8], choice: Option<&Choice>, watch: &Watch) -> Result<()> {
        let set = choice.map_or(&self.specials, |choice| &choice.set);
        if let Some(found) = set.finder.first(text) {
            let token = set.tokens[found.index].0.clone();
            return Err(Error::SpecialToken { token, offset: found.start });
        }
        match &self.rewrites {
            Some(rewrites) => {
                let rejected = choice.and_then(|choice| choice.normalized.as_ref());
                rewrites.refuse(text, rejected, watch)
            }
            None => Ok(()),
        }
    }
}
