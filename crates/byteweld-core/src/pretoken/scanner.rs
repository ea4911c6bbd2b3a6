//! Runs a spec over bytes, character by character where it must and eight bytes at a time where it can.
//!
//! The text need not be UTF-8: a byte that is not part of a character is one character of no class
//! (`classes.rs`). Nothing is allocated and nothing is copied. Time is linear: an atom that fails has looked at
//! a few characters, or at a run of white space that is remembered until it ends.

use std::ops::ControlFlow;

use super::classes::Classes;
use super::spec::{self, Atom, ClassId, Prefix, Spec, Step};

pub(super) struct Scanner {
    classes: Classes,
    atoms: Vec<Matcher>,
    /// By ASCII byte: the atoms that can start with it, as bits.
    starts: [u32; 256],
    /// By atom: the classes that it can start with.
    firsts: Vec<u32>,
}

/// An atom whose classes are bits.
enum Matcher {
    Literals(Literals),
    Run(Run),
    Cased(Cased),
    Space(Space),
}

type Literals = Vec<Vec<u32>>;

struct Run {
    prefix: u32,
    is_prefix_required: bool,
    body: Class,
    max: Option<u32>,
    tail: Option<Class>,
    suffix: Option<Literals>,
}

struct Cased {
    prefix: u32,
    upper: Class,
    lower: Class,
    suffix: Option<Literals>,
}

struct Space {
    class: u32,
    last: u32,
    steps: Vec<Step>,
}

/// A class, and how to find its ASCII run in eight bytes where that is possible.
#[derive(Clone, Copy)]
struct Class {
    bit: u32,
    lanes: Option<Lanes>,
}

/// The run of white space that was walked last; it serves all places inside of it.
#[derive(Default)]
struct LastRun {
    end: usize,
    /// Where its last character starts.
    last_start: usize,
    /// Where the last character of the class that steps look for ends; 0 if there is none.
    last_end: usize,
}

impl Scanner {
    /// A scanner for a spec; `None` if its classes are too odd.
    pub(super) fn new(spec: &Spec) -> Option<Self> {
        let classes = Classes::new(&spec.classes)?;
        if spec.atoms.len() > 32 {
            return None;
        }
        let class =
            |id: ClassId| Class { bit: 1 << id, lanes: Lanes::new(&classes.ascii, 1 << id) };
        let atoms: Vec<Matcher> = spec.atoms.iter().map(|atom| Matcher::new(atom, class)).collect();
        let firsts: Vec<u32> = atoms.iter().map(Matcher::first).collect();
        let mut starts = [0; 256];
        for (byte, starts) in starts.iter_mut().enumerate() {
            *starts = starting(&firsts, classes.ascii[byte]);
        }
        Some(Self { classes, atoms, starts, firsts })
    }

    /// The classes of the spec.
    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The ranges of all pre-tokens, in order, and whether they are matches; they tile the text.
    #[inline]
    pub(super) fn for_each(
        &self,
        text: &[u8],
        each: &mut impl FnMut(usize, usize, bool) -> ControlFlow<()>,
    ) {
        let mut last_run = LastRun::default();
        let mut unmatched = 0; // start of the text that no piece holds yet
        let mut at = 0;
        while at < text.len() {
            let (end, len) = self.match_at(text, at, &mut last_run);
            if end == at {
                at += len;
                continue;
            }
            if unmatched < at && each(unmatched, at, false).is_break() {
                return;
            }
            if each(at, end, true).is_break() {
                return;
            }
            at = end;
            unmatched = end;
        }
        if unmatched < at {
            let _ = each(unmatched, at, false);
        }
    }

    /// Where the match at `at` ends (`at` itself if there is none), and the length of its first character.
    #[inline(always)]
    fn match_at(&self, text: &[u8], at: usize, last_run: &mut LastRun) -> (usize, usize) {
        let byte = text[at];
        let (bits, len, mut starts) = if byte < 0x80 {
            (self.classes.ascii[byte as usize], 1, self.starts[byte as usize])
        } else {
            let (bits, len) = self.classes.wide(text, at);
            (bits, len, starting(&self.firsts, bits))
        };
        while starts != 0 {
            let Some(atom) = self.atoms.get(starts.trailing_zeros() as usize) else { break };
            starts &= starts - 1;
            let end = match atom {
                Matcher::Run(run) => self.run_at(run, text, at, bits, len),
                Matcher::Cased(cased) => self.cased_at(cased, text, at, bits, len),
                Matcher::Space(space) => self.space_at(space, text, at, len, last_run),
                Matcher::Literals(literals) => self.literals_at(literals, text, at),
            };
            if end > at {
                return (end, len);
            }
        }
        (at, len)
    }

    #[inline(always)]
    fn run_at(&self, run: &Run, text: &[u8], at: usize, bits: u32, len: usize) -> usize {
        let mut end = at;
        if bits & run.prefix != 0 {
            let body = at + len;
            end = self.body_end(run, text, body);
            if end == body {
                end = at; // no body after the prefix
            }
        }
        if end == at {
            if run.is_prefix_required || bits & run.body.bit == 0 {
                return at;
            }
            end = match run.max {
                Some(1) => at + len,
                _ => self.body_end(run, text, at),
            };
        }
        if let Some(tail) = run.tail {
            end = self.run_end(text, end, tail);
        }
        match &run.suffix {
            Some(suffix) => self.literals_at(suffix, text, end),
            None => end,
        }
    }

    #[inline(always)]
    fn body_end(&self, run: &Run, text: &[u8], at: usize) -> usize {
        match run.max {
            None => self.run_end(text, at, run.body),
            Some(max) => self.short_run_end(text, at, run.body.bit, max),
        }
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
        loop {
            match (class.lanes, text.get(at..).and_then(|rest| rest.first_chunk())) {
                (Some(lanes), Some(bytes)) => {
                    let run = lanes.run_len(*bytes);
                    at += run;
                    if run == 8 {
                        continue;
                    }
                }
                _ => {
                    while text
                        .get(at)
                        .is_some_and(|&b| self.classes.ascii[b as usize] & class.bit != 0)
                    {
                        at += 1;
                    }
                }
            }
            if text.get(at).is_none_or(|&byte| byte < 0x80) {
                return at;
            }
            let wide = self.wide_run_end(text, at, class.bit);
            if wide == at
                || text.get(wide).is_none_or(|&b| self.classes.ascii[b as usize] & class.bit == 0)
            {
                return wide;
            }
            at = wide;
        }
    }

    /// The end of a run of a class over characters that are not ASCII.
    #[inline(never)]
    fn wide_run_end(&self, text: &[u8], mut at: usize, bit: u32) -> usize {
        while text.get(at).is_some_and(|&byte| byte >= 0x80) {
            let (bits, len) = self.classes.wide(text, at);
            if bits & bit == 0 {
                break;
            }
            at += len;
        }
        at
    }

    #[inline(always)]
    fn cased_at(&self, cased: &Cased, text: &[u8], at: usize, bits: u32, len: usize) -> usize {
        let end = self.cased_end(cased, text, at, bits, len);
        match &cased.suffix {
            Some(suffix) if end > at => self.literals_at(suffix, text, end),
            _ => end,
        }
    }

    #[inline(always)]
    fn cased_end(&self, cased: &Cased, text: &[u8], at: usize, bits: u32, len: usize) -> usize {
        let body = at + len;
        let mut after_prefix = body; // end of the `U` run there
        if bits & cased.prefix != 0 {
            let (end, upper_end) = self.upper_lower(cased, text, body);
            if end > body {
                return end;
            }
            after_prefix = upper_end;
        }
        let mut without_prefix = at;
        if bits & (cased.upper.bit | cased.lower.bit) != 0 {
            let (end, upper_end) = self.upper_lower(cased, text, at);
            if end > at {
                return end;
            }
            without_prefix = upper_end;
        }
        // No `L` follows either `U` run, or one of the above would have matched: `L*` takes nothing.
        if after_prefix > body { after_prefix } else { without_prefix }
    }

    /// `U*L+` from `at`: where it ends (`at` if it fails), and where the run of `U` ends.
    #[inline(always)]
    fn upper_lower(&self, cased: &Cased, text: &[u8], at: usize) -> (usize, usize) {
        let upper_end = self.run_end(text, at, cased.upper);
        let end = self.run_end(text, upper_end, cased.lower);
        if end > upper_end || upper_end == at {
            return (end, upper_end);
        }
        (self.last_lower_end(cased, text, at, upper_end), upper_end)
    }

    /// The end of the last `L` between two places, or `at` if there is none.
    fn last_lower_end(&self, cased: &Cased, text: &[u8], at: usize, end: usize) -> usize {
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
    fn space_at(
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

    /// The end of the first sequence that the text goes on with, or `at` if it does with none.
    fn literals_at(&self, literals: &Literals, text: &[u8], at: usize) -> usize {
        for sequence in literals {
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

/// The atoms, as bits, that can start with a character of these classes.
#[inline]
fn starting(firsts: &[u32], bits: u32) -> u32 {
    firsts.iter().rev().fold(0, |atoms, first| atoms << 1 | (bits & first != 0) as u32)
}

impl Matcher {
    fn new(atom: &Atom, class: impl Fn(ClassId) -> Class) -> Self {
        let bits = |list: &spec::Literals| -> Literals {
            list.iter().map(|ids| ids.iter().map(|&id| class(id).bit).collect()).collect()
        };
        let suffix = |list: &spec::Literals| (!list.is_empty()).then(|| bits(list));
        match atom {
            Atom::Literals(list) => Self::Literals(bits(list)),
            Atom::Run(run) => Self::Run(Run {
                prefix: match run.prefix {
                    Prefix::None => 0,
                    Prefix::Optional(id) | Prefix::Required(id) => class(id).bit,
                },
                is_prefix_required: matches!(run.prefix, Prefix::Required(_)),
                body: class(run.body),
                max: run.max,
                tail: run.tail.map(&class),
                suffix: suffix(&run.suffix),
            }),
            Atom::Cased(cased) => Self::Cased(Cased {
                prefix: cased.prefix.map_or(0, |id| class(id).bit),
                upper: class(cased.upper),
                lower: class(cased.lower),
                suffix: suffix(&cased.suffix),
            }),
            Atom::Space(space) => Self::Space(Space {
                class: class(space.class).bit,
                last: space.steps.iter().fold(0, |last, step| match step {
                    Step::ToLast(id) => class(*id).bit,
                    _ => last,
                }),
                steps: space.steps.clone(),
            }),
        }
    }

    /// The classes of the characters that a match can start with.
    fn first(&self) -> u32 {
        match self {
            Self::Literals(list) => list.iter().fold(0, |all, ids| all | ids.first().unwrap_or(&0)),
            Self::Run(run) if run.is_prefix_required => run.prefix,
            Self::Run(run) => run.prefix | run.body.bit,
            Self::Cased(cased) => cased.prefix | cased.upper.bit | cased.lower.bit,
            Self::Space(space) => space.class,
        }
    }
}

/// A class whose ASCII characters are one range, perhaps in both cases, tested on eight bytes at once.
#[derive(Clone, Copy)]
struct Lanes {
    /// Bit 5 of every byte if case does not matter.
    fold: u64,
    /// Added to a byte below 0x80, these set its highest bit if it is in the range or above, or above.
    reach: u64,
    pass: u64,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

impl Lanes {
    fn new(ascii: &[u32; 256], bit: u32) -> Option<Self> {
        let is_in = |byte: u8| ascii[byte as usize] & bit != 0;
        let first = (0..128u8).find(|&b| is_in(b))?;
        let last = (0..128u8).rev().find(|&b| is_in(b))?;
        let lanes = |fold: u8, first: u8, last: u8| Self {
            fold: fold as u64 * ONES,
            reach: (0x80 - first as u64) * ONES,
            pass: (0x7F - last as u64) * ONES,
        };
        let exact = |lanes: &Self| (0..128u8).all(|b| (lanes.run_len([b; 8]) == 8) == is_in(b));
        [lanes(0, first, last), lanes(0x20, first | 0x20, last)].into_iter().find(exact)
    }

    /// How many of the bytes, from the first on, are in the class. Bytes that are not ASCII are not.
    #[inline(always)]
    fn run_len(self, bytes: [u8; 8]) -> usize {
        let bytes = u64::from_le_bytes(bytes);
        let low = (bytes | self.fold) & !HIGH;
        // Sums stay below 0x100 in every byte, so that none carries into the next.
        let inside = (low + self.reach) & !(low + self.pass) & !bytes & HIGH;
        ((inside ^ HIGH).trailing_zeros() / 8) as usize
    }
}
