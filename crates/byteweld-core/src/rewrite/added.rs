//! Added tokens in text, with Hugging Face's flags.
//!
//! Tokens that are not normalised are found first, in the text as it came; the others in what is left, after
//! it was normalised, by their own normalised form. In each round: the leftmost first, and of those that start
//! there the longest. A match that may not be (a special token that is not allowed, part of a word) is text.

use std::ops::{ControlFlow, Range};

use super::Normaliser;
use crate::error::{Error, Result};
use crate::specials::{Occurrence, Specials};

/// A token that is found in text as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedToken {
    /// Its text.
    pub text: String,
    /// Its id.
    pub id: u32,
    /// Recognised only where the caller allows it.
    pub special: bool,
    /// Not recognised inside a word.
    pub single_word: bool,
    /// Takes the white space before it.
    pub lstrip: bool,
    /// Takes the white space after it.
    pub rstrip: bool,
    /// Looked for in normalised text.
    pub normalized: bool,
}

impl AddedToken {
    /// A special token without flags.
    pub fn special(text: impl Into<String>, id: u32) -> Self {
        Self {
            text: text.into(),
            id,
            special: true,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
        }
    }

    fn is_plain(&self) -> bool {
        self.special && !(self.single_word || self.lstrip || self.rstrip || self.normalized)
    }
}

/// A set of added tokens and what finds them.
struct Finder {
    texts: Specials,
    /// By place in `texts`: which token it is.
    tokens: Vec<usize>,
}

impl Finder {
    fn new(
        list: &[AddedToken],
        normaliser: &Normaliser,
        chosen: impl Fn(&AddedToken) -> bool,
    ) -> Result<Self> {
        let mut texts = Vec::new();
        let mut tokens = Vec::new();
        for (place, token) in list.iter().enumerate().filter(|(_, token)| chosen(token)) {
            let text = if token.normalized {
                normaliser.apply_to_token(&token.text)?
            } else {
                token.text.clone().into_bytes()
            };
            if text.is_empty() {
                return Err(Error::Vocabulary(format!(
                    "added token {:?} is empty when normalised, and would be found everywhere",
                    token.text
                )));
            }
            texts.push(text);
            tokens.push(place);
        }
        // Which of two would be found is for nobody to say.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_unstable_by_key(|&at| &texts[at]);
        if let Some(pair) = order.windows(2).find(|pair| texts[pair[0]] == texts[pair[1]]) {
            return Err(Error::Vocabulary(format!(
                "added tokens {:?} and {:?} are the same text when normalised",
                list[tokens[pair[0]]].text, list[tokens[pair[1]]].text
            )));
        }
        Ok(Self { texts: Specials::new(&texts)?, tokens })
    }

    /// The first match at or after `from` that ends at or before `end`.
    fn find(&self, text: &[u8], from: usize, end: usize) -> Option<(Occurrence, usize)> {
        let found = self.texts.find(&text[..end], from)?;
        Some((found, self.tokens[found.index]))
    }
}

/// The finders of one round.
struct Round {
    all: Finder,
    special: Finder,
    ordinary: Finder,
}

impl Round {
    fn new(list: &[AddedToken], normaliser: &Normaliser, normalized: bool) -> Result<Self> {
        let finder = |chosen: &dyn Fn(&AddedToken) -> bool| {
            Finder::new(list, normaliser, |token| token.normalized == normalized && chosen(token))
        };
        Ok(Self {
            all: finder(&|_| true)?,
            special: finder(&|token| token.special)?,
            ordinary: finder(&|token| !token.special)?,
        })
    }
}

/// All added tokens of a vocabulary that needs more than plain special tokens.
pub(crate) struct AddedTokens {
    list: Vec<AddedToken>,
    raw: Round,
    normalised: Round,
}

/// Where special tokens are recognised.
#[derive(Clone, Copy)]
pub(crate) enum Permission<'a> {
    Nowhere,
    Everywhere,
    /// Those with these ids (ascending).
    Ids(&'a [u32]),
    /// Inside one of these ranges of the caller's text, which are in order and do not overlap.
    Within(&'a [Range<usize>]),
}

/// A part of a text: an added token, or text between.
pub(crate) struct Part {
    pub(crate) id: Option<u32>,
    pub(crate) range: Range<usize>,
}

impl AddedTokens {
    pub(crate) fn new(list: Vec<AddedToken>, normaliser: &Normaliser) -> Result<Self> {
        let raw = Round::new(&list, normaliser, false)?;
        let normalised = Round::new(&list, normaliser, true)?;
        Ok(Self { list, raw, normalised })
    }

    /// Whether all are special and have no flags.
    pub(crate) fn are_plain(list: &[AddedToken]) -> bool {
        list.iter().all(AddedToken::is_plain)
    }

    /// Gives the parts of a text as it came.
    pub(crate) fn for_each_raw<E>(
        &self,
        text: &[u8],
        permission: Permission<'_>,
        each: &mut impl FnMut(Part) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        self.for_each(&self.raw, text, permission, &|at| at, each)
    }

    /// Gives the parts of a normalised text; `origin` says where in the caller's text a place is.
    pub(crate) fn for_each_normalised<E>(
        &self,
        text: &[u8],
        permission: Permission<'_>,
        origin: &impl Fn(usize) -> usize,
        each: &mut impl FnMut(Part) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        self.for_each(&self.normalised, text, permission, origin, each)
    }

    /// The first special token (with one of these ids, ascending) that normalised text shows.
    pub(crate) fn first_normalised_special(
        &self,
        text: &[u8],
        ids: Option<&[u32]>,
    ) -> Option<&AddedToken> {
        let mut from = 0;
        while let Some((found, token)) = self.normalised.special.find(text, from, text.len()) {
            let token = &self.list[token];
            if ids.is_none_or(|ids| ids.binary_search(&token.id).is_ok()) {
                return Some(token);
            }
            from = found.start + 1;
        }
        None
    }

    fn for_each<E>(
        &self,
        round: &Round,
        text: &[u8],
        permission: Permission<'_>,
        origin: &impl Fn(usize) -> usize,
        each: &mut impl FnMut(Part) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let mut matches = Matches { round, text, permission, special: None, ordinary: None };
        let mut from = 0; // where the search goes on
        let mut open = 0; // start of the text that no part holds yet
        let mut space_end = 0; // of the run of white space that was walked last
        while let Some((found, token)) = matches.next(from, origin) {
            from = found.end;
            let token = &self.list[token];
            let allowed = !token.special
                || match permission {
                    Permission::Nowhere => false,
                    Permission::Everywhere => true,
                    Permission::Ids(ids) => ids.binary_search(&token.id).is_ok(),
                    Permission::Within(ranges) => {
                        lies_within(ranges, &(origin(found.start)..origin(found.end)))
                    }
                };
            if !allowed || (token.single_word && touches_word(text, &found)) {
                continue;
            }
            let (mut start, mut end) = (found.start, found.end);
            if token.lstrip {
                start = open + text.get(open..start).map_or(0, start_of_space);
            }
            if token.rstrip {
                if space_end <= end {
                    space_end = end + length_of_space(&text[end..]);
                }
                end = space_end;
            }
            if start >= end {
                // White space that the token before has taken whole; Hugging Face drops what is empty.
                continue;
            }
            if open < start && each(Part { id: None, range: open..start })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if each(Part { id: Some(token.id), range: start..end })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // Not the greater of the two: as in Hugging Face, a match inside the white space that was taken
            // by the one before gives what follows it back.
            open = end;
        }
        if open < text.len() {
            return each(Part { id: None, range: open..text.len() });
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The matches of a round, one by one.
struct Matches<'a> {
    round: &'a Round,
    text: &'a [u8],
    permission: Permission<'a>,
    /// With `Within`: the next special and the next ordinary match, where they are known.
    special: Option<Option<(Occurrence, usize)>>,
    ordinary: Option<Option<(Occurrence, usize)>>,
}

impl Matches<'_> {
    fn next(
        &mut self,
        from: usize,
        origin: &impl Fn(usize) -> usize,
    ) -> Option<(Occurrence, usize)> {
        let Permission::Within(ranges) = self.permission else {
            return self.round.all.find(self.text, from, self.text.len());
        };
        // A special token that lies across the end of a range must not hide a shorter one inside it, so
        // specials are looked for range by range, and the others everywhere.
        let stale = |known: &Option<Option<(Occurrence, usize)>>| match known {
            None => true,
            Some(found) => found.is_some_and(|(found, _)| found.start < from),
        };
        if stale(&self.special) {
            self.special = Some(self.find_special(ranges, from, origin));
        }
        if stale(&self.ordinary) {
            self.ordinary = Some(self.round.ordinary.find(self.text, from, self.text.len()));
        }
        match (self.special?, self.ordinary?) {
            (Some(special), Some(ordinary)) => {
                let key = |(found, _): &(Occurrence, usize)| (found.start, usize::MAX - found.end);
                Some(if key(&special) <= key(&ordinary) { special } else { ordinary })
            }
            (special, ordinary) => special.or(ordinary),
        }
    }

    fn find_special(
        &self,
        ranges: &[Range<usize>],
        from: usize,
        origin: &impl Fn(usize) -> usize,
    ) -> Option<(Occurrence, usize)> {
        // Places in this text of the ranges, which are of the caller's text; origins only grow.
        let place_of = |wanted: usize| partition(self.text.len(), |at| origin(at) < wanted);
        let first = ranges.partition_point(|range| range.end <= origin(from));
        let end = origin(self.text.len());
        if self.round.special.tokens.is_empty() {
            return None;
        }
        ranges[first..].iter().take_while(|range| range.start < end).find_map(|range| {
            let start = place_of(range.start).max(from);
            let end = place_of(range.end);
            (start < end).then(|| self.round.special.find(self.text, start, end)).flatten()
        })
    }
}

/// The first place in `0..=length` for which `is_before` is false.
fn partition(length: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn lies_within(ranges: &[Range<usize>], part: &Range<usize>) -> bool {
    let at = ranges.partition_point(|range| range.end <= part.start);
    ranges.get(at).is_some_and(|range| range.start <= part.start && part.end <= range.end)
}

fn touches_word(text: &[u8], found: &Occurrence) -> bool {
    let before = last_character(&text[..found.start]);
    let after = first_character(&text[found.end..]);
    [before, after].into_iter().flatten().any(is_word)
}

fn is_word(c: char) -> bool {
    regex_syntax::try_is_word_character(c).unwrap_or(false)
}

fn start_of_space(text: &[u8]) -> usize {
    let mut end = text.len();
    while let Some(c) = last_character(&text[..end]).filter(|c| c.is_whitespace()) {
        end -= c.len_utf8();
    }
    end
}

fn length_of_space(text: &[u8]) -> usize {
    let mut start = 0;
    while let Some(c) = first_character(&text[start..]).filter(|c| c.is_whitespace()) {
        start += c.len_utf8();
    }
    start
}

fn first_character(text: &[u8]) -> Option<char> {
    let window = &text[..text.len().min(4)];
    window.utf8_chunks().next()?.valid().chars().next()
}

fn last_character(text: &[u8]) -> Option<char> {
    let window = &text[text.len().saturating_sub(4)..];
    let last = window.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty())?;
    last.valid().chars().next_back()
}
