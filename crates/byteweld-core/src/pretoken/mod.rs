//! Text to pre-tokens.
//!
//! A pattern splits text: each non-empty match is a pre-token, and so is the text between two
//! matches, so nothing is lost. `patterns/` reads and recognizes patterns, and `characters/` knows
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

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::lazy::Lazy;
use crate::reserve::{check_memory, reserve};
use crate::watch::Watch;
use automaton::Automaton;
use backtracking::Backtracker;
use bits::{Bits, MAX_ENDS, Scan};
pub(crate) use budget::Budget;
use characters::STAND_IN;
use patterns::{Alternative, Spec, canonical, normalize, torture};
use scanner::Scanner;

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

/// The greatest bound. The highest bit is free for marks of those who use bounds.
pub(crate) const MAX_BOUND: u32 = i32::MAX as u32;

/// A buffer for the bounds of a batch of pre-tokens: 0, and the end of each.
pub(crate) struct Bounds([u32; 1 + MAX_ENDS]);

impl Default for Bounds {
    fn default() -> Self {
        Self([0; 1 + MAX_ENDS])
    }
}

/// A batch of pre-tokens that are found one by one covers about this many bytes at most.
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 20;

/// The error of a pre-token that bounds cannot express.
#[cold]
pub(crate) fn too_long() -> Error {
    Error::Pattern("a pre-token is longer than 2 GiB, which is more than can be merged".to_owned())
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

    /// Calls `each` with every pre-token in order, until it breaks.
    ///
    /// To the pattern, a byte that is not part of valid UTF-8 is a character that is not a letter,
    /// digit, mark or space. (The pattern over bytes knows no characters.)
    #[inline]
    pub fn for_each(
        &self,
        text: &[u8],
        each: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.for_each_span(text, &mut |span, _| each(span))
    }

    /// Calls `each` with batches of pre-tokens in order, until it breaks: the offset of the first
    /// one, and all bounds relative to it. Steps are taken from `budget`.
    #[inline]
    pub(crate) fn for_each_batch(
        &self,
        text: &[u8],
        budget: &mut Budget,
        bounds: &mut Bounds,
        each: &mut impl FnMut(usize, &[u32]) -> ControlFlow<()>,
    ) -> Result<()> {
        if let Kind::Scanner(scanned) = &*self.kind
            && let Some(bits) = &scanned.bits
        {
            return scan_batches(Scan::new(bits, &scanned.scanner, text), bounds, each);
        }
        let (mut start, mut end, mut count) = (0, 0, 0);
        let mut is_too_long = false;
        self.for_each_span_within(text, budget, &mut |span, _| {
            if count + 1 == bounds.0.len() || end - start > MAX_BATCH_BYTES {
                let full = std::mem::take(&mut count);
                each(std::mem::replace(&mut start, end), &bounds.0[..=full])?;
            }
            end += span.len();
            let relative = u32::try_from(end - start).ok().filter(|&end| end <= MAX_BOUND);
            let Some(relative) = relative else {
                (is_too_long, count) = (true, 0);
                return ControlFlow::Break(());
            };
            count += 1;
            bounds.0[count] = relative;
            ControlFlow::Continue(())
        })?;
        if is_too_long {
            return Err(too_long());
        }
        if count > 0 {
            let _ = each(start, &bounds.0[..=count]); // the last batch
        }
        Ok(())
    }

    /// Calls `each` with every pre-token in order, and whether it is a match or lies between
    /// matches, until it breaks.
    #[inline]
    pub fn for_each_span(
        &self,
        text: &[u8],
        each: &mut impl FnMut(&[u8], bool) -> ControlFlow<()>,
    ) -> Result<()> {
        self.for_each_span_within(text, &mut Budget::new(Watch::default()), each)
    }

    /// The same for a part of a text whose parts share a budget.
    #[inline]
    pub(crate) fn for_each_span_within(
        &self,
        text: &[u8],
        budget: &mut Budget,
        each: &mut impl FnMut(&[u8], bool) -> ControlFlow<()>,
    ) -> Result<()> {
        match &*self.kind {
            _ if text.is_empty() => Ok(()),
            Kind::Whole => {
                let _ = each(text, true);
                Ok(())
            }
            Kind::Scanner(scanned) => {
                let Some(bits) = &scanned.bits else {
                    let each = &mut |start: usize, end, is_match| each(&text[start..end], is_match);
                    scanned.scanner.for_each(text, each);
                    return Ok(());
                };
                let scan = Scan::new(bits, &scanned.scanner, text);
                scan_batches(scan, &mut Bounds::default(), &mut |base, bounds| {
                    // Every character is part of a match.
                    bounds.windows(2).try_for_each(|bounds| {
                        each(&text[base + bounds[0] as usize..base + bounds[1] as usize], true)
                    })
                })
            }
            Kind::CkRuntime => {
                ck_runtime::for_each(text, &mut |start, end, is_match| {
                    each(&text[start..end], is_match)
                });
                Ok(())
            }
            Kind::Automaton(automaton) => for_each_by_regex(text, each, |text, each| {
                budget.add(text.len());
                for_each_match(text, |position| automaton.find(text, position, budget), each)
            }),
            Kind::Backtracking(backtracker) => for_each_by_regex(text, each, |text, each| {
                budget.add(text.len());
                let mut search = backtracker.search(text);
                for_each_match(text, |position| search.find(position, budget), each)
            }),
        }
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

/// Calls `each` with the batches of a scan, until it breaks.
#[inline]
fn scan_batches(
    mut scan: Scan<'_>,
    bounds: &mut Bounds,
    each: &mut impl FnMut(usize, &[u32]) -> ControlFlow<()>,
) -> Result<()> {
    loop {
        let start = scan.start();
        let [_, ends @ ..] = &mut bounds.0;
        let count = scan.fill(ends).ok_or_else(too_long)?;
        if count == 0 || each(start, &bounds.0[..=count]).is_break() {
            return Ok(());
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
    let (mut search, mut budget) = (backtracker.search(text), Budget::new(Watch::default()));
    budget.add(text.len());
    agree_with(text, scanner, |position| search.find(position, &mut budget))
}

fn agree_with(
    text: &str,
    scanner: &Scanner,
    find: impl FnMut(usize) -> Result<Option<(usize, usize)>>,
) -> bool {
    let mut spans = Vec::new();
    scanner.for_each(text.as_bytes(), &mut |_, end, is_match| {
        spans.push((end, is_match));
        ControlFlow::Continue(())
    });
    let mut expected = Vec::new();
    let outcome = for_each_match(text, find, &mut |_, end, is_match| {
        expected.push((end, is_match));
        ControlFlow::Continue(())
    });
    outcome.is_ok() && spans == expected
}

/// Splits any text with a `search` that needs valid UTF-8.
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
                let span = &text[raw_start..raw_end];
                raw_start = raw_end;
                each(span, is_match)
            })
        }
    }
}

/// Calls `each` with every match that `find` gives, and with the text between them.
fn for_each_match(
    text: &str,
    mut find: impl FnMut(usize) -> Result<Option<(usize, usize)>>,
    each: &mut dyn FnMut(usize, usize, bool) -> ControlFlow<()>,
) -> Result<()> {
    let mut position = 0; // where the next search starts
    let mut unmatched = 0; // where the last match ended
    while position < text.len() {
        let Some((start, end)) = find(position)? else { break };
        if start == end {
            // An empty match splits nothing.
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

/// A text in which every byte that is not UTF-8 is replaced by one character of no class.
struct StandIn {
    text: String,
    /// The offsets of the replacements in `text`, ascending.
    offsets: Vec<usize>,
}

impl StandIn {
    fn new(raw: &[u8]) -> Result<Self> {
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
        Ok(Self { text: String::from_utf8(text).unwrap_or_default(), offsets })
    }

    /// The number of bytes of the original that a range of `text` stands for.
    fn raw_len(&self, start: usize, end: usize) -> usize {
        let first = self.offsets.partition_point(|&offset| offset < start);
        let last = self.offsets.partition_point(|&offset| offset < end);
        end - start - (last - first) * (STAND_IN.len_utf8() - 1)
    }
}

#[cfg(test)]
mod tests;
