//! The atoms of a spec, ready to be matched: each class is a bit.

use super::lanes::Lanes;
use crate::pretoken::patterns::spec::{self, Atom, ClassId, Prefix, Step};

/// An atom (`patterns/spec.rs`) whose classes are bits.
pub(super) enum Matcher {
    Literals(Literals),
    Run(Run),
    Cased(Cased),
    Space(Space),
}

pub(super) struct Literals {
    pub(super) sequences: Vec<Vec<u32>>,
    /// The classes they start with.
    pub(super) first: u32,
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
    /// Whether no ASCII character is in both.
    pub(super) is_ascii_split: bool,
    pub(super) suffix: Option<Literals>,
}

pub(super) struct Space {
    pub(super) class: u32,
    /// The class that [`Step::ToLast`] looks for.
    pub(super) last: u32,
    pub(super) steps: Vec<Step>,
}

/// A class, and how to test eight ASCII bytes for it, if that is possible.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) bit: u32,
    pub(super) lanes: Option<Lanes>,
}

/// How to scan the plan's word.
#[derive(Clone, Copy, Default)]
pub(super) struct Word {
    pub(super) lanes: Lanes,
    /// The classes of its characters, and of those that may follow in the same match.
    pub(super) or_next: u32,
}

impl Matcher {
    pub(super) fn new(atom: &Atom, bytes: &[u32; 256]) -> Self {
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

    /// The classes that a match can start with.
    pub(super) fn first(&self) -> u32 {
        match self {
            Self::Literals(literals) => literals.first,
            Self::Run(run) if run.is_prefix_required => run.prefix,
            Self::Run(run) => run.prefix | run.body.bit,
            Self::Cased(cased) => cased.prefix | cased.upper.bit | cased.lower.bit,
            Self::Space(space) => space.class,
        }
    }

    /// How to scan words, if this atom matches them.
    pub(super) fn word(&self) -> Word {
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
