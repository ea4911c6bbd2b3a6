//! Text to pre-tokens.
//!
//! A pattern cuts text: each non-empty match is a pre-token, and so is text between two matches, so nothing
//! is lost. Three ways to do it, the same answer:
//!
//! - no pattern: the whole text is one pre-token;
//! - an automaton (`automaton.rs`), when `normalise.rs` can rewrite the pattern exactly without look-around
//!   and possessive repeats: shared by threads, no scratch space, and a limit on how far it looks ahead;
//! - a backtracking engine (`backtrack.rs`) for every other pattern, with a limit on its work.
//!
//! An automaton also proves where a text may be cut into blocks without changing a pre-token
//! (`Pretokenizer::last_cut`).

mod automaton;
mod backtrack;
mod normalise;

use std::ops::ControlFlow;

use crate::error::Result;
use automaton::Automaton;
use backtrack::Backtracker;

/// Which engine runs a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// No pattern: the text is one pre-token.
    Whole,
    /// A deterministic automaton.
    Automaton,
    /// A backtracking regular expression engine.
    Backtracking,
}

impl Engine {
    /// The engine's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Whole => "whole",
            Engine::Automaton => "automaton",
            Engine::Backtracking => "backtracking",
        }
    }
}

enum Kind {
    Whole,
    Automaton(Box<Automaton>),
    Backtracking(Box<Backtracker>),
}

/// A compiled pattern.
pub struct Pretokenizer {
    kind: Kind,
}

impl Pretokenizer {
    /// Compiles a pattern; `None` takes whole texts.
    pub fn new(pattern: Option<&str>) -> Result<Self> {
        let Some(pattern) = pattern else {
            return Ok(Self { kind: Kind::Whole });
        };
        // The backtracking engine is the authority on what a pattern means and whether it is one.
        let backtracker = Backtracker::new(pattern)?;
        let automaton = normalise::alternatives(pattern).and_then(|list| Automaton::new(&list));
        Ok(Self {
            kind: match automaton {
                Some(automaton) => Kind::Automaton(Box::new(automaton)),
                None => Kind::Backtracking(Box::new(backtracker)),
            },
        })
    }

    /// Compiles a pattern for the backtracking engine even where an automaton would do; for comparisons.
    pub fn backtracking(pattern: &str) -> Result<Self> {
        Ok(Self { kind: Kind::Backtracking(Box::new(Backtracker::new(pattern)?)) })
    }

    /// Which engine runs.
    pub fn engine(&self) -> Engine {
        match self.kind {
            Kind::Whole => Engine::Whole,
            Kind::Automaton(_) => Engine::Automaton,
            Kind::Backtracking(_) => Engine::Backtracking,
        }
    }

    /// Calls `each` with every pre-token in order, until it breaks.
    ///
    /// A byte that is not part of valid UTF-8 is, for the pattern, a character that is no letter, digit,
    /// mark or space.
    pub fn for_each(
        &self,
        text: &[u8],
        each: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.for_each_tile(text, &mut |tile, _| each(tile))
    }

    /// The same, with whether the pattern matches the pre-token or it lies between matches.
    pub fn for_each_tile(
        &self,
        text: &[u8],
        each: &mut impl FnMut(&[u8], bool) -> ControlFlow<()>,
    ) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if matches!(self.kind, Kind::Whole) {
            let _ = each(text, true); // valid or not
            return Ok(());
        }
        match std::str::from_utf8(text) {
            Ok(valid) => self.for_each_valid(valid, &mut |start, end, is_match| {
                each(&text[start..end], is_match)
            }),
            Err(_) => {
                let stand_in = StandIn::new(text);
                let mut raw_start = 0;
                self.for_each_valid(&stand_in.text, &mut |start, end, is_match| {
                    let raw_end = raw_start + stand_in.raw_len(start, end);
                    let piece = &text[raw_start..raw_end];
                    raw_start = raw_end;
                    each(piece, is_match)
                })
            }
        }
    }

    /// The ranges of all pre-tokens of valid text, in order; they tile it.
    fn for_each_valid(
        &self,
        text: &str,
        each: &mut impl FnMut(usize, usize, bool) -> ControlFlow<()>,
    ) -> Result<()> {
        match &self.kind {
            Kind::Whole => {
                let _ = each(0, text.len(), true);
                Ok(())
            }
            Kind::Automaton(automaton) => {
                let mut lookahead = LOOKAHEAD_FREE + text.len().saturating_mul(LOOKAHEAD_PER_BYTE);
                tile(text, |position| automaton.find(text, position, &mut lookahead), each)
            }
            Kind::Backtracking(backtracker) => {
                tile(text, |position| backtracker.find(text, position), each)
            }
        }
    }

    /// The last place where `text` may be cut so that both sides, taken alone, give the pre-tokens that
    /// they give together, whatever follows `text`. `None` if there is no such place, or none can be proved.
    ///
    /// The place is a character boundary, greater than 0 and at most `limit` (and less than the length).
    pub fn last_cut(&self, text: &[u8], limit: usize) -> Option<usize> {
        let Kind::Automaton(automaton) = &self.kind else { return None };
        let cuts = automaton.cuts()?;
        let limit = limit.min(text.len().checked_sub(1)?);
        (1..=limit).rev().find(|&p| cuts.is_cut(text[p - 1], text[p]))
    }
}

/// How far all matches of a text together may be looked past, by the byte and in any case. Patterns of the
/// field look a few bytes past a match; one like `a+b|a` would look past every `a` to the end of the run.
const LOOKAHEAD_PER_BYTE: usize = 256;
const LOOKAHEAD_FREE: usize = 1 << 20;

/// Turns a search for the next match into pieces that tile the text: matches, and what lies between.
fn tile(
    text: &str,
    mut find: impl FnMut(usize) -> Result<Option<(usize, usize)>>,
    each: &mut impl FnMut(usize, usize, bool) -> ControlFlow<()>,
) -> Result<()> {
    let mut position = 0; // where the next search starts
    let mut unmatched = 0; // start of the text that no piece holds yet
    while position < text.len() {
        let Some((start, end)) = find(position)? else { break };
        if start == end {
            // An empty match cuts nothing.
            position = end + text[end..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        if start > unmatched && each(unmatched, start, false).is_break() {
            return Ok(());
        }
        if each(start, end, true).is_break() {
            return Ok(());
        }
        position = end;
        unmatched = end;
    }
    if unmatched < text.len() {
        let _ = each(unmatched, text.len(), false);
    }
    Ok(())
}

/// A text in which every byte that is not UTF-8 is replaced by one character of no class.
struct StandIn {
    text: String,
    /// Where the stand-ins are in `text`, ascending.
    places: Vec<usize>,
}

/// A noncharacter: unassigned for ever, so no letter, mark, digit, punctuation, symbol or space.
const STAND_IN: char = '\u{FFFF}';

impl StandIn {
    fn new(raw: &[u8]) -> Self {
        let mut text = String::with_capacity(raw.len() + raw.len() / 8);
        let mut places = Vec::new();
        for chunk in raw.utf8_chunks() {
            text.push_str(chunk.valid());
            for _ in chunk.invalid() {
                places.push(text.len());
                text.push(STAND_IN);
            }
        }
        Self { text, places }
    }

    /// How many raw bytes the range of `text` stands for.
    fn raw_len(&self, start: usize, end: usize) -> usize {
        let first = self.places.partition_point(|&place| place < start);
        let last = self.places.partition_point(|&place| place < end);
        end - start - (last - first) * (STAND_IN.len_utf8() - 1)
    }
}

#[cfg(test)]
mod tests;
