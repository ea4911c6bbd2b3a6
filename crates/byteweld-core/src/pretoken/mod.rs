//! Text to pre-tokens.
//!
//! A pattern cuts text: each non-empty match is a pre-token, and so is text between two matches, so nothing
//! is lost. Four ways to do it, the same answer:
//!
//! - no pattern: the whole text is one pre-token;
//! - a scanner (`scanner.rs`), when all alternatives of the pattern have a known shape (`spec.rs`), and it agrees
//!   with the backtracking engine on a text made for it (`torture.rs`);
//! - an automaton (`automaton.rs`), when `normalise.rs` can rewrite the pattern exactly without look-around
//!   and possessive repeats: shared by threads, no scratch space, and a limit on how far it looks ahead;
//! - a backtracking engine (`backtrack.rs`) for every other pattern, with a limit on its work (`budget.rs`).
//!
//! One pattern matches bytes instead of characters, and has a scanner of its own (`ck_runtime.rs`).
//!
//! An automaton also proves where a text may be cut into blocks without changing a pre-token
//! (`Pretokenizer::last_cut`); for a scanner's pattern it is built when that is first asked.

mod ascii;
mod automaton;
mod backtrack;
mod blocks;
mod budget;
mod canonical;
mod ck_runtime;
mod classes;
mod family;
mod lanes;
mod machine;
mod masks;
mod normalise;
mod plan;
mod program;
mod rules;
mod scanner;
mod spec;
#[cfg(feature = "fuzzing")]
mod tiers;
mod torture;
mod unicode;
mod unicode_runs;
mod wide;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::lazy::Lazy;
use crate::reserve::{check_memory, reserve};
use crate::watch::Watch;
use automaton::Automaton;
use backtrack::Backtracker;
pub(crate) use blocks::CHUNK;
pub(crate) use budget::Budget;
use classes::STAND_IN;
pub(crate) use masks::{Work, with_all_instructions};
use normalise::Alternative;
pub(crate) use scanner::Pieces;
use scanner::Scanner;
use spec::Spec;

/// Which engine runs a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// No pattern: the text is one pre-token.
    Whole,
    /// A scanner for the pattern's shape.
    Scanner,
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
            Engine::Scanner => "scanner",
            Engine::Automaton => "automaton",
            Engine::Backtracking => "backtracking",
        }
    }
}

enum Kind {
    Whole,
    CkRuntime,
    Scanner(Box<Scanned>),
    Automaton(Arc<Automaton>),
    Backtracking(Box<Backtracker>),
}

/// A scanner, and the automaton of the same pattern, which is built when it is first needed.
struct Scanned {
    scanner: Scanner,
    alternatives: Vec<Alternative>,
    automaton: Lazy<Option<Arc<Automaton>>>,
}

/// A compiled pattern.
#[derive(Clone)]
pub struct Pretokenizer {
    kind: Arc<Kind>,
}

/// How many patterns the process remembers. Compiling one takes milliseconds; programs use a few.
const REMEMBERED: usize = 16;

impl Pretokenizer {
    /// Compiles a pattern; `None` takes whole texts. The last patterns are remembered, and compiled once.
    pub fn new(pattern: Option<&str>) -> Result<Self> {
        static LAST: Mutex<Vec<(String, Pretokenizer)>> = Mutex::new(Vec::new());
        let Some(pattern) = pattern else { return Ok(Self { kind: Arc::new(Kind::Whole) }) };
        let known = |list: &[(String, Self)]| {
            list.iter().find(|(known, _)| known == pattern).map(|(_, compiled)| compiled.clone())
        };
        // Never waits: in a forked process, the lock may be held by a thread that is not there.
        if let Ok(last) = LAST.try_lock()
            && let Some(compiled) = known(&last)
        {
            return Ok(compiled);
        }
        check_memory()?; // the compilers abort without memory
        let compiled = Self { kind: Arc::new(compile(pattern)?) };
        let mut oldest = None; // dropped when the lock is free again
        if let Ok(mut last) = LAST.try_lock()
            && known(&last).is_none()
        {
            oldest = (last.len() == REMEMBERED).then(|| last.remove(0));
            last.push((pattern.to_owned(), compiled.clone()));
        }
        drop(oldest);
        Ok(compiled)
    }

    /// Compiles a pattern for the backtracking engine even where another would do; for comparisons.
    pub fn backtracking(pattern: &str) -> Result<Self> {
        let backtracker = Box::new(Backtracker::new(pattern)?);
        Ok(Self { kind: Arc::new(Kind::Backtracking(backtracker)) })
    }

    /// Which engine runs.
    pub fn engine(&self) -> Engine {
        match *self.kind {
            Kind::Whole => Engine::Whole,
            Kind::Scanner(_) | Kind::CkRuntime => Engine::Scanner,
            Kind::Automaton(_) => Engine::Automaton,
            Kind::Backtracking(_) => Engine::Backtracking,
        }
    }

    /// Whether the pattern matches bytes instead of characters.
    pub(crate) fn is_over_bytes(&self) -> bool {
        matches!(*self.kind, Kind::CkRuntime)
    }

    /// Calls `each` with every pre-token in order, until it breaks.
    ///
    /// A byte that is not part of valid UTF-8 is, for the pattern, a character that is no letter, digit,
    /// mark or space. (For the pattern over bytes, nothing is a character.)
    #[inline]
    pub fn for_each(
        &self,
        text: &[u8],
        each: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.for_each_tile(text, &mut |tile, _| each(tile))
    }

    /// The same, as ranges: they tile the text. Steps are taken from `budget`.
    pub(crate) fn for_each_piece(
        &self,
        text: &[u8],
        budget: &mut Budget,
        pieces: &mut impl Pieces,
    ) -> Result<()> {
        match &*self.kind {
            Kind::Scanner(scanned) => {
                scanned.scanner.for_each(text, pieces);
                return Ok(());
            }
            Kind::CkRuntime => {
                ck_runtime::for_each(text, pieces);
                return Ok(());
            }
            Kind::Whole | Kind::Automaton(_) | Kind::Backtracking(_) => {}
        }
        let mut start = 0;
        self.for_each_tile_within(text, budget, &mut |tile, is_match| {
            let end = start + tile.len();
            let outcome = pieces.piece(start, end, is_match);
            start = end;
            outcome
        })
    }

    /// The same, with whether the pattern matches the pre-token or it lies between matches.
    #[inline]
    pub fn for_each_tile(
        &self,
        text: &[u8],
        each: &mut impl FnMut(&[u8], bool) -> ControlFlow<()>,
    ) -> Result<()> {
        self.for_each_tile_within(text, &mut Budget::new(Watch::default()), each)
    }

    /// The same for a part of a text that has a budget for all of its parts.
    #[inline]
    pub(crate) fn for_each_tile_within(
        &self,
        text: &[u8],
        budget: &mut Budget,
        each: &mut impl FnMut(&[u8], bool) -> ControlFlow<()>,
    ) -> Result<()> {
        match &*self.kind {
            _ if text.is_empty() => Ok(()),
            Kind::Whole => {
                let _ = each(text, true); // valid or not
                Ok(())
            }
            Kind::Scanner(scanned) => {
                let scanner = &scanned.scanner;
                scanner
                    .for_each(text, &mut |start, end, is_match| each(&text[start..end], is_match));
                Ok(())
            }
            Kind::CkRuntime => {
                ck_runtime::for_each(text, &mut |start, end, is_match| {
                    each(&text[start..end], is_match)
                });
                Ok(())
            }
            Kind::Automaton(automaton) => for_each_by_regex(text, each, |text, each| {
                budget.add(text.len());
                tile(text, |position| automaton.find(text, position, budget), each)
            }),
            Kind::Backtracking(backtracker) => for_each_by_regex(text, each, |text, each| {
                budget.add(text.len());
                let mut search = backtracker.search(text);
                tile(text, |position| search.find(position, budget), each)
            }),
        }
    }

    /// The last place where `text` may be cut so that both sides, taken alone, give the pre-tokens that
    /// they give together, whatever follows `text`. `None` if there is no such place, or none can be proved.
    ///
    /// The place is a character boundary, greater than 0 and at most `limit` (and less than the length). `text` may
    /// end inside a character.
    pub fn last_cut(&self, text: &[u8], limit: usize) -> Option<usize> {
        if let Kind::CkRuntime = *self.kind {
            return ck_runtime::last_cut(text, limit.min(text.len().checked_sub(1)?));
        }
        let text = without_open_character(text);
        let limit = limit.min(text.len().checked_sub(1)?);
        if let Kind::Scanner(scanned) = &*self.kind
            && let Some(place) = scanned.scanner.last_certain_start(text, limit)
        {
            return Some(place);
        }
        let cuts = self.automaton()?.cuts();
        let cuts = cuts.as_ref().as_ref()?;
        (1..=limit).rev().find(|&p| cuts.is_cut(text[p - 1], text[p]))
    }

    /// Whether [`Self::last_cut`] can find anything.
    pub fn has_cuts(&self) -> bool {
        matches!(*self.kind, Kind::CkRuntime)
            || self.automaton().is_some_and(|automaton| automaton.cuts().is_some())
    }

    /// The end of the last pre-token at which `text` may be cut as [`Self::last_cut`] does it, whatever follows
    /// `text`; it may be after any character, but is found by walking the text. 0 if there is none, or none
    /// can be told.
    pub fn certain_end(&self, text: &[u8]) -> usize {
        if let Kind::CkRuntime = *self.kind {
            return ck_runtime::certain_end(text);
        }
        let Some(automaton) = self.automaton() else { return 0 };
        let text = without_open_character(text);
        let mut budget = Budget::new(Watch::default());
        budget.add(text.len());
        match std::str::from_utf8(text) {
            Ok(valid) => automaton.certain_end(valid, &mut budget),
            Err(_) => {
                let Ok(stand_in) = StandIn::new(text) else { return 0 };
                stand_in.raw_len(0, automaton.certain_end(&stand_in.text, &mut budget))
            }
        }
    }

    fn automaton(&self) -> Option<Arc<Automaton>> {
        match &*self.kind {
            Kind::Automaton(automaton) => Some(Arc::clone(automaton)),
            Kind::Scanner(scanned) => {
                let make = || Automaton::new(&scanned.alternatives).map(Arc::new);
                scanned.automaton.get_or_make(make).as_ref().clone()
            }
            Kind::Whole | Kind::CkRuntime | Kind::Backtracking(_) => None,
        }
    }
}

/// A text that is the same for all spellings of a pattern that a scanner recognises as one; `None` if it
/// recognises none, or the pattern is wrong.
pub fn canonical_pattern(pattern: &str) -> Option<String> {
    let compiled = Pretokenizer::new(Some(pattern)).ok()?;
    // Only a scanner that was checked may speak for its pattern.
    let Kind::Scanner(scanned) = &*compiled.kind else { return None };
    Spec::new(&scanned.alternatives).map(|spec| canonical::text(&spec))
}

/// The fastest engine that gives what the backtracking engine gives, which is the authority on what a pattern
/// means and whether it is one.
fn compile(pattern: &str) -> Result<Kind> {
    if pattern == ck_runtime::SOURCE {
        return Ok(Kind::CkRuntime);
    }
    let backtracker = Backtracker::new(pattern)?;
    let Some(alternatives) = normalise::alternatives(pattern) else {
        return Ok(Kind::Backtracking(Box::new(backtracker)));
    };
    if let Some(scanner) = Spec::new(&alternatives).and_then(|spec| Scanner::new(&spec)) {
        // What the automaton would be made of is in doubt with the scanner.
        return Ok(if agree(&scanner, &backtracker) {
            let automaton = Lazy::new();
            Kind::Scanner(Box::new(Scanned { scanner, alternatives, automaton }))
        } else {
            Kind::Backtracking(Box::new(backtracker))
        });
    }
    Ok(match Automaton::new(&alternatives) {
        Some(automaton) => Kind::Automaton(Arc::new(automaton)),
        None => Kind::Backtracking(Box::new(backtracker)),
    })
}

/// Whether a scanner cuts the texts that were made for it as the backtracking engine does.
fn agree(scanner: &Scanner, backtracker: &Backtracker) -> bool {
    torture::texts(scanner.classes()).iter().all(|text| agree_on(text, scanner, backtracker))
}

fn agree_on(text: &str, scanner: &Scanner, backtracker: &Backtracker) -> bool {
    let (mut search, mut budget) = (backtracker.search(text), Budget::new(Watch::default()));
    budget.add(text.len());
    agree_with(text, scanner, |position| search.find(position, &mut budget))
}

fn agree_with(
    text: &str,
    scanner: &Scanner,
    find: impl FnMut(usize) -> Result<Option<(usize, usize)>>,
) -> bool {
    let mut tiles = Vec::new();
    scanner.for_each(text.as_bytes(), &mut |_, end, is_match| {
        tiles.push((end, is_match));
        ControlFlow::Continue(())
    });
    let mut expected = Vec::new();
    let outcome = tile(text, find, &mut |_, end, is_match| {
        expected.push((end, is_match));
        ControlFlow::Continue(())
    });
    outcome.is_ok() && tiles == expected
}

/// Takes what `search` gives for valid text as pre-tokens of any text.
fn for_each_by_regex(
    text: &[u8],
    each: &mut impl FnMut(&[u8], bool) -> ControlFlow<()>,
    search: impl FnOnce(&str, &mut dyn FnMut(usize, usize, bool) -> ControlFlow<()>) -> Result<()>,
) -> Result<()> {
    match std::str::from_utf8(text) {
        Ok(valid) => search(valid, &mut |start, end, is_match| each(&text[start..end], is_match)),
        Err(_) => {
            let stand_in = StandIn::new(text)?;
            let mut raw_start = 0;
            search(&stand_in.text, &mut |start, end, is_match| {
                let raw_end = raw_start + stand_in.raw_len(start, end);
                let piece = &text[raw_start..raw_end];
                raw_start = raw_end;
                each(piece, is_match)
            })
        }
    }
}

/// Turns a search for the next match into pieces that tile the text: matches, and what lies between.
fn tile(
    text: &str,
    mut find: impl FnMut(usize) -> Result<Option<(usize, usize)>>,
    each: &mut dyn FnMut(usize, usize, bool) -> ControlFlow<()>,
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

/// A text without the start of a character at its end that more text could complete.
fn without_open_character(text: &[u8]) -> &[u8] {
    let tail = &text[text.len().saturating_sub(3)..];
    let open = tail.iter().rposition(|&byte| byte >= 0xC0).filter(|&at| {
        std::str::from_utf8(&tail[at..]).is_err_and(|error| error.error_len().is_none())
    });
    match open {
        Some(at) => &text[..text.len() - (tail.len() - at)],
        None => text,
    }
}

/// A text in which every byte that is not UTF-8 is replaced by one character of no class.
struct StandIn {
    text: String,
    /// Where the stand-ins are in `text`, ascending.
    places: Vec<usize>,
}

impl StandIn {
    fn new(raw: &[u8]) -> Result<Self> {
        let (mut text, mut places) = (Vec::new(), Vec::new());
        for chunk in raw.utf8_chunks() {
            reserve(&mut text, chunk.valid().len() + 3 * STAND_IN.len_utf8())?;
            text.extend_from_slice(chunk.valid().as_bytes());
            reserve(&mut places, chunk.invalid().len())?;
            for _ in chunk.invalid() {
                places.push(text.len());
                text.extend_from_slice(STAND_IN.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        // What was put together is valid.
        Ok(Self { text: String::from_utf8(text).unwrap_or_default(), places })
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
