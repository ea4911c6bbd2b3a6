//! What the first two characters of a pre-token decide, if they are ASCII: which atom matches, and
//! how the match continues.
//!
//! They decide nearly always. Characters are grouped into kinds, so the table is small enough for
//! L1. Where two characters do not decide, the atoms are tried in turn.

use super::matcher::{Cased, Literals, Matcher, Run, Space};
use crate::pretoken::patterns::spec::Step;

/// What to do at two characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Action {
    pub(super) op: Op,
    /// The number of characters that are known to be part of the match.
    pub(super) skip: u8,
    /// The index of the atom that matches.
    pub(super) atom: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Op {
    /// The plan's word matches both characters, and its body may continue after them.
    Word,
    /// The atom matches, and its body may continue after the known characters.
    Body,
    /// The first character is a match.
    One,
    /// A cased atom matches, and its upper run, of which one character is known, may continue after
    /// the known characters. The character before that one, if any, is not part of a word, so no
    /// shorter match is possible.
    Upper,
    /// No atom before this one matches: start with it.
    Atom,
    /// Try all atoms.
    Try,
    /// No atom matches here.
    Unmatched,
}

/// The limit on kinds of ASCII characters. Characters of further kinds decide nothing.
const KINDS: usize = 64;
const UNDECIDED: Action = Action { op: Op::Try, skip: 0, atom: 0 };

pub(super) struct Plan {
    /// The most common atom: the one that matches a space and a letter, if the two decide.
    pub(super) word: u8,
    kind_of: [u8; 256],
    actions: Box<[Action; KINDS * KINDS]>,
}

impl Plan {
    /// The plan for ASCII characters of these classes. All other bytes are of kind 0, which decides
    /// nothing.
    pub(super) fn new(bytes: &[u32; 256], atoms: &[Matcher]) -> Self {
        let mut kinds: Vec<u32> = Vec::new();
        let mut kind_of = [0; 256];
        for byte in 0..128 {
            let bits = bytes[byte];
            let known = kinds.iter().position(|kind| *kind == bits);
            kind_of[byte] = match known {
                Some(kind) => kind as u8 + 1,
                None if kinds.len() + 1 < KINDS => {
                    kinds.push(bits);
                    kinds.len() as u8
                }
                None => 0,
            };
        }
        let mut actions = Box::new([UNDECIDED; KINDS * KINDS]);
        for (i, &first) in kinds.iter().enumerate() {
            for (j, &second) in kinds.iter().enumerate() {
                actions[(i + 1) * KINDS + j + 1] = decide(atoms, first, second);
            }
        }
        let mut plan = Self { word: 0, kind_of, actions };
        let typical = [(b' ', b'e'), (b'e', b'e')].map(|(a, b)| plan.action(a, b));
        if let Some(action) = typical.iter().find(|action| action.op == Op::Body) {
            plan.word = action.atom;
            for action in plan.actions.iter_mut() {
                if (action.op, action.skip, action.atom) == (Op::Body, 2, plan.word) {
                    action.op = Op::Word;
                }
            }
        }
        plan
    }

    /// What to do at these two bytes.
    #[inline(always)]
    pub(super) fn action(&self, first: u8, second: u8) -> Action {
        let kinds = (self.kind_of[first as usize] as usize, self.kind_of[second as usize] as usize);
        self.actions[(kinds.0 * KINDS + kinds.1) % (KINDS * KINDS)]
    }
}

/// The action for a character of the classes `first` followed by one of the classes `second`: that
/// of the first atom that matches, unless an earlier one might.
fn decide(atoms: &[Matcher], first: u32, second: u32) -> Action {
    for (number, atom) in atoms.iter().enumerate() {
        let (op, skip) = match atom {
            Matcher::Literals(literals) => decide_literals(literals, first, second),
            Matcher::Run(run) => decide_run(run, first, second),
            Matcher::Cased(cased) => decide_cased(cased, first, second),
            Matcher::Space(space) => decide_space(space, first, second),
        };
        match op {
            Op::Unmatched => continue,
            Op::Try => return UNDECIDED,
            op => return Action { op, skip, atom: number as u8 },
        }
    }
    Action { op: Op::Unmatched, skip: 0, atom: 0 }
}

fn decide_literals(literals: &Literals, first: u32, second: u32) -> (Op, u8) {
    let is_possible = literals.sequences.iter().any(|sequence| match sequence[..] {
        [] => false,
        [only] => first & only != 0,
        [one, two, ..] => first & one != 0 && second & two != 0,
    });
    (if is_possible { Op::Try } else { Op::Unmatched }, 0)
}

fn decide_run(run: &Run, first: u32, second: u32) -> (Op, u8) {
    let (in_prefix, in_body) = (first & run.prefix != 0, first & run.body.bit != 0);
    let continues = second & run.body.bit != 0;
    let is_bare = run.tail.is_none() && run.suffix.is_none();
    match run.max {
        None if in_prefix && continues => (Op::Body, 2),
        Some(_) if in_prefix && continues => (Op::Atom, 0),
        _ if run.is_prefix_required || !in_body => (Op::Unmatched, 0),
        // From here on, the match starts with its body.
        Some(1) if is_bare => (Op::One, 1),
        _ if !continues && is_bare => (Op::One, 1),
        _ if !continues => (Op::Body, 1),
        None => (Op::Body, 2),
        Some(_) => (Op::Atom, 0),
    }
}

fn decide_cased(cased: &Cased, first: u32, second: u32) -> (Op, u8) {
    let (upper, lower) = (cased.upper.bit, cased.lower.bit);
    let is_word = |bits: u32| bits & (upper | lower) != 0;
    let in_prefix = first & cased.prefix != 0;
    // Where the word starts in the preferred way to match.
    let (start, skip) = if in_prefix && is_word(second) { (second, 2) } else { (first, 1) };
    let is_preferred = in_prefix == (skip == 2);
    if !is_word(start) {
        (Op::Unmatched, 0)
    } else if is_preferred && start & upper == 0 {
        (Op::Body, skip) // `U*` takes nothing
    } else if is_preferred && start & lower == 0 && (skip == 1 || !is_word(first)) {
        (Op::Upper, skip)
    } else {
        (Op::Atom, 0)
    }
}

fn decide_space(space: &Space, first: u32, second: u32) -> (Op, u8) {
    if first & space.class == 0 {
        return (Op::Unmatched, 0);
    }
    if second & space.class != 0 {
        return (Op::Atom, 0);
    }
    // The run is this one character, and the text does not end with it.
    let takes_it = space.steps.iter().any(|step| match step {
        Step::AtEnd | Step::AllButOne => false,
        Step::ToLast(_) => first & space.last != 0,
        Step::All | Step::One => true,
    });
    (if takes_it { Op::One } else { Op::Unmatched }, 1)
}
