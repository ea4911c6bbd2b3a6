//! Runs a spec over bytes, character by character where it must and eight bytes at a time where it can.
//!
//! The text need not be UTF-8: a byte that is not part of a character is one character of no class
//! (`classes.rs`). Nothing is allocated and nothing is copied. Time is linear: an atom that fails has looked at
//! a few characters, or at a run of white space that is remembered until it ends.

use std::cell::Cell;
use std::ops::ControlFlow;

use super::blocks::{Blocks, Chunk};
use super::classes::Classes;
use super::lanes::Lanes;
use super::masks::Work;
use super::plan::{Action, Op, Plan};
use super::spec::{self, Atom, ClassId, Prefix, Spec, Step};

pub(super) struct Scanner {
    classes: Classes,
    plan: Plan,
    word: Word,
    atoms: Vec<Matcher>,
    /// By atom: the classes that it can start with.
    firsts: Vec<u32>,
    /// For the patterns of the family that it knows.
    blocks: Option<Blocks>,
}

/// How far a place to cut is looked for before the automaton is asked.
const CUT_WITHIN: usize = 1 << 12;

/// A shorter text is not worth a chunk.
const WORTH_A_CHUNK: usize = 32;

/// An atom whose classes are bits.
pub(super) enum Matcher {
    Literals(Literals),
    Run(Run),
    Cased(Cased),
    Space(Space),
}

pub(super) struct Literals {
    pub(super) sequences: Vec<Vec<u32>>,
    /// The classes that they start with.
    first: u32,
}

pub(super) struct Run {
    pub(super) prefix: u32,
    pub(super) is_prefix_required: bool,
    pub(super) body: Class,
    pub(super) max: Option<u32>,
    pub(super) tail: Option<Class>,
    pub(super) suffix: Option<Literals>,
}

pub(super) struct Cased {
    pub(super) prefix: u32,
    pub(super) upper: Class,
    pub(super) lower: Class,
    /// No ASCII character is in both.
    is_ascii_split: bool,
    suffix: Option<Literals>,
}

pub(super) struct Space {
    pub(super) class: u32,
    /// The class that [`Step::ToLast`] looks for.
    pub(super) last: u32,
    pub(super) steps: Vec<Step>,
}

/// A class, and how to find its ASCII run in eight bytes where that is possible.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) bit: u32,
    lanes: Option<Lanes>,
}

/// The run of the plan's word.
#[derive(Clone, Copy, Default)]
struct Word {
    lanes: Lanes,
    /// The classes of its characters and of those that may follow in the same match.
    or_next: u32,
}

/// The run of white space that was walked last; it serves all places inside of it.
#[derive(Default)]
pub(super) struct LastRun {
    end: usize,
    /// Where its last character starts.
    last_start: usize,
    /// Where the last character of the class that steps look for ends; 0 if there is none.
    last_end: usize,
}

/// Takes pre-tokens, in order.
pub(crate) trait Pieces {
    /// Takes one, and whether it is a match.
    fn piece(&mut self, start: usize, end: usize, is_match: bool) -> ControlFlow<()>;

    /// Takes several matches: the first starts at `start`, and they end so many bytes behind that, at most
    /// [`super::CHUNK`].
    #[inline(always)]
    fn pieces(&mut self, start: usize, ends: &[u16]) -> ControlFlow<()> {
        let mut from = start;
        for &end in ends {
            let end = start + usize::from(end);
            self.piece(from, end, true)?;
            from = end;
        }
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(usize, usize, bool) -> ControlFlow<()>> Pieces for F {
    #[inline(always)]
    fn piece(&mut self, start: usize, end: usize, is_match: bool) -> ControlFlow<()> {
        self(start, end, is_match)
    }
}

thread_local! {
    /// A chunk of the text before, to be written over: emptying one costs as much as a hundred bytes of text.
    static CHUNK: Cell<Option<Box<Chunk>>> = const { Cell::new(None) };
}

/// Gives all pre-tokens of a text, a chunk at a time.
struct ByBlocks<'b, P> {
    scanner: &'b Scanner,
    blocks: &'b Blocks,
    text: &'b [u8],
    pieces: &'b mut P,
}

impl<P: Pieces> Work for ByBlocks<'_, P> {
    type Result = ();

    #[inline(always)]
    fn run(self) {
        let mut chunk = CHUNK.take().unwrap_or_else(|| Box::new(Chunk::EMPTY));
        self.run_with(&mut chunk);
        CHUNK.set(Some(chunk));
    }
}

impl<P: Pieces> ByBlocks<'_, P> {
    #[inline(always)]
    fn run_with(self, chunk: &mut Chunk) {
        let Self { scanner, blocks, text, pieces } = self;
        let mut last_run = LastRun::default();
        let mut at = 0;
        let mut no_chunk_before = 0;
        while at < text.len() {
            if at >= no_chunk_before && text.len() - at >= WORTH_A_CHUNK {
                let contraction_end = |at| scanner.contraction_end(text, at);
                match blocks.starts(&scanner.classes, text, at, chunk, &contraction_end) {
                    Ok(()) => {
                        if pieces.pieces(at, chunk.ends()).is_break() {
                            return;
                        }
                        at += chunk.starts.end;
                        continue;
                    }
                    Err(examined) => no_chunk_before = at + examined,
                }
            }
            let (end, is_match) = scanner.next(text, at, &mut last_run);
            if pieces.piece(at, end, is_match).is_break() {
                return;
            }
            at = end;
        }
    }
}

impl Scanner {
    /// A scanner for a spec; `None` if its classes are too odd.
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
        let blocks = Blocks::new(spec, &classes);
        Some(Self { classes, plan, word, atoms, firsts, blocks })
    }

    /// The same with blocks made in one way, or without blocks.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn in_tier(mut self, tier: Option<super::masks::Tier>) -> Self {
        self.blocks = self.blocks.zip(tier).map(|(blocks, tier)| blocks.in_tier(tier));
        self
    }

    #[cfg(test)]
    pub(super) fn has_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// The classes of the spec.
    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Gives all pre-tokens, in order; they tile the text.
    #[inline]
    pub(super) fn for_each(&self, text: &[u8], pieces: &mut impl Pieces) {
        match &self.blocks {
            Some(blocks) if text.len() >= WORTH_A_CHUNK => {
                blocks.run(ByBlocks { scanner: self, blocks, text, pieces });
            }
            _ => self.for_each_by_characters(text, pieces),
        }
    }

    fn for_each_by_characters(&self, text: &[u8], pieces: &mut impl Pieces) {
        let mut last_run = LastRun::default();
        let mut at = 0;
        while at < text.len() {
            let (end, is_match) = self.next(text, at, &mut last_run);
            if pieces.piece(at, end, is_match).is_break() {
                return;
            }
            at = end;
        }
    }

    /// Where the pre-token that starts at a place ends, and whether it is a match.
    fn next(&self, text: &[u8], at: usize, last_run: &mut LastRun) -> (usize, bool) {
        let end = self.match_end(text, at, last_run);
        if end > at { (end, true) } else { (self.next_match(text, at, last_run), false) }
    }

    /// The last place, at most `limit` and near it, where a pre-token starts in any case.
    pub(super) fn last_certain_start(&self, text: &[u8], limit: usize) -> Option<usize> {
        let blocks = self.blocks.as_ref()?;
        let from = limit.saturating_sub(CUT_WITHIN);
        let is_first = |place: usize| !(0x80..0xC0).contains(&text[place]);
        let mut place = limit;
        while place > from {
            let before = (place.saturating_sub(4)..place).rev().find(|&place| is_first(place))?;
            if is_first(place)
                && let Some((bits, length)) = self.classes.at(text, before)
                && let Some((next, _)) = self.classes.at(text, place)
                && before + length == place
                && blocks.is_certain_start(bits, next, text[place])
            {
                return Some(place);
            }
            place = if is_first(place) { before } else { place - 1 };
        }
        None
    }

    /// The end of a contraction that starts at `at`, or `at`.
    #[inline(never)]
    fn contraction_end(&self, text: &[u8], at: usize) -> usize {
        match self.atoms.first() {
            Some(Matcher::Literals(literals)) => self.literals_end(literals, text, at),
            Some(Matcher::Cased(cased)) => self.suffix_end(cased.suffix.as_ref(), text, at),
            _ => at,
        }
    }

    /// Where the next match starts, or the text's end; none starts at `at`.
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

    /// Where the match at `at` ends, or `at` itself if there is none.
    ///
    /// Most matches are words. Their lanes are the same every time and where they start is known before the plan
    /// is read, so a word's end depends on nothing but the text; the processor guesses the rest.
    #[inline(always)]
    fn match_end(&self, text: &[u8], at: usize, last_run: &mut LastRun) -> usize {
        // Where the text ends, a byte that decides nothing stands for what follows.
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

    /// The same for all that is no word.
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

    /// The end of a cased match of which the upper run goes on at `known`; see [`Op::Upper`].
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

    /// The match at `at` by trying one atom after the other.
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

    /// The match at `at` of an atom that is known to be the first that can match, or of one after it.
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

    /// Where an atom's match ends; `bits` and `len` are those of the first character.
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

    /// The end of a match whose body has come to `at` and may go on.
    #[inline(never)]
    fn finish(&self, atom: u8, text: &[u8], at: usize) -> usize {
        match self.atoms.get(atom as usize) {
            Some(Matcher::Run(run)) => {
                let end = match run.max {
                    None => self.run_end(text, at, run.body),
                    Some(_) => at, // known to end here
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
        // Nothing is left to do but at the end of the text, before other classes, and in other scripts.
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
        let (mut after_prefix, mut without_prefix) = (body, at); // ends of the runs of `U` there
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
        // No `L` follows either run of `U`, or one of the above would have matched: `L*` takes nothing.
        if after_prefix > body { after_prefix } else { without_prefix }
    }

    /// `U*L+` from `at`: where it ends (`at` if it fails), and where the run of `U` ends.
    fn upper_lower_end(&self, cased: &Cased, text: &[u8], at: usize) -> (usize, usize) {
        let upper_end = self.run_end(text, at, cased.upper);
        let end = self.run_end(text, upper_end, cased.lower);
        if end > upper_end || upper_end == at {
            return (end, upper_end);
        }
        (self.last_lower_end(cased, text, at, upper_end), upper_end)
    }

    /// The end of the last `L` between two places, or the first place if there is none.
    fn last_lower_end(&self, cased: &Cased, text: &[u8], at: usize, end: usize) -> usize {
        if cased.is_ascii_split && text[at..end].is_ascii() {
            return at;
        }
        let (mut place, mut last) = (at, at);
        while place < end {
            let Some((bits, len)) = self.classes.at(text, place) else { break };
            place += len;
            if bits & cased.lower.bit != 0 {
                last = place;
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
            *last_run = self.walk(space, text, at);
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

    /// Walks the run of white space that starts at `at`.
    #[inline(always)]
    fn walk(&self, space: &Space, text: &[u8], mut at: usize) -> LastRun {
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

    /// The end of the literals after `at`, which may be missing.
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

    /// The end of the first sequence that the text goes on with, or `at` if it does with none.
    #[inline(never)]
    fn literals_end(&self, literals: &Literals, text: &[u8], at: usize) -> usize {
        for sequence in &literals.sequences {
            let mut end = at;
            let is_there = sequence.iter().all(|bit| match self.classes.at(text, end) {
                Some((bits, len)) if bits & bit != 0 => {
                    end += len;
                    true
                }
                _ => false,
            });
            if is_there {
                return end;
            }
        }
        at
    }
}

impl Matcher {
    fn new(atom: &Atom, bytes: &[u32; 256]) -> Self {
        let class = |id: ClassId| Class { bit: 1 << id, lanes: Lanes::new(bytes, 1 << id) };
        let suffix = |list: &spec::Literals| (!list.is_empty()).then(|| Literals::new(list));
        match atom {
            Atom::Literals(list) => Self::Literals(Literals::new(list)),
            Atom::Run(run) => Self::Run(Run {
                prefix: match run.prefix {
                    Prefix::None => 0,
                    Prefix::Optional(id) | Prefix::Required(id) => 1 << id,
                },
                is_prefix_required: matches!(run.prefix, Prefix::Required(_)),
                body: class(run.body),
                max: run.max,
                tail: run.tail.map(class),
                suffix: suffix(&run.suffix),
            }),
            Atom::Cased(cased) => {
                let both = 1 << cased.upper | 1 << cased.lower;
                Self::Cased(Cased {
                    prefix: cased.prefix.map_or(0, |id| 1 << id),
                    upper: class(cased.upper),
                    lower: class(cased.lower),
                    is_ascii_split: bytes[..0x80].iter().all(|bits| bits & both != both),
                    suffix: suffix(&cased.suffix),
                })
            }
            Atom::Space(space) => Self::Space(Space {
                class: 1 << space.class,
                last: space.steps.iter().fold(0, |last, step| match step {
                    Step::ToLast(id) => 1 << id,
                    _ => last,
                }),
                steps: space.steps.clone(),
            }),
        }
    }

    /// The classes of the characters that a match can start with.
    fn first(&self) -> u32 {
        match self {
            Self::Literals(literals) => literals.first,
            Self::Run(run) if run.is_prefix_required => run.prefix,
            Self::Run(run) => run.prefix | run.body.bit,
            Self::Cased(cased) => cased.prefix | cased.upper.bit | cased.lower.bit,
            Self::Space(space) => space.class,
        }
    }

    /// What words are made of, if this atom is one.
    fn word(&self) -> Word {
        let first = |suffix: &Option<Literals>| suffix.as_ref().map_or(0, |suffix| suffix.first);
        let (class, next) = match self {
            Self::Run(run) => (run.body, run.tail.map_or(0, |tail| tail.bit) | first(&run.suffix)),
            Self::Cased(cased) => (cased.lower, first(&cased.suffix)),
            Self::Literals(_) | Self::Space(_) => return Word::default(),
        };
        Word { lanes: class.lanes.unwrap_or_default(), or_next: class.bit | next }
    }
}

impl Literals {
    fn new(list: &spec::Literals) -> Self {
        let sequences: Vec<Vec<u32>> =
            list.iter().map(|ids| ids.iter().map(|id| 1 << id).collect()).collect();
        let first =
            sequences.iter().filter_map(|sequence| sequence.first()).fold(0, |all, bit| all | bit);
        Self { sequences, first }
    }
}
