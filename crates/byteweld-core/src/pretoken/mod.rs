//! Text to pre-tokens.
//!
//! A pattern splits text (`splitter.rs`): each non-empty match is a pre-token, and so is the text
//! between two matches, so nothing is lost. `patterns/` reads and recognizes patterns, and `characters/` knows
//! the classes of characters. There are four engines, and all give the same pre-tokens:
//!
//! - No pattern: the whole text is one pre-token.
//! - A scanner (`scanner/`), if all alternatives of the pattern have a known shape
//!   (`patterns/spec.rs`) and the scanner agrees with the backtracking engine on texts designed to
//!   expose differences (`patterns/torture.rs`). Patterns of GPT-2's family, which are most, are
//!   scanned 64 bytes at a time (`bits/`).
//! - An automaton (`automaton.rs`), if the pattern can be rewritten exactly without look-around and
//!   possessive repeats (`patterns/normalize.rs`).
//! - A backtracking engine (`backtracking/`) for any other pattern, with a limit on its work
//!   (`budget.rs`).
//!
//! One pattern matches bytes instead of characters, and has its own scanner (`ck_runtime.rs`).
//!
//! An automaton also proves where text may be cut without changing a pre-token
//! ([`Pretokenizer::last_cut`]). For a scanner's pattern, it is built when that is first needed:
//! `bits/` finds most such offsets without it.

mod automaton;
mod backtracking;
mod bits;
mod budget;
mod characters;
mod ck_runtime;
mod patterns;
mod scanner;
mod splitter;

use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::lazy::Lazy;
use crate::reserve::check_memory;
use crate::watch::Watch;
use automaton::Automaton;
use backtracking::Backtracker;
use bits::{Bits, Scan};
pub(crate) use budget::Budget;
use patterns::{Alternative, Spec, canonical, normalize, torture};
use scanner::{LastRun, Scanner};
use splitter::{Blocks, By, Finder, Matches, StandIn};
pub(crate) use splitter::{Bounds, MAX_BATCH_BYTES, MAX_BOUND, Splitter, too_long};

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

/// A scanner, and other engines for the same pattern.
struct Scanned {
    scanner: Scanner,
    /// Scans 64 bytes at a time, if the pattern is of GPT-2's family.
    bits: Option<Bits>,
    alternatives: Vec<Alternative>,
    /// Built on first use.
    automaton: Lazy<Option<Arc<Automaton>>>,
}

/// A compiled pattern.
#[derive(Clone)]
pub struct Pretokenizer {
    kind: Arc<Kind>,
}

/// The number of compiled patterns that the process keeps. Compiling one takes milliseconds, and
/// programs use a few.
const MAX_KEPT_PATTERNS: usize = 16;

impl Pretokenizer {
    /// Compiles a pattern; with `None`, a text is one pre-token. The last patterns are kept
    /// compiled.
    pub fn new(pattern: Option<&str>) -> Result<Self> {
        static LAST: Mutex<Vec<(String, Pretokenizer)>> = Mutex::new(Vec::new());
        let Some(pattern) = pattern else { return Ok(Self { kind: Arc::new(Kind::Whole) }) };
        let known = |list: &[(String, Self)]| {
            list.iter().find(|(known, _)| known == pattern).map(|(_, compiled)| compiled.clone())
        };
        // Never waits: in a forked process, the lock may be held by a thread that does not exist.
        if let Ok(last) = LAST.try_lock()
            && let Some(compiled) = known(&last)
        {
            return Ok(compiled);
        }
        check_memory()?; // the compilers abort if memory runs out
        let compiled = Self { kind: Arc::new(compile(pattern)?) };
        let mut oldest = None; // dropped after the lock is released
        if let Ok(mut last) = LAST.try_lock()
            && known(&last).is_none()
        {
            oldest = (last.len() == MAX_KEPT_PATTERNS).then(|| last.remove(0));
            last.push((pattern.to_owned(), compiled.clone()));
        }
        drop(oldest);
        Ok(compiled)
    }

    /// Compiles a pattern for the backtracking engine, even if a faster one could run it; for
    /// comparisons.
    pub fn backtracking(pattern: &str) -> Result<Self> {
        let backtracker = Box::new(Backtracker::new(pattern)?);
        Ok(Self { kind: Arc::new(Kind::Backtracking(backtracker)) })
    }

    /// Compiles a pattern for a scanner that goes character by character, even if it could scan 64
    /// bytes at a time; for comparisons. `None` if no scanner can run the pattern.
    pub fn by_characters(pattern: &str) -> Option<Self> {
        let alternatives = normalize::alternatives(pattern)?;
        let scanner = Scanner::new(&Spec::new(&alternatives)?)?;
        let scanned = Scanned { scanner, bits: None, alternatives, automaton: Lazy::new() };
        Some(Self { kind: Arc::new(Kind::Scanner(Box::new(scanned))) })
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

    /// Splits a text. Steps are taken from `budget`; batches are in `bounds`.
    #[inline(always)]
    pub(crate) fn split<'s>(
        &'s self,
        text: &'s [u8],
        budget: &'s mut Budget,
        bounds: &'s mut Bounds,
    ) -> Result<Splitter<'s>> {
        let by = match &*self.kind {
            Kind::Whole => By::Whole,
            Kind::CkRuntime => By::CkRuntime,
            Kind::Scanner(scanned) => match &scanned.bits {
                Some(bits) => By::Blocks(Blocks::new(Scan::new(bits, &scanned.scanner, text))),
                None => By::Characters(&scanned.scanner, LastRun::default()),
            },
            Kind::Automaton(automaton) => {
                By::Matches(Matches::new(Finder::Automaton(automaton), text, budget)?)
            }
            Kind::Backtracking(backtracker) => {
                let finder = Finder::Backtracking(backtracker.search());
                By::Matches(Matches::new(finder, text, budget)?)
            }
        };
        Ok(Splitter::new(text, by, budget, bounds))
    }

    /// Where each pre-token ends, and whether it is a match or lies between matches.
    pub fn ends(&self, text: &[u8]) -> Result<Vec<(usize, bool)>> {
        let (mut budget, mut bounds) = (Budget::new(Watch::default()), Bounds::default());
        self.split(text, &mut budget, &mut bounds)?.ends()
    }

    #[cfg(test)]
    pub(crate) fn pieces<'t>(&self, text: &'t [u8]) -> Vec<&'t [u8]> {
        let (mut pieces, mut start) = (Vec::new(), 0);
        for (end, _) in self.ends(text).unwrap() {
            pieces.push(&text[start..end]);
            start = end;
        }
        pieces
    }

    /// The last cut point: an offset at which `text` may be split so that both sides alone have the
    /// pre-tokens that they have together, whatever follows `text`. `None` if there is none, or
    /// none can be proved.
    ///
    /// It is a character boundary, greater than 0, at most `limit`, and less than the length.
    /// `text` may end inside a character.
    pub fn last_cut(&self, text: &[u8], limit: usize) -> Option<usize> {
        if let Kind::CkRuntime = *self.kind {
            return ck_runtime::last_cut(text, limit.min(text.len().checked_sub(1)?));
        }
        let text = without_open_character(text);
        let limit = limit.min(text.len().checked_sub(1)?);
        if let Kind::Scanner(scanned) = &*self.kind
            && let Some(bits) = &scanned.bits
            && let Some(offset) = bits.last_certain_start(scanned.scanner.classes(), text, limit)
        {
            return Some(offset);
        }
        let cuts = self.automaton()?.cuts();
        let cuts = cuts.as_ref().as_ref()?;
        (1..=limit).rev().find(|&p| cuts.is_cut(text[p - 1], text[p]))
    }

    /// Whether [`Self::last_cut`] can ever find a cut point.
    pub fn has_cuts(&self) -> bool {
        matches!(*self.kind, Kind::CkRuntime)
            || self.automaton().is_some_and(|automaton| automaton.cuts().is_some())
    }

    /// The end of the last pre-token that is a cut point in the sense of [`Self::last_cut`]. It may
    /// be between any two characters, but finding it takes a pass over the text. 0 if there is
    /// none, or none can be proved.
    pub fn certain_end(&self, text: &[u8]) -> usize {
        if let Kind::CkRuntime = *self.kind {
            return ck_runtime::certain_end(text);
        }
        let Some(automaton) = self.automaton() else { return 0 };
        let text = without_open_character(text);
        let mut budget = Budget::new(Watch::default());
        budget.add(text.len());
        let Ok(stand_in) = StandIn::new(text) else { return 0 };
        stand_in.raw_len(0, automaton.certain_end(&stand_in.text, &mut budget))
    }

    fn automaton(&self) -> Option<Arc<Automaton>> {
        match &*self.kind {
            Kind::Automaton(automaton) => Some(Arc::clone(automaton)),
            Kind::Scanner(scanned) => {
                // The compiler aborts if memory runs out. Without cut points, work is only slower.
                if !scanned.automaton.is_made() && check_memory().is_err() {
                    return None;
                }
                let make = || Automaton::new(&scanned.alternatives).map(Arc::new);
                scanned.automaton.get_or_make(make).as_ref().clone()
            }
            Kind::Whole | Kind::CkRuntime | Kind::Backtracking(_) => None,
        }
    }
}

/// A string that is the same for all spellings of a pattern; `None` if no scanner runs it, or it is
/// not a valid pattern.
pub fn canonical_pattern(pattern: &str) -> Option<String> {
    let compiled = Pretokenizer::new(Some(pattern)).ok()?;
    // Only a scanner that passed its check is certain to run the same pattern.
    let Kind::Scanner(scanned) = &*compiled.kind else { return None };
    Spec::new(&scanned.alternatives).map(|spec| canonical::text(&spec))
}

/// The fastest engine that gives what the backtracking engine gives, which defines what a pattern
/// means and whether it is valid.
fn compile(pattern: &str) -> Result<Kind> {
    if pattern == ck_runtime::SOURCE {
        return Ok(Kind::CkRuntime);
    }
    let backtracker = Backtracker::new(pattern)?;
    let Some(alternatives) = normalize::alternatives(pattern) else {
        return Ok(Kind::Backtracking(Box::new(backtracker)));
    };
    if let Some(spec) = Spec::new(&alternatives)
        && let Some(scanner) = Scanner::new(&spec)
    {
        // If they disagree, do not trust the automaton either: it is built from the same parts.
        return Ok(if agree(&scanner, &backtracker) {
            let (bits, automaton) = (Bits::new(&spec, &scanner), Lazy::new());
            Kind::Scanner(Box::new(Scanned { scanner, bits, alternatives, automaton }))
        } else {
            Kind::Backtracking(Box::new(backtracker))
        });
    }
    Ok(match Automaton::new(&alternatives) {
        Some(automaton) => Kind::Automaton(Arc::new(automaton)),
        None => Kind::Backtracking(Box::new(backtracker)),
    })
}

/// Whether a scanner splits the texts designed for it as the backtracking engine does.
fn agree(scanner: &Scanner, backtracker: &Backtracker) -> bool {
    torture::texts(scanner.classes()).iter().all(|text| agree_on(text, scanner, backtracker))
}

fn agree_on(text: &str, scanner: &Scanner, backtracker: &Backtracker) -> bool {
    agree_with(text, scanner, Finder::Backtracking(backtracker.search()))
}

fn agree_with(text: &str, scanner: &Scanner, finder: Finder<'_>) -> bool {
    let (mut budget, mut bounds) = (Budget::new(Watch::default()), Bounds::default());
    let text = text.as_bytes();
    let Ok(matches) = Matches::new(finder, text, &mut budget) else { return false };
    let mut ends = |by| Splitter::new(text, by, &mut budget, &mut bounds).ends().ok();
    let expected = ends(By::Matches(matches));
    expected.is_some() && expected == ends(By::Characters(scanner, LastRun::default()))
}

/// A text without the incomplete character at its end, if more text could complete it.
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

#[cfg(test)]
mod tests;
