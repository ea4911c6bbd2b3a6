//! Splits one text into pre-tokens, front to back: one by one, or in batches.

use std::borrow::Cow;
use std::ops::Range;

use super::automaton::Automaton;
use super::backtracking::Search;
use super::bits::{MAX_ENDS, Scan};
use super::budget::Budget;
use super::characters::STAND_IN;
use super::ck_runtime;
use super::scanner::{LastRun, Scanner};
use crate::error::{Error, Result};
use crate::reserve::{push, reserve};

/// The greatest bound. The highest bit is free for marks of those who use bounds.
pub(crate) const MAX_BOUND: u32 = i32::MAX as u32;

/// A batch of pre-tokens that are found one by one covers about this many bytes at most.
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 20;

/// A buffer for the bounds of a batch of pre-tokens: 0, and the end of each.
pub(crate) struct Bounds([u32; 1 + MAX_ENDS]);

impl Default for Bounds {
    fn default() -> Self {
        Self([0; 1 + MAX_ENDS])
    }
}

/// The error of a pre-token that bounds cannot express.
#[cold]
pub(crate) fn too_long() -> Error {
    Error::Pattern("a pre-token is longer than 2 GiB, which is more than can be merged".to_owned())
}

/// Splits a text.
///
/// To a pattern, a byte that is not part of valid UTF-8 is a character that is not a letter, digit,
/// mark or space. (The pattern over bytes knows no characters.)
pub(crate) struct Splitter<'s> {
    text: &'s [u8],
    /// Where the next pre-token starts.
    start: usize,
    by: By<'s>,
    /// Where the steps of patterns are taken from.
    budget: &'s mut Budget,
    bounds: &'s mut Bounds,
}

/// What finds the pre-tokens.
#[expect(clippy::large_enum_variant, reason = "there is one per text, on the stack")]
pub(super) enum By<'s> {
    Whole,
    CkRuntime,
    Characters(&'s Scanner, LastRun),
    Blocks(Blocks<'s>),
    Matches(Matches<'s>),
}

impl<'s> Splitter<'s> {
    #[inline(always)]
    pub(super) fn new(
        text: &'s [u8],
        by: By<'s>,
        budget: &'s mut Budget,
        bounds: &'s mut Bounds,
    ) -> Self {
        Self { text, start: 0, by, budget, bounds }
    }

    /// The next pre-token, and whether it is a match or lies between matches.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(Range<usize>, bool)>> {
        let start = self.start;
        let is_match = self.advance()?;
        Ok((start < self.start).then_some((start..self.start, is_match)))
    }

    /// Goes to the end of the next pre-token, if there is one; returns whether it is a match.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool> {
        let (text, start) = (self.text, self.start);
        if start == text.len() {
            return Ok(false);
        }
        let (end, is_match) = match &mut self.by {
            By::Whole => (text.len(), true),
            By::CkRuntime => (ck_runtime::end(text, start), true),
            By::Characters(scanner, last_run) => scanner.next(text, start, last_run),
            // Every character is part of a match.
            By::Blocks(blocks) => (blocks.next(self.bounds)?, true),
            By::Matches(matches) => matches.next(start, self.budget)?,
        };
        self.start = end;
        Ok(is_match)
    }

    /// The next batch of pre-tokens: the offset of the first one, and all bounds relative to it.
    #[inline]
    pub(crate) fn next_batch(&mut self) -> Result<Option<(usize, &[u32])>> {
        let start = self.start;
        let count = match &mut self.by {
            By::Blocks(blocks) => {
                let count = blocks.fill(self.bounds)?;
                self.start = blocks.scan.start();
                count
            }
            _ => self.collect()?,
        };
        Ok((count > 0).then(|| (start, &self.bounds.0[..=count])))
    }

    /// Fills a batch with pre-tokens that are found one by one; returns their number.
    fn collect(&mut self) -> Result<usize> {
        let (first, mut count) = (self.start, 0);
        while count < MAX_ENDS
            && self.start - first <= MAX_BATCH_BYTES
            && self.start < self.text.len()
        {
            self.advance()?;
            let end = u32::try_from(self.start - first).ok().filter(|&end| end <= MAX_BOUND);
            count += 1;
            self.bounds.0[count] = end.ok_or_else(too_long)?;
        }
        Ok(count)
    }

    /// Where each pre-token ends, and whether it is a match.
    pub(super) fn ends(mut self) -> Result<Vec<(usize, bool)>> {
        let mut ends = Vec::new();
        while let Some((range, is_match)) = self.next()? {
            push(&mut ends, (range.end, is_match))?;
        }
        Ok(ends)
    }
}

/// A scan of blocks, and the part of its last batch that has not been returned.
pub(super) struct Blocks<'s> {
    scan: Scan<'s>,
    first: usize,
    rest: Range<usize>,
}

impl<'s> Blocks<'s> {
    #[inline(always)]
    pub(super) fn new(scan: Scan<'s>) -> Self {
        Self { scan, first: 0, rest: 0..0 }
    }

    #[inline]
    fn fill(&mut self, bounds: &mut Bounds) -> Result<usize> {
        let [_, ends @ ..] = &mut bounds.0;
        self.scan.fill(ends).map_err(|_| too_long())
    }

    #[inline]
    fn next(&mut self, bounds: &mut Bounds) -> Result<usize> {
        if self.rest.is_empty() {
            self.first = self.scan.start();
            self.rest = 1..self.fill(bounds)? + 1;
        }
        let end = bounds.0[self.rest.start];
        self.rest.start += 1;
        Ok(self.first + end as usize)
    }
}

/// An engine that finds the matches in valid UTF-8.
pub(super) enum Finder<'s> {
    Automaton(&'s Automaton),
    Backtracking(Search<'s>),
}

/// The matches in a text, and the text between them.
pub(super) struct Matches<'s> {
    finder: Finder<'s>,
    text: StandIn<'s>,
    /// Where the next pre-token starts in the stand-in.
    start: usize,
    /// The end of the match that starts there, if that is known.
    found: Option<usize>,
}

impl<'s> Matches<'s> {
    pub(super) fn new(finder: Finder<'s>, text: &'s [u8], budget: &mut Budget) -> Result<Self> {
        let text = StandIn::new(text)?;
        budget.add(text.text.len());
        Ok(Self { finder, text, start: 0, found: None })
    }

    /// The end of the pre-token that starts at `raw_start`, and whether it is a match.
    #[inline(always)]
    fn next(&mut self, raw_start: usize, budget: &mut Budget) -> Result<(usize, bool)> {
        let start = self.start;
        let (end, is_match) = match self.found.take() {
            Some(end) => (end, true),
            None => match self.find(budget)? {
                Some(found) if found.start > start => {
                    self.found = Some(found.end);
                    (found.start, false)
                }
                Some(found) => (found.end, true),
                None => (self.text.text.len(), false),
            },
        };
        self.start = end;
        Ok((raw_start + self.text.raw_len(start, end), is_match))
    }

    /// The next match. An empty one splits nothing.
    #[inline(always)]
    fn find(&mut self, budget: &mut Budget) -> Result<Option<Range<usize>>> {
        let text = &*self.text.text;
        let mut from = self.start;
        while from < text.len() {
            let found = match &mut self.finder {
                Finder::Automaton(automaton) => automaton.find(text, from, budget)?,
                Finder::Backtracking(search) => search.find(text, from, budget)?,
            };
            match found {
                Some((start, end)) if start < end => return Ok(Some(start..end)),
                Some((_, end)) => from = end + text[end..].chars().next().map_or(1, char::len_utf8),
                None => break,
            }
        }
        Ok(None)
    }
}

/// A text in which every byte that is not UTF-8 is replaced by one character of no class.
pub(super) struct StandIn<'t> {
    pub(super) text: Cow<'t, str>,
    /// The offsets of the replacements in `text`, ascending.
    offsets: Vec<usize>,
}

impl<'t> StandIn<'t> {
    pub(super) fn new(raw: &'t [u8]) -> Result<Self> {
        if let Ok(valid) = str::from_utf8(raw) {
            return Ok(Self { text: Cow::Borrowed(valid), offsets: Vec::new() });
        }
        let (mut text, mut offsets) = (Vec::new(), Vec::new());
        for chunk in raw.utf8_chunks() {
            reserve(&mut text, chunk.valid().len() + 3 * STAND_IN.len_utf8())?;
            text.extend_from_slice(chunk.valid().as_bytes());
            reserve(&mut offsets, chunk.invalid().len())?;
            for _ in chunk.invalid() {
                offsets.push(text.len());
                text.extend_from_slice(STAND_IN.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        // All parts are valid, so the whole is.
        Ok(Self { text: Cow::Owned(String::from_utf8(text).unwrap_or_default()), offsets })
    }

    /// The number of bytes of the original that a range of `text` stands for.
    #[inline]
    pub(super) fn raw_len(&self, start: usize, end: usize) -> usize {
        if self.offsets.is_empty() {
            return end - start;
        }
        let first = self.offsets.partition_point(|&offset| offset < start);
        let last = self.offsets.partition_point(|&offset| offset < end);
        end - start - (last - first) * (STAND_IN.len_utf8() - 1)
    }
}
