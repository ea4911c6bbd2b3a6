//! The automaton: one DFA over UTF-8 bytes for all alternatives of a pattern.
//!
//! All threads share one table. A search walks it byte by byte and remembers the last match, until no longer match is
//! possible. The next search reads the bytes after the match again: a few with common patterns, and never more than
//! the budget allows (`budget.rs`).

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::{Anchored, Input, MatchKind};

use super::budget::Budget;
use super::patterns::Alternative;
use crate::error::{Error, Result};
use crate::lazy::Lazy;

/// A pattern that needs more goes to the backtracking engine. Filling a table takes up to 0.1 s per MiB, however short
/// the pattern. The largest common pattern, o200k's, has an NFA of 150 KB and a table of 2.8 MB.
const NFA_LIMIT_BYTES: usize = 512 << 10;
const TABLE_LIMIT_BYTES: usize = 6 << 20;
const DETERMINIZE_LIMIT_BYTES: usize = 16 << 20;

/// Number of matches, from the last one back, that are tried as the certain end of a text.
const MAX_CANDIDATES: usize = 64;

pub(super) struct Automaton {
    dfa: dense::DFA<Vec<u32>>,
    start: StateID,
    /// By alternative: [`Alternative::gives_back`].
    gives_back: Vec<bool>,
    cuts: Lazy<Option<Cuts>>,
}

impl Automaton {
    /// Builds the table; `None` if it would be too large.
    pub(super) fn new(alternatives: &[Alternative]) -> Option<Self> {
        let hirs: Vec<_> = alternatives.iter().map(|a| a.hir.clone()).collect();
        let nfa = thompson::Compiler::new()
            .configure(thompson::Config::new().nfa_size_limit(Some(NFA_LIMIT_BYTES)))
            .build_many_from_hir(&hirs)
            .ok()?;
        let config = dense::Config::new()
            .start_kind(StartKind::Anchored)
            .match_kind(MatchKind::LeftmostFirst)
            .dfa_size_limit(Some(TABLE_LIMIT_BYTES))
            .determinize_size_limit(Some(DETERMINIZE_LIMIT_BYTES));
        let dfa = dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()?;
        // No alternative looks behind (`patterns/normalize.rs`), so all searches start in the same state.
        let start = dfa.start_state_forward(&Input::new("").anchored(Anchored::Yes)).ok()?;
        let gives_back = alternatives.iter().map(|a| a.gives_back).collect();
        Some(Self { dfa, start, gives_back, cuts: Lazy::new() })
    }

    /// The next match at or after `position`. Bytes read outside the match are charged to the budget.
    pub(super) fn find(
        &self,
        text: &str,
        position: usize,
        budget: &mut Budget,
    ) -> Result<Option<(usize, usize)>> {
        let mut start = position;
        while start < text.len() {
            let (end, seen) = self.match_at(text, start);
            let wasted = seen - end.unwrap_or(start);
            if !budget.take(wasted)? {
                return Err(too_far(start));
            }
            if let Some(end) = end {
                return Ok(Some((start, end)));
            }
            start += text[start..].chars().next().map_or(1, char::len_utf8);
        }
        Ok(None)
    }

    /// The end of the last match after which the text may be cut, whatever follows it: all matches up to there are
    /// decided before the text ends, and stay the same if it ends there. 0 if there is none.
    pub(super) fn certain_end(&self, text: &str, budget: &mut Budget) -> usize {
        // The start and end of the last matches, and how far the searches before each have read.
        let mut last: VecDeque<(usize, usize, usize)> = VecDeque::with_capacity(MAX_CANDIDATES);
        let (mut start, mut reach) = (0, 0);
        while start < text.len() {
            let (end, seen) = self.match_at(text, start);
            let wasted = seen - end.unwrap_or(start);
            if seen == text.len() || !budget.take(wasted).unwrap_or(false) {
                break;
            }
            if let Some(end) = end {
                if last.len() == MAX_CANDIDATES {
                    last.pop_front();
                }
                last.push_back((start, end, reach));
            }
            reach = reach.max(seen);
            start = match end {
                Some(end) => end,
                None => start + text[start..].chars().next().map_or(1, char::len_utf8),
            };
        }
        let certain = |&(start, end, reach): &(usize, usize, usize)| {
            (reach < end && self.match_at(&text[..end], start).0 == Some(end)).then_some(end)
        };
        last.iter().rev().find_map(certain).unwrap_or(0)
    }

    /// The end of the match that starts at `position`, if there is one, and the offset up to which it was searched.
    fn match_at(&self, text: &str, position: usize) -> (Option<usize>, usize) {
        let bytes = text.as_bytes();
        let mut state = self.start;
        let mut last = None; // the last match's state and end; a DFA reports a match one byte late
        let mut at = position;
        loop {
            let Some(&byte) = bytes.get(at) else {
                state = self.dfa.next_eoi_state(state);
                if self.dfa.is_match_state(state) {
                    last = Some((state, at));
                }
                break;
            };
            state = self.dfa.next_state(state, byte);
            if self.dfa.is_special_state(state) {
                if self.dfa.is_match_state(state) {
                    last = Some((state, at));
                } else if self.dfa.is_dead_state(state) {
                    break;
                }
            }
            at += 1;
        }
        let end = last.and_then(|(state, end)| {
            if self.gives_back(state) {
                return text[position..end].char_indices().next_back().map(|(at, _)| position + at);
            }
            Some(end)
        });
        (end, at)
    }

    fn gives_back(&self, match_state: StateID) -> bool {
        self.gives_back[self.dfa.match_pattern(match_state, 0).as_usize()]
    }

    /// The pairs of bytes between which text may be cut; computed once, from all states.
    pub(super) fn cuts(&self) -> Arc<Option<Cuts>> {
        self.cuts.get_or_make(|| self.find_cuts())
    }

    /// Proves the cut points. Text may be cut between bytes `a` and `b` if, from every state:
    ///
    /// - no match can continue after `a` and `b`, so no pre-token spans the cut;
    /// - `a` followed by `b` gives the same match as `a` followed by the end, so the left side alone ends as it does
    ///   in the whole text.
    ///
    /// The right side begins in the start state either way, because nothing looks behind. A span that no alternative
    /// matches could lie across the cut, so a pattern that leaves out any character has no cut points.
    fn find_cuts(&self) -> Option<Cuts> {
        let states = self.reachable_states();
        if !self.matches_every_character() {
            return None;
        }
        let can_continue: HashSet<StateID> =
            states.iter().copied().filter(|&s| self.can_continue(s)).collect();
        let mut cuts = Cuts { after: vec![[u64::MAX; 4]; 128] };
        for a in 0..128u8 {
            let row = &mut cuts.after[a as usize];
            // A cut point is a character boundary, so never before a continuation byte.
            for b in 0x80..0xC0u8 {
                clear(row, b);
            }
            let after_a: HashSet<StateID> = states
                .iter()
                .map(|&s| self.dfa.next_state(s, a))
                .filter(|&s| !self.dfa.is_dead_state(s))
                .collect();
            let mut after_a: Vec<StateID> = after_a.into_iter().collect();
            after_a.sort_unstable();
            for state in after_a {
                let at_end = self.outcome(self.dfa.next_eoi_state(state));
                for b in (0..128u8).chain(0xC0..=0xFF) {
                    let next = self.dfa.next_state(state, b);
                    if can_continue.contains(&next) || self.outcome(next) != at_end {
                        clear(row, b);
                    }
                }
            }
            // The pattern sees a lead byte outside valid UTF-8 as U+FFFF, whose lead byte is 0xEF.
            if !cuts.is_cut(a, 0xEF) {
                cuts.after[a as usize][3] = 0;
            }
        }
        Some(cuts)
    }

    fn reachable_states(&self) -> Vec<StateID> {
        let mut seen = HashSet::from([self.start]);
        let mut list = vec![self.start];
        let mut next = 0;
        while next < list.len() {
            let state = list[next];
            next += 1;
            for byte in 0..=255u8 {
                let to = self.dfa.next_state(state, byte);
                if !self.dfa.is_dead_state(to) && seen.insert(to) {
                    list.push(to);
                }
            }
        }
        list
    }

    /// Whether a state reports a match that ends before the last byte, and whether that match gives back.
    fn outcome(&self, state: StateID) -> Option<bool> {
        self.dfa.is_match_state(state).then(|| self.gives_back(state))
    }

    /// Whether a longer match is still possible.
    fn can_continue(&self, state: StateID) -> bool {
        !self.dfa.is_dead_state(self.dfa.next_eoi_state(state))
            || (0..=255u8).any(|byte| !self.dfa.is_dead_state(self.dfa.next_state(state, byte)))
    }

    /// Whether every character starts a match, whatever follows it.
    fn matches_every_character(&self) -> bool {
        CHARACTERS.iter().all(|bytes| {
            let step = |states: Vec<StateID>, (low, high): (u8, u8)| {
                let mut next: Vec<StateID> = states
                    .iter()
                    .flat_map(|&s| (low..=high).map(move |b| (s, b)))
                    .map(|(s, b)| self.dfa.next_state(s, b))
                    .collect();
                next.sort_unstable();
                next.dedup();
                next
            };
            let after = bytes.iter().fold(vec![self.start], |states, &range| step(states, range));
            after.iter().all(|&state| {
                self.dfa.is_match_state(self.dfa.next_eoi_state(state))
                    && (0..=255u8).all(|b| self.dfa.is_match_state(self.dfa.next_state(state, b)))
            })
        })
    }
}

#[cold]
fn too_far(position: usize) -> Error {
    Error::Pattern(format!(
        "the pattern looks too far ahead on this text (at byte {position}): it reads long runs again and again; \
         let an alternative take the run it looks through"
    ))
}

/// All well-formed UTF-8 characters, as ranges of their bytes.
const CHARACTERS: [&[(u8, u8)]; 9] = [
    &[(0x00, 0x7F)],
    &[(0xC2, 0xDF), (0x80, 0xBF)],
    &[(0xE0, 0xE0), (0xA0, 0xBF), (0x80, 0xBF)],
    &[(0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xED, 0xED), (0x80, 0x9F), (0x80, 0xBF)],
    &[(0xEE, 0xEF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF0, 0xF0), (0x90, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF1, 0xF3), (0x80, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF4, 0xF4), (0x80, 0x8F), (0x80, 0xBF), (0x80, 0xBF)],
];

/// Pairs of bytes between which text may be cut.
pub(super) struct Cuts {
    /// By the ASCII byte before the cut: the set of bytes after it.
    after: Vec<[u64; 4]>,
}

impl Cuts {
    pub(super) fn is_cut(&self, before: u8, after: u8) -> bool {
        self.after
            .get(before as usize)
            .is_some_and(|row| row[after as usize >> 6] >> (after & 63) & 1 == 1)
    }
}

fn clear(row: &mut [u64; 4], byte: u8) {
    row[byte as usize >> 6] &= !(1 << (byte & 63));
}
