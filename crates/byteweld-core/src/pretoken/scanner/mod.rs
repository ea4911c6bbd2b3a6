//! The plain scanner: finds the pre-tokens of a recognized pattern one after another, eight bytes
//! at a time inside a word and character by character elsewhere.
//!
//! The first two characters of a pre-token nearly always decide which atom matches (`plan.rs`); if
//! not, the atoms are tried in turn (`matcher.rs`). The text need not be UTF-8: a byte that is not
//! part of a character counts as a character of no class. Time is linear: an atom that fails has
//! read a few characters, or a run of white space, which is kept in [`LastRun`].

mod lanes;
mod matcher;
mod plan;

use super::characters::Classes;
use super::patterns::Spec;
use super::patterns::spec::Step;
use matcher::{Cased, Class, Literals, Matcher, Run, Space, Word};
use plan::{Action, Op, Plan};

pub(super) struct Scanner {
    classes: Classes,
    plan: Plan,
    word: Word,
    atoms: Vec<Matcher>,
    /// By atom: the classes it can start with.
    firsts: Vec<u32>,
}

/// The last run of white space that was read, for all offsets inside it.
#[derive(Default)]
pub(super) struct LastRun {
    end: usize,
    /// Where its last character starts.
    last_start: usize,
    /// Where the last character of the class for [`Step::ToLast`] ends; 0 if there is none.
    last_end: usize,
}

impl Scanner {
    /// A scanner for a spec; `None` if it has too many atoms or its classes cannot be tabulated.
    pub(super) fn new(spec: &Spec) -> Option<Self> {
        let classes = Classes::new(&spec.classes)?;
        if spec.atoms.len() > 64 {
            return None;
        }
        let bytes = &classes.bytes;
        let atoms: Vec<Matcher> = spec.atoms.iter().map(|atom| Matcher::new(atom, bytes)).collect();
        let firsts = atoms.iter().map(Matcher::first).collect();
        let plan = Plan::new(bytes, &atoms);
        let word = atoms.get(plan.word as usize).map_or_else(Word::default, Matcher::word);
        Some(Self { classes, plan, word, atoms, firsts })
    }

    /// The classes of the spec.
    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The end of the pre-token that starts at `at`, and whether it is a match.
    pub(super) fn next(&self, text: &[u8], at: usize, last_run: &mut LastRun) -> (usize, bool) {
        let end = self.match_end(text, at, last_run);
        if end > at { (end, true) } else { (self.next_match(text, at, last_run), false) }
    }

    /// The end of a contraction that starts at `at`, or `at`.
    #[inline(never)]
    pub(super) fn contraction_end(&self, text: &[u8], at: usize) -> usize {
        match self.atoms.first() {
            Some(Matcher::Literals(literals)) => self.literals_end(literals, text, at),
            Some(Matcher::Cased(cased)) => self.suffix_end(cased.suffix.as_ref(), text, at),
            _ => at,
        }
    }

    /// The lengths, in characters, of the contractions whose second character is an ASCII letter.
    pub(super) fn contraction_lengths(&self, letter: u8) -> impl Iterator<Item = usize> + Clone {
        let literals = match self.atoms.first() {
            Some(Matcher::Literals(literals)) => Some(literals),
            Some(Matcher::Cased(cased)) => cased.suffix.as_ref(),
            _ => None,
        };
        let bits = self.classes.bytes[usize::from(letter)];
        let sequences = literals.map_or(&[][..], |literals| &literals.sequences);
        let is_it =
            move |sequence: &&Vec<u32>| sequence.get(1).is_some_and(|second| bits & second != 0);
        sequences.iter().filter(is_it).map(Vec::len)
    }

    /// The start of the next match, or the end of the text; none starts at `at`.
    #[inline(never)]
    fn next_match(&self, text: &[u8], mut at: usize, last_run: &mut LastRun) -> usize {
        while let Some((_, len)) = self.classes.at(text, at) {
            at += len;
            if at < text.len() && self.match_end(text, at, last_run) > at {
                break;
            }
        }
        at
    }

    /// The end of the match at `at`, or `at` if there is none.
    ///
    /// Most matches are words. Their lanes are always the same, so the end of a word depends on the
    /// text alone, and a well-predicted branch takes the lookup in the plan off the critical path.
    #[inline(always)]
    fn match_end(&self, text: &[u8], at: usize, last_run: &mut LastRun) -> usize {
        // At the end of the text, use a byte that decides nothing.
        let second = text.get(at + 1).copied().unwrap_or(0xFF);
        let action = self.plan.action(text[at], second);
        if action.op != Op::Word {
            return self.rare_match_end(action, text, at, last_run);
        }
        let mut end = at + 2;
        while let Some(bytes) = text.get(end..).and_then(|rest| rest.first_chunk()) {
            let run = self.word.lanes.run_len(*bytes);
            end += run;
            if run < 8 {
                break;
            }
        }
        match text.get(end) {
            Some(&byte) if self.classes.bytes[byte as usize] & self.word.or_next == 0 => end,
            _ => self.finish(self.plan.word, text, end),
        }
    }

    /// The same for a match that is not a word.
    #[inline(always)]
    fn rare_match_end(
        &self,
        action: Action,
        text: &[u8],
        at: usize,
        last_run: &mut LastRun,
    ) -> usize {
        let known = at + action.skip as usize;
        match action.op {
            Op::One => at + 1,
            Op::Word | Op::Body => self.finish(action.atom, text, known),
            Op::Upper => self.upper_match_end(action.atom, text, known),
            Op::Atom => self.try_one(action.atom, text, at, last_run),
            Op::Try => self.try_all(text, at, last_run),
            Op::Unmatched => at,
        }
    }

    /// The end of a cased match whose upper run continues at `known`; see [`Op::Upper`].
    #[inline(never)]
    fn upper_match_end(&self, atom: u8, text: &[u8], known: usize) -> usize {
        let Some(Matcher::Cased(cased)) = self.atoms.get(atom as usize) else { return known };
        let upper_end = self.run_end(text, known, cased.upper);
        let mut end = self.run_end(text, upper_end, cased.lower);
        if end == upper_end {
            let last = self.last_lower_end(cased, text, known, upper_end);
            end = if last > known { last } else { upper_end };
        }
        self.suffix_end(cased.suffix.as_ref(), text, end)
    }

    /// The end of the match at `at`, by trying all atoms in turn.
    #[inline(never)]
    fn try_all(&self, text: &[u8], at: usize, last_run: &mut LastRun) -> usize {
        let Some((bits, len)) = self.classes.at(text, at) else { return at };
        for (atom, first) in self.atoms.iter().zip(&self.firsts) {
            if bits & first != 0 {
                let end = self.atom_end(atom, text, at, bits, len, last_run);
                if end > at {
                    return end;
                }
            }
        }
        at
    }

    /// The same, starting with the first atom that can match.
    #[inline(never)]
    fn try_one(&self, atom: u8, text: &[u8], at: usize, last_run: &mut LastRun) -> usize {
        let (Some(atom), Some((bits, len))) =
            (self.atoms.get(atom as usize), self.classes.at(text, at))
        else {
            return at;
        };
        let end = self.atom_end(atom, text, at, bits, len, last_run);
        if end > at { end } else { self.try_all(text, at, last_run) }
    }

    /// The end of an atom's match; `bits` and `len` are those of the first character.
    #[inline(always)]
    fn atom_end(
        &self,
        atom: &Matcher,
        text: &[u8],
        at: usize,
        bits: u32,
        len: usize,
        last_run: &mut LastRun,
    ) -> usize {
        match atom {
            Matcher::Run(run) => self.whole_run_end(run, text, at, bits, len),
            Matcher::Cased(cased) => self.cased_end(cased, text, at, bits, len),
            Matcher::Space(space) => self.space_end(space, text, at, len, last_run),
            Matcher::Literals(literals) => self.literals_end(literals, text, at),
        }
    }

    /// The end of a match whose body has reached `at` and may continue.
    #[inline(never)]
    fn finish(&self, atom: u8, text: &[u8], at: usize) -> usize {
        match self.atoms.get(atom as usize) {
            Some(Matcher::Run(run)) => {
                let end = match run.max {
                    None => self.run_end(text, at, run.body),
                    Some(_) => at, // the plan knows that it ends here
                };
                self.run_finish(run, text, end)
            }
            Some(Matcher::Cased(cased)) => {
                let end = self.run_end(text, at, cased.lower);
                self.suffix_end(cased.suffix.as_ref(), text, end)
            }
            _ => at,
        }
    }

    fn whole_run_end(&self, run: &Run, text: &[u8], at: usize, bits: u32, len: usize) -> usize {
        if bits & run.prefix != 0 {
            let end = self.body_end(run, text, at + len);
            if end > at + len {
                return self.run_finish(run, text, end);
            }
        }
        if run.is_prefix_required || bits & run.body.bit == 0 {
            return at;
        }
        let end = self.body_end(run, text, at);
        self.run_finish(run, text, end)
    }

    #[inline(always)]
    fn body_end(&self, run: &Run, text: &[u8], at: usize) -> usize {
        match run.max {
            None => self.run_end(text, at, run.body),
            Some(max) => self.short_run_end(text, at, run.body.bit, max),
        }
    }

    #[inline(always)]
    fn run_finish(&self, run: &Run, text: &[u8], body_end: usize) -> usize {
        let end = match run.tail {
            Some(tail) => self.run_end(text, body_end, tail),
            None => body_end,
        };
        self.suffix_end(run.suffix.as_ref(), text, end)
    }

    /// The end of the longest run of a class, of at most `max` characters.
    fn short_run_end(&self, text: &[u8], mut at: usize, bit: u32, max: u32) -> usize {
        for _ in 0..max {
            match self.classes.at(text, at) {
                Some((bits, len)) if bits & bit != 0 => at += len,
                _ => break,
            }
        }
        at
    }

    /// The end of the longest run of a class.
    #[inline(always)]
    fn run_end(&self, text: &[u8], mut at: usize, class: Class) -> usize {
        if let Some(lanes) = class.lanes {
            while let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk()) {
                let run = lanes.run_len(*bytes);
                at += run;
                if run < 8 {
                    break;
                }
            }
        }
        // Usually the run has ended. It may continue at the end of the text, or with a character
        // that is not ASCII.
        match text.get(at) {
            Some(&byte) if self.classes.bytes[byte as usize] & class.bit == 0 => at,
            _ => self.slow_run_end(text, at, class.bit),
        }
    }

    /// The same, character by character.
    fn slow_run_end(&self, text: &[u8], mut at: usize, bit: u32) -> usize {
        while let Some((bits, len)) = self.classes.at(text, at) {
            if bits & bit == 0 {
                break;
            }
            at += len;
        }
        at
    }

    #[inline(always)]
    fn cased_end(&self, cased: &Cased, text: &[u8], at: usize, bits: u32, len: usize) -> usize {
        let end = self.word_end(cased, text, at, bits, len);
        if end > at { self.suffix_end(cased.suffix.as_ref(), text, end) } else { at }
    }

    #[inline(always)]
    fn word_end(&self, cased: &Cased, text: &[u8], at: usize, bits: u32, len: usize) -> usize {
        let body = at + len;
        let (mut after_prefix, mut without_prefix) = (body, at); // where the runs of `U` end
        if bits & cased.prefix != 0 {
            let (end, upper_end) = self.upper_lower_end(cased, text, body);
            if end > body {
                return end;
            }
            after_prefix = upper_end;
        }
        if bits & (cased.upper.bit | cased.lower.bit) != 0 {
            let (end, upper_end) = self.upper_lower_end(cased, text, at);
            if end > at {
                return end;
            }
            without_prefix = upper_end;
        }
        // No `L` follows either run of `U`, or it would have matched above. So `L*` takes nothing.
        if after_prefix > body { after_prefix } else { without_prefix }
    }

    /// The end of `U*L+` at `at` (`at` if it fails), and the end of the run of `U`.
    fn upper_lower_end(&self, cased: &Cased, text: &[u8], at: usize) -> (usize, usize) {
        let upper_end = self.run_end(text, at, cased.upper);
        let end = self.run_end(text, upper_end, cased.lower);
        if end > upper_end || upper_end == at {
            return (end, upper_end);
        }
        (self.last_lower_end(cased, text, at, upper_end), upper_end)
    }

    /// The end of the last `L` between `at` and `end`, or `at` if there is none.
    fn last_lower_end(&self, cased: &Cased, text: &[u8], at: usize, end: usize) -> usize {
        if cased.is_ascii_split && text[at..end].is_ascii() {
            return at;
        }
        let (mut offset, mut last) = (at, at);
        while offset < end {
            let Some((bits, len)) = self.classes.at(text, offset) else { break };
            offset += len;
            if bits & cased.lower.bit != 0 {
                last = offset;
            }
        }
        last
    }

    #[inline(always)]
    fn space_end(
        &self,
        space: &Space,
        text: &[u8],
        at: usize,
        len: usize,
        last_run: &mut LastRun,
    ) -> usize {
        if last_run.end <= at {
            *last_run = self.read_run(space, text, at);
        }
        let run = &*last_run;
        for step in &space.steps {
            let end = match step {
                Step::AtEnd if run.end == text.len() => run.end,
                Step::ToLast(_) if run.last_end > at => run.last_end,
                Step::AllButOne => run.last_start,
                Step::All => run.end,
                Step::One => at + len,
                _ => at,
            };
            if end > at {
                return end;
            }
        }
        at
    }

    /// Reads the run of white space that starts at `at`.
    #[inline(always)]
    fn read_run(&self, space: &Space, text: &[u8], mut at: usize) -> LastRun {
        let mut run = LastRun { end: at, last_start: at, last_end: 0 };
        while let Some((bits, len)) = self.classes.at(text, at) {
            if bits & space.class == 0 {
                break;
            }
            run.last_start = at;
            at += len;
            if bits & space.last != 0 {
                run.last_end = at;
            }
        }
        run.end = at;
        run
    }

    /// The end of an optional suffix at `at`.
    #[inline(always)]
    fn suffix_end(&self, suffix: Option<&Literals>, text: &[u8], at: usize) -> usize {
        match (suffix, text.get(at)) {
            (Some(suffix), Some(&byte))
                if self.classes.bytes[byte as usize] & suffix.first != 0 =>
            {
                self.literals_end(suffix, text, at)
            }
            _ => at,
        }
    }

    /// The end of the first sequence that matches at `at`, or `at` if none does.
    #[inline(never)]
    fn literals_end(&self, literals: &Literals, text: &[u8], at: usize) -> usize {
        for sequence in &literals.sequences {
            let mut end = at;
            let is_match = sequence.iter().all(|bit| match self.classes.at(text, end) {
                Some((bits, len)) if bits & bit != 0 => {
                    end += len;
                    true
                }
                _ => false,
            });
            if is_match {
                return end;
            }
        }
        at
    }
}
