//! Which patterns belong to GPT-2's family, and what distinguishes them.
//!
//! They split text into words (with an optional character before them), numbers, other characters
//! and white space, and every character is one of the four. A pattern's atoms (`patterns/spec.rs`)
//! are reduced to the few facts that the rules depend on. A pattern with a class that differs from
//! the family's in a single ASCII character does not belong to it; `kinds.rs` checks all other
//! characters.

use regex_syntax::hir::ClassUnicodeRange;

use super::kinds::ClassBits;
use super::tiers::BLOCK;
use crate::pretoken::characters::{Classes, contains};
use crate::pretoken::patterns::spec::{Atom, ClassId, Literals, Prefix, Run, Spec, Step};

/// A pattern of the family.
pub(super) struct Family {
    pub(super) classes: ClassBits,
    /// The most digits in a number.
    pub(super) number_max: Option<u32>,
    /// Whether white space at the end of the text is always one pre-token.
    pub(super) is_end_whole: bool,
    pub(super) shape: Shape,
}

/// What the rules depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether a word is split where its case changes.
    pub(super) is_cased: bool,
    /// Whether any character but a newline, letter or number may precede a word; else only a space.
    pub(super) has_wide_prefix: bool,
    /// Whether a space may precede a number.
    pub(super) has_number_prefix: bool,
    pub(super) tail: Tail,
    /// Whether white space up to its last newline is one pre-token.
    pub(super) has_to_last: bool,
    pub(super) contractions: Contractions,
}

impl Shape {
    /// Whether slashes matter.
    #[inline(always)]
    pub(super) const fn has_slashes(self) -> bool {
        matches!(self.tail, Tail::NewlinesAndSlashes)
    }

    /// GPT-2's pattern.
    pub(super) const GPT2: Self = Self {
        is_cased: false,
        has_wide_prefix: false,
        has_number_prefix: true,
        tail: Tail::None,
        has_to_last: false,
        contractions: Contractions::First,
    };

    /// The patterns of cl100k, Llama 3 and Qwen.
    pub(super) const CL100K: Self = Self {
        is_cased: false,
        has_wide_prefix: true,
        has_number_prefix: false,
        tail: Tail::Newlines,
        has_to_last: true,
        contractions: Contractions::First,
    };

    /// The pattern of o200k.
    pub(super) const O200K: Self = Self {
        is_cased: true,
        has_wide_prefix: true,
        has_number_prefix: false,
        tail: Tail::NewlinesAndSlashes,
        has_to_last: true,
        contractions: Contractions::Suffix,
    };

    /// The pattern of Mistral's newer models.
    pub(super) const TEKKEN: Self = Self { contractions: Contractions::None, ..Self::O200K };
}

/// What may follow other characters in the same pre-token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    None,
    Newlines,
    NewlinesAndSlashes,
}

/// Where contractions may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contractions {
    None,
    /// At the start of a pre-token.
    First,
    /// After a word, in the same pre-token.
    Suffix,
}

impl Family {
    /// The pattern of a spec, if it belongs to the family.
    pub(super) fn new(spec: &Spec, classes: &Classes) -> Option<Self> {
        let (first, rest) = match &spec.atoms[..] {
            [Atom::Literals(literals), rest @ ..] => (Some(literals), rest),
            rest => (None, rest),
        };
        let [word, Atom::Run(number), Atom::Run(other), Atom::Space(white)] = rest else {
            return None;
        };
        let ascii = Ascii { bytes: &classes.bytes };
        let (prefix, suffix, is_cased, upper, lower) = match word {
            Atom::Cased(cased) => {
                let is_split = ascii.is(cased.upper, |b| b.is_ascii_uppercase())
                    && ascii.is(cased.lower, |b| b.is_ascii_lowercase());
                is_split.then_some(())?;
                (cased.prefix, &cased.suffix, true, cased.upper, cased.lower)
            }
            Atom::Run(run) if run.max.is_none() && run.tail.is_none() => {
                ascii.is(run.body, |b| b.is_ascii_alphabetic()).then_some(())?;
                let prefix = match run.prefix {
                    Prefix::Optional(id) => Some(id),
                    Prefix::None | Prefix::Required(_) => return None,
                };
                (prefix, &run.suffix, false, run.body, run.body)
            }
            _ => return None,
        };
        let letter = 1 << upper | 1 << lower;
        let contractions = match (first, suffix) {
            (None, suffix) if suffix.is_empty() => Contractions::None,
            (None, suffix) if is_cased => {
                are_contractions(spec, suffix, letter).then_some(Contractions::Suffix)?
            }
            // A contraction ends a word, of which the rules about cases know nothing.
            (Some(first), suffix) if suffix.is_empty() && !is_cased => {
                are_contractions(spec, first, letter).then_some(Contractions::First)?
            }
            _ => return None,
        };
        let is_number = number.tail.is_none() && number.suffix.is_empty();
        let is_other = other.max.is_none() && other.suffix.is_empty();
        let are_right = is_number
            && is_other
            && ascii.is(number.body, |b| b.is_ascii_digit())
            && ascii.is(white.class, is_white)
            && ascii.is(other.body, |b| !is_white(b) && !b.is_ascii_alphanumeric());
        are_right.then_some(())?;
        let is_space_only = |id| is_exactly(spec, id, &[' ']);
        let prefix = prefix?;
        let has_wide_prefix = !is_space_only(prefix);
        let is_apart = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'\n' | b'\r');
        if has_wide_prefix && !ascii.is(prefix, |b| !is_apart(b)) {
            return None;
        }
        let prefixed = |run: &Run| match run.prefix {
            Prefix::None => Some(false),
            Prefix::Optional(id) if is_space_only(id) => Some(true),
            _ => None,
        };
        prefixed(other)?.then_some(())?;
        let is_newline = |id| is_exactly(spec, id, &['\n', '\r']);
        let (has_to_last, is_end_whole) = match white.steps[..] {
            [Step::AtEnd, Step::AllButOne, Step::All] => (false, true),
            [Step::AtEnd, Step::ToLast(id), Step::AllButOne, Step::All] if is_newline(id) => {
                (true, true)
            }
            [Step::ToLast(id), Step::AtEnd, Step::AllButOne, Step::All] if is_newline(id) => {
                (true, false)
            }
            _ => return None,
        };
        let has_number_prefix = prefixed(number)?;
        let is_short = number.max.is_none_or(|max| (max as usize) < BLOCK);
        if !is_short || has_number_prefix && number.max.is_some() {
            return None;
        }
        Some(Self {
            classes: ClassBits {
                upper: 1 << upper,
                lower: 1 << lower,
                number: 1 << number.body,
                white: 1 << white.class,
                other: 1 << other.body,
                prefix: if has_wide_prefix { 1 << prefix } else { 0 },
            },
            number_max: number.max,
            is_end_whole,
            shape: Shape {
                is_cased,
                has_wide_prefix,
                has_number_prefix,
                tail: match other.tail {
                    None => Tail::None,
                    Some(id) if is_newline(id) => Tail::Newlines,
                    Some(id) if is_exactly(spec, id, &['\n', '\r', '/']) => {
                        Tail::NewlinesAndSlashes
                    }
                    Some(_) => return None,
                },
                has_to_last,
                contractions,
            },
        })
    }
}

impl Family {
    /// Whether a pre-token starts between characters of the classes `before` and `after`, whatever
    /// the rest of the text is: a word has ended, and what follows cannot belong to it. `first` is
    /// the first byte of the second character.
    pub(super) fn is_certain_start(&self, before: u32, after: u32, first: u8) -> bool {
        let classes = self.classes;
        let letter = classes.upper | classes.lower;
        let is_letter = before & letter != 0 && before & classes.other == 0;
        is_letter && after & (letter | classes.number) == 0 && first != b'\''
    }
}

/// The ASCII part of classes.
struct Ascii<'c> {
    bytes: &'c [u32; 256],
}

impl Ascii<'_> {
    fn is(&self, class: ClassId, is_in: impl Fn(u8) -> bool) -> bool {
        (0..0x80u8).all(|byte| (self.bytes[byte as usize] >> class & 1 != 0) == is_in(byte))
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// Whether a class consists of exactly these characters, which are ascending.
fn is_exactly(spec: &Spec, class: ClassId, characters: &[char]) -> bool {
    let all = spec.classes[class].ranges().iter().flat_map(|range| range.start()..=range.end());
    all.take(characters.len() + 1).eq(characters.iter().copied())
}

/// Whether every sequence is an apostrophe and one or two letters.
fn are_contractions(spec: &Spec, literals: &Literals, letter: u32) -> bool {
    let is_letter = |c: char| {
        (0..spec.classes.len()).any(|id| letter >> id & 1 != 0 && contains(&spec.classes[id], c))
    };
    literals.iter().all(|sequence| match sequence[..] {
        [first, ref rest @ ..] if !rest.is_empty() && rest.len() <= 2 => {
            let mut classes = rest.iter().map(|&id| spec.classes[id].ranges());
            let is_small =
                |range: &ClassUnicodeRange| range.end() as u32 - (range.start() as u32) < 32;
            is_exactly(spec, first, &['\''])
                && classes.all(|ranges| {
                    ranges.iter().all(|range| {
                        is_small(range) && (range.start()..=range.end()).all(is_letter)
                    })
                })
        }
        _ => false,
    })
}
