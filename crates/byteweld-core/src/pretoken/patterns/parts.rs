//! An alternative as a sequence of repeated classes: what `recognize.rs` compares with the known shapes.

use regex_syntax::hir::{ClassUnicode, Hir, HirKind};

use super::normalize::Alternative;
use crate::pretoken::characters::class_of;

/// The parts of an alternative, in order.
pub(super) struct Parts<'a> {
    pub(super) list: Vec<Part<'a>>,
    /// As [`Alternative::gives_back`].
    pub(super) gives_back: bool,
}

pub(super) enum Part<'a> {
    /// `C{min,max}`, greedy; the class is not empty.
    Repeat(ClassUnicode, u32, Option<u32>),
    /// Any other expression.
    Other(&'a Hir),
}

impl<'a> Parts<'a> {
    /// The parts of an alternative. One that is a group of alternatives counts as each of them; `None` stands for one
    /// that has no parts, because it has a lazy repeat or an empty class.
    pub(super) fn of(alternative: &'a Alternative) -> Vec<Option<Self>> {
        match strip(&alternative.hir).kind() {
            HirKind::Alternation(list) if !alternative.gives_back => {
                list.iter().map(|hir| Self::new(hir, false)).collect()
            }
            _ => vec![Self::new(&alternative.hir, alternative.gives_back)],
        }
    }

    fn new(hir: &'a Hir, gives_back: bool) -> Option<Self> {
        let hir = strip(hir);
        let list = match hir.kind() {
            HirKind::Concat(parts) => parts.iter().map(part_of).collect::<Option<_>>()?,
            _ => vec![part_of(hir)?],
        };
        Some(Self { list, gives_back })
    }
}

/// The expression inside capture groups, which do not change what matches.
fn strip(mut hir: &Hir) -> &Hir {
    while let HirKind::Capture(capture) = hir.kind() {
        hir = &capture.sub;
    }
    hir
}

fn part_of(hir: &Hir) -> Option<Part<'_>> {
    let hir = strip(hir);
    let (class, min, max) = match hir.kind() {
        HirKind::Repetition(repeat) if !repeat.greedy => return None,
        HirKind::Repetition(repeat) => (class_of(&repeat.sub), repeat.min, repeat.max),
        _ => (class_of(hir), 1, Some(1)),
    };
    match class {
        Some(class) if class.ranges().is_empty() => None,
        Some(class) => Some(Part::Repeat(class, min, max)),
        None => Some(Part::Other(hir)),
    }
}
