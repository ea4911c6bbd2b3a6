//! Finds added tokens in text, with Hugging Face's flags.
//!
//! Tokens without the `normalized` flag are found first, in the original text; the others in the
//! remaining text after normalization, by their own normalized form. In each round the leftmost
//! match wins, and of those the longest. A match that is not allowed (a special token without
//! permission, or part of a word) is treated as text.

use std::ops::{ControlFlow, Range};

use super::Normalizer;
use crate::error::{Error, Result};
use crate::specials::{Occurrence, Search, Specials};

/// An occurrence, and the token that was found.
type Match = (Occurrence, usize);

/// A token that is matched verbatim in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedToken {
    /// Its text.
    pub text: String,
    /// Its id.
    pub id: u32,
    /// Recognized only where the caller allows it.
    pub special: bool,
    /// Not recognized inside a word.
    pub single_word: bool,
    /// Includes the white space before it.
    pub lstrip: bool,
    /// Includes the white space after it.
    pub rstrip: bool,
    /// Matched in normalized text.
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

/// Finds a subset of the added tokens.
pub(crate) struct AddedFinder {
    texts: Specials,
    /// The token of each entry of `texts`.
    tokens: Vec<usize>,
}

impl AddedFinder {
    fn new(
        list: &[AddedToken],
        normalizer: &Normalizer,
        chosen: impl Fn(&AddedToken) -> bool,
    ) -> Result<Self> {
        let mut texts = Vec::new();
        let mut tokens = Vec::new();
        for (index, token) in list.iter().enumerate().filter(|(_, token)| chosen(token)) {
            let text = if token.normalized {
                normalizer.apply_to_token(&token.text)?
            } else {
                token.text.clone().into_bytes()
            };
            if text.is_empty() {
                return Err(Error::Vocabulary(format!(
                    "added token {:?} is empty when normalized and would match everywhere",
                    token.text
                )));
            }
            texts.push(text);
            tokens.push(index);
        }
        // If two texts were equal, it would be ambiguous which token matches.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_unstable_by_key(|&at| &texts[at]);
        if let Some(pair) = order.windows(2).find(|pair| texts[pair[0]] == texts[pair[1]]) {
            return Err(Error::Vocabulary(format!(
                "added tokens {:?} and {:?} have the same text when normalized",
                list[tokens[pair[0]]].text, list[tokens[pair[1]]].text
            )));
        }
        Ok(Self { texts: Specials::new(&texts)?, tokens })
    }

    /// The next match of a search for `texts`, with its token.
    fn next(&self, search: &mut Search<'_>, from: usize) -> Option<Match> {
        let found = search.next(from)?;
        Some((found, self.tokens[found.index]))
    }
}

/// The finders of one round.
struct Round {
    all: AddedFinder,
    special: AddedFinder,
    ordinary: AddedFinder,
}

impl Round {
    fn new(list: &[AddedToken], normalizer: &Normalizer, normalized: bool) -> Result<Self> {
        let finder = |chosen: &dyn Fn(&AddedToken) -> bool| {
            AddedFinder::new(list, normalizer, |token| {
                token.normalized == normalized && chosen(token)
            })
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
    normalized: Round,
}

/// Where special tokens are recognized.
#[derive(Clone, Copy)]
pub(crate) enum Permission<'a> {
    Nowhere,
    Everywhere,
    /// Only the tokens with these ids (ascending).
    Ids(&'a [u32]),
    /// Inside one of these ranges of the caller's text, which are sorted and do not overlap.
    Within(&'a [Range<usize>]),
}

impl Permission<'_> {
    /// The same for a passage of the text, without the ranges elsewhere.
    pub(crate) fn of_passage(self, passage: Range<usize>) -> Self {
        let Self::Within(ranges) = self else { return self };
        let start = ranges.partition_point(|range| range.end <= passage.start);
        let end = ranges.partition_point(|range| range.start <= passage.end);
        Self::Within(&ranges[start..end])
    }
}

/// A part of a text: an added token, or the text between two.
pub(crate) struct TextPart {
    pub(crate) token: Found,
    pub(crate) range: Range<usize>,
}

/// What a part of a text is.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    Text,
    /// A special token that is allowed here.
    Special(u32),
    /// Another added token.
    Other(u32),
}

impl AddedTokens {
    pub(crate) fn new(list: Vec<AddedToken>, normalizer: &Normalizer) -> Result<Self> {
        let raw = Round::new(&list, normalizer, false)?;
        let normalized = Round::new(&list, normalizer, true)?;
        Ok(Self { list, raw, normalized })
    }

    /// Whether all tokens are special and have no other flags.
    pub(crate) fn are_plain(list: &[AddedToken]) -> bool {
        list.iter().all(AddedToken::is_plain)
    }

    /// Calls `each` with the parts of the original text.
    pub(crate) fn for_each_raw<E>(
        &self,
        text: &[u8],
        permission: Permission<'_>,
        each: &mut impl FnMut(TextPart) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        self.for_each(&self.raw, text, permission, &|at| at, each)
    }

    /// Calls `each` with the parts of normalized text; `origin` maps an offset to the caller's
    /// text.
    pub(crate) fn for_each_normalized<E>(
        &self,
        text: &[u8],
        permission: Permission<'_>,
        origin: &impl Fn(usize) -> usize,
        each: &mut impl FnMut(TextPart) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        self.for_each(&self.normalized, text, permission, origin, each)
    }

    /// Prepares to find the special tokens with these ids (ascending) in normalized text.
    pub(crate) fn choose(&self, normalizer: &Normalizer, ids: &[u32]) -> Result<AddedFinder> {
        let is_chosen = |token: &AddedToken| ids.binary_search(&token.id).is_ok();
        AddedFinder::new(&self.list, normalizer, |token| {
            token.special && token.normalized && is_chosen(token)
        })
    }

    /// The first special token in normalized text: any, or one of those to be found.
    pub(crate) fn first_normalized_special(
        &self,
        text: &[u8],
        chosen: Option<&AddedFinder>,
    ) -> Option<&AddedToken> {
        let finder = chosen.unwrap_or(&self.normalized.special);
        let found = finder.texts.first(text)?;
        Some(&self.list[finder.tokens[found.index]])
    }

    fn for_each<E>(
        &self,
        round: &Round,
        text: &[u8],
        permission: Permission<'_>,
        origin: &impl Fn(usize) -> usize,
        each: &mut impl FnMut(TextPart) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let mut matches = Matches::new(round, text, permission);
        let mut from = 0; // where the search continues
        let mut open = 0; // start of the text that is not in a part yet
        let mut space_end = 0; // end of the last run of white space that was scanned
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
                // The previous token consumed all of this white space. Hugging Face drops empty
                // parts.
                continue;
            }
            if open < start && each(TextPart { token: Found::Text, range: open..start })?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            let token = if token.special { Found::Special } else { Found::Other }(token.id);
            if each(TextPart { token, range: start..end })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // Not the maximum: as in Hugging Face, a match inside the white space consumed by the
            // previous one releases the rest of it.
            open = end;
        }
        if open < text.len() {
            return each(TextPart { token: Found::Text, range: open..text.len() });
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Iterates over the matches of a round.
struct Matches<'a> {
    round: &'a Round,
    text: &'a [u8],
    /// Searches for all tokens, or with `Within` for those that are not special.
    search: Search<'a>,
    /// With `Within`: the special tokens.
    within: Option<Within<'a>>,
}

/// Special tokens in trusted ranges. One that crosses the end of a range must not hide a shorter
/// one inside it, so they are searched for range by range, and the other tokens everywhere.
struct Within<'a> {
    /// The ranges that are not searched yet.
    ranges: &'a [Range<usize>],
    /// The search in a range, and where that starts.
    search: Option<(Search<'a>, usize)>,
    /// The next special and the next other match.
    special: Upcoming,
    other: Upcoming,
}

/// The next match of a search.
#[derive(Clone, Copy)]
enum Upcoming {
    NotSearched,
    Searched(Option<Match>),
}

impl Upcoming {
    /// Whether to search again, from `from`.
    fn is_stale(self, from: usize) -> bool {
        match self {
            Self::NotSearched => true,
            Self::Searched(found) => found.is_some_and(|(found, _)| found.start < from),
        }
    }

    fn found(self) -> Option<Match> {
        match self {
            Self::NotSearched => None,
            Self::Searched(found) => found,
        }
    }
}

impl<'a> Matches<'a> {
    fn new(round: &'a Round, text: &'a [u8], permission: Permission<'a>) -> Self {
        let (finder, within) = match permission {
            Permission::Within(ranges) => {
                let (special, other) = (Upcoming::NotSearched, Upcoming::NotSearched);
                (&round.ordinary, Some(Within { ranges, search: None, special, other }))
            }
            _ => (&round.all, None),
        };
        Self { round, text, search: finder.texts.search(text), within }
    }

    fn next(&mut self, from: usize, origin: &impl Fn(usize) -> usize) -> Option<Match> {
        let Some(within) = &mut self.within else {
            return self.round.all.next(&mut self.search, from);
        };
        if within.special.is_stale(from) {
            let found = within.next_special(&self.round.special, self.text, from, origin);
            within.special = Upcoming::Searched(found);
        }
        if within.other.is_stale(from) {
            within.other = Upcoming::Searched(self.round.ordinary.next(&mut self.search, from));
        }
        match (within.special.found(), within.other.found()) {
            (Some(special), Some(other)) => {
                let key = |(found, _): &Match| (found.start, usize::MAX - found.end);
                Some(if key(&special) <= key(&other) { special } else { other })
            }
            (special, other) => special.or(other),
        }
    }
}

impl<'a> Within<'a> {
    fn next_special(
        &mut self,
        finder: &'a AddedFinder,
        text: &'a [u8],
        from: usize,
        origin: &impl Fn(usize) -> usize,
    ) -> Option<Match> {
        if finder.texts.is_empty() {
            return None;
        }
        // Maps an offset in the caller's text to this text; origins are ascending.
        let offset_of = |wanted: usize| partition(text.len(), |at| origin(at) < wanted);
        loop {
            if let Some((search, start)) = &mut self.search
                && let Some(found) = finder.next(search, from.max(*start))
            {
                return Some(found);
            }
            let (range, rest) = self.ranges.split_first()?;
            self.ranges = rest;
            let (start, end) = (offset_of(range.start), offset_of(range.end));
            self.search =
                (from.max(start) < end).then(|| (finder.texts.search(&text[..end]), start));
        }
    }
}

/// The first offset in `0..=length` for which `is_before` is false.
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
