//! Which patterns are of GPT-2's family, and what tells one from another.
//!
//! They cut text into words (with one character before them), numbers, other characters, and white space, and
//! every character is one of the four. A pattern's shapes (`spec.rs`) come in; out go the few facts that
//! `blocks.rs` needs to run it by bits. All is looked at, class by class: what differs in one character of ASCII
//! from what the bits do is not of the family, and `wide.rs` looks at all others.

use regex_syntax::hir::ClassUnicodeRange;

use super::classes::{Classes, contains};
use super::spec::{Atom, ClassId, Literals, Prefix, Run, Spec, Step};
use super::wide::ClassBits;

/// A pattern of the family.
pub(super) struct Family {
    pub(super) classes: ClassBits,
    /// A number has at most so many digits.
    pub(super) number_max: Option<u32>,
    /// White space at the text's end is one pre-token in any case.
    pub(super) is_end_whole: bool,
    pub(super) shape: Shape,
}

/// What the bits of a block depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) is_cased: bool,
    /// Any character but newlines may stand before a word; otherwise only a space.
    pub(super) has_wide_prefix: bool,
    pub(super) has_number_prefix: bool,
    pub(super) tail: Tail,
    /// White space up to the last newline is one pre-token.
    pub(super) has_to_last: bool,
    pub(super) contractions: Contractions,
}

impl Shape {
    /// GPT-2's pattern.
    pub(super) const GPT2: Self = Self {
        is_cased: false,
        has_wide_prefix: false,
        has_number_prefix: true,
        tail: Tail::None,
        has_to_last: false,
        contractions: Contractions::First,
    };

    /// That of cl100k, and of Llama's and Qwen's.
    pub(super) const CL100K: Self = Self {
        is_cased: false,
        has_wide_prefix: true,
        has_number_prefix: false,
        tail: Tail::Newlines,
        has_to_last: true,
        contractions: Contractions::First,
    };

    /// That of o200k.
    pub(super) const O200K: Self = Self {
        is_cased: true,
        has_wide_prefix: true,
        has_number_prefix: false,
        tail: Tail::NewlinesAndSlashes,
        has_to_last: true,
        contractions: Contractions::Suffix,
    };

    /// That of Mistral's later models.
    pub(super) const TEKKEN: Self = Self { contractions: Contractions::None, ..Self::O200K };
}

/// What other characters take with them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    None,
    Newlines,
    NewlinesAndSlashes,
}

/// Where contractions are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contractions {
    None,
    /// Where a pre-token starts.
    First,
    /// Behind a word, whose part they become.
    Suffix,
}

impl Family {
    /// The pattern of a spec, if it is one of the family.
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
            (Some(first), suffix) if suffix.is_empty() => {
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
        if has_number_prefix && number.max.is_some() {
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

/// Whether a class is these characters, ascending, and no others.
fn is_exactly(spec: &Spec, class: ClassId, characters: &[char]) -> bool {
    let all = spec.classes[class].ranges().iter().flat_map(|range| range.start()..=range.end());
    all.take(characters.len() + 1).eq(characters.iter().copied())
}

/// Whether all sequences are an apostrophe and one or two letters.
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
